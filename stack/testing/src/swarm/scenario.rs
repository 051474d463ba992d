//! The scenario that a seed stands for.

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::AgentSpecs;
use hopwise_core::endpoint::{Cookies, Offload};
use hopwise_core::impairment::Impairment;
use hopwise_core::tcp::TcpConfig;

use crate::memory::{End, PathConfig};

/// Everything that a seed decides. Arrays of two are by end, A first; arrays of a connection begin with the opener.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    pub family: Family,
    pub hosts: [Host; 2],
    /// The paths that lead away from A and from B, until they heal.
    pub paths: [PathConfig; 2],
    /// The path's changes, in the order of time, all before `heal_at`.
    pub changes: Vec<Change>,
    pub heal_at: Instant,
    /// True if the path from there keeps its MTU when it heals.
    pub mtu_stays: [bool; 2],
    pub connections: Vec<ConnectionPlan>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

#[derive(Clone, Debug)]
pub struct Host {
    pub tcp: TcpConfig,
    pub agents: AgentSpecs,
    pub link_mtu: u16,
    pub offload: Offload,
    pub cookies: Cookies,
    pub half_open: usize,
    pub backlog: usize,
    /// The program looks for new connections this often; at once when it is zero.
    pub accept_every: Duration,
    pub mood: MoodPlan,
}

/// The faults of an endpoint's driver, until the path heals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoodPlan {
    /// The most by which a timeout comes late.
    pub late: Duration,
    /// Timeouts handled although none is due, per million packets.
    pub early_ppm: u32,
    /// Timeouts handled a second time, per million.
    pub twice_ppm: u32,
    /// Stalls per million packets and timeouts: the link then has no room for a while.
    pub stall_ppm: u32,
    pub stall: Duration,
}

/// A change of the path that leads away from an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub at: Instant,
    pub from: End,
    pub what: ChangeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Down,
    Up,
    /// The route changed: from now on another delay.
    Delay(Duration),
    /// A tunnel begins somewhere: larger packets vanish.
    Mtu(u16),
}

#[derive(Clone, Debug)]
pub struct ConnectionPlan {
    pub opener: End,
    pub opens_at: Instant,
    pub opening: Opening,
    /// The plans of both programs, the opener's first.
    pub sides: [SidePlan; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// The opener connects to a listener.
    Ordinary,
    /// Both ends open at once, and connect to each other.
    Simultaneous,
    /// The opener takes the port of that connection, as soon as the port is free.
    AfterTheEndOf(usize),
}

/// The plan of the program at one side of a connection.
#[derive(Clone, Debug)]
pub struct SidePlan {
    pub send_bytes: u64,
    pub write_bytes: u64,
    /// The pause between two writes.
    pub think: Duration,
    pub dialogue: Dialogue,
    pub read: ReadPlan,
    /// The number of writes after which one is urgent; 0 for none.
    pub urgent_every: u64,
    pub ending: Ending,
    pub settings: Vec<Setting>,
}

/// When a write may follow the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialogue {
    Free,
    /// A write needs `bytes` read for each one before it, counting from `lead` writes ahead: requests and responses.
    Alternate {
        lead: u64,
        bytes: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPlan {
    pub bytes: usize,
    pub how: ReadHow,
    /// The number of bytes read after which the program pauses.
    pub pause_at: u64,
    pub pause: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadHow {
    Copy,
    InPlace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Shuts down after its last byte, reads to the peer's end, waits for the event that all is over.
    HalfClose,
    /// Shuts down after its last byte, lets go as soon as the peer's end was read.
    LetGo,
    /// Shuts down only when the peer has.
    AfterPeer,
    /// Lets go right after the last write, if the peer sends nothing.
    WriteAndGo,
    /// Aborts once it has read and written this many bytes together.
    Abort { after: u64 },
    /// Lets go in the middle, even with bytes left to read.
    LeaveEarly { after: u64 },
}

/// The program changes its mind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    Nagle(bool),
    KeepAlive { idle: Duration },
    NoKeepAlive,
    HopLimit(u8),
    Dscp(u8),
}

impl Ending {
    /// True if the ending may cost the other side data, or an error.
    pub fn is_rude(self) -> bool {
        matches!(self, Ending::Abort { .. } | Ending::LeaveEarly { .. })
    }
}

impl SidePlan {
    /// The longest time that the program is busy with other things.
    pub fn idle_time(&self) -> Duration {
        let writes = self.send_bytes.div_ceil(self.write_bytes.max(1));
        self.read.pause + self.think * u32::try_from(writes).unwrap_or(u32::MAX)
    }
}

impl Scenario {
    /// True if the path and the drivers have no faults: no connection may fail.
    pub fn is_faultless(&self) -> bool {
        let is_smooth = |path: &PathConfig| {
            let Impairment { loss_ppm, duplicate_ppm, reorder_ppm, corrupt_ppm, bits_per_second, .. } =
                path.impairment;
            [loss_ppm, duplicate_ppm, reorder_ppm, corrupt_ppm] == [0; 4]
                && bits_per_second == 0
                && path.mtu == u16::MAX
                && !path.is_down
        };
        let at_ease = |host: &Host| host.mood.stall_ppm == 0;
        self.changes.is_empty() && self.paths.iter().all(is_smooth) && self.hosts.iter().all(at_ease)
    }

    /// True if a SYN cookie may stand for a connection at this end's listener.
    pub fn may_use_cookies(&self, end: End) -> bool {
        let host = &self.hosts[end as usize];
        match host.cookies {
            Cookies::Always => true,
            Cookies::WhenFull => host.half_open <= self.connections.len(),
            Cookies::Never => false,
        }
    }

    /// True if both hosts outwait every fault of this path.
    pub fn is_patient(&self) -> bool {
        let longest = Duration::from_nanos(self.heal_at.0) + PATIENCE;
        self.hosts.iter().all(|host| {
            let keep_alive = host.tcp.keep_alive.map(|keep| keep.interval * u32::from(keep.probes));
            host.tcp.user_timeout >= longest
                && host.tcp.syn_timeout >= longest
                && keep_alive.is_none_or(|total| total >= longest)
        })
    }
}

impl PathConfig {
    /// The same path without its faults: it keeps its delay and, widened a little, its rate. Packets are then lost only
    /// to a full queue or, if it stays, to the MTU.
    pub(super) fn healed(&self, mtu_stays: bool) -> PathConfig {
        let Impairment { delay, bits_per_second, queue_packets, .. } = self.impairment;
        PathConfig {
            mark_behind: self.mark_behind,
            mtu: if mtu_stays { self.mtu } else { u16::MAX },
            bundles: self.bundles,
            hop: self.hop,
            ..PathConfig::clean(delay).with(|path| {
                path.bits_per_second = if bits_per_second == 0 { 0 } else { bits_per_second.max(200_000) };
                path.queue_packets = queue_packets.max(30);
            })
        }
    }
}

/// The patience beyond the end of the last fault.
const PATIENCE: Duration = Duration::from_secs(3600);
