//! The reasons for drops. Packets from the network never cause an error, only a counted, traced drop.

macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)?) => {
        /// Every reason has a counter; the names are what traces and metrics print.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum DropReason { $($(#[$doc])* $variant),+ }

        impl DropReason {
            pub const ALL: &[DropReason] = &[$(DropReason::$variant),+];

            pub const fn name(self) -> &'static str {
                match self { $(DropReason::$variant => $name),+ }
            }
        }
    };
}

drop_reasons! {
    /// Shorter than its headers say, or than any header.
    Truncated = "truncated",
    /// The version nibble is neither 4 nor 6.
    IpVersion = "ip-version",
    /// A header field contradicts another (header length, total length, option length).
    IpMalformed = "ip-malformed",
    IpChecksum = "ip-checksum",
    /// More or longer extension headers than we walk.
    IpExtensions = "ip-extensions",
    /// Source routed, and the endpoint does not take those (RFC 7126).
    SourceRoute = "source-route",
    /// A source address that nothing can be answered to.
    BadSource = "bad-source",
    /// Not for an address of ours.
    NotOurs = "not-ours",
    /// A protocol that nobody here speaks.
    NoProtocol = "no-protocol",
    /// A fragment that overlaps another differently, or is out of bounds (RFC 5722).
    FragmentInvalid = "fragment-invalid",
    /// No room to keep another incomplete datagram.
    FragmentsFull = "fragments-full",
    /// The rest of the datagram did not come in time.
    FragmentTimeout = "fragment-timeout",
    IcmpMalformed = "icmp-malformed",
    /// An ICMP error that quotes nothing of ours that is in flight (RFC 5927).
    IcmpUnverified = "icmp-unverified",
    /// More echo requests or errors than we answer.
    IcmpRateLimited = "icmp-rate-limited",
    UdpMalformed = "udp-malformed",
    UdpChecksum = "udp-checksum",
    UdpNoSocket = "udp-no-socket",
    UdpQueueFull = "udp-queue-full",
    TcpMalformed = "tcp-malformed",
    TcpChecksum = "tcp-checksum",
    /// Addressed to a broadcast or multicast address (MUST-57).
    TcpNotUnicast = "tcp-not-unicast",
    /// No connection and no listener.
    TcpNoConnection = "tcp-no-connection",
    /// The listener's queue is full and it may not use cookies.
    SynQueueFull = "syn-queue-full",
    /// The listener's queue is full, and more SYNs come than are answered with cookies; most who come again are.
    SynRateLimited = "syn-rate-limited",
    /// An ACK to a listener whose cookie is not ours, or is too old.
    BadCookie = "bad-cookie",
    /// The accept queue is full.
    AcceptQueueFull = "accept-queue-full",
    /// The memory for buffers is spent: of what comes, only what needs no more of it is taken.
    NoMemory = "no-memory",
    /// The table of connections is full.
    TableFull = "table-full",
    /// Outside the receive window.
    OutOfWindow = "out-of-window",
    /// An older timestamp than the last in sequence (RFC 7323 §5).
    Paws = "paws",
    /// A RST whose number is not exactly the next one (RFC 5961 §3).
    RstNotExact = "rst-not-exact",
    /// A SYN inside a connection (RFC 5961 §4).
    SynInConnection = "syn-in-connection",
    /// Without ACK where every segment has one.
    NoAck = "no-ack",
    /// Acknowledges what was never sent (RFC 5961 §5).
    AckOfUnsent = "ack-of-unsent",
    /// Acknowledges what is longer ago than the largest window.
    AckTooOld = "ack-too-old",
    /// Data after the FIN, or after the reader is gone.
    DataAfterClose = "data-after-close",
    /// More stretches of out-of-order data than we keep.
    TooManyHoles = "too-many-holes",
    /// No buffer space left; only a peer that ignores the window meets this.
    NoBuffer = "no-buffer",
    /// A challenge ACK, or a repeated answer, that the rate limit swallowed.
    AnswerRateLimited = "answer-rate-limited",
    /// No link to send it on.
    NoRoute = "no-route",
    /// Our own queue of control packets is full.
    ControlQueueFull = "control-queue-full",
    /// Too large for the link and not to be fragmented.
    TooBig = "too-big",
    /// A packet on its way through a node whose hop limit has run out.
    HopLimit = "hop-limit",
    /// The interface queue is full.
    QueueFull = "queue-full",
    /// Taken out of the interface queue because its next hop is gone.
    Purged = "purged",
    /// The link gave it up: the next hop does not answer.
    Undelivered = "undelivered",
    /// A packet of our own that came back to us to be forwarded.
    Loop = "loop",
    /// A routing message with wrong lengths, or fields that cannot be.
    RoutingMalformed = "routing-malformed",
    /// A routing message from somebody whom we do not listen to, or without the key.
    RoutingRefused = "routing-refused",
    /// More routing messages than we pass on.
    RoutingRateLimited = "routing-rate-limited",
    /// No room among the packets that wait for a route.
    RouteBufferFull = "route-buffer-full",
    /// No route was found in time.
    RouteBufferTimeout = "route-buffer-timeout",
    /// A base station has the same data already, and delivers that.
    AlreadyKept = "already-kept",
    /// A base station says the same in other words.
    Replaced = "replaced",
    /// A duplicate ACK for a hole that a base station fills itself.
    Suppressed = "suppressed",
}
