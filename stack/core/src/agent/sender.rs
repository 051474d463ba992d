//! The decision how much may be in flight, and not before when.

use std::fmt::Debug;
use std::time::Duration;

use super::{AckRequest, AckRequestForm, EnsembleMember, Needs, Path, PathEvent, PathReaction, Turn};
use crate::{Instant, Seq};

/// A list of these controls a connection's sending: the first owns cwnd and ssthresh, the others narrow its allowance.
/// The `not before` instants, freezing and the RTO belong to the connection, so no agent has a timer.
pub trait SenderAgent: Debug + Send {
    /// Called when the connection is made: its SYN or SYN-ACK offers them to the peer.
    fn needs(&self) -> Needs {
        Needs::default()
    }
    /// Called once, at SYN.
    fn tune(&self, tunables: &mut Tunables);
    /// Called once data, a FIN or a probe has left, which `view` includes. SYN, RST, pure ACKs and keep-alives are left
    /// out.
    fn on_sent(&mut self, sent: &Sent, view: &SendView<'_>);
    /// Called for an ACK with a higher number or new SACK blocks, after loss detection. `view` is the state after it.
    fn on_acked(&mut self, acked: &Acked, view: &SendView<'_>);
    /// A fast retransmit that the agent requests is granted once a window.
    fn on_dup_ack(&mut self, dup: &DupAck, view: &SendView<'_>) -> Option<FastRetransmit>;
    /// Returns `Some` only from the owner of cwnd (asserted).
    fn on_loss(&mut self, loss: &Loss, view: &SendView<'_>) -> Option<Reduction>;
    /// Called when fast recovery ends, or when a loss turns out to be none; it follows `on_acked` of the same ACK.
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
    /// The first agent of the list: its answers are narrowed by the others.
    pub owner: Owner,
    /// They narrow the owner's allowance, in this order.
    pub others: Box<[Box<dyn SenderAgent>]>,
}

impl SenderAgents {
    /// All agents in the order of the list.
    pub fn all(&self) -> impl Iterator<Item = &dyn SenderAgent> {
        std::iter::once(self.owner.agent()).chain(self.others.iter().map(|agent| &**agent))
    }

    /// The same, for events.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut dyn SenderAgent> {
        let others = self.others.iter_mut().map(|agent| &mut **agent as &mut dyn SenderAgent);
        std::iter::once(self.owner.agent_mut()).chain(others)
    }
}

/// The owner of cwnd and ssthresh.
#[derive(Debug)]
pub enum Owner {
    /// Its flow sends without turns.
    Alone(Box<dyn SenderAgent>),
    /// Its flow takes turns with other flows.
    Member(Box<dyn EnsembleMember>),
}

impl Owner {
    /// The owner as an agent like the others.
    pub fn agent(&self) -> &dyn SenderAgent {
        match self {
            Owner::Alone(agent) => &**agent,
            Owner::Member(member) => &**member,
        }
    }

    /// The same, for events.
    pub(crate) fn agent_mut(&mut self) -> &mut dyn SenderAgent {
        match self {
            Owner::Alone(agent) => &mut **agent,
            Owner::Member(member) => &mut **member,
        }
    }

    /// None if the flow sends without turns.
    pub fn member(&self) -> Option<&dyn EnsembleMember> {
        match self {
            Owner::Alone(_) => None,
            Owner::Member(member) => Some(&**member),
        }
    }

    /// The same, for events.
    pub fn member_mut(&mut self) -> Option<&mut dyn EnsembleMember> {
        match self {
            Owner::Alone(_) => None,
            Owner::Member(member) => Some(&mut **member),
        }
    }
}

/// The owner's gauge of cwnd, in bytes.
pub const CWND_GAUGE: &str = "cwnd_bytes";
/// The owner's gauge of ssthresh, in bytes. Without it, status reports the last [`Reduction`].
pub const SSTHRESH_GAUGE: &str = "ssthresh_bytes";

/// An amount of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Segments; the last may be short.
    pub segments: u32,
    /// Payload. A FIN in flight counts as a byte.
    pub bytes: u64,
}

/// The connection's state, as far as a sender agent may know it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SendView<'a> {
    /// Payload of a full segment.
    pub mss: u32,
    /// The lowest number that is not acknowledged (RFC 9293 §3.3.1).
    pub snd_una: Seq,
    /// The lower bound of retransmissions: `snd_una`, or a higher number from a routing message.
    pub highest_ack: Seq,
    /// The number of the next new byte.
    pub snd_nxt: Seq,
    /// RFC 6675's pipe. Without SACK, duplicate ACKs stand for segments that have left the network.
    pub flight: Count,
    /// Data of the program that has not left; it may have more, for which there is no room yet.
    pub unsent: Count,
    /// The window that the peer last offered, scaled.
    pub snd_wnd: u32,
    /// The knowledge of hops and round trips so far.
    pub path: &'a Path,
    /// None outside of loss recovery.
    pub recovering: Option<Recovering>,
    /// The form of ACK requests that the peer understands.
    pub ack_requests: Option<AckRequestForm>,
    /// [`Turn::Free`] also if the owner knows no turns.
    pub turn: Turn,
    /// The bytes found lost so far, a count that wraps. Data that is lost again counts again, and so does data that was
    /// not lost after all.
    pub lost_bytes: u32,
    /// The application or the peer's window limits the flight, and not cwnd: growing cwnd now would prove nothing.
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
            lost_bytes: 0,
            app_limited: false,
        }
    }
}

