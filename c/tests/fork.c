/* What a forked child does with its parent's handles: nothing, whatever it calls. */

/* For syscall(), unshare() and clone(). */
#define _GNU_SOURCE
#include "claim.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKS_BESIDE_THREADS = 100 };

static int networks[2], listener, near, far;

static int is_unknown(ssize_t result)
{
    return result == -1 && errno == EBADF;
}

static void closes(void)
{
    claim(is_unknown(hopwise_close(near)), "the child closes no connection");
    claim(is_unknown(hopwise_close(listener)), "the child closes no listener");
    claim(is_unknown(hopwise_close(networks[0])), "the child closes no network");
}

static void shuts_down(void)
{
    claim(is_unknown(hopwise_shutdown(near)), "the child ends no side");
}

static void uses(void)
{
    char got[4];
    claim(is_unknown(hopwise_send(near, "x", 1)), "the child sends nothing");
    claim(is_unknown(hopwise_recv(near, got, sizeof got)), "the child receives nothing");
    claim(is_unknown(hopwise_connected(near)), "the child has no connection");
    claim(is_unknown(hopwise_set_nodelay(near, 1)), "the child sets nothing");
    claim(is_unknown(hopwise_set_nonblocking(listener, 1)), "the child sets nothing of a listener");
    claim(is_unknown(hopwise_set_timeout(listener, 1)), "the child sets no timeout");
    claim(is_unknown(hopwise_accept(listener)), "the child accepts nothing");
    claim(is_unknown(hopwise_port(listener)), "the child has no port");
    claim(is_unknown(hopwise_agents(networks[0], "dca", NULL)), "the child sets no agents");
    claim(is_unknown(hopwise_connect(networks[0], "10.7.0.2:80", NULL, NULL, 1000)), "the child connects to nothing");
    claim(is_unknown(hopwise_begin_connect(networks[0], "10.7.0.2:80", NULL, NULL)), "the child begins nothing");
    claim(is_unknown(hopwise_listen(networks[1], "0.0.0.0:0", NULL, NULL)), "the child listens nowhere");
}

static void finishes(void)
{
    claim(is_unknown(hopwise_finish(networks[0], 500)), "the child finishes no network");
    claim(is_unknown(hopwise_finish(networks[1], 500)), "the child finishes neither network");
}

static void exits(void)
{
}

