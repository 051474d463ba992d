//! A plan's radios and wires in real time, for programs that are elsewhere; the plan's flows and agents are not used.

use std::net::IpAddr;

use hopwise_air::frames::{Framing, Mac};
use hopwise_air::{Arp, Live, OutsideDevices, RadioWorld, WholeRadio, name_of};
use hopwise_core::narrow::as_u32;
use hopwise_core::{LinkId, Machine, NextHop};
use hopwise_mesh::{Interface, QueueConfig, towards};

use crate::sim::build::{self, interfaces};
use crate::sim::{AirTotals, Plan, QueueTotals, address_of, loads, results};

/// A node as programs see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveStation {
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
    /// A radio; a device that is none is an end of a wire.
    pub is_radio: bool,
    /// A radio that takes packets by access category.
    pub has_categories: bool,
    /// The packets that may wait, in the kernel and in the world.
    pub queue: QueueConfig,
}

/// The longest queue of a TAP that holds the number of packets that it says. Linux frees the places of a longer one
/// sixteen at a time (`__ptr_ring_discard_one`), so that a queue of 48 packets holds between 33 and 48.
pub const LONGEST_EXACT_QUEUE: usize = 31;

/// The packets that a TAP holds until they are read, where no more wait there than that.
const UNREAD: usize = 1_000;

/// The shortest queue: one packet for the kernel, one for the world, and the one that the radio has.
pub(crate) const SHORTEST_QUEUE: u32 = 3;

impl Device {
    /// The part of the queue that is the kernel's. Linux's queue is wholly the world's, and so are queues of access
    /// categories. The kernel's part then has room for what comes until the world reads it.
    pub fn queued_in_kernel(&self) -> usize {
        match self.queue {
            QueueConfig::DropTail { .. } if self.has_categories => UNREAD,
            QueueConfig::DropTail { packets } => packets.saturating_sub(2).clamp(1, LONGEST_EXACT_QUEUE),
            QueueConfig::FqCodel(_) => UNREAD,
        }
    }

    /// Adds this device, with the part of the queue that is the world's.
    fn in_world(&self, outside: OutsideDevices) -> OutsideDevices {
        let outside = match self.queue {
            QueueConfig::DropTail { packets } if self.has_categories => {
                outside.with_radio(self.link, packets.saturating_sub(1).max(1))
            }
            QueueConfig::DropTail { packets } => {
                let most = packets.saturating_sub(1 + self.queued_in_kernel()).max(1);
                let with = if self.is_radio { OutsideDevices::with_radio } else { OutsideDevices::with_wire };
                with(outside, self.link, most)
            }
            QueueConfig::FqCodel(queue) => outside.with_radio_of_linux(self.link, queue),
        };
        if self.has_categories { outside.by_category(self.link) } else { outside }
    }
}

/// A route to another node: through this device, by that neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteStep {
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
pub fn stations(plan: &Plan) -> Vec<LiveStation> {
    let station = |node: u32| {
        let device = |interface: Interface| Device {
            link: interface.link,
            is_radio: interface.is_shared,
            has_categories: interface.is_shared && plan.phy.is_ht(),
            queue: interface.queue,
        };
        LiveStation {
            mac: plan.mac(node),
            address: address_of(node),
            devices: interfaces(plan, node).into_iter().map(device).collect(),
        }
    };
    (0..as_u32(plan.positions.len())).map(station).collect()
}

/// The world without any program in it.
pub fn world(plan: &Plan) -> Live<OutsideDevices> {
    let outside = |station: LiveStation| {
        let outside = OutsideDevices::new(station.mac);
        station.devices.iter().fold(outside, |outside, device| device.in_world(outside))
    };
    let config = build::air(plan, Framing::Ethernet, &|node| name_of(plan.mac(node)));
    let mut world = RadioWorld::new(config, stations(plan).into_iter().map(outside).collect());
    world.more = OutsideDevices::poll_beside;
    if plan.phy.is_ht() {
        world.categories = Some(OutsideDevices::poll_in);
    }
    if plan.linux_queue.is_some() {
        world.spent = Some(OutsideDevices::on_spent);
    }
    world.loads = loads::of;
    if !plan.tracks.is_empty() {
        world.set_motion(plan.tracks.clone());
    }
    Live::new(world)
}

/// The counters of all radios together, with the counters of the queues.
pub fn totals<M: Machine>(world: &RadioWorld<M>, queues: QueueTotals) -> AirTotals {
    results::air(world, queues)
}

/// The same world for kernels that hand over whole frames of 802.11. With `overhear` each station also receives frames
/// for other stations, as its monitors do. A station's queue is the plan's, and holds at most `most`.
pub fn world_of_frames(plan: &Plan, most: usize, overhear: bool) -> Live<WholeRadio> {
    let mut config = build::air(plan, Framing::Whole, &|node| name_of(plan.mac(node)));
    // The kernels resolve addresses themselves.
    config.arp = Arp::Known;
    config.stations.iter_mut().for_each(|station| station.hears_all = overhear);
    let most = plan.queue_packets.min(most);
    let machine = |node| WholeRadio::new(most, &plan.phy, plan.seed, node);
    let mut world = RadioWorld::new(config, (0..as_u32(plan.positions.len())).map(machine).collect());
    world.more = WholeRadio::poll_beside;
    world.loads = loads::of_frame;
    world.queued_at = |radio| radio.queued_at;
    if !plan.tracks.is_empty() {
        world.set_motion(plan.tracks.clone());
    }
    Live::new(world)
}

/// The shortest paths from each node to every other node.
pub fn routes(plan: &Plan) -> Vec<Vec<RouteStep>> {
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
            routes[node].push(RouteStep { node: as_u32(end), to, link: hop.link, via });
        }
    }
    routes
}

#[cfg(test)]
mod tests {
    use hopwise_air::frames::mac_of;
    use hopwise_core::Instant;

    use super::*;

    /// The part of a queue that is the kernel's, and the frames that find a place in the world's.
    fn parts(packets: usize, has_categories: bool) -> (usize, usize) {
        let queue = QueueConfig::DropTail { packets };
        let device = Device { link: LinkId(0), is_radio: true, has_categories, queue };
        let mac = mac_of(0);
        let mut outside = device.in_world(OutsideDevices::new(mac));
        let mut frame = vec![0; 100];
        frame[6..12].copy_from_slice(&mac);
        let mut put =
            |_: &usize| outside.put(Instant::ZERO, device.link, &frame).is_ok() && outside.queue_drops() == 0;
        let in_world = (0..).take_while(&mut put).count();
        (device.queued_in_kernel(), in_world)
    }

    #[test]
    fn the_parts_of_a_queue_hold_as_much_as_the_whole() {
        for packets in SHORTEST_QUEUE as usize..200 {
            let (in_kernel, in_world) = parts(packets, false);
            assert_eq!(in_kernel + in_world + 1, packets);
            assert!(in_kernel <= LONGEST_EXACT_QUEUE && in_world > 0);
            // Frames of a category wait in the world alone.
            assert_eq!(parts(packets, true), (UNREAD, packets - 1));
        }
    }
}
