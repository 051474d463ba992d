/* Handlers of signals that fork: in the child the call that the handler has interrupted fails with EBADF. */

#define _GNU_SOURCE
#include "claim.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int networks[2], listener, near, far;
static pid_t main_thread_id;
static pthread_t main_thread;
static atomic_int forked, strangers;
static volatile sig_atomic_t is_child;

static void handler(int signal)
{
    (void)signal;
    if (syscall(SYS_gettid) != main_thread_id) {
        atomic_fetch_add(&strangers, 1);
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        is_child = 1;
        /* A child that waits ends by this. */
        alarm(60);
    }
    atomic_store(&forked, child);
}

static void pause_shortly(void)
{
    struct timespec pause = { .tv_nsec = 1000000 };
    nanosleep(&pause, NULL);
}

/* True if the main thread sleeps. */
static int sleeps(void)
{
    char path[64], text[256] = { 0 };
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)main_thread_id);
    int file = open(path, O_RDONLY);
    claim(file >= 0 && read(file, text, sizeof text - 1) > 0, "the state of a thread");
    close(file);
    const char *state = strrchr(text, ')');
    return state != NULL && state[1] == ' ' && state[2] == 'S';
}

/* Makes the main thread fork while it waits, and looks how its child ends. */
static void fork_while_it_waits(void)
{
    /* It may sleep for a lock, though never for long. */
    for (int seen = 0; seen < 20; seen = sleeps() ? seen + 1 : 0)
        pause_shortly();
    atomic_store(&forked, 0);
    claim(pthread_kill(main_thread, SIGUSR1) == 0, "a signal");
    while (atomic_load(&forked) == 0)
        pause_shortly();
    int status, child = atomic_load(&forked);
    claim(child > 0 && waitpid(child, &status, 0) == child, "the child ends");
    claim(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ends well");
}

/* In the child the call has failed. */
static void ends_in_child(ssize_t result, const char *call)
{
    if (!is_child)
        return;
    claim(result == -1 && errno == EBADF, call);
    char got[1];
    claim(hopwise_recv(near, got, 1) == -1 && errno == EBADF, "the child has no handles");
    _exit(0);
}

static void *sends(void *unused)
{
    fork_while_it_waits();
    claim(hopwise_send(near, "came", 4) == 4, "a thread sends");
    return unused;
}

static void *reads(void *unused)
{
    char got[4096];
    fork_while_it_waits();
    while (hopwise_recv(far, got, sizeof got) > 0)
        ;
    return unused;
}

static void *connects(void *unused)
{
    fork_while_it_waits();
    int client = hopwise_connect(networks[0], "10.7.0.2:80", NULL, NULL, 60000);
    claim(client >= 0 && hopwise_close(client) == 0, "a thread connects");
    return unused;
}

static void *finishes_its_own(void *unused)
{
    fork_while_it_waits();
    hopwise_finish(networks[0], 0);
    return unused;
}

static void *closes(void *unused)
{
    fork_while_it_waits();
    claim(hopwise_close(near) == 0, "a thread closes");
    return unused;
}

static pthread_t begin(void *(*thread)(void *))
{
    pthread_t begun;
    claim(pthread_create(&begun, NULL, thread, NULL) == 0, "a thread begins");
    return begun;
}

static void opens(void)
{
    claim(hopwise_pair("10.7.0.1/24", "10.7.0.2/24", networks) == 0, "two networks open");
    listener = hopwise_listen(networks[1], "10.7.0.2:80", NULL, NULL);
    near = hopwise_connect(networks[0], "10.7.0.2:80", NULL, NULL, 60000);
    far = hopwise_accept(listener);
    claim(near >= 0 && far >= 0, "a connection opens");
}

static void waits_of_sockets(void)
{
    char got[4];
    pthread_t thread = begin(sends);
    ssize_t result = hopwise_recv(far, got, sizeof got);
    ends_in_child(result, "a read of the child");
    claim(result == 4 && pthread_join(thread, NULL) == 0, "a read of the parent goes on");

    thread = begin(connects);
    int accepted = hopwise_accept(listener);
    ends_in_child(accepted, "an accept of the child");
    claim(accepted >= 0 && pthread_join(thread, NULL) == 0, "an accept of the parent goes on");

    /* More than both buffers hold, so that it waits. */
    static char much[1 << 16];
    thread = begin(reads);
    for (size_t sent = 0; sent < 64 << 20; sent += (size_t)result) {
        result = hopwise_send(near, much, sizeof much);
        ends_in_child(result, "a write of the child");
        claim(result > 0, "a write of the parent goes on");
    }
    claim(hopwise_shutdown(near) == 0 && pthread_join(thread, NULL) == 0, "the reader ends");

    thread = begin(finishes_its_own);
    int client = hopwise_connect(networks[0], "10.7.0.9:80", NULL, NULL, -1);
    ends_in_child(client, "a connect of the child");
    claim(client == -1 && errno != EBADF && pthread_join(thread, NULL) == 0, "a connect of the parent fails");
}

static void wait_of_finish(void)
{
    pthread_t thread = begin(closes);
    int reset = hopwise_finish(networks[1], -1);
    ends_in_child(reset, "a finish of the child");
    claim(reset == 0 && pthread_join(thread, NULL) == 0, "a finish of the parent goes on");
}

/* The library's own threads run no handlers: there a fork would make a child that drives its parent's network. */
static void no_stranger_runs_a_handler(void)
{
    sigset_t one, pending;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    claim(pthread_sigmask(SIG_BLOCK, &one, NULL) == 0, "the program blocks a signal");
    for (int nth = 0; nth < 20; nth++) {
        claim(kill(getpid(), SIGUSR1) == 0, "a signal to the process");
        pause_shortly();
        claim(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1), "nobody has taken it");
    }
    claim(atomic_load(&strangers) == 0, "no thread of the library has run a handler");
}

int main(void)
{
    main_thread = pthread_self();
    main_thread_id = (pid_t)syscall(SYS_gettid);
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
    claim(sigaction(SIGUSR1, &action, NULL) == 0, "a handler");
    opens();
    waits_of_sockets();
    opens();
    wait_of_finish();
    opens();
    no_stranger_runs_a_handler();
    return 0;
}
