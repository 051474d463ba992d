//! What a base station does with the packets of a flow between a fixed end and a mobile one.

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use arrayvec::ArrayVec;

use super::{AgentMaker, BadSpec, Rtt};
use crate::trace::DropReason;
use crate::wire::{Flags, SackBlock};
use crate::{Instant, Seq};

/// Decides, for one flow, what becomes of each packet, and what else is sent.
///
/// An agent sees no bytes and owns none: packets that wait are the proxy's, which also sees to what no agent may
/// break. No number is acknowledged that the mobile has not acknowledged; what is let through is not altered; packets
/// leave in the order in which they came; where memory ends everything passes.
pub trait BaseStationAgent: Debug + Send {
    /// A flow that lacks it passes untouched, and the trace says so.
    fn requires(&self) -> Requires;
    fn on_segment(&mut self, passing: &Passing<'_>, view: &FlowView, orders: &mut Orders) -> Fate;
    fn on_link(&mut self, now: Instant, news: LinkNews, view: &FlowView, orders: &mut Orders);
    /// Only when due; afterwards `deadline()` is later than `now`.
    fn on_deadline(&mut self, now: Instant, view: &FlowView, orders: &mut Orders);
    /// Memory has ended: what was held is on its way, and nothing more is held until the link is up again.
    fn on_overflow(&mut self, now: Instant);
    /// Whether it takes data back that the link to the mobile has given up.
    fn takes_back(&self) -> bool;
    /// Pure, absolute, complete.
    fn deadline(&self) -> Option<Instant>;
    fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64));
}

/// A spec that was read; each call serves one flow.
pub type MakeServes = Arc<dyn Fn() -> Serves + Send + Sync>;

/// Reads specs of base-station agents.
pub trait BaseStationMaker: Send {
    fn base_station(&self, spec: &str) -> Result<MakeServes, BadSpec>;
}

/// What serves a flow at the base station.
#[derive(Debug)]
pub enum Serves {
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
    /// Serves a flow that cannot be split, since its beginning was not seen.
    pub unsplit: Box<dyn BaseStationAgent>,
}

impl Debug for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Split").field("buffer_bytes", &self.buffer_bytes).finish_non_exhaustive()
    }
}

impl Serves {
    /// The agent for a flow that is already under way.
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requires {
    /// Without them nobody knows the sender's RTT.
    pub timestamps: bool,
    /// The SYN exchange was seen, so that windows are known in bytes.
    pub beginning: bool,
}

/// An end of a flow, as the base station has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Fixed,
    Mobile,
}

impl Side {
    pub const fn name(self) -> &'static str {
        match self {
            Side::Fixed => "fixed",
            Side::Mobile => "mobile",
        }
    }

    pub const fn other(self) -> Side {
        match self {
            Side::Fixed => Side::Mobile,
            Side::Mobile => Side::Fixed,
        }
    }
}

/// A segment on its way.
#[derive(Clone, Copy, Debug)]
pub struct Passing<'a> {
    pub now: Instant,
    pub from: Side,
    pub seq: Seq,
    pub ack: Option<Seq>,
    /// Payload bytes.
    pub len: u32,
    pub flags: Flags,
    /// Scaled, where the scale is known.
    pub window: u32,
    pub sack: &'a [SackBlock],
    /// The network has marked it.
    pub ce: bool,
    pub kind: Kind,
}

impl Passing<'_> {
    /// One past its last byte.
    pub fn end(&self) -> Seq {
        self.seq + self.len
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// With payload, and no flag that ends or begins a connection.
    Data,
    /// A pure ACK without a mark, by what it says that its predecessors did not.
    Ack(Says),
    /// SYN, FIN, RST, URG, ECE, CWR: never to be kept waiting behind a choice.
    Control,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// It acknowledges more.
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

/// What a link layer tells of the link to the mobile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkNews {
    /// `within`: when it is expected to be gone; zero where nobody knows.
    GoingDown {
        rtt: Duration,
        outage: Duration,
        within: Duration,
    },
    Gone,
    Up,
}

impl LinkNews {
    pub const fn name(self) -> &'static str {
        match self {
            LinkNews::GoingDown { .. } => "going-down",
            LinkNews::Gone => "gone",
            LinkNews::Up => "up",
        }
    }
}

