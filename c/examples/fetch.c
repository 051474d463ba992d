/* A server and a client in one thread, by a poll loop over both ends of one connection.
 *
 * cargo build --release -p hopwise-c
 * ln -sf libhopwise_c.so target/release/libhopwise.so.0
 * cc -I c/include c/examples/fetch.c -L target/release -lhopwise_c -Wl,-rpath,target/release -o fetch
 * ./fetch < README.md
 *
 * Standard input goes to the server, which returns it; what comes back goes to standard output. */

#include <errno.h>
#include <hopwise.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 1 << 16 };

/* Bytes on their way through one end. */
struct pipe {
    char bytes[BUFFER];
    size_t begin, end;
    int is_at_end;
};

static int checked(int result, const char *doing)
{
    if (result < 0) {
        fprintf(stderr, "%s: %s (%s)\n", doing, hopwise_error(), strerror(errno));
        exit(1);
    }
    return result;
}

/* Reads once, if the pipe is empty. */
static void fill(int socket, struct pipe *pipe)
{
    if (pipe->begin < pipe->end || pipe->is_at_end)
        return;
    ssize_t got = hopwise_recv(socket, pipe->bytes, BUFFER);
    if (got < 0 && errno == EAGAIN)
        return;
    checked((int)got, "receive");
    pipe->begin = 0;
    pipe->end = (size_t)got;
    pipe->is_at_end = got == 0;
}

/* Sends what the pipe holds; its end ends this side. */
static void drain(int socket, struct pipe *pipe, int *has_ended)
{
    while (pipe->begin < pipe->end) {
        ssize_t sent = hopwise_send(socket, pipe->bytes + pipe->begin, pipe->end - pipe->begin);
        if (sent < 0 && errno == EAGAIN)
            return;
        checked((int)sent, "send");
        pipe->begin += (size_t)sent;
    }
    if (pipe->is_at_end && !*has_ended) {
        checked(hopwise_shutdown(socket), "shutdown");
        *has_ended = 1;
    }
}

int main(void)
{
    static struct pipe input, echo, output;
    int networks[2], client_ended = 0, server_ended = 0;
    checked(hopwise_pair("10.7.0.1/24", "10.7.0.2/24", networks), "open two networks");
    int listener = checked(hopwise_listen(networks[1], "0.0.0.0:0", NULL, NULL), "listen");
    char server[32];
    snprintf(server, sizeof server, "10.7.0.2:%d", checked(hopwise_port(listener), "port"));
    int client = checked(hopwise_connect(networks[0], server, "delayed:d=4", "[newreno]", 10000), "connect");
    int accepted = checked(hopwise_accept(listener), "accept");
    checked(hopwise_set_nonblocking(client, 1), "set");
    checked(hopwise_set_nonblocking(accepted, 1), "set");
    checked(hopwise_set_nodelay(client, 1), "set");

    while (!output.is_at_end) {
        if (input.begin == input.end && !input.is_at_end) {
            ssize_t got = read(STDIN_FILENO, input.bytes, BUFFER);
            checked((int)got, "read");
            input.begin = 0;
            input.end = (size_t)got;
            input.is_at_end = got == 0;
        }
        struct pollfd ends[2] = {
            { .fd = client, .events = (short)(POLLIN | (input.begin < input.end ? POLLOUT : 0)) },
            { .fd = accepted, .events = (short)(echo.begin < echo.end ? POLLOUT : echo.is_at_end ? 0 : POLLIN) },
        };
        drain(client, &input, &client_ended);
        checked(poll(ends, 2, 60000), "poll");
        if (ends[1].revents & POLLIN)
            fill(accepted, &echo);
        drain(accepted, &echo, &server_ended);
        if (ends[0].revents & POLLIN)
            fill(client, &output);
        if (output.begin < output.end) {
            if (fwrite(output.bytes + output.begin, 1, output.end - output.begin, stdout) == 0)
                return 1;
            output.begin = output.end;
        }
    }
    if (fflush(stdout) != 0)
        return 1;
    checked(hopwise_close(client), "close");
    checked(hopwise_close(accepted), "close");
    if (hopwise_close(accepted) != -1 || errno != EBADF)
        return 1;
    if (hopwise_connect(networks[0], "10.7.0.2:9", NULL, NULL, 10000) != -1 || errno != ECONNREFUSED)
        return 1;
    if (hopwise_agents(networks[0], "no-such", NULL) != -1 || errno != EINVAL || !strstr(hopwise_error(), "no-such"))
        return 1;
    return checked(hopwise_finish(networks[0], 10000), "finish");
}
