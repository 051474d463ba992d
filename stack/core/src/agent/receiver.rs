//! The decision when to acknowledge.

use std::fmt::{self, Debug};
use std::time::Duration;

use super::{AckRequest, Needs, Path};
use crate::Instant;
use crate::time::Millis;

/// Decides when in-order data is acknowledged, and whether an ACK is repeated.
///
/// The ledger enforces every MUST. Out-of-window segments, SYN, FIN and probes get answers whatever an agent decides.
/// In-order data gets its ACK within 500 ms.
pub trait ReceiverAgent: Debug + Send {
    /// Called when the connection is made: its SYN or SYN-ACK offers them to the peer.
    fn needs(&self) -> Needs {
        Needs::default()
    }
    /// Called for each data segment, also when a read carries several.
    fn on_arrival(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> AckVerdict;
    /// Called only when due; afterwards `deadline()` is later than `now`.
    fn on_deadline(&mut self, now: Instant, view: &RecvView<'_>) -> AckVerdict;
    /// Called for any decided ACK: the agent's own, a repeat, a forced or a piggybacked one.
    fn on_ack(&mut self, ack: &AckDecided, view: &RecvView<'_>);
    /// Pure. The absolute instant of the agent's next work; nothing else becomes due earlier.
    fn deadline(&self) -> Option<Instant>;
    /// The note that leaves with the ACK; it is frozen with the number at the decision.
    fn note(&self) -> AckNote;
    /// Called when a program asks for the connection's state. Hands each figure of the agent to `sink`, with its name.
    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64));
    /// The source of the time until [`deadline`](ReceiverAgent::deadline), if the path's RTT, rate or gaps gave it. It
    /// is called after `on_arrival`, and only while the trace is kept.
    fn basis(&self, _now: Instant, _view: &RecvView<'_>) -> Option<Basis> {
        None
    }
}

/// The property of the path that gave the length of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// [`Rtt::min`](super::Rtt::min) of the path.
    LeastRtt {
        /// `u32::MAX` if it is longer.
        us: u32,
    },
    /// The largest rate at which data has come lately.
    Rate {
        /// Payload alone.
        bytes_per_s: u64,
    },
    /// The mean gap between in-order segments.
    MeanGap {
        /// `u32::MAX` if it is longer.
        us: u32,
    },
    /// The shortest of the recent gaps between in-order segments.
    ShortestGap {
        /// `u32::MAX` if it is longer.
        us: u32,
    },
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Basis::LeastRtt { us } => write!(f, "the least round trip of {}", Millis::of_micros(*us)),
            Basis::Rate { bytes_per_s } => write!(f, "the rate of {bytes_per_s} bytes/s"),
            Basis::MeanGap { us } => write!(f, "the mean gap of {}", Millis::of_micros(*us)),
            Basis::ShortestGap { us } => write!(f, "the shortest gap of {}", Millis::of_micros(*us)),
        }
    }
}

crate::named! {
    /// The place of arriving data in the sequence space.
    pub enum Class {
        /// `rcv_nxt` advances, with no hole above it.
        InOrder = "in-order",
        /// `rcv_nxt` advances into a hole, all or part of it (RFC 5681 §4.2).
        FillsHole = "fills-hole",
        /// Above a hole.
        OutOfOrder = "out-of-order",
        /// All of it had already arrived.
        Duplicate = "duplicate",
    }
}

/// One data segment, as an agent sees it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Arrival {
    /// The same for all segments of a read.
    pub now: Instant,
    /// The class of the whole read.
    pub class: Class,
    /// The bytes by which `rcv_nxt` advances, with data above a filled hole; where it does not advance, the payload.
    pub bytes: u32,
    /// Time since the last data segment of any class. The segments of one read share its gap evenly.
    pub gap: Option<Duration>,
    /// Time since the last in-order data segment.
    pub gap_in_order: Option<Duration>,
    /// True if it has the PSH flag, which counts for the last segment of a read alone.
    pub push: bool,
    /// True if the network marked it (RFC 3168).
    pub ce: bool,
    /// The sender's request for ACKs, in the agreed form.
    pub ack_request: Option<AckRequest>,
    /// The round trip of an echoed timestamp, at an end without data of its own in flight. It contains the peer's
    /// waiting time.
    pub rtt: Option<Duration>,
}

impl Arrival {
    /// A segment with payload and nothing else.
    pub const fn new(now: Instant, class: Class, bytes: u32) -> Arrival {
        Arrival {
            now,
            class,
            bytes,
            gap: None,
            gap_in_order: None,
            push: false,
            ce: false,
            ack_request: None,
            rtt: None,
        }
    }
}

