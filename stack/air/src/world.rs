//! The world: machines, the medium between them, wires, and virtual time.
//!
//! Events of one instant have a fixed order. The radio goes first (lowest station), then filed events in the order of
//! filing, then timers (lowest machine).

mod config;
mod hands;
mod offers;
mod resolve;
mod sinks;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt;
use std::net::IpAddr;

use hopwise_core::narrow::{as_u8, as_u32};
use hopwise_core::{Cast, Instant, LinkEvent, LinkFacts, Machine, Payload, Rx};

use crate::airtime::AirLoad;
use crate::arp::{self, Arp};
use crate::dcf::{Dcf, DcfNews, PacketOutcome, StationStats};
use crate::deadlines::{Deadlines, NEVER};
use crate::frames::Framing;
use crate::motion::NodeTrack;
use crate::phy::Rate;
use config::Wire;
pub use config::{StationConfig, WireConfig, WorldConfig};
use hands::{Hands, RadioPacket};
pub use offers::{CategoryOf, MoreOf, SpentOf};
use resolve::Resolver;
pub use sinks::{EndingSink, FrameSink, RadioNews, RadioSink, TraceSink};

/// The most timers of one instant; with more, one of them never ends.
const MOST_AT_ONCE: u32 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum WorldEvent {
    /// This end of the wire is free again.
    WireFree {
        wire: u32,
        end: u8,
    },
    WireArrival {
        wire: u32,
        end: u8,
    },
    /// An ARP request went unanswered.
    Unanswered {
        station: u32,
    },
}

/// Machines on a medium and on wires, in virtual time.
pub struct RadioWorld<M: Machine> {
    machines: Vec<M>,
    stations: Vec<StationConfig>,
    by_address: BTreeMap<IpAddr, u32>,
    dcf: Dcf,
    hands: Vec<Hands>,
    /// Packets that have come out of order: by receiver, sender and number.
    kept: BTreeMap<(u32, u32, u32), Vec<RadioPacket>>,
    wires: Vec<Wire>,
    /// The wires' ends at each machine.
    wires_of: Vec<Vec<(u32, u8)>>,
    filed: BinaryHeap<Reverse<(u64, u64, WorldEvent)>>,
    order: u64,
    timers: Deadlines,
    now: u64,
    at_once: u32,
    events: u64,
    /// Packets for a neighbour whose address no station has.
    unresolved: u64,
    /// The ARP resolver, if stations request addresses.
    resolver: Option<Resolver>,
    /// Receives the trace events of machines.
    pub trace: Option<TraceSink>,
    frames: Option<FrameSink>,
    /// Receives the fates of frames too, while frames are watched.
    pub endings: Option<EndingSink>,
    /// Receives the news of the radios.
    pub radio: Option<RadioSink>,
    /// Classifies packets; airtime is booked by its result. It changes nothing in the world.
    pub loads: fn(&[u8]) -> AirLoad,
    /// Tells when the packet that a machine gave last had come into its queue. It changes nothing in the world.
    pub queued_at: fn(&M) -> Option<Instant>,
    /// Takes a further packet for a neighbour from a machine, for aggregates. At first there is none, and a frame
    /// carries one packet.
    pub more: MoreOf<M>,
    /// Takes the next packet of a category from a machine: each category then contends for the medium by itself (EDCA).
    /// Without it all packets go at best effort. Only stations of 802.11n have categories.
    pub categories: Option<CategoryOf<M>>,
    /// Tells a machine how much time its packet has taken, before its fate. It changes nothing in the world by itself.
    pub spent: Option<SpentOf<M>>,
    spare: Vec<Vec<u8>>,
}

/// The stations of a world.
fn dcf_of(config: &WorldConfig) -> Dcf {
    let positions: Vec<_> = config.stations.iter().map(|station| station.position).collect();
    let mut dcf =
        Dcf::with_channel(config.phy, config.mac, config.radio, &config.channel, &positions, config.seed);
    for (number, station) in config.stations.iter().enumerate() {
        dcf.set_hears_all(as_u32(number), station.hears_all);
    }
    if config.stations.iter().any(|station| station.framing == Framing::Whole) {
        dcf.take_whole_frames();
    }
    dcf
}

