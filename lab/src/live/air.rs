//! A plan's radios and wires in real time, for programs that are elsewhere; the plan's flows and agents are not used.

use std::net::IpAddr;

use hopwise_air::frames::{Framing, Mac, mac_of};
use hopwise_air::{Arp, Live, Outside, RadioWorld, Whole, name_of};
use hopwise_core::narrow::as_u32;
use hopwise_core::{LinkId, Machine, NextHop};
use hopwise_mesh::{Interface, towards};

use crate::sim::build::{self, interfaces};
use crate::sim::{AirTotals, Plan, address_of, loads, results};

/// A node as programs see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Station {
    /// The address of its radio.
    pub mac: Mac,
    /// The address of its endpoint.
    pub address: IpAddr,
    /// Its radio and its ends of wires.
    pub devices: Vec<Device>,
}

/// A device of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The number of the link in the simulated world.
    pub link: LinkId,
    /// A radio; otherwise an end of a wire.
    pub is_radio: bool,
    /// The packets that may wait, with the one that the radio or the wire has.
    pub queue_packets: usize,
}

/// The longest queue of a TAP that holds as many packets as it says. Linux frees the places of a longer one sixteen at
/// a time (`__ptr_ring_discard_one`), so that a queue of 48 packets holds between 33 and 48.
pub const LONGEST_EXACT_QUEUE: usize = 31;

/// The shortest queue: one packet for the kernel, one for the world, and the one that the radio has.
pub(crate) const SHORTEST_QUEUE: u32 = 3;

impl Device {
    /// The part of the queue that is the kernel's.
    pub fn queued_in_kernel(&self) -> usize {
        self.queue_packets.saturating_sub(2).clamp(1, LONGEST_EXACT_QUEUE)
    }

    /// The part of the queue that is the world's.
    fn queued_in_world(&self) -> usize {
        self.queue_packets.saturating_sub(1 + self.queued_in_kernel()).max(1)
    }
}

/// A route to another node: through this device, by that neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The number of that node.
    pub node: u32,
    /// The node's address.
    pub to: IpAddr,
    /// The link of the first step.
    pub link: LinkId,
    /// The address of the neighbour that takes the packets.
    pub via: IpAddr,
}

/// All stations of a plan.
pub fn stations(plan: &Plan) -> Vec<Station> {
    let station = |node: u32| {
        let device = |interface: Interface| Device {
            link: interface.link,
            is_radio: interface.is_shared,
            queue_packets: interface.queue_packets,
        };
        Station {
            mac: mac_of(node),
            address: address_of(node),
            devices: interfaces(plan, node).into_iter().map(device).collect(),
        }
    };
    (0..as_u32(plan.positions.len())).map(station).collect()
}

/// The world without any program in it.
pub fn world(plan: &Plan) -> Live<Outside> {
    let outside = |station: Station| {
        station.devices.iter().fold(Outside::new(station.mac), |outside, device| {
            let most = device.queued_in_world();
            if device.is_radio {
                outside.with_radio(device.link, most)
            } else {
                outside.with_wire(device.link, most)
            }
        })
    };
    let config = build::air(plan, Framing::Ethernet, &|node| name_of(mac_of(node)));
    let mut world = RadioWorld::new(config, stations(plan).into_iter().map(outside).collect());
    world.set_more(Outside::poll_beside);
    world.set_loads(loads::of);
    if !plan.tracks.is_empty() {
        world.set_motion(plan.tracks.clone());
    }
    Live::new(world)
}

/// The counters of all radios together; the kernels' queues have dropped that many packets, if they
/// tell.
pub fn totals<M: Machine>(world: &RadioWorld<M>, queue_drops: Option<u64>) -> AirTotals {
    results::air(world, queue_drops)
}

/// The same world for kernels that hand over whole frames of 802.11. With `overhear` each station also receives what
/// is meant for others, as its monitors do. A station's queue is the plan's, and holds at most `most`.
pub fn world_of_frames(plan: &Plan, most: usize, overhear: bool) -> Live<Whole> {
    let mut config = build::air(plan, Framing::Whole, &|node| name_of(mac_of(node)));
    // The kernels resolve addresses themselves.
    config.arp = Arp::Known;
    config.stations.iter_mut().for_each(|station| station.hears_all = overhear);
    let most = plan.queue_packets.min(most);
    let machine = |node| Whole::new(most, &plan.phy, plan.seed, node);
    let mut world = RadioWorld::new(config, (0..as_u32(plan.positions.len())).map(machine).collect());
    world.set_loads(loads::of_frame);
    world.set_queued_at(Whole::queued_at);
    if !plan.tracks.is_empty() {
        world.set_motion(plan.tracks.clone());
    }
    Live::new(world)
}

/// The shortest paths from each node to all others.
pub fn routes(plan: &Plan) -> Vec<Vec<Step>> {
    let neighbours = build::neighbours(plan);
    let mut routes = vec![Vec::new(); plan.positions.len()];
    for end in 0..plan.positions.len() {
        let to = address_of(as_u32(end));
        for (node, hop) in towards(end, &neighbours) {
            let by = neighbours[node].iter().find(|next| next.link == hop.link && next.via == hop.via);
            let via = match hop.via {
                NextHop::Neighbour(via) => via,
                // A wire has one other end.
                _ => by.map_or(to, |next| address_of(as_u32(next.node))),
            };
            routes[node].push(Step { node: as_u32(end), to, link: hop.link, via });
        }
    }
    routes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_queue_hold_as_much_as_the_whole() {
        for queue_packets in SHORTEST_QUEUE as usize..200 {
            let device = Device { link: LinkId(0), is_radio: true, queue_packets };
            let (in_kernel, in_world) = (device.queued_in_kernel(), device.queued_in_world());
            assert_eq!(in_kernel + in_world + 1, queue_packets);
            assert!(in_kernel <= LONGEST_EXACT_QUEUE && in_world > 0);
        }
    }
}
