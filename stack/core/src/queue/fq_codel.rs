//! The whole queue: lanes of stations and TIDs, the memory that they share, and the device below.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use super::Label;
use super::airtime::{Airtime, Spent};
use super::flows::{Flow, Lane, Turns};
use super::{Category, FqCodelConfig, Queued};
use crate::trace::DropReason;
use crate::{Instant, NextHop};

/// The memory of a packet in Linux beside its bytes: `sk_buff` and `skb_shared_info` on machines of 64 bits.
const OVERHEAD: usize = 576;
/// With more lanes than this, idle ones are forgotten.
const MOST_LANES: usize = 4_096;

/// A queue as mac80211 has it.
#[derive(Debug)]
pub struct FqCodel {
    config: FqCodelConfig,
    flows: Vec<Flow>,
    /// The flows by their places in the table.
    table: BTreeMap<u64, usize>,
    /// Flows that belong to no lane.
    free: Vec<usize>,
    lanes: BTreeMap<Lane, Turns>,
    /// The lanes with packets, in the order of their turns, by category.
    turns: [VecDeque<Lane>; 4],
    airtime: Airtime,
    /// The packets in the device, by category.
    device: [VecDeque<Queued>; 4],
    /// The link takes packets by category. Otherwise all go at best effort.
    is_divided: bool,
    packets: usize,
    memory: usize,
    lost: VecDeque<(Queued, DropReason)>,
    /// CoDel's drops of a moment.
    dropped: Vec<Queued>,
    marks: u64,
}

impl FqCodel {
    /// An empty queue.
    pub fn new(config: FqCodelConfig) -> FqCodel {
        FqCodel {
            config,
            flows: Vec::new(),
            table: BTreeMap::new(),
            free: Vec::new(),
            lanes: BTreeMap::new(),
            turns: Default::default(),
            airtime: Airtime::new(config.airtime, config.estimate),
            device: Default::default(),
            is_divided: false,
            packets: 0,
            memory: 0,
            lost: VecDeque::new(),
            dropped: Vec::new(),
            marks: 0,
        }
    }

    /// From now on the link takes packets by category. Call it before there are any.
    pub fn divide(&mut self) {
        self.is_divided = true;
    }

    fn category_of(&self, lane: Lane) -> Category {
        if self.is_divided { Category::of_priority(lane.1) } else { Category::BestEffort }
    }

    /// The packets that wait, those in the device included that it has not begun to send.
    pub fn len(&self) -> usize {
        self.packets + self.device.iter().map(VecDeque::len).sum::<usize>()
    }

    /// Returns whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether a further packet costs one of those that wait.
    pub fn is_full(&self) -> bool {
        self.packets >= self.config.packets || self.memory >= self.config.memory
    }

    /// The packets that CoDel has marked.
    pub fn marks(&self) -> u64 {
        self.marks
    }

    /// The packets for a neighbour in the device.
    #[cfg(test)]
    pub(super) fn device_of(&self, to: NextHop) -> usize {
        self.device.iter().flatten().filter(|queued| queued.to == to).count()
    }

    /// A packet that was dropped since the last call, and the reason.
    pub fn poll_lost(&mut self) -> Option<(Queued, DropReason)> {
        self.lost.pop_front()
    }

    /// Takes a packet, which may cost another one its place.
    pub fn push(&mut self, now: Instant, queued: Queued) {
        let label = Label::of(self.config.key, queued.packet.get(self.config.header..).unwrap_or_default());
        let lane = (queued.to, label.tid);
        let category = self.category_of(lane);
        let place = self.place_in(lane, label.hash % u64::from(self.config.flows.max(1)));
        self.packets += 1;
        self.memory += queued.packet.len() + OVERHEAD;
        let flow = &mut self.flows[place];
        flow.push(queued);
        let turns = self.lanes.entry(lane).or_default();
        if flow.lane.is_none() {
            (flow.lane, flow.deficit) = (Some(lane), i64::from(self.config.quantum));
            turns.begin(place);
        }
        if !std::mem::replace(&mut turns.is_active, true) {
            // A station that used up its turn goes to the end when it is looked at.
            let all = &mut self.turns[category.index()];
            match lane.0 {
                NextHop::Neighbour(_) if self.config.is_fair => all.push_front(lane),
                _ => all.push_back(lane),
            }
        }
        self.shed();
        self.fill(now, category);
    }

    /// The flow of a packet: its place in the table, or the lane's shared one while another lane has that place.
    fn place_in(&mut self, lane: Lane, hash: u64) -> usize {
        if self.lanes.len() >= MOST_LANES && !self.lanes.contains_key(&lane) {
            self.forget_idle();
        }
        let place = match self.table.get(&hash) {
            Some(place) => *place,
            None => {
                let place = new_flow(&mut self.flows, &mut self.free);
                self.table.insert(hash, place);
                place
            }
        };
        if self.flows[place].lane.is_none_or(|other| other == lane) {
            return place;
        }
        let turns = self.lanes.entry(lane).or_default();
        *turns.shared.get_or_insert_with(|| new_flow(&mut self.flows, &mut self.free))
    }

    fn forget_idle(&mut self) {
        let free = &mut self.free;
        self.lanes.retain(|_, turns| {
            let is_idle = turns.is_empty() && !turns.is_active;
            free.extend(turns.shared.filter(|_| is_idle));
            !is_idle
        });
    }