/// The connection's state, as far as a receiver agent may know it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RecvView<'a> {
    /// The agent's own state: a shadow sees the segments that it would owe.
    pub owed: Owed,
    /// The knowledge of hops and round trips so far.
    pub path: &'a Path,
    /// The sender's last reported congestion window, in segments.
    pub peer_cwnd: Option<u16>,
    /// Payload of a full segment: our own, or the largest that came.
    pub mss: u32,
    /// The window that we advertise, in bytes.
    pub advertised: u32,
    /// Separate stretches of data above the first hole.
    pub holes: u32,
}

impl<'a> RecvView<'a> {
    /// The view of a connection without news of the peer's cwnd and without holes.
    pub const fn new(owed: Owed, path: &'a Path, mss: u32, advertised: u32) -> RecvView<'a> {
        RecvView { owed, path, peer_cwnd: None, mss, advertised, holes: 0 }
    }
}

/// The unacknowledged segments of one agent of the ledger, the current arrival included. The live agent has its own,
/// and so has every shadow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owed {
    /// Segments that advanced `rcv_nxt` since the last ACK.
    pub segments: u32,
    /// The sum of their [`Arrival::bytes`].
    pub bytes: u32,
    /// Arrival of the first of them; None if there is none.
    pub since: Option<Instant>,
    /// The last decision to acknowledge, of whatever cause; None before the first.
    pub last_ack: Option<Instant>,
    /// In-order segments since the connection began.
    pub in_order_total: u64,
}

/// An agent's decision, with the reason for the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckVerdict {
    /// No ACK yet. The agent's deadline or the ledger's ceiling ends the wait.
    Hold(Why),
    /// An ACK of all in-order data up to this segment, as soon as the link has room.
    Now(Why),
    /// The last number again, while no ACK is owed.
    Repeat(Why),
}

/// For example "count 3 of 5". It suffices for every agent, and is the only source of trace text and capture comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Why {
    /// The agent's rule that decided, or the ledger's.
    pub rule: AckRule,
    /// The amount so far: segments, or bytes where the rule counts these.
    pub have: u32,
    /// The amount that releases an ACK, in the same unit; 0 if the rule counts nothing.
    pub want: u32,
}

impl Why {
    /// A reason with a count.
    pub const fn new(rule: AckRule, have: u32, want: u32) -> Why {
        Why { rule, have, want }
    }

    /// A reason without a count.
    pub const fn plain(rule: AckRule) -> Why {
        Why { rule, have: 0, want: 0 }
    }
}

/// `count 3 of 5`, or `not-in-order` without a count.
impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.rule.name())?;
        if self.want > 0 {
            write!(f, " {} of {}", self.have, self.want)?;
        }
        Ok(())
    }
}

crate::named! {
    /// The rule by which an ACK leaves or waits.
    pub enum AckRule {
        /// Each segment gets an ACK at once.
        Each = "each",
        /// Enough segments wait.
        Count = "count",
        /// Enough of the sender's window has come; or our own window reopens.
        Window = "window",
        /// ACKs keep to a rate, by measurement (TACK) or by the sender's request (TARR).
        Rate = "rate",
        /// The wait has an end, or has reached it.
        Deadline = "deadline",
        /// The segment fills a hole, lies above one, or came twice.
        NotInOrder = "not-in-order",
        /// The segment has the PSH flag.
        Push = "push",
        /// The network marked the segment (RFC 3168).
        Marked = "marked",
        /// The sender has requested this ACK, or one after more segments.
        Asked = "asked",
        /// The last ACK seems to be lost, so it is repeated.
        LostAck = "lost-ack",
        /// The ledger answers a SYN, a FIN, a probe or an unacceptable segment, or lets the ACK ride on data.
        Forced = "forced",
        /// The ledger ends the longest wait that it allows (RFC 9293 MUST-40).
        Ceiling = "ceiling",
    }
}

/// A decided ACK, as agents learn of it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AckDecided {
    /// The time of the decision; the link may have room only later.
    pub now: Instant,
    /// The cause.
    pub by: By,
    /// Segments that advanced `rcv_nxt` since the last ACK.
    pub segments: u32,
    /// The sum of their [`Arrival::bytes`].
    pub bytes: u32,
}

impl AckDecided {
    /// A decision with all of its facts.
    pub const fn new(now: Instant, by: By, segments: u32, bytes: u32) -> AckDecided {
        AckDecided { now, by, segments, bytes }
    }
}

crate::named! {
    /// The cause of an ACK.
    pub enum By {
        /// [`AckVerdict::Now`] of the agent.
        Agent = "agent",
        /// [`AckVerdict::Repeat`] of the agent.
        Repeat = "repeat",
        /// The ledger, whatever the agent decides.
        Forced = "forced",
        /// A segment that leaves anyway carries the number.
        Piggyback = "piggyback",
    }
}

/// An agent's note to the sender, in our own TCP option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckNote {
    /// Segments above the hole that came since data was last in order. It needs the handshake's agreement.
    pub dup_count: Option<u8>,
}
