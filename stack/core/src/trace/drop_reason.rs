//! The reasons for drops. Packets from the network never cause an error, only a counted, traced drop.

crate::named! {
    /// Every reason has a counter; the names are what traces and metrics print.
    pub enum DropReason {
        /// The packet is shorter than its headers say, or than a header.
        Truncated = "truncated",
        /// The version nibble is neither 4 nor 6.
        IpVersion = "ip-version",
        /// A header field contradicts another (header length, total length, option length).
        IpMalformed = "ip-malformed",
        /// The checksum of an IPv4 header is wrong.
        IpChecksum = "ip-checksum",
        /// More or longer extension headers than are parsed.
        IpExtensions = "ip-extensions",
        /// A source-routed packet, which the endpoint is not configured to take (RFC 7126).
        SourceRoute = "source-route",
        /// A source address that cannot be answered: no single host's, a loopback's, or a local one.
        BadSource = "bad-source",
        /// The destination is no local address.
        NotOurs = "not-ours",
        /// No handler for the transport protocol.
        NoProtocol = "no-protocol",
        /// A fragment that overlaps another differently, or is out of bounds (RFC 5722).
        FragmentInvalid = "fragment-invalid",
        /// No room for another incomplete datagram.
        FragmentsFull = "fragments-full",
        /// The rest of the datagram did not come in time.
        FragmentTimeout = "fragment-timeout",
        /// A wrong checksum, fewer than 8 bytes, or ICMP of the other IP version.
        IcmpMalformed = "icmp-malformed",
        /// An ICMP error that quotes no segment in flight (RFC 5927).
        IcmpUnverified = "icmp-unverified",
        /// An ICMP answer that the rate limit kept back.
        IcmpRateLimited = "icmp-rate-limited",
        /// The length field says less than a header.
        UdpMalformed = "udp-malformed",
        /// A wrong checksum, or none over IPv6 (RFC 8200 §8.1).
        UdpChecksum = "udp-checksum",
        /// No socket is bound to the port.
        UdpNoSocket = "udp-no-socket",
        /// The socket's queue is full.
        UdpQueueFull = "udp-queue-full",
        /// The data offset says less than a header.
        TcpMalformed = "tcp-malformed",
        /// The checksum is wrong.
        TcpChecksum = "tcp-checksum",
        /// Addressed to a broadcast or multicast address (MUST-57).
        TcpNotUnicast = "tcp-not-unicast",
        /// No connection and no listener.
        TcpNoConnection = "tcp-no-connection",
        /// The listener's queue is full and it may not use cookies.
        SynQueueFull = "syn-queue-full",
        /// The listener's queue is full, and SYNs come faster than cookies are sent. Most repeated SYNs get one.
        SynRateLimited = "syn-rate-limited",
        /// An ACK to a listener with a wrong or an expired cookie.
        BadCookie = "bad-cookie",
        /// The accept queue is full.
        AcceptQueueFull = "accept-queue-full",
        /// The memory for buffers is spent. Only segments that need no more of it are taken.
        NoMemory = "no-memory",
        /// The table of connections is full.
        TableFull = "table-full",
        /// Outside the receive window.
        OutOfWindow = "out-of-window",
        /// The timestamp is older than that of the last segment in sequence (RFC 7323 §5).
        Paws = "paws",
        /// A RST whose number is not exactly the next one (RFC 5961 §3).
        RstNotExact = "rst-not-exact",
        /// A SYN inside a connection (RFC 5961 §4).
        SynInConnection = "syn-in-connection",
        /// The ACK flag is missing where every segment has it.
        NoAck = "no-ack",
        /// An acknowledgment of data that was never sent (RFC 5961 §5).
        AckOfUnsent = "ack-of-unsent",
        /// An acknowledgment older than the largest window (RFC 5961 §5).
        AckTooOld = "ack-too-old",
        /// Data after the FIN, or after the reader is gone.
        DataAfterClose = "data-after-close",
        /// More separate ranges of out-of-order data than are kept.
        TooManyHoles = "too-many-holes",
        /// No buffer space is left. Only a peer that ignores the window meets this.
        NoBuffer = "no-buffer",
        /// A challenge ACK, or a repeated answer, that the rate limit kept back.
        AnswerRateLimited = "answer-rate-limited",
        /// No link leads to the destination.
        NoRoute = "no-route",
        /// The endpoint's queue of control packets is full.
        ControlQueueFull = "control-queue-full",
        /// The packet is too large for the link and may not be fragmented.
        TooBig = "too-big",
        /// The hop limit of a forwarded packet has run out.
        HopLimit = "hop-limit",
        /// The interface queue is full.
        QueueFull = "queue-full",
        /// The interface queue's memory is spent, and its longest flow gives way.
        QueueMemory = "queue-memory",
        /// CoDel drops from a flow whose packets have waited too long.
        Codel = "codel",
        /// Removed from the interface queue, since the next hop is gone.
        Purged = "purged",
        /// The link gave the packet up: the next hop does not answer.
        Undelivered = "undelivered",
        /// A packet of this node came back to it to be forwarded.
        Loop = "loop",
        /// A routing message with wrong lengths or impossible fields.
        RoutingMalformed = "routing-malformed",
        /// A routing message from a node that is not trusted, or without a valid key.
        RoutingRefused = "routing-refused",
        /// More routing messages than are passed on.
        RoutingRateLimited = "routing-rate-limited",
        /// No room among packets that wait for a route.
        RouteBufferFull = "route-buffer-full",
        /// No route was found in time.
        RouteBufferTimeout = "route-buffer-timeout",
        /// A base station already keeps the same data, and delivers its copy.
        AlreadyKept = "already-kept",
        /// A base station sends its own segment in its place.
        Replaced = "replaced",
        /// A duplicate ACK for a hole that the base station fills itself.
        Suppressed = "suppressed",
    }
}
