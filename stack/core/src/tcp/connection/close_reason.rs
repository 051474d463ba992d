//! The reason why a connection is over.

/// The end of a connection, as its program gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// Both sides have closed and everything was delivered.
    Finished,
    /// The peer reset the connection.
    Reset,
    /// The peer refused to open it.
    Refused,
    /// The peer was silent for the user timeout, or did not answer the keep-alives.
    TimedOut,
    /// This side aborted.
    Aborted,
    /// The endpoint needed its memory or its place for other connections.
    GaveWay,
    /// ICMP or our link reported that the peer cannot be reached. This is believed only before the peer's SYN.
    Unreachable,
}
