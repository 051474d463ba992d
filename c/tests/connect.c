/* Connects that do not wait: one that is answered, and one that is refused. */

#include "claim.h"
#include <poll.h>

static int writable(int socket, int wait)
{
    struct pollfd watched = { .fd = socket, .events = POLLOUT };
    return poll(&watched, 1, wait) == 1 && (watched.revents & POLLOUT);
}

int main(void)
{
    int networks[2];
    claim(hopwise_pair("10.7.0.1/24", "10.7.0.2/24", networks) == 0, "two networks open");
    int listener = hopwise_listen(networks[1], "10.7.0.2:80", NULL, NULL);
    claim(listener >= 0, "a listener opens");

    int client = hopwise_begin_connect(networks[0], "10.7.0.2:80", "delayed:d=4", NULL);
    claim(client >= 0, "a connect begins");
    claim(writable(client, 60000), "it turns writable");
    claim(hopwise_connected(client) == 0, "it stands");
    int accepted = hopwise_accept(listener);
    claim(accepted >= 0 && hopwise_send(accepted, "news", 4) == 4, "the server sends");
    struct pollfd readable = { .fd = client, .events = POLLIN };
    claim(poll(&readable, 1, 60000) == 1, "it turns readable");
    char got[8];
    claim(hopwise_recv(client, got, sizeof got) == 4 && memcmp(got, "news", 4) == 0, "the client reads");
    claim(hopwise_recv(client, got, sizeof got) == -1 && errno == EAGAIN, "it does not wait");

    int refused = hopwise_begin_connect(networks[0], "10.7.0.2:9", NULL, NULL);
    claim(refused >= 0 && writable(refused, 60000), "a refused one turns writable");
    claim(hopwise_connected(refused) == -1 && errno == ECONNREFUSED, "it says why");
    claim(hopwise_connected(refused) == -1 && errno == ENOTCONN, "it says so once");

    int silent = hopwise_begin_connect(networks[0], "10.7.0.9:80", NULL, NULL);
    claim(silent >= 0 && !writable(silent, 0), "a silent one is not writable");
    claim(hopwise_connected(silent) == -1 && errno == EINPROGRESS, "it still opens");
    claim(hopwise_begin_connect(networks[0], "localhost:80", NULL, NULL) == -1 && errno == EINVAL, "no names");
    return 0;
}
