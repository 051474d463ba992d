//! The decision how much may be in flight, and not before when.

use std::fmt::Debug;
use std::time::Duration;

use super::{AckRequest, AckRequestForm, EnsembleMember, Needs, Path, PathEvent, PathReaction, Turn};
use crate::{Instant, Seq};

/// A list of these controls a connection's sending: the first owns cwnd and ssthresh, the others narrow its allowance.
/// The `not before` instants, freezing and the RTO belong to the connection, so no agent has a timer.
pub trait SenderAgent: Debug + Send {
    fn needs(&self) -> Needs;
    /// Called once, at SYN.
    fn tune(&self, tunables: &mut Tunables);
    fn on_sent(&mut self, sent: &Sent, view: &SendView<'_>);
    fn on_acked(&mut self, acked: &Acked, view: &SendView<'_>);
    /// A fast retransmit that the agent requests is granted once a window.
    fn on_dup_ack(&mut self, dup: &DupAck, view: &SendView<'_>) -> Option<FastRetransmit>;
    /// Returns `Some` only from the owner of cwnd (asserted).
    fn on_loss(&mut self, loss: &Loss, view: &SendView<'_>) -> Option<Reduction>;
    fn on_recovered(&mut self, end: Recovered, view: &SendView<'_>);
    /// `view.path` is already the new one.
    fn on_path(&mut self, event: &PathEvent, view: &SendView<'_>) -> PathReaction;
    /// Pure; may only narrow (asserted).
    fn narrow(&self, now: Instant, view: &SendView<'_>, so_far: Allowance) -> Allowance;
    /// Adds the notes of the segment that begins at `first`; `allowed` is the allowance of the whole list.
    fn note(&self, first: Seq, view: &SendView<'_>, allowed: &Allowance, note: &mut DataNote);
    /// The owner calls its window [`CWND_GAUGE`] and its threshold [`SSTHRESH_GAUGE`].
    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64));
}

/// The sender agents of a connection.
#[derive(Debug)]
pub struct SenderAgents {
    pub owner: Owner,
    /// They narrow the owner's allowance, in this order.
    pub others: Box<[Box<dyn SenderAgent>]>,
}

impl SenderAgents {
    /// All agents in the order of the list.
    pub fn all(&self) -> impl Iterator<Item = &dyn SenderAgent> {
        std::iter::once(self.owner.agent()).chain(self.others.iter().map(|agent| &**agent))
    }

    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut dyn SenderAgent> {
        let others = self.others.iter_mut().map(|agent| &mut **agent as &mut dyn SenderAgent);
        std::iter::once(self.owner.agent_mut()).chain(others)
    }
}

/// The owner of cwnd and ssthresh.
#[derive(Debug)]
pub enum Owner {
    Alone(Box<dyn SenderAgent>),
    /// Its flow takes turns with other flows.
    Member(Box<dyn EnsembleMember>),
}

impl Owner {
    pub fn agent(&self) -> &dyn SenderAgent {
        match self {
            Owner::Alone(agent) => &**agent,
            Owner::Member(member) => &**member,
        }
    }

    pub fn agent_mut(&mut self) -> &mut dyn SenderAgent {
        match self {
            Owner::Alone(agent) => &mut **agent,
            Owner::Member(member) => &mut **member,
        }
    }

    pub fn member(&self) -> Option<&dyn EnsembleMember> {
        match self {
            Owner::Alone(_) => None,
            Owner::Member(member) => Some(&**member),
        }
    }

    pub fn member_mut(&mut self) -> Option<&mut dyn EnsembleMember> {
        match self {
            Owner::Alone(_) => None,
            Owner::Member(member) => Some(&mut **member),
        }
    }
}

pub const CWND_GAUGE: &str = "cwnd_bytes";
pub const SSTHRESH_GAUGE: &str = "ssthresh_bytes";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub segments: u32,
    pub bytes: u64,
}

/// The sender's view. `flight` is RFC 6675's pipe. `highest_ack` is the lower bound of retransmissions: `snd_una`, or a
/// higher number from a routing message.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SendView<'a> {
    pub mss: u32,
    pub snd_una: Seq,
    pub highest_ack: Seq,
    pub snd_nxt: Seq,
    pub flight: Count,
    /// Data of the program that has not left; it may have more, for which there is no room yet.
    pub unsent: Count,
    pub snd_wnd: u32,
    pub path: &'a Path,
    pub recovering: Option<Recovering>,
    /// The form of ACK requests that the peer understands.
    pub ack_requests: Option<AckRequestForm>,
    pub turn: Turn,
    /// The application, not the window, limits the flight: growing cwnd now would prove nothing.
    pub app_limited: bool,
}

impl<'a> SendView<'a> {
    /// The view of a connection with nothing in flight, nothing to send and no window.
    pub const fn new(mss: u32, snd_una: Seq, path: &'a Path) -> SendView<'a> {
        let nothing = Count { segments: 0, bytes: 0 };
        SendView {
            mss,
            snd_una,
            highest_ack: snd_una,
            snd_nxt: snd_una,
            flight: nothing,
            unsent: nothing,
            snd_wnd: 0,
            path,
            recovering: None,
            ack_requests: None,
            turn: Turn::Free,
            app_limited: false,
        }
    }
}

/// In `Fast`, `so_far` starts from PRR (or from RFC 6582 inflation in the compatible profile), and the owner of cwnd
/// returns it unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovering {
    Fast { ssthresh: u64 },
    AfterTimeout,
}

/// The limits of sending: at most `flight_bytes` in flight, and at most `burst_bytes` back to back. New data waits
/// until `new_from`, retransmissions until `resend_from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    pub flight_bytes: u64,
    pub new_from: Instant,
    pub resend_from: Instant,
    pub burst_bytes: u32,
}

impl Allowance {
    /// The start of every list.
    pub const UNLIMITED: Allowance = Allowance {
        flight_bytes: u64::MAX,
        new_from: Instant::ZERO,
        resend_from: Instant::ZERO,
        burst_bytes: u32::MAX,
    };

    /// Returns whether this allows nothing that `wider` forbids.
    pub fn is_within(&self, wider: &Allowance) -> bool {
        self.flight_bytes <= wider.flight_bytes
            && self.new_from >= wider.new_from
            && self.resend_from >= wider.resend_from
            && self.burst_bytes <= wider.burst_bytes
    }
}

/// One call per transmit: a bundle that a link cuts up carries several segments.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub now: Instant,
    pub carried: Count,
    pub kind: SentKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentKind {
    New,
    Resent,
    AfterTimeout,
    Probe,
}

#[derive(Clone, Copy, Debug)]
pub struct Acked {
    pub now: Instant,
    pub newly: Count,
    pub sacked: Count,
    pub rtt: Option<Duration>,
    pub ece: bool,
    pub flight_before: Count,
}

#[derive(Clone, Copy, Debug)]
pub struct DupAck {
    pub now: Instant,
    pub seen: u32,
    pub dup_count: Option<u8>,
    pub newly_sacked: Count,
}

#[derive(Clone, Copy, Debug)]
pub struct Loss {
    pub now: Instant,
    pub kind: LossKind,
    pub flight_before: Count,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossKind {
    Fast,
    Timeout {
        nth: u32,
    },
    /// The network marked a segment instead of dropping it (ECN).
    Marked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovered {
    Full,
    /// The loss was none (Eifel, F-RTO, D-SACK): restores what `on_loss` took.
    Undone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastRetransmit;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduction {
    pub ssthresh: u64,
}

/// The notes of a data segment for the peer, in our own TCP options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataNote {
    pub cwnd: Option<u16>,
    pub ack_request: Option<AckRequest>,
}

/// Recovery settings that belong to an agent's spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    pub dup_threshold: u8,
    pub rto_min: Duration,
    pub rto_factor: u8,
    /// The number of timeouts in a row that leave the RTO as it is; each further one doubles it. RFC 6298 §5.5 wants 0.
    pub rto_held: u8,
}
