//! How much may be in flight, and not before when.

use std::any::Any;
use std::fmt::Debug;
use std::time::Duration;

use super::{Needs, Path, PathEvent, PathReaction};
use crate::{Instant, Seq};

/// A list of these runs a connection's sending: the first owns cwnd and ssthresh, the others narrow what it
/// allows. `not before` instants, freezing and the RTO are the connection's, so no agent has a timer.
pub trait SenderAgent: Debug + Send {
    fn needs(&self) -> Needs;
    /// Once, at SYN.
    fn tune(&self, tunables: &mut Tunables);
    fn on_sent(&mut self, sent: &Sent, view: &SendView<'_>);
    fn on_acked(&mut self, acked: &Acked, view: &SendView<'_>);
    /// A fast retransmit that the agent asks for is honoured once a window.
    fn on_dup_ack(&mut self, dup: &DupAck, view: &SendView<'_>) -> Option<FastRetransmit>;
    /// `Some` from the owner of cwnd alone (asserted).
    fn on_loss(&mut self, loss: &Loss, view: &SendView<'_>) -> Option<Reduction>;
    fn on_recovered(&mut self, end: Recovered, view: &SendView<'_>);
    /// `view.path` is already the new one.
    fn on_path(&mut self, event: &PathEvent, view: &SendView<'_>) -> PathReaction;
    /// Pure; may only narrow (asserted).
    fn narrow(&self, now: Instant, view: &SendView<'_>, so_far: Allowance) -> Allowance;
    /// Pure; of the owner alone. The train that only one of the flows to a peer shall have under way, named by where it
    /// begins. Another name is another train, which others come before; without one the flow waits for nobody.
    fn turn(&self, now: Instant, view: &SendView<'_>) -> Option<Seq>;
    /// Of the owner alone, after whatever happens to its flow while there is an ensemble; of who holds the turn alone
    /// only once somebody else wants it. It takes over what others have found out, and adds what it has since. Whether
    /// the holder is to look at it again.
    fn share(&mut self, common: &mut Common, view: &SendView<'_>) -> bool;
    /// What the segment that begins at `first` tells the peer; `allowed` is what the whole list left.
    fn note(&self, first: Seq, view: &SendView<'_>, allowed: &Allowance, note: &mut DataNote);
    /// The owner calls its window [`CWND_GAUGE`] and its threshold [`SSTHRESH_GAUGE`].
    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64));
}

pub const CWND_GAUGE: &str = "cwnd_bytes";
pub const SSTHRESH_GAUGE: &str = "ssthresh_bytes";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub segments: u32,
    pub bytes: u64,
}

/// `flight` is RFC 6675's pipe. Nothing below `highest_ack` is sent again: it is `snd_una`, or what a routing
/// message raised it to.
#[derive(Clone, Copy, Debug)]
pub struct SendView<'a> {
    pub mss: u32,
    pub snd_una: Seq,
    pub highest_ack: Seq,
    pub snd_nxt: Seq,
    pub flight: Count,
    /// What the program has given and has not left: it may have more for which there is no room yet.
    pub unsent: Count,
    pub snd_wnd: u32,
    pub path: &'a Path,
    pub recovering: Option<Recovering>,
    pub asking: Asking,
    pub turn: Turn,
    /// The application, not the window, limits what is in flight: growing cwnd now would prove nothing.
    pub app_limited: bool,
}

/// How the peer agreed to be asked for an ACK. Who asks for nothing never learns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asking {
    #[default]
    Never,
    /// By ACK-rate requests.
    Rate,
    /// By what is left of a train.
    Told,
}

/// Where a flow stands among those of the same host to the same peer that take turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Turn {
    /// It asks for none, and knows of no others.
    #[default]
    Free,
    /// Nobody else asks.
    Alone,
    /// Another has it: no new data leaves.
    Waiting,
    /// Others wait for it to end.
    Holding,
}

/// What the flows of an ensemble know together of their path (RFC 9040); only their owners of cwnd can read it.
pub type Common = Option<Box<dyn Any + Send>>;

/// In `Fast`, PRR (or RFC 6582 inflation in the compatible profile) is what `so_far` starts from, and the owner
/// of cwnd returns it unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovering {
    Fast { ssthresh: u64 },
    AfterTimeout,
}

/// What may leave: at most `flight_bytes` in flight, new data not before `new_from`, data sent again not before
/// `resend_from`, at most `burst_bytes` back to back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    pub flight_bytes: u64,
    pub new_from: Instant,
    pub resend_from: Instant,
    pub burst_bytes: u32,
}

impl Allowance {
    /// Where every list begins.
    pub const UNLIMITED: Allowance = Allowance {
        flight_bytes: u64::MAX,
        new_from: Instant::ZERO,
        resend_from: Instant::ZERO,
        burst_bytes: u32::MAX,
    };

    /// Whether this allows nothing that `wider` forbids.
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
    /// The loss was none (Eifel, F-RTO, D-SACK): give back what `on_loss` took.
    Undone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastRetransmit;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduction {
    pub ssthresh: u64,
}

/// What a data segment tells the peer, in our own TCP options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataNote {
    pub cwnd: Option<u16>,
    pub ask_rate: Option<u8>,
    pub told: Option<u8>,
}

/// Recovery settings that belong to an agent's spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    pub dup_threshold: u8,
    pub rto_min: Duration,
    pub rto_factor: u8,
    /// Timeouts in a row that leave the RTO as it is; each further one doubles it. RFC 6298 §5.5 wants 0.
    pub rto_held: u8,
}
