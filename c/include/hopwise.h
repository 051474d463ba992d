/* Hopwise's sockets: TCP of the program's own. docs/library.md explains them. Made by cbindgen: do not edit.
 *
 * fork: networks and sockets stay with the parent. In the child each of their handles is EBADF, and no call of the
 * child does anything to the parent's connections. The child may open networks of its own. A device that the parent
 * made stays until the child, too, has ended or called exec.
 *
 * vfork, and clone with CLONE_VM: such a child is in its parent's memory and may call exec and _exit alone, as POSIX
 * says of vfork. A handle of the parent is EBADF there, too, unless parent and child both have the number 1 in their
 * PID namespaces (CLONE_NEWPID); nothing else is promised.
 *
 * fork in a handler of a signal: in the child a call that the handler has interrupted while it waited fails with EBADF.
 * One that was interrupted at its work may not return there. It is best that such a child ends in the handler, by exec
 * or _exit. The library's own threads run no handlers.
 *
 * Signals: a call that waits fails with EINTR when a signal's handler has run, unless all handlers of the program have
 * SA_RESTART. */

#ifndef HOPWISE_H
#define HOPWISE_H

#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Opens a network on a TUN device, with an address and its subnet ("10.7.0.1/24"). `kernel` is the kernel's address
 there, or NULL. It takes CAP_NET_ADMIN. Returns the network's handle.

 # Safety
 The strings end with a zero; `kernel` may be NULL.
 */
int hopwise_tun(const char *address,
                const char *kernel);

/*
 Opens a network on an Ethernet or Wi-Fi device, with an address of its own there. `gateway` is the router to other
 subnets, or NULL. It takes CAP_NET_ADMIN and CAP_NET_RAW. Returns the network's handle.

 # Safety
 The strings end with a zero; `gateway` may be NULL.
 */
int hopwise_device(const char *name,
                   const char *address,
                   const char *gateway);

/*
 Opens two networks with a wire between them, for tests. It takes no rights. Writes both handles to `networks`.

 # Safety
 The strings end with a zero, and `networks` has room for two numbers.
 */
int hopwise_pair(const char *address,
                 const char *others,
                 int *networks);

/*
 Sets the agents of a network's new connections that bring none. A NULL leaves the default.

 # Safety
 The strings end with a zero, or are NULL.
 */
int hopwise_agents(int network, const char *receiver, const char *senders);

/*
 Opens a connection to an address and a port ("10.7.0.2:80"), and waits for it at most `ms` milliseconds, or without
 end if `ms` is negative. The agents of this connection may be NULL. Returns its handle, which is a descriptor to
 poll.

 # Safety
 The strings end with a zero; those of agents may be NULL.
 */
int hopwise_connect(int network,
                    const char *to,
                    const char *receiver,
                    const char *senders,
                    int ms);

/*
 Waits for connections to an address and a port: "0.0.0.0:80" is all addresses, and port 0 any that is free. The
 agents of its connections may be NULL. Returns its handle, which is a descriptor to poll.

 # Safety
 The strings end with a zero; those of agents may be NULL.
 */
int hopwise_listen(int network,
                   const char *at,
                   const char *receiver,
                   const char *senders);

/*
 Begins to open a connection to an address and a port ("10.7.0.2:80", no name), and returns at once. It returns the
 handle of a socket that does not wait. Its descriptor turns writable once the connection stands or has failed;
 `hopwise_connected` says which. The agents of this connection may be NULL.

 # Safety
 The strings end with a zero; those of agents may be NULL.
 */
int hopwise_begin_connect(int network,
                          const char *to,
                          const char *receiver,
                          const char *senders);

/*
 Tells whether a connection stands: 0 if it does, else -1. `errno` is EINPROGRESS while it opens, and the reason once
 it has failed. The reason is told once, as by SO_ERROR, and then ENOTCONN.
 */
int hopwise_connected(int socket);

/*
 The port on which a listener waits.
 */
int hopwise_port(int listener);

/*
 The next connection of a listener. Returns its handle, which is a descriptor to poll.
 */
int hopwise_accept(int listener);

/*
 Reads what has come, at most `len` bytes. Returns how many there were; 0 is the end. The rest of the buffer stays as
 it is.

 # Safety
 `into` has room for `len` bytes.
 */
ssize_t hopwise_recv(int socket,
                     void *into,
                     size_t len);

/*
 Writes as much of the data as there is room for, at least a byte. Returns how many bytes were taken.

 # Safety
 `data` leads to `len` bytes.
 */
ssize_t hopwise_send(int socket,
                     const void *data,
                     size_t len);

/*
 Ends this side of a connection: the peer reads the end after the last byte.
 */
int hopwise_shutdown(int socket);

/*
 Sets whether short segments leave at once. The default is Nagle's algorithm.
 */
int hopwise_set_nodelay(int socket, int nodelay);

/*
 Sets whether calls on a socket fail with EAGAIN in place of waiting.
 */
int hopwise_set_nonblocking(int socket, int nonblocking);

/*
 Sets the longest wait of a call on a socket, after which it fails with ETIMEDOUT; a negative time is without end.
 */
int hopwise_set_timeout(int socket,
                        int ms);

/*
 Closes a socket, or gives a network's handle back. Written data is still delivered while the network lives: it ends
 with its last handle or socket.
 */
int hopwise_close(int handle);

/*
 Ends a network, after at most `ms` milliseconds for what was written to be delivered, or without end if `ms` is
 negative. Returns the number of connections that were reset at that time. No signal ends this wait.
 */
int hopwise_finish(int network,
                   int ms);

/*
 The text of the last error of this thread, in a buffer of the thread's own that the next error writes anew.
 */
const char *hopwise_error(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HOPWISE_H */