    /// Drops from the longest flow what is above the limits.
    fn shed(&mut self) {
        loop {
            let reason = match (self.packets > self.config.packets, self.memory > self.config.memory) {
                (true, _) => DropReason::QueueFull,
                (false, true) => DropReason::QueueMemory,
                (false, false) => return,
            };
            let longest = self.flows.iter_mut().max_by_key(|flow| flow.bytes);
            let Some(queued) = longest.and_then(Flow::shed) else { return };
            self.note_gone(&queued);
            self.lost.push_back((queued, reason));
        }
    }

    /// A packet waits above the device no longer.
    fn note_gone(&mut self, queued: &Queued) {
        self.packets -= 1;
        self.memory -= queued.packet.len() + OVERHEAD;
    }

    /// The device takes packets of a category while it has room, and their stations may have more airtime there.
    fn fill(&mut self, now: Instant, category: Category) {
        let index = category.index();
        while self.device[index].len() < self.config.device_packets.max(1)
            && let Some(lane) = self.next_turn(category)
        {
            let Some(queued) = self.pop_from(lane, now) else {
                self.turns[index].pop_front();
                continue;
            };
            self.airtime.lend(queued.id, (queued.to, category), queued.packet.len());
            self.device[index].push_back(queued);
        }
    }

    /// The lane at the head that may give the device a packet.
    fn next_turn(&mut self, category: Category) -> Option<Lane> {
        let turns = &mut self.turns[category.index()];
        let (mut seen, mut is_any) = (0, false);
        loop {
            if seen == turns.len() {
                if !std::mem::take(&mut is_any) {
                    return None;
                }
                seen = 0;
            }
            let lane = *turns.front()?;
            let may = self.airtime.may_lend((lane.0, category));
            let is_over = self.config.is_fair && self.airtime.ends_turn((lane.0, category));
            if may && !is_over {
                return Some(lane);
            }
            is_any |= may;
            turns.rotate_left(1);
            seen += 1;
        }
    }

    fn pop_from(&mut self, lane: Lane, now: Instant) -> Option<Queued> {
        let turns = self.lanes.get_mut(&lane)?;
        let queued = turns.pop((&self.config, now), &mut self.flows, &mut self.dropped, &mut self.marks);
        turns.is_active = queued.is_some();
        let mut dropped = std::mem::take(&mut self.dropped);
        for lost in dropped.drain(..) {
            self.note_gone(&lost);
            self.lost.push_back((lost, DropReason::Codel));
        }
        self.dropped = dropped;
        if let Some(queued) = &queued {
            self.note_gone(queued);
        }
        queued
    }

    /// Takes the packet that leaves next, of whatever category.
    pub fn pop(&mut self, now: Instant) -> Option<Queued> {
        Category::ALL.into_iter().find_map(|category| self.pop_in(now, category))
    }

    /// Takes the packet of a category that leaves next.
    pub fn pop_in(&mut self, now: Instant, category: Category) -> Option<Queued> {
        self.fill(now, category);
        self.device[category.index()].pop_front()
    }

    /// Takes the next packet of a category for this neighbour, if it is no longer than `bytes`.
    pub fn pop_beside(
        &mut self,
        now: Instant,
        category: Category,
        (to, bytes): (IpAddr, usize),
    ) -> Option<Queued> {
        self.fill(now, category);
        let device = &mut self.device[category.index()];
        let next = device.iter().position(|queued| queued.to == NextHop::Neighbour(to))?;
        if device[next].packet.len() > bytes {
            return None;
        }
        device.remove(next)
    }

    /// The link has reported the fate of a packet.
    pub fn on_gone(&mut self, id: u64) {
        self.airtime.give_back(id);
    }

    /// The link tells how much time a packet has taken. Its fate follows, unless no frame has carried it.
    pub fn on_spent(&mut self, spent: &Spent) {
        if spent.tries == 0 {
            self.airtime.give_back(spent.id);
        } else {
            self.airtime.spend(spent);
        }
    }

    /// A packet has come from a neighbour. It counts to that station's turn.
    pub fn on_heard(&mut self, from: IpAddr, packet: &[u8]) {
        if self.config.is_fair {
            let category = match self.is_divided {
                true => Category::of_packet(packet.get(self.config.header..).unwrap_or_default()),
                false => Category::BestEffort,
            };
            self.airtime.hear((NextHop::Neighbour(from), category), packet.len());
        }
    }

    /// Removes every packet above the device that `unwanted` picks.
    pub fn purge(&mut self, mut unwanted: impl FnMut(&Queued) -> bool) -> Vec<Queued> {
        let mut gone = Vec::new();
        for flow in self.flows.iter_mut().filter(|flow| !flow.waiting.is_empty()) {
            let (out, kept) = flow.waiting.drain(..).partition::<Vec<_>, _>(&mut unwanted);
            flow.bytes = kept.iter().map(|queued| queued.packet.len()).sum();
            flow.waiting.extend(kept);
            gone.extend(out);
        }
        gone.iter().for_each(|queued| self.note_gone(queued));
        gone
    }
}

fn new_flow(flows: &mut Vec<Flow>, free: &mut Vec<usize>) -> usize {
    free.pop().unwrap_or_else(|| {
        flows.push(Flow::default());
        flows.len() - 1
    })
}
