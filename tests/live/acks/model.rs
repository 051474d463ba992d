//! Judges a receiver's ACKs by the packets alone. The model shares nothing with the stack.
//!
//! It sees every packet in the order in which the stack has read and written them. Numbers count from the peer's SYN.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use etherparse::{SlicedPacket, TcpOptionElement, TcpSlice, TransportSlice};

/// All packets to and from one stack.
#[derive(Debug, Default)]
pub(crate) struct Model {
    /// The flows, by the peer's port.
    flows: BTreeMap<u16, Flow>,
    pub(crate) counts: Counts,
    /// The first untrue ACKs, each with the packet's place in the order.
    pub(crate) wrong: Vec<String>,
    packets: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) acks: u64,
    pub(crate) with_blocks: u64,
    /// Segments that came again, and how many of them an ACK reported.
    pub(crate) twice: u64,
    pub(crate) reported: u64,
    pub(crate) echoes: u64,
}

#[derive(Debug, Default)]
struct Flow {
    /// The peer's first number, and ours.
    irs: Option<u32>,
    /// All bytes below it have come; FIN counts as a byte.
    nxt: u32,
    /// The stretches that have come above it: disjoint, sorted, and no two touch.
    above: Vec<Stretch>,
    fin: Option<u32>,
    /// First arrivals: where each ends, and its timestamp; in the order of the stream where nothing is lost.
    stamps: VecDeque<(u32, u32)>,
    /// Stretches that came again and that no ACK has reported.
    twice: Vec<Stretch>,
    /// The literal TS.Recent of RFC 7323 §4.3.
    ts_recent: Option<u32>,
    told: u32,
    scale: u8,
    /// The end of the widest window that was advertised.
    edge: u32,
    last_alone: Option<(Duration, Said)>,
}

type Stretch = (u32, u32);

/// The contents of an ACK about our reception.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Said {
    number: u32,
    blocks: Vec<Stretch>,
    window: u16,
    echo: Option<u32>,
}

const MOST_WRONG: usize = 20;

impl Model {
    pub(crate) fn came(&mut self, packet: &[u8]) {
        self.packets += 1;
        let Some(tcp) = Tcp::of(packet) else { return };
        let slice = tcp.slice();
        let flow = self.flows.entry(slice.source_port()).or_default();
        flow.take(&slice, &mut self.counts);
    }

    pub(crate) fn left(&mut self, at: Duration, packet: &[u8]) {
        self.packets += 1;
        let Some(tcp) = Tcp::of(packet) else { return };
        let slice = tcp.slice();
        if !slice.ack() || slice.rst() {
            return;
        }
        let Some(flow) = self.flows.get_mut(&slice.destination_port()) else { return };
        let mut wrong = Vec::new();
        flow.judge(at, &slice, &mut self.counts, &mut wrong);
        let place = self.packets;
        let room = MOST_WRONG.saturating_sub(self.wrong.len());
        self.wrong.extend(wrong.into_iter().take(room).map(|what| format!("packet {place}: {what}")));
    }
}

impl Flow {
    fn take(&mut self, segment: &TcpSlice<'_>, counts: &mut Counts) {
        if segment.syn() {
            self.irs = Some(segment.sequence_number());
            self.nxt = 1;
            self.told = 1;
            self.ts_recent = stamp(segment).map(|(value, _)| value);
            return;
        }
        let Some(irs) = self.irs else { return };
        let from = segment.sequence_number().wrapping_sub(irs);
        let to = from + segment.payload().len() as u32;
        if let Some((value, _)) = stamp(segment)
            && from <= self.told
            && self.ts_recent.is_none_or(|recent| value.wrapping_sub(recent) < 1 << 31)
        {
            self.ts_recent = Some(value);
        }
        if from < to {
            self.take_data((from, to), stamp(segment).map_or(0, |(value, _)| value), counts);
        }
        if segment.fin() {
            self.fin = Some(to);
        }
        if self.fin == Some(self.nxt) {
            self.nxt += 1;
        }
    }

    fn take_data(&mut self, (from, to): Stretch, value: u32, counts: &mut Counts) {
        if let Some(held) = self.first_held((from, to)) {
            counts.twice += 1;
            self.twice.push(held);
        }
        if to <= self.nxt {
            return;
        }
        if from <= self.nxt && self.above.is_empty() {
            self.stamps.push_back((to, value));
        }
        let (mut from, mut to) = (from.max(self.nxt), to);
        self.above.retain(|(left, right)| {
            let touches = *left <= to && from <= *right;
            if touches {
                (from, to) = (from.min(*left), to.max(*right));
            }
            !touches
        });
        if from == self.nxt {
            self.nxt = to;
        } else {
            let at = self.above.partition_point(|held| held.0 < from);
            self.above.insert(at, (from, to));
        }
    }

    /// The first part of a segment that was there already.
    fn first_held(&self, (from, to): Stretch) -> Option<Stretch> {
        let below = std::iter::once((0, self.nxt));
        let held = below.chain(self.above.iter().copied());
        held.map(|(left, right)| (left.max(from), right.min(to))).find(|(left, right)| left < right)
    }

