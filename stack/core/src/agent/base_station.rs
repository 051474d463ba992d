//! A base station's treatment of the packets of a flow between a fixed end and a mobile one.

use std::fmt::{self, Debug};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use arrayvec::ArrayVec;

use super::{AgentMaker, BadSpec, Rtt};
use crate::trace::DropReason;
use crate::wire::{Flags, SackBlock};
use crate::{Instant, LinkEvent, Seq};

/// Decides the fate of each packet of one flow, and which other packets are sent.
///
/// An agent sees no bytes and owns none: waiting packets belong to the proxy, which also enforces the rules that bind
/// all agents. The proxy acknowledges no number that the mobile has not acknowledged. It alters no forwarded packet,
/// and keeps the order of packets. When memory ends, it forwards everything.
///
/// An agent that does not override a method keeps no packet, and waits for no time.
pub trait BaseStationAgent: Debug + Send {
    /// A flow without these passes untouched, and the trace reports it.
    fn requires(&self) -> Requires {
        Requires::default()
    }
    /// Called for each segment that one of the ends can have sent, before it goes on. The proxy executes the orders
    /// first, then the returned fate.
    fn on_segment(&mut self, passing: &Passing<'_>, view: &FlowView, orders: &mut Orders) -> Fate;
    /// Called for news of the flow's mobile, which may be late or come twice. A flow that is first served while the
    /// link is not up gets the last news then.
    fn on_link(&mut self, _now: Instant, _news: LinkNews, _view: &FlowView, _orders: &mut Orders) {}
    /// Is called only when due; afterwards `deadline()` has to be later than `now`.
    fn on_deadline(&mut self, _now: Instant, _view: &FlowView, _orders: &mut Orders) {}
    /// Memory has ended. Held packets are on their way. No more are kept until the link is up again, or for 1 s if it
    /// is up.
    fn on_overflow(&mut self, _now: Instant) {}
    /// Returns whether it takes back data that the link to the mobile has given up.
    fn takes_back(&self) -> bool {
        false
    }
    /// Pure. The absolute instant of the agent's next work; nothing else becomes due earlier.
    fn deadline(&self) -> Option<Instant> {
        None
    }
    /// Called when an observer asks. Hands each figure of the agent to `sink`, with its name.
    fn gauges(&self, _sink: &mut dyn FnMut(&'static str, u64)) {}
}

/// A parsed spec; each call serves one flow.
pub type MakeServes = Arc<dyn Fn() -> Serves + Send + Sync>;

/// Reads specs of base-station agents.
pub trait BaseStationMaker: Send {
    /// Reads a spec such as `ack-hold:mode=kick`. It is called once for each rule, when the proxy is made.
    fn base_station(&self, spec: &str) -> Result<MakeServes, BadSpec>;
}

/// The server of a flow at the base station.
#[derive(Debug)]
pub enum Serves {
    /// The two ends keep their connection, and its packets pass the agent.
    Agent(Box<dyn BaseStationAgent>),
    /// The proxy ends the connection and opens another one to the other end.
    Split(Split),
}

/// A flow of two connections.
pub struct Split {
    /// The bytes that each half may hold in each direction.
    pub buffer_bytes: u32,
    /// Makes the agents of the two connections.
    pub makers: [Box<dyn AgentMaker>; 2],
    /// Serves a flow that cannot be split, because its SYN was not seen.
    pub unsplit: Box<dyn BaseStationAgent>,
}

impl Debug for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Split").field("buffer_bytes", &self.buffer_bytes).finish_non_exhaustive()
    }
}

impl Serves {
    /// The agent for a flow that has already begun.
    pub fn agent(self) -> Box<dyn BaseStationAgent> {
        match self {
            Serves::Agent(agent) => agent,
            Serves::Split(split) => split.unsplit,
        }
    }
}

impl<A: BaseStationAgent + 'static> From<A> for Serves {
    fn from(agent: A) -> Serves {
        Serves::Agent(Box::new(agent))
    }
}

/// The properties of a flow that its agent cannot do without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requires {
    /// Without timestamps the sender's RTT is unknown.
    pub timestamps: bool,
    /// The SYN exchange was seen, so that windows are known in bytes.
    pub beginning: bool,
}

crate::named! {
    /// An end of a flow, seen from the base station.
    pub enum Side {
        /// The end behind the link to the wired network.
        Fixed = "fixed",
        /// The end behind the link that may fade.
        Mobile = "mobile",
    }
}

impl Side {
    /// The side to which this side's segments go.
    pub const fn other(self) -> Side {
        match self {
            Side::Fixed => Side::Mobile,
            Side::Mobile => Side::Fixed,
        }
    }
}

