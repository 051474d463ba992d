//! The decision when to acknowledge.

use std::fmt::{self, Debug};
use std::time::Duration;

use super::{AckRequest, Needs, Path};
use crate::Instant;

/// Decides when in-order data is acknowledged, and whether an ACK is repeated.
///
/// The ledger enforces every MUST. Out-of-window segments, SYN, FIN and probes get answers whatever an agent decides.
/// In-order data gets its ACK within 500 ms.
pub trait ReceiverAgent: Debug + Send {
    fn needs(&self) -> Needs;
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
    LeastRtt {
        us: u32,
    },
    Rate {
        bytes_per_s: u64,
    },
    /// The mean gap between in-order segments.
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
    /// Time since the last data segment of any class. The segments of one read share its gap evenly.
    pub gap: Option<Duration>,
    /// Time since the last in-order data segment.
    pub gap_in_order: Option<Duration>,
    pub push: bool,
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

#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RecvView<'a> {
    pub owed: Owed,
    pub path: &'a Path,
    /// The sender's last reported congestion window, in segments.
    pub peer_cwnd: Option<u16>,
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

/// The unacknowledged segments of one seat of the ledger, the current arrival included. The live agent has a seat, and
/// so has every shadow.
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
    /// The last number again, while no ACK is owed.
    Repeat(Why),
}

/// For example "count 3 of 5". It suffices for every agent, and is the only source of trace text and capture comments.
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

    /// A reason without a count.
    pub const fn plain(rule: Rule) -> Why {
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

/// A decided ACK. `segments` and `bytes` count the newly acknowledged data.
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
