//! When to acknowledge.

use std::fmt::{self, Debug};
use std::time::Duration;

use super::{AckRequest, Needs, Path};
use crate::Instant;

/// Decides when in-order data is acknowledged, and whether an ACK is said again.
///
/// The ledger owns every MUST: whatever an agent answers, out-of-window segments, SYN, FIN and probes are
/// answered, and in-order data is acknowledged before 500 ms are over.
pub trait ReceiverAgent: Debug + Send {
    fn needs(&self) -> Needs;
    /// Once per data segment, also when a read carries several.
    fn on_arrival(&mut self, arrival: &Arrival, view: &RecvView<'_>) -> AckVerdict;
    /// Only when due; afterwards `deadline()` is later than `now`.
    fn on_deadline(&mut self, now: Instant, view: &RecvView<'_>) -> AckVerdict;
    /// Any ACK decided: its own, a repeat, forced or piggybacked.
    fn on_ack(&mut self, ack: &AckDecided, view: &RecvView<'_>);
    /// Pure, absolute, complete.
    fn deadline(&self) -> Option<Instant>;
    /// Goes out with the ACK; frozen with the number when the ACK is decided.
    fn note(&self) -> AckNote;
    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64));
    /// The source of the time until [`deadline`](ReceiverAgent::deadline), where the path's RTT, rate or gaps made it.
    /// It is asked for after `on_arrival`, and only while the trace is kept.
    fn basis(&self, _now: Instant, _view: &RecvView<'_>) -> Option<Basis> {
        None
    }
}

/// A property of the path from which an agent made the length of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    LeastRtt {
        us: u32,
    },
    Rate {
        bytes_per_s: u64,
    },
    /// Between segments that came in order.
    MeanGap {
        us: u32,
    },
    ShortestGap {
        us: u32,
    },
}

/// Microseconds, shown as milliseconds.
struct Ms(u32);

impl fmt::Display for Ms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} ms", self.0 / 1000, self.0 % 1000)
    }
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Basis::LeastRtt { us } => write!(f, "the least round trip of {}", Ms(*us)),
            Basis::Rate { bytes_per_s } => write!(f, "the rate of {bytes_per_s} bytes/s"),
            Basis::MeanGap { us } => write!(f, "the mean gap of {}", Ms(*us)),
            Basis::ShortestGap { us } => write!(f, "the shortest gap of {}", Ms(*us)),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    InOrder,
    FillsHole,
    OutOfOrder,
    Duplicate,
}

/// One data segment, as an agent sees it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Arrival {
    pub now: Instant,
    pub class: Class,
    pub bytes: u32,
    /// Since the last data segment of any class. The gap of a coalesced read is shared out evenly.
    pub gap: Option<Duration>,
    /// Since the last in-order one.
    pub gap_in_order: Option<Duration>,
    pub push: bool,
    pub ce: bool,
    /// What the sender asks of our ACKs, in the form that the handshake agreed on.
    pub ack_request: Option<AckRequest>,
    /// A round trip that a timestamp of ours tells, at an end that has nothing of its own under way. It is longer by
    /// what the peer waited.
    pub rtt: Option<Duration>,
}

impl Arrival {
    /// A segment with nothing beside its payload.
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

#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RecvView<'a> {
    pub owed: Owed,
    pub path: &'a Path,
    /// The sender's congestion window in segments, as last told.
    pub peer_cwnd: Option<u16>,
    pub mss: u32,
    /// The window that we advertise, in bytes.
    pub advertised: u32,
    /// Separate stretches of data above the first hole.
    pub holes: u32,
}

impl<'a> RecvView<'a> {
    /// The view of a connection whose sender has told nothing and whose data came in order.
    pub const fn new(owed: Owed, path: &'a Path, mss: u32, advertised: u32) -> RecvView<'a> {
        RecvView { owed, path, peer_cwnd: None, mss, advertised, holes: 0 }
    }
}

/// What one seat of the ledger has not acknowledged, the arrival at hand included. The live agent has a seat,
/// and every shadow its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owed {
    pub segments: u32,
    pub bytes: u32,
    pub since: Option<Instant>,
    pub last_ack: Option<Instant>,
    /// In-order segments since the connection began.
    pub in_order_total: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckVerdict {
    Hold(Why),
    Now(Why),
    /// The last number once more; nothing is owed.
    Repeat(Why),
}

/// "count 3 of 5": enough for every agent, and the only source of trace text and capture comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Why {
    pub rule: Rule,
    pub have: u32,
    pub want: u32,
}

impl Why {
    pub const fn new(rule: Rule, have: u32, want: u32) -> Why {
        Why { rule, have, want }
    }

    /// A reason that counts nothing.
    pub const fn plain(rule: Rule) -> Why {
        Why { rule, have: 0, want: 0 }
    }
}

/// `count 3 of 5`, or `not-in-order` where nothing is counted.
impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.rule.name())?;
        if self.want > 0 {
            write!(f, " {} of {}", self.have, self.want)?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    Each,
    Count,
    Window,
    Rate,
    Deadline,
    NotInOrder,
    Push,
    Marked,
    Asked,
    LostAck,
    Forced,
    Ceiling,
}

impl Rule {
    pub const fn name(self) -> &'static str {
        match self {
            Rule::Each => "each",
            Rule::Count => "count",
            Rule::Window => "window",
            Rule::Rate => "rate",
            Rule::Deadline => "deadline",
            Rule::NotInOrder => "not-in-order",
            Rule::Push => "push",
            Rule::Marked => "marked",
            Rule::Asked => "asked",
            Rule::LostAck => "lost-ack",
            Rule::Forced => "forced",
            Rule::Ceiling => "ceiling",
        }
    }
}

/// An ACK was decided; `segments` and `bytes` are what it newly acknowledges.
#[derive(Clone, Copy, Debug)]
pub struct AckDecided {
    pub now: Instant,
    pub by: By,
    pub segments: u32,
    pub bytes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Agent,
    Repeat,
    Forced,
    Piggyback,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckNote {
    pub dup_count: Option<u8>,
}