/// A segment that passes the base station.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Passing<'a> {
    /// The time at which the base station got it.
    pub now: Instant,
    /// The side that sent it.
    pub from: Side,
    /// The first byte's number, or the SYN's.
    pub seq: Seq,
    /// None without the ACK flag.
    pub ack: Option<Seq>,
    /// Payload bytes.
    pub len: u32,
    /// The header's flags, as they came.
    pub flags: Flags,
    /// Scaled, if the scale is known.
    pub window: u32,
    /// The SACK blocks as they came, with a D-SACK (RFC 2883).
    pub sack: &'a [SackBlock],
    /// The network has marked the packet.
    pub ce: bool,
    /// Its class. Each pure ACK of the fixed end counts as [`Says::More`].
    pub kind: Kind,
}

impl Passing<'_> {
    /// A segment without ACK, flags, window, blocks and mark.
    pub const fn new(now: Instant, from: Side, kind: Kind, seq: Seq, len: u32) -> Passing<'static> {
        let (flags, sack): (_, &[SackBlock]) = (Flags(0), &[]);
        Passing { now, from, seq, ack: None, len, flags, window: 0, sack, ce: false, kind }
    }

    /// One past its last byte.
    pub fn end(&self) -> Seq {
        self.seq + self.len
    }
}

/// A segment's class, by its flags and its payload, and for an ACK by the mobile's earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// With payload, and no flag that ends or begins a connection.
    Data,
    /// A pure ACK without a mark, classed by its news.
    Ack(Says),
    /// SYN, FIN, RST, URG, ECE, CWR: never delayed by an agent's choice.
    Control,
}

/// The news of a pure ACK of the mobile, compared with all that the mobile said before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// A higher number.
    More,
    /// The same number, the same window and the same blocks.
    Again,
    /// The same number and window, other SACK blocks.
    Blocks,
    /// The same number and another window.
    Window,
    /// A lower number than one before.
    Less,
}

/// A link layer's report on the link to the mobile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkNews {
    /// The link still works, but a fade is expected.
    GoingDown {
        /// The round trip to the mobile; zero if unknown. It stands in until timestamps measure the flow's own.
        rtt: Duration,
        /// The expected length of the fade.
        outage: Duration,
        /// The expected time until the link is gone; zero if unknown.
        within: Duration,
    },
    /// No packet reaches the mobile.
    Gone,
    /// Packets reach the mobile again, or still do after a false alarm.
    Up,
}

impl LinkNews {
    /// The report of a link layer with this news of the link to a mobile.
    pub const fn event(self, peer: IpAddr) -> LinkEvent<'static> {
        match self {
            LinkNews::GoingDown { rtt, outage, within } => LinkEvent::GoingDown { peer, rtt, outage, within },
            LinkNews::Gone => LinkEvent::Gone { peer },
            LinkNews::Up => LinkEvent::Up { peer },
        }
    }

    /// The name in the trace.
    pub const fn name(self) -> &'static str {
        match self {
            LinkNews::GoingDown { .. } => "going-down",
            LinkNews::Gone => "gone",
            LinkNews::Up => "up",
        }
    }
}

/// The proxy's knowledge of a flow. It includes the current packet, except in `passed` and in the counts of waiting
/// packets. The default knows nothing of its flow.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct FlowView {
    /// True if the flow's segments carry timestamps (RFC 7323).
    pub has_timestamps: bool,
    /// True if both SYNs allowed SACK; false if they were not seen.
    pub has_sack: bool,
    /// The SYN exchange was seen.
    pub is_whole: bool,
    /// The stack whose SYNs look like the fixed end's.
    pub dialect: Dialect,
    /// The mobile's highest ACK number.
    pub acked: Option<Seq>,
    /// The mobile's highest ACK number that was forwarded.
    pub passed: Option<Seq>,
    /// The time at which an ACK of the mobile, or one in its name, last went on.
    pub passed_at: Option<Instant>,
    /// The furthest edge of the mobile's window; None while the scale is unknown.
    pub promised: Option<Seq>,
    /// One past the highest byte that the fixed end has sent.
    pub data_end: Option<Seq>,
    /// The bytes that the fixed end had in flight a round trip ago, by timestamps; 0 while unknown.
    pub window_bytes: u32,
    /// The largest payload seen.
    pub mss: u32,
    /// The round trip between base station and mobile, by timestamps.
    pub to_mobile: Rtt,
    /// The fixed end's whole round trip, both parts, while no packet waits.
    pub whole: Rtt,
    /// The mobile's waiting packets.
    pub held_acks: u32,
    /// The fixed end's packets that wait, and copies.
    pub cached_packets: u32,
    /// Payload of these packets.
    pub cached_bytes: u32,
}

