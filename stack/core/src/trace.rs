//! The single source of observations: a machine's actions and their reasons, as small integer events in a bounded ring.
//!
//! Text, CSV, plots, metrics and capture comments are made from this stream alone.

mod drop_reason;
mod ring;
pub mod text;

pub use drop_reason::DropReason;
pub use ring::{Totals, TraceRing};

use crate::agent::{Basis, Because, By, Class, HopSource, LinkNews, Side, Why};
use crate::{Instant, Seq};

/// One fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// The time of the driver's call.
    pub now: Instant,
    /// The machine's number for the connection, from 1; 0 if none is involved.
    pub conn: u32,
    /// The id of the transmit, or the running number of the received packet; 0 for neither.
    pub packet: u64,
    /// The fact itself.
    pub kind: TraceKind,
}

/// One variant for each kind of fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceKind {
    /// A connection was given up because this resource was scarce.
    GaveWay(Scarce),
    /// The connection entered a state of RFC 9293 §3.3.2.
    State(StateName),
    /// A segment came in and was checked. A read that joined several of them is one event.
    Received {
        /// The first byte's number, or the SYN's.
        seq: Seq,
        /// The header's field, also without the ACK flag.
        ack: Seq,
        /// Payload of all segments.
        len: u32,
        /// More than 1 if the link joined several into one read.
        segments: u16,
        /// The header's octet (RFC 9293 §3.1, RFC 3168 §6.1).
        flags: u8,
    },
    /// A segment other than a pure ACK left; a bundle of several is one event.
    Sent {
        /// The first byte's number, or the SYN's.
        seq: Seq,
        /// `rcv_nxt`, also without the ACK flag.
        ack: Seq,
        /// Payload of all segments.
        len: u32,
        /// More than 1 in a bundle that the link cuts up.
        segments: u16,
        /// The header's octet (RFC 9293 §3.1, RFC 3168 §6.1).
        flags: u8,
        /// The reason to send it.
        what: SentWhat,
        /// Bytes in flight before it.
        flight: u32,
        /// The agents' allowance in bytes; `u32::MAX` if they were not consulted.
        allowed: u32,
        /// The decision of the ACK that rides on it; 0 if none does.
        decision: u16,
    },
    /// A pure ACK left.
    AckSent {
        /// The header's field: the number of the decision, or the current one beside SACK blocks.
        number: Seq,
        /// The number at the decision.
        decided: Seq,
        /// True if an agent has the last ACK repeated.
        repeat: bool,
        /// 0 if there was no decision.
        decision: u16,
    },
    /// An ACK was decided; it leaves as soon as the link has room. Several decisions may have the same `number`.
    AckDecided {
        /// `rcv_nxt` at the decision.
        number: Seq,
        /// The connection numbers its decisions from 1 on; after 65535 comes 1.
        decision: u16,
        /// The cause.
        by: By,
        /// The rule.
        why: Why,
    },
    /// Data came that is not merely in order.
    Placed {
        /// Its place; never [`Class::InOrder`].
        class: Class,
        /// The stretches of data that now lie above holes.
        stretches: u32,
    },
    /// In-order data has no ACK yet.
    AckHeld {
        /// The live agent's rule.
        why: Why,
        /// The time until its ACK at the latest, as far as known now; `u32::MAX` if the trace is not kept.
        due_us: u32,
        /// The agent's basis for that time.
        basis: Option<Basis>,
    },
    /// An ACK does not leave: another one carries its news, or the queue was full.
    AckMerged {
        /// The number that it would have carried.
        number: Seq,
        /// Its decision.
        decision: u16,
        /// The decision that leaves for both.
        into: u16,
    },
    /// A second full-sized segment stayed unacknowledged, against RFC 9293 SHLD-19 (running count).
    SecondHeld {
        /// The connection's sum so far.
        count: u32,
    },
    /// The action that a shadow agent would have taken.
    ShadowAck {
        /// The place in the list of shadows, from 0.
        shadow: u8,
        /// The shadow's reason.
        why: Why,
    },
    /// A shadow agent would have held its ACK.
    ShadowHeld {
        /// The place in the list of shadows, from 0.
        shadow: u8,
        /// The shadow's reason.
        why: Why,
    },
    /// A packet was dropped.
    Dropped(DropReason),
    /// The retransmission timer ran out.
    Timeout {
        /// Timeouts in a row, from 1.
        nth: u32,
        /// The wait that has ended, with its back-off.
        rto_us: u32,
    },
    /// Segments were found to be lost. A timeout is an event of its own.
    Lost {
        /// Those that were not lost before.
        segments: u32,
        /// The evidence.
        by: LostBy,
    },
    /// Fast recovery began: a loss was found, and the window was reduced.
    RecoveryBegan {
        /// The evidence.
        by: LostBy,
        /// In bytes, by the owner of cwnd.
        ssthresh: u32,
        /// Bytes in flight before the loss was found (RFC 6675's pipe).
        flight: u32,
        /// The number whose acknowledgment ends recovery (RFC 6675's RecoveryPoint).
        point: Seq,
    },
    /// A recovery is over, by fast retransmission or after a timeout.
    RecoveryEnded,
    /// The loss was none; the value names the evidence.
    Undone(UndoneBy),
    /// The network marked a segment instead of dropping it; the window was reduced.
    Marked,
    /// A packet with a mark of the network came (RFC 3168): ACKs echo it until the peer confirms the echo.
    MarkSeen,
    /// A round trip was measured.
    Rtt {
        /// The sample that the RTO takes, with the peer's waiting time.
        sample_us: u32,
        /// SRTT with the sample (RFC 6298).
        srtt_us: u32,
        /// The RTO with the sample, within its bounds.
        rto_us: u32,
    },
    /// The sender agents' allowance has changed, or a partial ACK has come in fast recovery.
    Window {
        /// The most bytes that may be in flight.
        allowed: u32,
        /// Bytes in flight now.
        flight: u32,
    },
    /// The size of packets has changed with what the path is known to carry.
    PathMtu {
        /// The size of our IP packets from now on.
        bytes: u16,
        /// The cause of the change.
        how: MtuHow,
    },
    /// A connection got its agents; the value is the source of the choice.
    Agents(ChosenBy),
    /// An agent's need is not met: it follows its written fallback.
    Fallback(Lacking),
    /// An ICMP error came, or a next hop did not answer. It is advice only, except in SYN-SENT.
    IcmpError {
        /// The type by its ICMPv4 number, for IPv6 too: 3, 11 or 12.
        kind: u8,
        /// The code, in the meaning of the IP version. A next hop that did not answer gives 3 and 1.
        code: u8,
    },
    /// The number of links from the peer has changed, or its source.
    Hops {
        /// Neighbours are 1 apart; 0 while unknown.
        from_peer: u8,
        /// None if the number is unknown again.
        source: Option<HopSource>,
    },
    /// The route failed: RTO and cwnd are frozen until an ACK comes.
    Frozen,
    /// An acceptable ACK came while the path was frozen.
    Thawed,
    /// A routing message raised highest_ack.
    HighestAckRaised {
        /// The lower bound of retransmissions from now on.
        to: Seq,
    },
    /// A base station got a report on the link to a mobile.
    LinkTold {
        /// It may be late, or a repetition.
        news: LinkNews,
    },
    /// A base station keeps a packet, whole or as a copy.
    Kept {
        /// The side that sent the packet.
        from: Side,
        /// The number of its data, or the one that a pure ACK acknowledges.
        number: Seq,
        /// Payload bytes.
        len: u32,
        /// The agent's reason.
        because: Because,
    },
    /// A base station sends a packet that it had kept, or the mobile's newest ACK once more.
    Released {
        /// The side that sent the packet.
        from: Side,
        /// The number of its data, or the one that a pure ACK acknowledges.
        number: Seq,
        /// Payload bytes.
        len: u32,
        /// The agent's reason, or the proxy's.
        because: Because,
    },
    /// A base station sends an ACK in the mobile's name.
    Said {
        /// The number that it acknowledges.
        number: Seq,
        /// The header's field, unscaled.
        window: u16,
        /// The number of equal packets that left.
        copies: u8,
    },
}