/// The kind of a loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovering {
    /// Fast recovery. `so_far` starts from PRR (or from RFC 6582 inflation in the compatible profile), and the owner of
    /// cwnd returns it unchanged.
    Fast {
        /// In bytes, as `on_loss` set it.
        ssthresh: u64,
    },
    /// Until the data in flight at the timeout is acknowledged.
    AfterTimeout,
}

/// The limits of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// The most in flight, measured by [`SendView::flight`]. With nothing in flight, one segment may always leave.
    pub flight_bytes: u64,
    /// New data waits until then, but at most an RTO, or 1 s if that is longer, after the last segment.
    pub new_from: Instant,
    /// The same for retransmissions.
    pub resend_from: Instant,
    /// The most that may leave back to back, in one bundle that the link cuts up.
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

    /// As this, and no wider than one more window, time and burst.
    #[must_use]
    pub fn narrowed(self, flight_bytes: u64, from: Instant, burst_bytes: u32) -> Allowance {
        Allowance {
            flight_bytes: self.flight_bytes.min(flight_bytes),
            new_from: self.new_from.max(from),
            resend_from: self.resend_from.max(from),
            burst_bytes: self.burst_bytes.min(burst_bytes),
        }
    }

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
#[non_exhaustive]
pub struct Sent {
    /// The time at which it left.
    pub now: Instant,
    /// A FIN alone is one segment of no bytes.
    pub carried: Count,
    /// The cause.
    pub kind: SentKind,
}

impl Sent {
    /// A transmit with all of its facts.
    pub const fn new(now: Instant, carried: Count, kind: SentKind) -> Sent {
        Sent { now, carried, kind }
    }
}

/// The cause of a transmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentKind {
    /// New data or a FIN, also as a tail probe or an MTU probe.
    New,
    /// Retransmitted in fast recovery, or because the path carries only smaller packets.
    Resent,
    /// Retransmitted after a timeout.
    AfterTimeout,
    /// A window probe, a probe of a frozen path, or a tail probe with old data.
    Probe,
}

/// An ACK that delivered data.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Acked {
    /// Its arrival.
    pub now: Instant,
    /// Data below its number that no SACK block had reported before.
    pub newly: Count,
    /// Data that its SACK blocks are the first to report.
    pub sacked: Count,
    /// The round trip of the newest segment that it delivered; None if a retransmission makes it ambiguous (Karn).
    pub rtt: Option<Duration>,
    /// The time at which the newest segment that it delivered last left, also as a retransmission. An agent that notes
    /// its state at each [`SenderAgent::on_sent`] finds that of this segment, and from it the delivery rate.
    pub newest_sent_at: Option<Instant>,
    /// True if it echoes a mark of the network (RFC 3168).
    pub ece: bool,
    /// RFC 6675's pipe before it came.
    pub flight_before: Count,
}

