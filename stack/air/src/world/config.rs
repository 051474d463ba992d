//! The configuration of a world: its radios, its stations and its wires, which carry packets one after the other.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use hopwise_core::LinkId;

use crate::arp::Arp;
use crate::channel::Channel;
use crate::dcf::MacConfig;
use crate::frames::Framing;
use crate::phy::Phy;
use crate::radio::{Position, Radio};

/// A machine's position, and its name for neighbours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StationConfig {
    /// `None` for a machine without a radio.
    pub position: Option<Position>,
    /// The machine's own name for its radio.
    pub radio: LinkId,
    /// The address by which neighbours name the machine.
    pub address: IpAddr,
    /// Hands packets between other stations to the machine too.
    pub hears_all: bool,
    /// The first header of the machine's packets.
    pub framing: Framing,
}

/// All that a world is made from but its machines.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// The physical layer of all radios.
    pub phy: Phy,
    /// The MAC's settings of all radios.
    pub mac: MacConfig,
    /// The powers of all radios.
    pub radio: Radio,
    /// The effects of the channel.
    pub channel: Channel,
    /// The stations, one for each machine.
    pub stations: Vec<StationConfig>,
    /// The wires between machines.
    pub wires: Vec<WireConfig>,
    /// The source of neighbours' addresses.
    pub arp: Arp,
    /// The seed of all that is random in the world: a seed determines the run.
    pub seed: u64,
}

/// A wire, and the machines at its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireConfig {
    /// The two machines, each with its own name for the wire.
    pub ends: [(u32, LinkId); 2],
    /// Its rate in each direction.
    pub bits_per_second: u64,
    /// The time from the last bit's departure to the arrival of the packet.
    pub delay: Duration,
}

#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) config: WireConfig,
    directions: [WireDirection; 2],
}

#[derive(Debug, Default)]
struct WireDirection {
    /// When the last bit of the current packet leaves.
    sends_until: u64,
    /// Packets on their way; a wire keeps their order.
    under_way: VecDeque<Vec<u8>>,
}

impl Wire {
    pub(crate) fn new(config: WireConfig) -> Wire {
        Wire { config, directions: [WireDirection::default(), WireDirection::default()] }
    }

    pub(crate) fn has_room(&self, end: usize, now: u64) -> bool {
        self.directions[end].sends_until <= now
    }

    /// Sends from an end; returns when there is room again, and when the packet arrives.
    pub(crate) fn send(&mut self, end: usize, now: u64, packet: Vec<u8>) -> (u64, u64) {
        let bits = packet.len() as u64 * 8;
        let until = now + bits * 1_000_000_000 / self.config.bits_per_second.max(1);
        let direction = &mut self.directions[end];
        direction.sends_until = until;
        direction.under_way.push_back(packet);
        (until, until + u64::try_from(self.config.delay.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The packet that arrives at the other end.
    pub(crate) fn arrive(&mut self, end: usize) -> Option<Vec<u8>> {
        self.directions[end].under_way.pop_front()
    }
}
