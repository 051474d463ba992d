//! The one observable: what a machine did and why, as small integer events in a bounded ring.
//!
//! Text, CSV, plots, metrics and capture comments are made from this stream and from nothing else.

pub mod comments;
mod drop_reason;
mod names;
mod ring;
pub mod text;

pub use drop_reason::DropReason;
pub use ring::{Totals, TraceRing};

use crate::agent::{Basis, Because, By, Class, HopSource, LinkNews, Side, Why};
use crate::{Instant, Seq};

/// One fact. `conn` is 0 where no connection is concerned; `packet` is the id of the transmit, or the running
/// number of the packet handed in, that the fact belongs to (0: neither).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    pub now: Instant,
    pub conn: u32,
    pub packet: u64,
    pub kind: TraceKind,
}

/// One variant a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceKind {
    /// A connection was given up for the sake of others, because there was too much of this.
    GaveWay(Scarce),
    /// The connection entered a state of RFC 9293 §3.3.2.
    State(StateName),
    /// A segment came in and was looked at. `len` counts payload bytes, `flags` is the header's octet. A read that
    /// joined `segments` of them is one event.
    Received {
        seq: Seq,
        ack: Seq,
        len: u32,
        segments: u16,
        flags: u8,
    },
    /// A segment that carries data, SYN, FIN or RST left. A bundle of `segments` of them is one event. So much was in
    /// flight before it, and so much the sender agents allow, `u32::MAX` where they were not asked.
    Sent {
        seq: Seq,
        ack: Seq,
        len: u32,
        segments: u16,
        flags: u8,
        what: SentWhat,
        flight: u32,
        allowed: u32,
        /// The ACK that rides on it; 0 where none does.
        decision: u16,
    },
    /// A pure ACK left, whose number was `decided` when it was decided: one with SACK blocks tells what is so now.
    AckSent {
        number: Seq,
        decided: Seq,
        repeat: bool,
        /// 0 where none was made.
        decision: u16,
    },
    /// An ACK of `number` was decided, by whom and why; it leaves as soon as the link has room. The connection numbers
    /// its decisions from 1 on, since several may name the same number; after 65535 comes 1.
    AckDecided {
        number: Seq,
        decision: u16,
        by: By,
        why: Why,
    },
    /// Data was put elsewhere than merely in the next place. `stretches` of data lie above holes now.
    Placed {
        class: Class,
        stretches: u32,
    },
    /// In-order data was not acknowledged yet, and why. It will be after so long at the latest, as far as is known now:
    /// `u32::MAX` where nothing keeps the trace.
    AckHeld {
        why: Why,
        due_us: u32,
        /// What the agent made that time from.
        basis: Option<Basis>,
    },
    /// An ACK does not leave, since another one that waits tells its news, or since more waited than fit. That other
    /// `decision` leaves for both.
    AckMerged {
        number: Seq,
        decision: u16,
        into: u16,
    },
    /// A second full-sized segment was left unacknowledged, which RFC 9293 SHLD-19 would not (running count).
    SecondHeld {
        count: u32,
    },
    /// What a shadow agent would have done.
    ShadowAck {
        seat: u8,
        why: Why,
    },
    ShadowHeld {
        seat: u8,
        why: Why,
    },
    /// A packet went no further.
    Dropped(DropReason),
    /// The retransmission timer ran out for the `nth` time in a row.
    Timeout {
        nth: u32,
        rto_us: u32,
    },
    /// Segments were found to be lost. A timeout is told as such.
    Lost {
        segments: u32,
        by: LostBy,
    },
    /// Fast recovery began: the loss was found, and the window goes to `ssthresh`.
    RecoveryBegan {
        by: LostBy,
        ssthresh: u32,
        flight: u32,
        point: Seq,
    },
    RecoveryEnded,
    /// The loss was none: by what that was seen.
    Undone(UndoneBy),
    /// The network marked instead of dropping; the window was reduced.
    Marked,
    /// A packet came that the network had marked (RFC 3168): ACKs echo it until the peer says that it heard.
    MarkSeen,
    /// A round trip was measured.
    Rtt {
        sample_us: u32,
        srtt_us: u32,
        rto_us: u32,
    },
    /// What the sender agents allow in flight, when it changed.
    Window {
        allowed: u32,
        flight: u32,
    },
    /// The path carries packets of this size and no larger ones.
    PathMtu {
        bytes: u16,
        how: MtuHow,
    },
    /// A connection has its agents, by whom they were chosen.
    Agents(ChosenBy),
    /// Something that an agent wants and the peer does not offer: it follows its written fallback.
    Fallback(Lacking),
    /// An ICMP error was heard: advice only, never the end of a connection by itself.
    IcmpError {
        kind: u8,
        code: u8,
    },
    /// How many links the data of the peer crosses, and who says so; none when nobody knows any more.
    Hops {
        from_peer: u8,
        source: Option<HopSource>,
    },
    /// The route failed: RTO and cwnd are frozen until something is acknowledged.
    Frozen,
    Thawed,
    /// A routing message moved highest_ack up.
    HighestAckRaised {
        to: Seq,
    },
    /// A base station was told of the link to a mobile.
    LinkTold {
        news: LinkNews,
    },
    /// A base station keeps a packet, whole or as a copy: the number of data, or what a pure ACK acknowledges.
    Kept {
        from: Side,
        number: Seq,
        len: u32,
        because: Because,
    },
    /// A base station sends what it had kept.
    Released {
        from: Side,
        number: Seq,
        len: u32,
        because: Because,
    },
    /// A base station says an ACK of the mobile's once more, or with this window in its name.
    Said {
        number: Seq,
        window: u16,
        copies: u8,
    },
}