static void ends_well(pid_t child)
{
    int status;
    claim(waitpid(child, &status, 0) == child, "the child ends");
    claim(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ends well");
}

static void forked(void (*act)(void))
{
    pid_t child = fork();
    claim(child >= 0, "a fork");
    if (child == 0) {
        /* A child that waits for a lock ends by this. */
        alarm(60);
        act();
        exit(0);
    }
    ends_well(child);
}

/* A child that the C library knows nothing of: no handler of fork runs. */
static void cloned(int namespaces, void (*act)(void))
{
    pid_t child = (pid_t)syscall(SYS_clone, namespaces | SIGCHLD, 0, 0, 0, 0);
    claim(child >= 0, "a clone");
    if (child == 0) {
        alarm(60);
        act();
        _exit(0);
    }
    ends_well(child);
}

enum { STACK = 1 << 20 };

static int acts(void *act)
{
    (*(void (**)(void))act)();
    _exit(0);
}

/* A child in its parent's memory, as by vfork. */
static void shared_memory(void (*act)(void))
{
    char *stack = malloc(STACK);
    claim(stack != NULL, "memory for a stack");
    pid_t child = clone(acts, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, &act);
    claim(child >= 0, "a clone");
    ends_well(child);
    free(stack);
}

static void pass(int from, int to, const char *four)
{
    char got[5] = { 0 };
    claim(hopwise_send(from, four, 4) == 4, "four bytes are taken");
    for (size_t came = 0; came < 4;) {
        ssize_t more = hopwise_recv(to, got + came, sizeof got - came);
        claim(more > 0, "bytes come, and no end");
        came += (size_t)more;
    }
    claim(memcmp(got, four, 4) == 0, "they are what was sent, and nothing before");
}

static void opens(void)
{
    claim(hopwise_pair("10.7.0.1/24", "10.7.0.2/24", networks) == 0, "two networks open");
    listener = hopwise_listen(networks[1], "10.7.0.2:80", NULL, NULL);
    claim(listener >= 0, "a listener opens");
    near = hopwise_connect(networks[0], "10.7.0.2:80", NULL, NULL, 60000);
    far = hopwise_accept(listener);
    claim(near >= 0 && far >= 0, "a connection opens");
    hopwise_set_timeout(far, 60000);
    hopwise_set_timeout(near, 60000);
}

/* A child with networks of its own, and a child of the child. */
static void opens_its_own(void)
{
    int of_parent = near;
    opens();
    claim(near != of_parent && is_unknown(hopwise_close(of_parent)), "the parent's number stays unknown");
    pass(near, far, "OWN1");
    forked(closes);
    pass(far, near, "OWN2");
    char got[1];
    claim(hopwise_close(near) == 0 && hopwise_recv(far, got, 1) == 0, "the child's own connection ends");
    claim(hopwise_close(far) == 0, "at both ends");
    claim(hopwise_finish(networks[0], 10000) == 0, "the child's own network ends");
}

/* A parent that is process 1, as in a container, and children that are process 1 of namespaces of their own. */
static void is_process_1(void)
{
    claim(getpid() == 1, "the parent is process 1");
    opens();
    void (*const all[])(void) = { closes, shuts_down, uses, finishes };
    for (size_t nth = 0; nth < sizeof all / sizeof *all; nth++) {
        cloned(CLONE_NEWPID, all[nth]);
        pass(near, far, "ONE1");
    }
}

static void forks_process_1(void)
{
    if (unshare(CLONE_NEWPID) == 0)
        forked(is_process_1);
    else
        printf("skipped: a child with the process id of its parent: unshare: %s\n", strerror(errno));
}

static atomic_int is_over;

static void *echoes(void *unused)
{
    char bytes[256];
    while (!atomic_load(&is_over)) {
        claim(hopwise_send(near, "LONG", 4) == 4, "a thread sends");
        claim(hopwise_recv(far, bytes, sizeof bytes) > 0, "a thread receives");
        claim(is_unknown(hopwise_close(-1)), "a wrong handle");
    }
    return unused;
}

int main(void)
{
    forked(forks_process_1);
    opens();
    pass(near, far, "1234");
    void (*const all[])(void) = { closes, shuts_down, uses, finishes, exits, opens_its_own };
    for (size_t nth = 0; nth < sizeof all / sizeof *all; nth++) {
        forked(all[nth]);
        pass(near, far, "BBBB");
        pass(far, near, "CCCC");
    }
    cloned(0, closes);
    cloned(0, uses);
    cloned(0, finishes);
    pass(near, far, "DDDD");
    shared_memory(uses);
    pass(near, far, "EEEE");
    shared_memory(closes);
    shared_memory(finishes);
    pass(far, near, "FFFF");
    int other = hopwise_connect(networks[0], "10.7.0.2:80", NULL, NULL, 60000);
    claim(other >= 0 && hopwise_close(other) == 0, "the parent opens more");
    claim(hopwise_close(hopwise_accept(listener)) == 0, "and accepts more");

    /* The parent's threads hold locks at the time of the fork. */
    pthread_t thread;
    claim(pthread_create(&thread, NULL, echoes, NULL) == 0, "a thread begins");
    for (int nth = 0; nth < FORKS_BESIDE_THREADS; nth++)
        forked(nth % 2 ? closes : uses);
    atomic_store(&is_over, 1);
    claim(pthread_join(thread, NULL) == 0, "the thread ends");

    char got[1];
    claim(hopwise_close(near) == 0, "the parent closes");
    ssize_t rest;
    while ((rest = hopwise_recv(far, got, 1)) > 0)
        ;
    claim(rest == 0, "then the peer reads the end");
    claim(hopwise_close(far) == 0 && hopwise_finish(networks[0], 10000) == 0, "the network ends");
    return 0;
}