/// What the proxy knows of a flow. The packet at hand is counted in all but `passed` and what waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowView {
    pub has_timestamps: bool,
    pub has_sack: bool,
    /// The SYN exchange was seen.
    pub is_whole: bool,
    /// Which stack's SYN the fixed end's looks like.
    pub dialect: Dialect,
    /// The mobile's highest number.
    pub acked: Option<Seq>,
    /// The highest of its numbers that went on.
    pub passed: Option<Seq>,
    pub passed_at: Option<Instant>,
    /// As far as the mobile's window was ever open; where the scale is not known, nothing is.
    pub promised: Option<Seq>,
    /// One past the highest byte that the fixed end has sent.
    pub data_end: Option<Seq>,
    /// What the fixed end had in flight a round trip ago, by timestamps; 0 while nobody knows.
    pub window_bytes: u32,
    /// The largest payload seen.
    pub mss: u32,
    /// From base station to mobile and back, by timestamps.
    pub to_mobile: Rtt,
    /// The fixed end's, both parts together, while nothing waits.
    pub whole: Rtt,
    /// The mobile's packets that wait.
    pub held_acks: u32,
    /// The fixed end's.
    pub cached_packets: u32,
    pub cached_bytes: u32,
}

impl FlowView {
    /// The part of what the fixed end has in flight that has come as far as here.
    pub fn flight_bytes(&self) -> u32 {
        match (self.data_end, self.acked) {
            (Some(end), Some(acked)) => end.bytes_since(acked),
            _ => 0,
        }
    }

    pub fn flight_segments(&self) -> u32 {
        self.flight_bytes().div_ceil(self.mss.max(1))
    }

    /// All that it has in flight, as far as anybody can tell.
    pub fn window_segments(&self) -> u32 {
        self.window_bytes.max(self.flight_bytes()).div_ceil(self.mss.max(1))
    }
}

/// In which order the fixed end's SYN has its options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// MSS, SACK, timestamps, window scale.
    Linux,
    /// MSS, window scale, SACK, timestamps.
    Bsd,
    /// Another one, or the SYN was not seen.
    #[default]
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Forward,
    /// Goes on when the link has room, in the place of the flow's last pure ACK that still waits for that.
    Replace(Because),
    Hold(Because),
    /// Goes on, and a copy stays until it is forgotten.
    Copy(Because),
    Drop(DropReason),
}

/// Why a packet waits, leaves, or is said again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    GoingDown,
    Gone,
    Up,
    /// The plan says now.
    Planned,
    /// The link did not go down as was told.
    FalseAlarm,
    /// Something that may not wait came behind it.
    NoWaiting,
    /// Memory has ended.
    NoRoom,
    /// The mobile lacks it.
    Hole,
    /// A duplicate that the base station answers itself.
    Answered,
    TimedOut,
    /// A newer one says the same and more.
    Newer,
    /// The last byte stays back.
    LastByte,
}

impl Because {
    pub const fn name(self) -> &'static str {
        match self {
            Because::GoingDown => "going-down",
            Because::Gone => "gone",
            Because::Up => "up",
            Because::Planned => "planned",
            Because::FalseAlarm => "false-alarm",
            Because::NoWaiting => "no-waiting",
            Because::NoRoom => "no-room",
            Because::Hole => "hole",
            Because::Answered => "answered",
            Because::TimedOut => "timed-out",
            Because::Newer => "newer",
            Because::LastByte => "last-byte",
        }
    }
}

/// What is to be done besides; the proxy obeys in this order, before the packet at hand goes its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The oldest of this side's packets that wait, so many; of copies those that the mobile has not acknowledged.
    Release { of: Side, packets: u32, because: Because },
    /// This side's packets that wait are dropped.
    Discard { of: Side, reason: DropReason },
    /// Cached data below this number is not needed any more.
    Forget { below: Seq },
    /// The mobile's newest ACK once more, at most once for each ACK, and not behind data of the mobile's.
    Repeat { because: Because },
    /// Cached data once more; it stays cached.
    Resend { seq: Seq, because: Because },
    /// An ACK in the mobile's name, of a number that it has acknowledged.
    Acknowledge { number: Seq, window: Told, copies: u8 },
}

/// The window that an [`Order::Acknowledge`] tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    Zero,
    /// As the mobile's newest.
    AsBefore,
}

pub const ALL_PACKETS: u32 = u32::MAX;
const MOST_ORDERS: usize = 8;

/// The orders of one call.
#[derive(Clone, Debug, Default)]
pub struct Orders(ArrayVec<Order, MOST_ORDERS>);

impl Orders {
    pub fn new() -> Orders {
        Orders::default()
    }

    /// At most 8 a call.
    pub fn give(&mut self, order: Order) {
        self.0.push(order);
    }

    /// All of a side's packets that wait.
    pub fn release_all(&mut self, of: Side, because: Because) {
        self.give(Order::Release { of, packets: ALL_PACKETS, because });
    }

    pub fn iter(&self) -> impl Iterator<Item = Order> + '_ {
        self.0.iter().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}
