/* Waits and signals: a handler without SA_RESTART ends a wait, and others do not. */

#define _GNU_SOURCE
#include "claim.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

static atomic_int caught, is_over;
static pthread_t main_thread;

static void handler(int signal)
{
    (void)signal;
    atomic_fetch_add(&caught, 1);
}

static void handle(int signal, int flags)
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
    claim(sigaction(signal, &action, NULL) == 0, "a handler");
}

static void send_one(void)
{
    struct timespec pause = { .tv_nsec = 1000000 };
    pthread_kill(main_thread, SIGUSR1);
    nanosleep(&pause, NULL);
}

/* Signals until the wait is over: one that comes before it begins ends nothing. */
static void *signals(void *unused)
{
    while (!atomic_load(&is_over))
        send_one();
    return unused;
}

/* Some signals, and then what the main thread waits for. */
static void *signals_and_sends(void *near)
{
    for (int begun = atomic_load(&caught); atomic_load(&caught) < begun + 50;)
        send_one();
    claim(hopwise_send(*(int *)near, "came", 4) == 4, "a thread sends");
    return NULL;
}

static void beside(void *(*thread)(void *), void *with, void (*act)(void))
{
    pthread_t begun;
    atomic_store(&is_over, 0);
    claim(pthread_create(&begun, NULL, thread, with) == 0, "a thread begins");
    act();
    atomic_store(&is_over, 1);
    claim(pthread_join(begun, NULL) == 0, "the thread ends");
}

static int networks[2], listener, near, far;

static void is_interrupted(void)
{
    char got[4];
    claim(hopwise_recv(far, got, sizeof got) == -1 && errno == EINTR, "a read is interrupted");
    claim(hopwise_accept(listener) == -1 && errno == EINTR, "an accept is interrupted");
    claim(hopwise_connect(networks[0], "10.7.0.9:80", NULL, NULL, 60000) == -1 && errno == EINTR,
          "a connect is interrupted");
}

static void goes_on(void)
{
    char got[4];
    claim(hopwise_recv(far, got, sizeof got) == 4, "a read goes on");
}

int main(void)
{
    main_thread = pthread_self();
    claim(hopwise_pair("10.7.0.1/24", "10.7.0.2/24", networks) == 0, "two networks open");
    listener = hopwise_listen(networks[1], "10.7.0.2:80", NULL, NULL);
    near = hopwise_connect(networks[0], "10.7.0.2:80", NULL, NULL, 60000);
    far = hopwise_accept(listener);
    claim(near >= 0 && far >= 0, "a connection opens");
    hopwise_set_timeout(far, 60000);
    hopwise_set_timeout(listener, 60000);

    handle(SIGUSR1, 0);
    beside(signals, NULL, is_interrupted);
    handle(SIGUSR1, SA_RESTART);
    beside(signals_and_sends, &near, goes_on);
    /* The handler of a fault, as libraries install it, asks nothing of waits. */
    handle(SIGSEGV, 0);
    beside(signals_and_sends, &near, goes_on);
    return 0;
}