impl Acked {
    /// An ACK without SACK blocks, round trip and mark.
    pub const fn new(now: Instant, newly: Count, flight_before: Count) -> Acked {
        let sacked = Count { segments: 0, bytes: 0 };
        Acked { now, newly, sacked, rtt: None, newest_sent_at: None, ece: false, flight_before }
    }
}

/// A duplicate ACK (RFC 5681 §2).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DupAck {
    /// Its arrival.
    pub now: Instant,
    /// Duplicates since `snd_una` last advanced, with this one.
    pub seen: u32,
    /// [`AckNote::dup_count`](super::AckNote::dup_count), if the peer sent it.
    pub dup_count: Option<u8>,
    /// Data that its SACK blocks are the first to report.
    pub newly_sacked: Count,
}

impl DupAck {
    /// A duplicate ACK without a note and without news in SACK blocks.
    pub const fn new(now: Instant, seen: u32) -> DupAck {
        DupAck { now, seen, dup_count: None, newly_sacked: Count { segments: 0, bytes: 0 } }
    }
}

/// A loss, or a mark that counts as one.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Loss {
    /// The time at which it was found.
    pub now: Instant,
    /// Its evidence.
    pub kind: LossKind,
    /// RFC 5681's FlightSize: data without a cumulative ACK. 0 after the handshake, if its SYN timed out, and where an
    /// agent took all data as acknowledged: ssthresh stays then.
    pub flight_before: Count,
}

impl Loss {
    /// A loss with all of its facts.
    pub const fn new(now: Instant, kind: LossKind, flight_before: Count) -> Loss {
        Loss { now, kind, flight_before }
    }
}

/// The evidence of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossKind {
    /// Found by ACKs or by time (RFC 8985); fast recovery follows.
    Fast,
    /// The retransmission timer ran out. A SYN's timeouts are reported once the handshake is over.
    Timeout {
        /// Timeouts in a row, from 1.
        nth: u32,
    },
    /// The network marked a segment instead of dropping it (ECN), or a tail probe repaired a loss (RFC 8985 §7.4).
    Marked,
}

/// The end of a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// All data that was in flight when it began is acknowledged. With [`FastEnd::NewAck`] new data is.
    Full,
    /// The loss was none (Eifel, F-RTO, D-SACK): restores what `on_loss` took.
    Undone,
}

/// A request to retransmit the segment at `snd_una` and to enter fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastRetransmit;

/// The owner's answer to a loss. An owner that keeps its window returns none, and ssthresh is then the flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// In bytes; fast recovery brings the flight down to it.
    pub ssthresh: u64,
}

/// The notes of a data segment for the peer, in our own TCP options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataNote {
    /// cwnd in segments, for the peer's receiver agent.
    pub cwnd: Option<u16>,
    /// It has the form of [`SendView::ack_requests`].
    pub ack_request: Option<AckRequest>,
}

/// Recovery settings that belong to an agent's spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// Duplicate ACKs, or SACKed segments above, that show a loss. RFC 5681 wants 3.
    pub dup_threshold: u8,
    /// The smallest RTO before the factor.
    pub rto_min: Duration,
    /// Multiplies each RTO, up to its ceiling; 0 counts as 1.
    pub rto_factor: u8,
    /// The number of timeouts in a row that leave the RTO as it is; each further one doubles it. RFC 6298 §5.5 wants 0.
    pub rto_held: u8,
    /// The ACK that ends a fast recovery without SACK.
    pub fast_end: FastEnd,
}

/// The end of a fast recovery without SACK. With SACK all data in flight has to be acknowledged (RFC 6675).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastEnd {
    /// NewReno: the ACK of all data that was in flight when it began. A partial one shows the next loss (RFC 6582).
    FullAck,
    /// Reno: the first ACK of new data (RFC 5681 §3.2 step 6). Three more duplicates then show the next loss, and
    /// reduce the window again.
    NewAck,
}
