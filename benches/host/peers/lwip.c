/* The program peer of the host benchmark: lwIP on a TUN device, by its raw API and in one thread.
 *
 * cc -O2 lwip.c $(pkg-config --cflags --libs lwip) -o lwip
 *
 * It takes MODE LINK CONNECTIONS BYTES_EACH PORT, makes the device bench0 and writes "ready". A line on standard input
 * begins the work; "cpu SECONDS" on standard output ends it.
 *
 * Debian builds lwIP for programs with threads. Its check of the core lock asks nothing before tcpip_init, which never
 * runs here. The same build fixes what costs most: windows of 64 KiB, a copy of all that is sent, no SACK. */

#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <lwip/init.h>
#include <lwip/ip.h>
#include <lwip/tcp.h>
#include <lwip/timeouts.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define fail(...) (fprintf(stderr, "lwip: " __VA_ARGS__), fputc('\n', stderr), exit(2))

enum { MTU = 1500, PACKETS_IN_ROW = 64, MOST_PIECES = 16 };
enum { SEND, RECEIVE, ECHO };

static int mode, device;
static unsigned long long connections, bytes_each, ended;
static uint16_t port;
static struct netif interface;
static const uint8_t zeros[UINT16_MAX];

/* A connection: in mode send the bytes still to be written, in mode echo what waits for room to go back. */
struct connection {
    struct tcp_pcb *pcb;
    struct pbuf *pending;
    unsigned long long rest;
    bool peer_has_closed, has_closed;
};

static int checked(int result, const char *doing)
{
    if (result < 0)
        fail("%s: %s: expected success", doing, strerror(errno));
    return result;
}

static void check(err_t error, const char *doing)
{
    if (error != ERR_OK)
        fail("%s: %s: expected success", doing, strerror(err_to_errno(error)));
}

static void *found(void *pointer)
{
    if (pointer == NULL)
        fail("out of memory: expected some");
    return pointer;
}

static unsigned long long number(const char *name, const char *word, unsigned long long least, unsigned long long most)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(word, &end, 10);
    if (*word < '0' || *word > '9' || *end != '\0' || errno != 0 || value < least || value > most)
        fail("%s is \"%s\": expected a number from %llu to %llu", name, word, least, most);
    return value;
}

static void parse(int count, char **words)
{
    static const char *const modes[] = {"send", "receive", "echo"};
    if (count != 6)
        fail("got %d arguments: expected MODE LINK CONNECTIONS BYTES_EACH PORT", count - 1);
    while (mode <= ECHO && strcmp(words[1], modes[mode]) != 0)
        mode++;
    if (mode > ECHO)
        fail("MODE is \"%s\": expected send, receive or echo", words[1]);
    if (strcmp(words[2], "plain") != 0)
        fail("LINK is \"%s\": expected plain, as lwIP knows no offload of a device", words[2]);
    connections = number("CONNECTIONS", words[3], 0, INT32_MAX);
    bytes_each = number("BYTES_EACH", words[4], 0, INT64_MAX);
    port = (uint16_t)number("PORT", words[5], 1, UINT16_MAX);
}

/* Writes one packet. It normally has one piece, as the package joins them. */
static err_t output(struct netif *netif, struct pbuf *packet, const ip4_addr_t *to)
{
    (void)netif, (void)to;
    struct iovec pieces[MOST_PIECES];
    int count = 0;
    if (pbuf_clen(packet) > MOST_PIECES)
        fail("a packet has %d pieces: expected %d at most", pbuf_clen(packet), MOST_PIECES);
    for (; packet != NULL; packet = packet->next)
        pieces[count++] = (struct iovec){.iov_base = packet->payload, .iov_len = packet->len};
    if (writev(device, pieces, count) >= 0)
        return ERR_OK;
    if (errno != EAGAIN && errno != ENOBUFS)
        fail("write to bench0: %s: expected a device that is up", strerror(errno));
    /* lwIP keeps the segment and sends it later. */
    return ERR_MEM;
}

static err_t begin_interface(struct netif *netif)
{
    netif->mtu = MTU;
    netif->output = output;
    return ERR_OK;
}

static void open_device(void)
{
    device = checked(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC), "open /dev/net/tun");
    struct ifreq request = {.ifr_name = "bench0", .ifr_flags = IFF_TUN | IFF_NO_PI};
    checked(ioctl(device, TUNSETIFF, &request), "make the TUN device bench0");
    ip4_addr_t ours, mask;
    IP4_ADDR(&ours, 10, 7, 0, 1);
    IP4_ADDR(&mask, 255, 255, 255, 0);
    found(netif_add(&interface, &ours, &mask, NULL, NULL, begin_interface, ip_input));
    netif_set_link_up(&interface);
    netif_set_up(&interface);
}

/* Hands one packet to lwIP; false if there is none. The buffer of a read in vain serves the next one. It is no
 * PBUF_POOL: the package has built that pool for the TCP_MSS of the C library, 512, so a packet overflows it. */
static bool take_packet(void)
{
    static struct pbuf *spare;
    if (spare == NULL)
        spare = found(pbuf_alloc(PBUF_RAW, MTU, PBUF_RAM));
    ssize_t bytes = read(device, spare->payload, MTU);
    if (bytes < 0 && errno == EAGAIN)
        return false;
    checked((int)bytes, "read from bench0");
    struct pbuf *packet = spare;
    spare = NULL;
    pbuf_realloc(packet, (u16_t)bytes);
    if (interface.input(packet, &interface) != ERR_OK)
        pbuf_free(packet);
    return true;
}

/* Writes as much as there is room for, then closes our side when it is time. Every call comes from a callback of
 * lwIP's, which itself sends afterwards. The package copies even without TCP_WRITE_FLAG_COPY. */