    fn judge(&mut self, at: Duration, segment: &TcpSlice<'_>, counts: &mut Counts, wrong: &mut Vec<String>) {
        if segment.syn() {
            let mut options = segment.options_iterator().flatten();
            let scale = options.find_map(|option| match option {
                TcpOptionElement::WindowScale(scale) => Some(scale),
                _ => None,
            });
            self.scale = scale.unwrap_or(0);
            return;
        }
        let Some(irs) = self.irs else { return };
        let place = |number: u32| number.wrapping_sub(irs);
        let said = Said {
            number: place(segment.acknowledgment_number()),
            blocks: blocks(segment).into_iter().map(|(left, right)| (place(left), place(right))).collect(),
            window: segment.window_size(),
            echo: stamp(segment).map(|(_, echo)| echo),
        };
        if said.number > self.nxt {
            wrong.push(format!("{said:?} acknowledges what has not come: all below {} has", self.nxt));
        }
        let reports = self.judge_blocks(&said, counts, wrong);
        self.judge_echo(&said, counts, wrong);
        self.told = self.told.max(said.number);
        let edge = said.number + (u32::from(said.window) << self.scale);
        if edge < self.edge {
            wrong.push(format!("{said:?}: the window ends at {edge}, and ended at {} (SHLD-14)", self.edge));
        }
        self.edge = self.edge.max(edge);
        if segment.payload().is_empty() && !segment.fin() {
            counts.acks += 1;
            self.judge_news(at, said, reports, wrong);
        } else {
            self.last_alone = None;
        }
    }

    /// RFC 2018 §3 and §4, RFC 2883 §4. Returns whether the ACK reports a segment that came twice.
    fn judge_blocks(&mut self, said: &Said, counts: &mut Counts, wrong: &mut Vec<String>) -> bool {
        if said.blocks.is_empty() {
            return false;
        }
        counts.with_blocks += 1;
        if said.number != self.nxt {
            wrong.push(format!("{said:?} tells of a hole that is none: all below {} has come", self.nxt));
        }
        let (first, rest) = (said.blocks[0], &said.blocks[1..]);
        let is_within = |outer: &Stretch| outer.0 <= first.0 && first.1 <= outer.1;
        let reports = first.1 <= said.number || rest.first().is_some_and(is_within);
        let stretches = if reports { rest } else { &said.blocks[..] };
        if reports {
            match self.twice.iter().position(|twice| *twice == first) {
                Some(at) => {
                    self.twice.remove(at);
                    counts.reported += 1;
                }
                None => wrong.push(format!("{said:?} reports as come twice what has not, or once more")),
            }
        }
        for (nth, block) in stretches.iter().enumerate() {
            if !self.above.contains(block) {
                wrong.push(format!("{said:?}: {block:?} is no whole stretch of {:?}", self.above));
            }
            if stretches[..nth].contains(block) {
                wrong.push(format!("{said:?} says {block:?} twice"));
            }
        }
        reports
    }

    /// RFC 7323 §4.3: an ACK echoes the earliest segment that it is the first to acknowledge.
    fn judge_echo(&mut self, said: &Said, counts: &mut Counts, wrong: &mut Vec<String>) {
        while self.stamps.front().is_some_and(|(end, _)| *end <= self.told) {
            self.stamps.pop_front();
        }
        let Some((_, value)) = self.stamps.front().filter(|_| self.told < said.number) else { return };
        if let Some(echo) = said.echo {
            counts.echoes += 1;
            if echo != *value && Some(echo) != self.ts_recent {
                wrong.push(format!("{said:?} echoes no {value}, the stamp of the earliest segment"));
            }
        }
    }

    /// The second of two ACKs in one turn must carry news. A segment that came a third time is reported again.
    fn judge_news(&mut self, at: Duration, said: Said, reports: bool, wrong: &mut Vec<String>) {
        if let Some((before, last)) = &self.last_alone {
            if *before == at && *last == said && !reports {
                wrong.push(format!("{said:?} is a copy of the one before"));
            }
            if last.number == said.number && said.blocks.is_empty() && said.number < self.nxt {
                wrong.push(format!("{said:?} is a duplicate for a hole that is filled to {}", self.nxt));
            }
        }
        self.last_alone = Some((at, said));
    }
}

/// A packet's TCP segment.
struct Tcp<'a>(TcpSlice<'a>);

impl<'a> Tcp<'a> {
    fn of(packet: &'a [u8]) -> Option<Tcp<'a>> {
        match SlicedPacket::from_ip(packet).ok()?.transport? {
            TransportSlice::Tcp(tcp) => Some(Tcp(tcp)),
            _ => None,
        }
    }

    fn slice(&self) -> TcpSlice<'a> {
        self.0.clone()
    }
}

fn stamp(segment: &TcpSlice<'_>) -> Option<(u32, u32)> {
    segment.options_iterator().find_map(|option| match option {
        Ok(TcpOptionElement::Timestamp(value, echo)) => Some((value, echo)),
        _ => None,
    })
}

fn blocks(segment: &TcpSlice<'_>) -> Vec<Stretch> {
    let found = segment.options_iterator().find_map(|option| match option {
        Ok(TcpOptionElement::SelectiveAcknowledgement(first, more)) => Some((first, more)),
        _ => None,
    });
    found.map_or_else(Vec::new, |(first, more)| [Some(first)].into_iter().chain(more).flatten().collect())
}
