//! The configuration of a world: its radios, its stations and its wires.

use std::net::IpAddr;

use hopwise_core::LinkId;

use crate::arp::Arp;
use crate::channel::Channel;
use crate::dcf::MacConfig;
use crate::frames::Framing;
use crate::phy::Phy;
use crate::position::Position;
use crate::radio::Radio;
use crate::wire::WireConfig;

/// A machine's position, and its name for others.
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

/// All that a world is made from, beside its machines.
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
    /// The seed of all that is random in the world: the same seed gives the same run.
    pub seed: u64,
}