static void proceed(struct connection *connection)
{
    struct tcp_pcb *pcb = connection->pcb;
    u16_t bytes;
    while (connection->pending != NULL) {
        bytes = (u16_t)LWIP_MIN(connection->pending->len, tcp_sndbuf(pcb));
        if (bytes == 0 || tcp_write(pcb, connection->pending->payload, bytes, TCP_WRITE_FLAG_COPY) != ERR_OK)
            return;
        /* The window reopens only now, so a peer that does not read cannot fill memory. */
        tcp_recved(pcb, bytes);
        connection->pending = pbuf_free_header(connection->pending, bytes);
    }
    while (connection->rest > 0) {
        bytes = (u16_t)LWIP_MIN(connection->rest, LWIP_MIN(tcp_sndbuf(pcb), sizeof zeros));
        if (bytes == 0 || tcp_write(pcb, zeros, bytes, TCP_WRITE_FLAG_COPY) != ERR_OK)
            return;
        connection->rest -= bytes;
    }
    if (!connection->has_closed && (mode == SEND || connection->peer_has_closed)) {
        connection->has_closed = true;
        check(tcp_shutdown(pcb, 0, 1), "close the side that writes");
    }
}

/* lwIP has freed the pcb. ERR_CLSD is the orderly end after a tcp_shutdown. In mode echo, a reset is an end, too. */
static void on_end(void *argument, err_t error)
{
    struct connection *connection = argument;
    if (mode != ECHO && error != ERR_CLSD)
        fail("a connection broke (%s): expected its orderly end", strerror(err_to_errno(error)));
    if (connection->pending != NULL)
        pbuf_free(connection->pending);
    free(connection);
    ended++;
}

static err_t on_sent(void *argument, struct tcp_pcb *pcb, u16_t bytes)
{
    (void)pcb, (void)bytes;
    proceed(argument);
    return ERR_OK;
}

static err_t on_connected(void *argument, struct tcp_pcb *pcb, err_t error)
{
    check(error, "connect");
    return on_sent(argument, pcb, 0);
}

static err_t on_received(void *argument, struct tcp_pcb *pcb, struct pbuf *data, err_t error)
{
    struct connection *connection = argument;
    check(error, "receive");
    if (data != NULL && mode != ECHO) {
        tcp_recved(pcb, data->tot_len);
        pbuf_free(data);
    } else if (data != NULL && connection->pending != NULL) {
        pbuf_cat(connection->pending, data);
    } else if (data != NULL) {
        connection->pending = data;
        proceed(connection);
    } else if (mode != SEND) {
        connection->peer_has_closed = true;
        proceed(connection);
    } else if (connection->rest > 0) {
        fail("the peer closed %llu bytes early: expected it to read all", connection->rest);
    } else {
        /* lwIP keeps the pcb in TIME-WAIT by itself. */
        tcp_recv(pcb, NULL);
        tcp_sent(pcb, NULL);
        tcp_err(pcb, NULL);
        on_end(connection, ERR_CLSD);
    }
    return ERR_OK;
}

static err_t begin_connection(void *unused, struct tcp_pcb *pcb, err_t error)
{
    (void)unused;
    check(error, "accept");
    struct connection *connection = found(calloc(1, sizeof *connection));
    connection->pcb = pcb;
    connection->rest = mode == SEND ? bytes_each : 0;
    if (mode == ECHO)
        tcp_nagle_disable(pcb);
    tcp_arg(pcb, connection);
    tcp_recv(pcb, on_received);
    tcp_sent(pcb, on_sent);
    tcp_err(pcb, on_end);
    return ERR_OK;
}

static void connect_all(void)
{
    const ip_addr_t kernels = IPADDR4_INIT_BYTES(10, 7, 0, 2);
    for (unsigned long long i = 0; i < connections; i++) {
        struct tcp_pcb *pcb = found(tcp_new());
        begin_connection(NULL, pcb, ERR_OK);
        check(tcp_connect(pcb, &kernels, port, on_connected), "connect");
    }
}

static void run(void)
{
    struct pollfd waits[] = {{.fd = device, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
    for (;;) {
        int packets = 0;
        while (packets < PACKETS_IN_ROW && take_packet())
            packets++;
        sys_check_timeouts();
        if (mode != ECHO && ended >= connections)
            return;
        int timeout = packets == PACKETS_IN_ROW ? 0 : (int)LWIP_MIN(sys_timeouts_sleeptime(), INT32_MAX);
        /* Only mode echo waits for the end of standard input. */
        checked(poll(waits, mode == ECHO ? 2 : 1, timeout), "poll");
        char byte;
        if (waits[1].revents != 0 && checked((int)read(STDIN_FILENO, &byte, 1), "read standard input") == 0)
            return;
    }
}

int main(int count, char **words)
{
    parse(count, words);
    /* lwIP takes ports and first sequence numbers from rand. */
    srand((unsigned)time(NULL) ^ (unsigned)getpid());
    lwip_init();
    open_device();
    if (mode != SEND) {
        struct tcp_pcb *pcb = found(tcp_new());
        check(tcp_bind(pcb, IP4_ADDR_ANY, port), "bind");
        tcp_accept((struct tcp_pcb *)found(tcp_listen(pcb)), begin_connection);
    }
    puts("ready");
    fflush(stdout);
    int byte;
    while ((byte = getchar()) != '\n')
        if (byte == EOF)
            fail("standard input has ended: expected one line");
    /* The C library's clock reads CLOCK_PROCESS_CPUTIME_ID. */
    clock_t began = clock();
    if (mode == SEND)
        connect_all();
    run();
    printf("cpu %.6f\n", (double)(clock() - began) / CLOCKS_PER_SEC);
    return 0;
}
