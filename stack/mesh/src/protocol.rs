//! The registry of routing protocols. A protocol is a folder with a `DESCRIPTOR`, and a line in [`PROTOCOLS`].
//!
//! Scenarios, worlds, daemons and pages know a protocol by its descriptor alone, and name none. The registry knows the
//! protocols by name, and neither files, worlds nor kernels.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use hopwise_core::Instant;

use crate::constants::{Constant, ConstantValue, ConstantValues, RuleSet};
use crate::gpsr::Positions;
use crate::on_demand::{Interface, OnDemand, Trust};
use crate::routing::Routing;
use crate::static_routes::FirstStep;
use crate::{aodv, aodvv2, batman, dsr, gpsr, hwmp, static_routes};

/// All routing protocols, in the order of schemas and messages.
pub static PROTOCOLS: &[&RoutingProtocol] = &[
    &static_routes::DESCRIPTOR,
    &aodv::DESCRIPTOR,
    &aodvv2::DESCRIPTOR,
    &dsr::DESCRIPTOR,
    &gpsr::DESCRIPTOR,
    &batman::DESCRIPTOR,
    &hwmp::DESCRIPTOR,
];

/// A routing protocol, as scenarios, worlds, daemons and pages know it.
#[derive(Debug)]
pub struct RoutingProtocol {
    /// The word in files, and the name of the section with the protocol's constants.
    pub name: &'static str,
    /// One sentence for schemas.
    pub summary: &'static str,
    /// The constants, in the order of pages.
    pub constants: &'static [Constant],
    /// The subject of the constants, for schemas: "Constants of DSR".
    pub subject: &'static str,
    /// True if the constants stand beside the protocol's name in files, and not in a section of their own.
    pub is_flat: bool,
    /// The mark by which the protocol's packets are known.
    pub mark: PacketMark,
    /// True if each node needs a position.
    pub needs_positions: bool,
    /// The part of a live node that finds routes.
    pub live: LiveRouter,
    /// The protocol in a routing daemon ([`LiveRouter::Daemon`]).
    pub daemon: Option<DaemonProtocol>,
    /// Makes the protocol's part of a simulated node.
    pub make: fn(&ConstantValues, RoutingSetup) -> Box<dyn Routing>,
}

/// The mark by which the packets of a protocol are known.
#[derive(Clone, Copy, Debug)]
pub enum PacketMark {
    /// The protocol sends nothing.
    None,
    /// The UDP port of messages.
    Port(u16),
    /// A header of the protocol's own behind the IP header of every packet.
    Header {
        /// Its IP protocol number.
        number: u8,
        /// Reads the header: the protocol number of what follows, and the header's length.
        read: fn(&[u8]) -> Option<(u8, usize)>,
    },
}

/// The part of a live node that finds its routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveRouter {
    /// None: the kernels have the shortest paths from the beginning.
    Nobody,
    /// `hopwise route`.
    Daemon,
    /// The kernel's batman-adv, below IP.
    BatmanAdv,
    /// The kernel's 802.11s, below IP.
    Mac80211,
    /// The simulation alone has the protocol.
    Simulation,
}

impl LiveRouter {
    /// True if Linux's kernel has the protocol, below IP.
    pub fn is_kernel(self) -> bool {
        matches!(self, LiveRouter::BatmanAdv | LiveRouter::Mac80211)
    }
}

/// A protocol in a routing daemon, whose kernel forwards.
#[derive(Clone, Copy, Debug)]
pub struct DaemonProtocol {
    /// The UDP port of both ends.
    pub port: u16,
    /// The destination of broadcast or multicast messages.
    pub everyone: Ipv4Addr,
    /// The time for which a node that has lost its sequence numbers is silent.
    pub rest: fn(&ConstantValues) -> Duration,
    /// Makes the daemon's protocol.
    pub make: fn(&ConstantValues, RoutingSetup) -> Box<dyn OnDemand>,
}

/// What a node's protocol starts with, apart from its constants.
#[derive(Debug)]
pub struct RoutingSetup {
    /// At least one; the first one's address is the node's name.
    pub interfaces: Vec<Interface>,
    /// Other addresses that this node makes reachable and searches for.
    pub serves: Vec<Ipv4Addr>,
    /// Seed of all random draws.
    pub seed: u64,
    /// The highest sequence number that the node may have used before, 0 for none.
    pub seq: u16,
    /// The start of the counters in signed messages: higher at every start of the same node.
    pub counter: u64,
    /// A node that may have routed before and has lost its sequence numbers is silent until then (RFC 3561 §6.13).
    pub wakes_at: Instant,
    /// The limits on messages of other nodes.
    pub trust: Trust,
    /// The bit rate that a node expects of a neighbour before it has sent frames there, in kbit/s.
    pub first_kbps: u32,
    /// The source of positions, for protocols that need them.
    pub positions: Box<dyn Positions>,
    /// The first step to each destination, where the kernels have them too ([`LiveRouter::Nobody`]).
    pub routes: Vec<(IpAddr, FirstStep)>,
}