crate::named! {
    /// The bounded resources of an endpoint.
    pub enum Scarce {
        /// Places for connections that their program has left.
        Orphans = "orphans",
        /// Memory for the buffers of these connections.
        OrphanBytes = "orphan-memory",
        /// Places in TIME-WAIT.
        TimeWaits = "time-waits",
        /// Memory for the buffers of all connections.
        BufferBytes = "memory",
        /// A listener's places for handshakes.
        Handshakes = "handshakes",
        /// Places in the table of connections.
        Connections = "connections",
    }

    /// The reason to send a segment.
    pub enum SentWhat {
        /// New data, or a probe of the path's MTU with new data.
        New = "new",
        /// Retransmitted in fast recovery, or because the path carries only smaller packets.
        Resent = "resent",
        /// Retransmitted after a timeout.
        AfterTimeout = "after-timeout",
        /// A window probe, a keep-alive, or a probe of a frozen path.
        Probe = "probe",
        /// Sent early to find the loss of a window's tail (RFC 8985 §7).
        TailProbe = "tail-probe",
        /// SYN, FIN or RST without data.
        Control = "control",
    }

    /// The evidence for a lost segment.
    pub enum LostBy {
        /// The time since a later segment arrived (RFC 8985).
        Rack = "rack",
        /// SACKed data above it (RFC 6675).
        Sack = "sack",
        /// Duplicate ACKs (RFC 5681).
        DupAcks = "dup-acks",
        /// A partial ACK (RFC 6582).
        PartialAck = "partial-ack",
        /// A request of a sender agent.
        Agent = "agent",
    }

    /// The evidence that nothing was lost.
    pub enum UndoneBy {
        /// An echo older than the retransmission (Eifel, RFC 3522).
        Timestamps = "timestamps",
        /// D-SACKs name all retransmissions (RFC 3708).
        Dsack = "d-sack",
        /// After a timeout, an ACK covered data that was sent only once (F-RTO, RFC 5682).
        Frto = "f-rto",
    }

    /// The cause of another packet size.
    pub enum MtuHow {
        /// A router's error about a packet that is too large (RFC 1191, RFC 8201).
        Icmp = "icmp",
        /// Timeouts in a row without such an error (RFC 4821 §7.7).
        BlackHole = "black-hole",
        /// A larger packet was acknowledged (RFC 4821).
        Probe = "probe",
        /// The timeouts that had lowered the size were needless.
        Undone = "undone",
    }

    /// An unmet need of an agent.
    pub enum Lacking {
        /// The peer does not send its cwnd, or does not take ours.
        PeerCwnd = "peer-cwnd",
        /// cwnd goes in the option instead, or not at all.
        CwndInWindow = "cwnd-in-window",
        /// The ends did not agree on counts of duplicate ACKs.
        DupCount = "dup-count",
        /// The ends did not agree on ACK requests by a count of segments.
        AckAfter = "ack-after",
        /// The ends did not agree on ACK-rate requests, or the peer has sent none.
        RateRequest = "rate-request",
        /// The path's RTT has not been measured yet.
        Rtt = "rtt",
        /// The length of the path is unknown.
        Hops = "hops",
        /// The handshake went through a SYN cookie: without timestamps it keeps the MSS alone.
        OptionsUnderCookie = "options-under-cookie",
        /// A flow without timestamps passes a base station untouched.
        Timestamps = "timestamps",
        /// A flow whose SYN exchange was not seen also passes, if an agent needs it.
        Beginning = "beginning",
        /// A base station's memory has ended, and its held packets went on.
        Memory = "memory",
    }

    /// A state of a connection (RFC 9293 §3.3.2).
    pub enum StateName {
        /// It is over.
        Closed = "closed",
        /// No connection has this state: listeners are kept apart.
        Listen = "listen",
        /// Our SYN has left.
        SynSent = "syn-sent",
        /// A SYN has come, and ours has left.
        SynReceived = "syn-received",
        /// Data may flow both ways.
        Established = "established",
        /// Our FIN has left first.
        FinWait1 = "fin-wait-1",
        /// Our FIN is acknowledged, and the peer's is still to come.
        FinWait2 = "fin-wait-2",
        /// The peer's FIN came first; ours is still to leave.
        CloseWait = "close-wait",
        /// Both FINs have crossed, and ours is not acknowledged.
        Closing = "closing",
        /// The peer's FIN came first, and ours has left.
        LastAck = "last-ack",
        /// Both FINs are acknowledged; old duplicates may still come.
        TimeWait = "time-wait",
    }
}

impl StateName {
    /// Both sides know each other's numbers.
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, StateName::Closed | StateName::Listen | StateName::SynSent | StateName::SynReceived)
    }

    /// A SYN of ours is in flight.
    pub const fn is_opening(self) -> bool {
        matches!(self, StateName::SynSent | StateName::SynReceived)
    }

    /// New data may leave, since our FIN has not left.
    pub(crate) const fn may_send_data(self) -> bool {
        matches!(self, StateName::Established | StateName::CloseWait)
    }

    /// No more data comes: the peer's FIN was taken, or the connection is over.
    pub(crate) const fn peer_has_closed(self) -> bool {
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

/// The source of a choice of agents. For the agents that it names, a program or listener comes before every rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChosenBy {
    /// The call that opened the connection, or its listener.
    Program,
    /// The first rule that matched, counted from 0 in the order of the list.
    Rule(u16),
    /// No rule matched: the endpoint's own choice.
    Default,
}

impl ChosenBy {
    /// The name in traces; the number of a rule stands beside it.
    pub const fn name(self) -> &'static str {
        match self {
            ChosenBy::Program => "program",
            ChosenBy::Rule(_) => "rule",
            ChosenBy::Default => "default",
        }
    }
}