impl<M: Machine> RadioWorld<M> {
    /// A world at time 0. The machines' first packets are taken at once.
    pub fn new(config: WorldConfig, machines: Vec<M>) -> RadioWorld<M> {
        assert_eq!(config.stations.len(), machines.len(), "every machine has a station");
        let dcf = dcf_of(&config);
        let mut wires_of = vec![Vec::new(); machines.len()];
        for (wire, config) in config.wires.iter().enumerate() {
            for (end, (machine, _)) in config.ends.iter().enumerate() {
                wires_of[*machine as usize].push((as_u32(wire), as_u8(end)));
            }
        }
        let resolver = (config.arp == Arp::Asked).then(|| Resolver::new(machines.len(), config.mac.rules));
        let mut world = RadioWorld {
            by_address: config.stations.iter().zip(0..).map(|(station, n)| (station.address, n)).collect(),
            kept: BTreeMap::new(),
            hands: machines.iter().map(|_| Hands::default()).collect(),
            timers: Deadlines::new(machines.len()),
            wires: config.wires.into_iter().map(Wire::new).collect(),
            stations: config.stations,
            machines,
            dcf,
            wires_of,
            filed: BinaryHeap::new(),
            order: 0,
            now: 0,
            at_once: 0,
            events: 0,
            unresolved: 0,
            resolver,
            trace: None,
            frames: None,
            endings: None,
            radio: None,
            loads: |_| AirLoad::Other,
            queued_at: |_| None,
            more: |_, _, _, _, _| None,
            categories: None,
            spent: None,
            spare: Vec::new(),
        };
        (0..world.machines.len()).for_each(|n| world.serve(n));
        world
    }

    /// Sets the machines' motion; a machine without a track stays where it is. Call it before anything has happened.
    pub fn set_motion(&mut self, tracks: Vec<Option<NodeTrack>>) {
        let positions: Vec<_> = self.stations.iter().map(|station| station.position).collect();
        self.dcf.set_motion(&positions, tracks);
    }

    /// Keeps the facts of every link from now on. It changes nothing in the world.
    pub fn keep_facts(&mut self) {
        self.dcf.keep_facts();
    }

    /// A station's facts about its links until now, if they are kept.
    pub fn facts(&self, station: u32) -> Vec<LinkFacts> {
        self.dcf.facts(self.now, station)
    }

    /// The virtual time that the world has reached.
    pub fn now(&self) -> Instant {
        Instant(self.now)
    }

    /// The machines, in the order of their numbers.
    pub fn machines(&self) -> &[M] {
        &self.machines
    }

    /// The counters of a station's radio.
    pub fn stats(&self, station: u32) -> &StationStats {
        self.dcf.stats(station)
    }

    /// The events of the radio, the wires and the timers until now.
    pub fn events(&self) -> u64 {
        self.events + self.dcf.events
    }

    /// Packets for a neighbour whose address no station has, or for which no reply came in time.
    pub fn unresolved(&self) -> u64 {
        self.unresolved + self.resolver.as_ref().map_or(0, |resolver| resolver.lost)
    }

    /// Acts on a machine, and takes the packets that it then sends.
    pub fn with<T>(&mut self, machine: u32, act: impl FnOnce(Instant, &mut M) -> T) -> T {
        let done = act(Instant(self.now), &mut self.machines[machine as usize]);
        self.serve(machine as usize);
        done
    }

    /// When the next event happens, without input.
    pub fn next(&self) -> Option<Instant> {
        let filed = self.filed.peek().map_or(NEVER, |Reverse((at, ..))| *at);
        let next = self.dcf.next().min(self.timers.next()).min(filed);
        (next != NEVER).then_some(Instant(next))
    }

    /// Lets everything happen up to `until`, itself included.
    pub fn run_until(&mut self, until: Instant) {
        while self.step(until.0) {}
        self.now = self.now.max(until.0);
    }

    fn step(&mut self, until: u64) -> bool {
        let (radio, timer) = (self.dcf.next(), self.timers.next());
        let filed = self.filed.peek().map_or(NEVER, |Reverse((at, ..))| *at);
        let at = radio.min(timer).min(filed);
        if at > until || at == NEVER {
            return false;
        }
        if at > self.now {
            self.at_once = 0;
            self.now = at;
        }
        if radio <= self.now {
            self.dcf.fire();
            self.show_frames();
            while let Some(news) = self.dcf.next_news() {
                self.take(news);
            }
        } else if filed <= self.now {
            self.run_filed();
        } else {
            self.run_timer();
        }
        true
    }

    fn take(&mut self, news: DcfNews) {
        self.tell_driver(&news);
        match news {
            DcfNews::Kept { from, to, number } => self.keep(from, to, number),
            DcfNews::HasRoom { station } => self.serve(station as usize),
            DcfNews::Arrived { from, to, number, cast, .. } => {
                let is_ours = cast == Cast::ToUs && !self.kept.is_empty();
                let kept = if is_ours { self.kept.remove(&(to, from, number)) } else { None };
                let mut nth = 0;
                while self.deliver((from, to, number), cast, (kept.as_deref(), nth))
                    && self.dcf.joins_packets()
                {
                    nth += 1;
                }
            }
            DcfNews::Done { station, number, packets, outcome, rate, tries } => {
                for _ in 0..packets {
                    self.tell_spent((station as usize, number), rate, tries);
                    self.on_done((station as usize, number), outcome, rate);
                }
            }
        }
    }

    /// Keeps packets that have come out of order.
    #[inline(never)]
    fn keep(&mut self, from: u32, to: u32, number: u32) {
        let packets = self.hands[from as usize].all(number).map(RadioPacket::copy).collect();
        self.kept.insert((to, from, number), packets);
    }