impl RoutingSetup {
    /// A simulated node on these interfaces that was never there before, and knows no position and no route.
    pub fn new(interfaces: Vec<Interface>, seed: u64) -> RoutingSetup {
        RoutingSetup {
            interfaces,
            serves: Vec::new(),
            seed,
            seq: 0,
            counter: 0,
            wakes_at: Instant::ZERO,
            trust: Trust::default(),
            first_kbps: 0,
            positions: Box::new(gpsr::Nowhere),
            routes: Vec::new(),
        }
    }
}

impl RoutingProtocol {
    /// The protocol with this name in files.
    pub fn named(name: &str) -> Option<&'static RoutingProtocol> {
        PROTOCOLS.iter().copied().find(|protocol| protocol.name == name)
    }

    /// The constant of this name.
    pub fn constant(&self, name: &str) -> Option<&'static Constant> {
        self.constants.iter().find(|constant| constant.name == name)
    }

    /// The value of a constant in force; `None` where it is derived or absent.
    pub fn value(&self, constants: &ConstantValues, name: &str) -> Option<ConstantValue> {
        constants.get(name).or_else(|| self.constant(name)?.default_under(constants.rules))
    }

    /// Returns whether the protocol uses this constant under these rules. Names of no constant count as used.
    pub fn uses(&self, rules: RuleSet, name: &str) -> bool {
        self.constant(name).is_none_or(|constant| constant.is_used_under(rules))
    }

    /// True if the protocol has a rule set of ns-2 beside its specification's.
    pub fn has_rule_sets(&self) -> bool {
        self.constants.iter().any(|constant| constant.ns2.is_some())
    }
}

impl PartialEq for RoutingProtocol {
    fn eq(&self, other: &RoutingProtocol) -> bool {
        self.name == other.name
    }
}

impl Eq for RoutingProtocol {}

/// The protocol of a scenario that names none.
impl Default for &RoutingProtocol {
    fn default() -> Self {
        &static_routes::DESCRIPTOR
    }
}

/// The protocol number and the bytes behind a routing header, or the given ones where there is no such header.
pub fn behind_routing(protocol: u8, payload: &[u8]) -> (u8, &[u8]) {
    let behind = PROTOCOLS.iter().find_map(|known| match known.mark {
        PacketMark::Header { number, read } if number == protocol => read(payload),
        _ => None,
    });
    behind.map_or((protocol, payload), |(next, len)| (next, &payload[len..]))
}

/// True for a UDP port of routing messages.
pub fn is_routing_port(port: u16) -> bool {
    PROTOCOLS.iter().any(|known| matches!(known.mark, PacketMark::Port(own) if own == port))
}

#[cfg(test)]
mod tests {
    use hopwise_core::LinkId;

    use super::*;
    use crate::constants::{ConstantForm, LONGEST};
    use crate::on_demand::Key;

    fn setup() -> RoutingSetup {
        let interface = Interface { link: LinkId(0), address: Ipv4Addr::new(10, 0, 0, 1) };
        RoutingSetup::new(vec![interface], 1)
    }

    #[test]
    fn every_protocol_takes_the_end_of_each_constants_range_and_its_defaults() {
        for protocol in PROTOCOLS {
            for constant in protocol.constants {
                let last = match constant.form {
                    ConstantForm::Time { .. } => ConstantValue::Time(LONGEST),
                    ConstantForm::Count { max, .. } => ConstantValue::Count(max),
                    ConstantForm::Switch => {
                        ConstantValue::Switch(constant.default != Some(ConstantValue::Switch(true)))
                    }
                    ConstantForm::Choice(names) => ConstantValue::Choice(names[names.len() - 1].0),
                    ConstantForm::Key => ConstantValue::Key(Key::new([1; 32])),
                };
                for rules in [RuleSet::Standard, RuleSet::Ns2] {
                    let default = constant.default_under(rules).filter(|_| constant.is_used_under(rules));
                    assert!(default.is_none_or(|value| constant.form.accepts(value)), "{}", constant.name);
                    let mut constants = ConstantValues::of(rules);
                    constants.set(constant.name, last);
                    assert_eq!(protocol.value(&constants, constant.name), Some(last));
                    (protocol.make)(&constants, setup());
                }
            }
        }
    }

    #[test]
    fn a_protocols_parts_agree_with_its_descriptor() {
        for protocol in PROTOCOLS {
            let made = (protocol.make)(&ConstantValues::default(), setup());
            let (port, header) = match protocol.mark {
                PacketMark::None => (None, None),
                PacketMark::Port(port) => (Some(port), None),
                PacketMark::Header { number, .. } => (None, Some(number)),
            };
            assert_eq!((made.port(), made.header()), (port, header), "{}", protocol.name);
            assert_eq!(protocol.daemon.is_some(), protocol.live == LiveRouter::Daemon, "{}", protocol.name);
            if let Some(daemon) = protocol.daemon {
                let made = (daemon.make)(&ConstantValues::default(), setup());
                assert_eq!((made.port(), Some(daemon.port)), (port, port), "{}", protocol.name);
            }
            assert_eq!(RoutingProtocol::named(protocol.name), Some(*protocol));
        }
    }
}