/// What an endpoint has only so much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scarce {
    /// Places for connections that their program has left.
    Orphans,
    /// Memory for the buffers of these.
    OrphanBytes,
    /// Places in TIME-WAIT.
    TimeWaits,
    /// Memory for the buffers of all connections.
    BufferBytes,
    /// A listener's places for handshakes.
    Handshakes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentWhat {
    New,
    /// Sent again in fast recovery.
    Resent,
    /// Sent again after a timeout.
    AfterTimeout,
    /// A window probe, a keep-alive, or a probe of a frozen path.
    Probe,
    /// Sent early to find the loss of a window's tail (RFC 8985 §7).
    TailProbe,
    /// SYN, FIN or RST without data.
    Control,
}

/// A program's or listener's word goes before every rule, for what it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChosenBy {
    Program,
    /// The first that matched, counted from 0 as they were given.
    Rule(u16),
    Default,
}

/// By what a segment was seen to be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostBy {
    /// By the time since something sent later arrived (RFC 8985).
    Rack,
    /// By what was SACKed above it (RFC 6675).
    Sack,
    /// By duplicate ACKs (RFC 5681).
    DupAcks,
    /// By an ACK of a part of what was in flight (RFC 6582).
    PartialAck,
    /// A sender agent said so.
    Agent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoneBy {
    Timestamps,
    Dsack,
    Frto,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MtuHow {
    Icmp,
    BlackHole,
    Probe,
    /// The timeouts that had lowered it were needless.
    Undone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacking {
    PeerCwnd,
    /// It goes in the option instead, or not at all.
    CwndInWindow,
    DupCount,
    AckAfter,
    RateRequest,
    /// Nothing has measured the path yet.
    Rtt,
    /// Nothing has said how long the path is.
    Hops,
    /// The handshake went through a SYN cookie, which has room for MSS, window scale and SACK only.
    OptionsUnderCookie,
    /// A flow without them passes a base station untouched.
    Timestamps,
    /// So does one whose SYN exchange was not seen, where an agent needs it.
    Beginning,
    /// A base station's memory has ended, and what it held went on.
    Memory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateName {
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

impl StateName {
    /// Both sides know each other's numbers.
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, StateName::Closed | StateName::Listen | StateName::SynSent | StateName::SynReceived)
    }

    /// A SYN of ours is under way.
    pub const fn is_opening(self) -> bool {
        matches!(self, StateName::SynSent | StateName::SynReceived)
    }

    /// New data may leave: our FIN has not.
    pub const fn may_send_data(self) -> bool {
        matches!(self, StateName::Established | StateName::CloseWait)
    }

    /// The peer's FIN was taken: it sends no more.
    pub const fn peer_has_closed(self) -> bool {
        matches!(
            self,
            StateName::CloseWait
                | StateName::Closing
                | StateName::LastAck
                | StateName::TimeWait
                | StateName::Closed
        )
    }
}