impl FlowView {
    /// The part of the fixed end's data in flight that has reached the base station.
    pub fn flight_bytes(&self) -> u32 {
        if let (Some(end), Some(acked)) = (self.data_end, self.acked) { end.bytes_since(acked) } else { 0 }
    }

    /// The same in segments of the largest size seen, rounded up.
    pub fn flight_segments(&self) -> u32 {
        self.flight_bytes().div_ceil(self.mss.max(1))
    }

    /// All of the fixed end's data in flight, as far as known.
    pub fn window_segments(&self) -> u32 {
        self.window_bytes.max(self.flight_bytes()).div_ceil(self.mss.max(1))
    }
}

/// The order of options in the fixed end's SYN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// MSS, SACK, timestamps, window scale.
    Linux,
    /// MSS, window scale, SACK, timestamps.
    Bsd,
    /// Another order, or the SYN was not seen.
    #[default]
    Other,
}

/// The decision on the packet at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Sends it on at once. The mobile's waiting packets leave before a packet of the mobile, unless that is
    /// [`Says::Less`].
    Forward,
    /// Replaces the flow's last pure ACK that still waits for room on the link.
    Replace(Because),
    /// Keeps the packet until an order releases or drops it. Without room it goes on.
    Hold(Because),
    /// Forwards the packet and keeps a copy until the agent forgets it.
    Copy(Because),
    /// Drops it. An [`Order::Acknowledge`] of the same call may take its place.
    Drop(DropReason),
}

crate::named! {
    /// The reason why a packet waits, leaves, or is repeated.
    pub enum Because {
        /// The link to the mobile is going down.
        GoingDown = "going-down",
        /// The link is gone.
        Gone = "gone",
        /// The link is up again.
        Up = "up",
        /// The plan's time has come.
        Planned = "planned",
        /// The link did not go down as announced.
        FalseAlarm = "false-alarm",
        /// A packet that may not wait came behind it.
        NoWaiting = "no-waiting",
        /// Memory has ended.
        NoRoom = "no-room",
        /// The mobile lacks the data.
        Hole = "hole",
        /// The agent's own timer has run out.
        TimedOut = "timed-out",
        /// A newer packet carries the same news and more.
        Newer = "newer",
    }
}

/// Additional tasks; the proxy executes them in this order, before the current packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Releases this many of the side's oldest waiting packets; of copies, those that the mobile has not acknowledged.
    Release {
        /// The side that sent them.
        of: Side,
        /// [`ALL_PACKETS`] for all.
        packets: u32,
        /// For the trace.
        because: Because,
    },
    /// Drops the side's waiting packets.
    Discard {
        /// The side that sent them.
        of: Side,
        /// For the trace and the counter.
        reason: DropReason,
    },
    /// Drops cached data below this number.
    Forget {
        /// A packet goes if it ends at this number or before.
        below: Seq,
    },
    /// Repeats the mobile's newest ACK, at most once for each ACK, and not behind data of the mobile.
    Repeat {
        /// For the trace.
        because: Because,
    },
    /// Sends a duplicate of the mobile's oldest waiting ACK ahead of it: the ACK itself still waits. At most two leave
    /// for each ACK.
    Duplicate {
        /// For the trace.
        because: Because,
    },
    /// Retransmits cached data; it stays cached.
    Resend {
        /// A number of the cached packet.
        seq: Seq,
        /// For the trace.
        because: Because,
    },
    /// Sends an ACK in the mobile's name, with a number that the mobile has acknowledged.
    Acknowledge {
        /// The order has no effect if the mobile has not acknowledged it.
        number: Seq,
        /// The window field.
        window: AdvertisedWindow,
        /// At most two leave for each number and window.
        copies: u8,
    },
}

/// The window of an [`Order::Acknowledge`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdvertisedWindow {
    /// A closed window: the sender stops and probes it (RFC 9293 §3.8.6.1).
    Zero,
    /// The window of the mobile's newest ACK.
    AsBefore,
}

/// In [`Order::Release`]: as many packets as wait.
pub const ALL_PACKETS: u32 = u32::MAX;
const MOST_ORDERS: usize = 8;

/// The orders of one call.
#[derive(Clone, Debug, Default)]
pub struct Orders(ArrayVec<Order, MOST_ORDERS>);

impl Orders {
    /// No order, as each call of an agent begins.
    pub fn new() -> Orders {
        Orders::default()
    }

    /// Adds an order; at most 8 in a call.
    pub fn give(&mut self, order: Order) {
        self.0.push(order);
    }

    /// Releases all of a side's waiting packets.
    pub fn release_all(&mut self, of: Side, because: Because) {
        self.give(Order::Release { of, packets: ALL_PACKETS, because });
    }

    /// The orders as they were given, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = Order> + '_ {
        self.0.iter().copied()
    }
}
