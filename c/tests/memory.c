/* What calls write to memory of the program: what was read, and the text of an error. */

#include "claim.h"

static char got[4000];

/* All bytes from a place on are as they were. */
static int is_untouched_from(size_t begin)
{
    for (size_t at = begin; at < sizeof got; at++)
        if (got[at] != 'k')
            return 0;
    return 1;
}

int main(void)
{
    int networks[2];
    claim(hopwise_pair("10.7.0.1/24", "10.7.0.2/24", networks) == 0, "two networks open");
    int listener = hopwise_listen(networks[1], "10.7.0.2:80", NULL, NULL);
    int near = hopwise_connect(networks[0], "10.7.0.2:80", NULL, NULL, 60000);
    int far = hopwise_accept(listener);
    claim(near >= 0 && far >= 0, "a connection opens");

    memset(got, 'k', sizeof got);
    hopwise_set_nonblocking(far, 1);
    claim(hopwise_recv(far, got, sizeof got) == -1 && errno == EAGAIN, "nothing has come");
    claim(is_untouched_from(0), "a read of nothing leaves the buffer");
    claim(hopwise_recv(-1, got, sizeof got) == -1 && errno == EBADF, "a wrong handle");
    claim(is_untouched_from(0), "a read that fails leaves the buffer");
    claim(hopwise_recv(far, NULL, 1) == -1 && errno == EFAULT, "no buffer");
    claim(hopwise_recv(far, got, (size_t)-1) == -1 && errno == EINVAL, "no such length");

    hopwise_set_nonblocking(far, 0);
    claim(hopwise_send(near, "ab", 2) == 2, "two bytes go");
    claim(hopwise_recv(far, got, sizeof got) == 2 && memcmp(got, "ab", 2) == 0, "two bytes come");
    claim(is_untouched_from(2), "the rest of the buffer stays");

    /* The arguments of a call may be taken in any order: the address before the error, the text after it. */
    const char *text = hopwise_error();
    claim(hopwise_agents(networks[0], "no-such", NULL) == -1 && errno == EINVAL, "an agent that there is not");
    claim(text == hopwise_error() && strstr(text, "no-such") != NULL, "the address of the text stays");
    static char most[20000];
    memset(most, 'x', sizeof most - 1);
    claim(hopwise_pair(most, "10.7.0.2/24", networks) == -1, "an address that is none, and long");
    size_t length = strlen(text);
    claim(length > 1000 && length < sizeof most, "a long text is cut, and has an end");

    claim(hopwise_pair("10.7.0.1/24", "10.7.0.1/24", networks) == -1 && errno == EINVAL, "one address for two");
    claim(strstr(text, "10.7.0.1/24") && strstr(text, "expected"), "the text says why");
    return 0;
}