    /// Gives a machine one of the arrived packets; returns whether there was one.
    fn deliver(
        &mut self,
        (from, to, number): (u32, u32, u32),
        cast: Cast,
        (kept, nth): (Option<&[RadioPacket]>, usize),
    ) -> bool {
        let (now, n) = (Instant(self.now), to as usize);
        let held = match kept {
            Some(kept) => kept.get(nth),
            None => self.hands[from as usize].all(number).nth(nth),
        };
        let Some(held) = held else {
            debug_assert!(nth > 0, "what arrives is kept, or in the hands of its sender");
            return false;
        };
        if held.is_arp {
            let said = arp::read(&held.packet);
            self.hear_arp(from, n, said);
            return true;
        }
        let rx = Rx {
            link: self.stations[n].radio,
            from: Some(self.stations[from as usize].address),
            cast,
            segment_bytes: None,
            packet: &held.packet,
        };
        self.machines[n].handle_packet(now, &rx);
        self.serve(n);
        true
    }

    /// The fate of a packet is known.
    fn on_done(&mut self, (n, number): (usize, u32), outcome: PacketOutcome, rate: Rate) {
        let held = self.hands[n].take(number);
        if held.is_arp {
            self.hands[n].put_away(held);
            self.serve(n);
            return;
        }
        let event = match (outcome, held.to) {
            (PacketOutcome::GivenUp, Some(to)) => {
                LinkEvent::NotDelivered { to, id: held.id, packet: &held.packet }
            }
            (_, to) => LinkEvent::Delivered { id: held.id, by: to.map(|to| (to, rate.kbps())) },
        };
        self.machines[n].handle_link_event(Instant(self.now), self.stations[n].radio, &event);
        // Packets of an aggregate have their fates at once, and News::HasRoom follows the last of them.
        let is_of_aggregate = held.to.is_some() && self.dcf.is_aggregating();
        self.hands[n].put_away(held);
        if !is_of_aggregate {
            self.serve(n);
        }
    }

    #[inline(never)]
    fn run_filed(&mut self) {
        let Some(Reverse((_, _, filed))) = self.filed.pop() else { return };
        self.events += 1;
        let now = Instant(self.now);
        match filed {
            WorldEvent::WireFree { wire, end } => {
                let (machine, _) = self.wires[wire as usize].config.ends[usize::from(end)];
                self.serve(machine as usize);
            }
            WorldEvent::Unanswered { station } => self.ask_again(station as usize),
            WorldEvent::WireArrival { wire, end } => {
                let wire = &mut self.wires[wire as usize];
                let (machine, link) = wire.config.ends[usize::from(1 - end)];
                let Some(packet) = wire.arrive(usize::from(end)) else { return };
                let rx = Rx { link, from: None, cast: Cast::ToUs, segment_bytes: None, packet: &packet };
                self.machines[machine as usize].handle_packet(now, &rx);
                self.spare.push(packet);
                self.serve(machine as usize);
            }
        }
    }

    fn run_timer(&mut self) {
        let n = self.timers.first();
        self.events += 1;
        self.at_once += 1;
        assert!(self.at_once < MOST_AT_ONCE, "machine {n} has a timer that stays due");
        self.machines[n].handle_timeout(Instant(self.now));
        self.serve(n);
    }

    /// After a mutation: takes the machine's packets where there is room, its trace, its next deadline.
    fn serve(&mut self, n: usize) {
        if self.stations[n].position.is_some() {
            self.serve_radio(n);
        }
        for index in 0..self.wires_of[n].len() {
            let (wire, end) = self.wires_of[n][index];
            self.serve_wire(n, wire, end);
        }
        if let Some(sink) = &mut self.trace {
            self.machines[n].drain_trace(&mut |event| sink(as_u32(n), event));
        }
        let due = self.machines[n].poll_timeout().map_or(NEVER, |at| at.0);
        if due != self.timers.of(n) {
            self.timers.set(n, due);
        }
    }

    #[inline(never)]
    fn serve_wire(&mut self, n: usize, wire: u32, end: u8) {
        let side = usize::from(end);
        if !self.wires[wire as usize].has_room(side, self.now) {
            return;
        }
        let mut packet = self.spare.pop().unwrap_or_default();
        packet.clear();
        let (_, link) = self.wires[wire as usize].config.ends[side];
        if self.machines[n].poll_transmit(Instant(self.now), link, Payload::Inline, &mut packet).is_none() {
            self.spare.push(packet);
            return;
        }
        let (free_at, arrives_at) = self.wires[wire as usize].send(side, self.now, packet);
        self.file(free_at, WorldEvent::WireFree { wire, end });
        self.file(arrives_at, WorldEvent::WireArrival { wire, end });
    }

    fn file(&mut self, at: u64, what: WorldEvent) {
        self.order += 1;
        self.filed.push(Reverse((at, self.order, what)));
    }
}

impl<M: Machine> fmt::Debug for RadioWorld<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RadioWorld")
            .field("now", &Instant(self.now))
            .field("machines", &self.machines.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
