//! The packets of one direction of a connection, as one interface of a capture shows them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use hopwise_core::Seq;
use hopwise_core::wire::{Flags, TcpView};

use super::super::follow::{Bases, Flow, Segment};
use super::super::packets::{layers, tcp};
use super::super::source::{Interface, Packet, Source, each_of};
use super::super::summary::Ack as Told;
use super::super::why::said;
use crate::failure::Failure;

/// The part of a capture that is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) flow: Option<Flow>,
    pub(super) interface: Option<&'a str>,
    pub(super) from: Duration,
    pub(super) to: Duration,
    /// The most packets that are drawn; the first ones count.
    pub(super) most: usize,
}

/// A packet with data. Numbers of bytes count from 1, as in Wireshark, and do not wrap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Data {
    pub(super) frame: u64,
    /// The time since the first packet of the file.
    pub(super) at: Duration,
    pub(super) from: u64,
    pub(super) to: u64,
    /// Some of it was seen before.
    pub(super) is_again: bool,
    pub(super) said: Option<String>,
}

/// An ACK, alone or with data of the other direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ack {
    pub(super) frame: u64,
    pub(super) at: Duration,
    pub(super) to: u64,
    /// The end of the window, once its scale is known.
    pub(super) window: Option<u64>,
    pub(super) sacks: Vec<(u64, u64)>,
    pub(super) reason: Option<Reason>,
}

/// The reason of an ACK, as its comment tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reason {
    /// Agent and rule.
    pub(super) rule: String,
    /// All of it.
    pub(super) said: String,
}

/// The graph's content.
#[derive(Debug)]
pub(super) struct Points {
    pub(super) flow: Flow,
    pub(super) interface: String,
    pub(super) data: Vec<Data>,
    pub(super) acks: Vec<Ack>,
    /// Packets for which there was no room.
    pub(super) left: u64,
}

impl Points {
    pub(super) fn read(path: &Path, wanted: &Wanted<'_>) -> Result<Points, Failure> {
        let refused = |problem: String| Failure::refused(path.display().to_string(), problem);
        let looked = Looked::at(Source::open(path)?)?;
        let flow = match wanted.flow {
            Some(flow) => Some(flow).filter(|flow| looked.bytes.contains_key(flow)),
            None => looked.largest(),
        };
        match flow {
            Some(flow) => Points::of(Source::open(path)?, looked, flow, wanted),
            None => Err(refused(looked.without(wanted.flow))),
        }
    }

    /// The first packets of the largest flow; nothing where no flow has data.
    pub(super) fn of_largest(
        open: &dyn Fn() -> Result<Source, Failure>,
        most: usize,
    ) -> Result<Option<Points>, Failure> {
        let looked = Looked::at(open()?)?;
        let wanted = Wanted { flow: None, interface: None, from: Duration::ZERO, to: Duration::MAX, most };
        looked.largest().map(|flow| Points::of(open()?, looked, flow, &wanted)).transpose()
    }

    fn of(source: Source, looked: Looked, flow: Flow, wanted: &Wanted<'_>) -> Result<Points, Failure> {
        let refused = |problem: String| Failure::refused(source.path().display().to_string(), problem);
        let interface = looked.interface(flow, wanted.interface).map_err(refused)?;
        let mut reading = Reading::new(flow, interface, looked.bases);
        each_of(source, |packet| {
            reading.hear(packet, looked.begin, wanted);
            Ok(true)
        })?;
        let interface = name(&looked.interfaces, interface);
        let Reading { data, acks, left, .. } = reading;
        Ok(Points { flow, interface, data, acks, left })
    }

    pub(super) fn packets(&self) -> u64 {
        u64::try_from(self.data.len() + self.acks.len()).unwrap_or(u64::MAX)
    }

    /// The last time, and the highest number of a byte.
    pub(super) fn ends(&self) -> (Duration, u64) {
        let times = self.data.iter().map(|data| data.at).chain(self.acks.iter().map(|ack| ack.at));
        let acks = self.acks.iter().map(|ack| ack.window.unwrap_or(0).max(ack.to));
        let bytes = self.data.iter().map(|data| data.to).chain(acks);
        (times.max().unwrap_or_default(), bytes.max().unwrap_or(0))
    }

    /// The first time, and the lowest number of a byte.
    pub(super) fn begins(&self) -> (Duration, u64) {
        let times = self.data.iter().map(|data| data.at).chain(self.acks.iter().map(|ack| ack.at));
        let bytes = self.data.iter().map(|data| data.from).chain(self.acks.iter().map(|ack| ack.to));
        (times.min().unwrap_or_default(), bytes.min().unwrap_or(0))
    }
}

fn name(interfaces: &[Interface], nth: usize) -> String {
    let named = interfaces.get(nth).and_then(|interface| interface.name.clone());
    named.unwrap_or_else(|| format!("interface {nth}"))
}

/// A first look at a file: its flows, and the interfaces that have them.
#[derive(Debug, Default)]
struct Looked {
    begin: i64,
    bases: Bases,
    /// Bytes of data by flow and interface.
    bytes: BTreeMap<Flow, BTreeMap<usize, u64>>,
    interfaces: Vec<Interface>,
}

impl Looked {
    fn at(source: Source) -> Result<Looked, Failure> {
        let (mut looked, mut begin) = (Looked::default(), None);
        let source = each_of(source, |packet| {
            begin.get_or_insert(packet.at);
            let Some(segment) = layers(packet.link, &packet.block.data).ip.and_then(Segment::of) else {
                return Ok(true);
            };
            looked.bases.learn(&segment);
            if segment.len > 0 {
                let of_flow = looked.bytes.entry(segment.flow).or_default();
                *of_flow.entry(packet.interface).or_default() += u64::from(segment.len);
            }
            Ok(true)
        })?;
        Ok(Looked { begin: begin.unwrap_or(0), interfaces: source.interfaces, ..looked })
    }

    fn largest(&self) -> Option<Flow> {
        let most = |of: &BTreeMap<usize, u64>| of.values().copied().max().unwrap_or(0);
        let found = self.bytes.iter().max_by_key(|(_, of)| most(of));
        found.map(|(flow, _)| *flow)
    }

    fn without(&self, flow: Option<Flow>) -> String {
        let known: Vec<_> = self.bytes.keys().map(|(from, to)| format!("{from}-{to}")).collect();
        match (flow, known.is_empty()) {
            (_, true) => "it has no TCP with data: expected a capture that has some".to_owned(),
            (Some((from, to)), false) => {
                format!("it has no data from {from} to {to}: expected one of {}", known.join(", "))
            }
            (None, false) => "it has no flow".to_owned(),
        }
    }

    /// The interface with that name that has the flow, or the one that has most of it.
    fn interface(&self, flow: Flow, wanted: Option<&str>) -> Result<usize, String> {
        let of_flow = &self.bytes[&flow];
        let is_it = |nth: &&usize| wanted.is_none_or(|wanted| name(&self.interfaces, **nth) == wanted);
        let found = of_flow.keys().filter(is_it).max_by_key(|nth| (of_flow[*nth], std::cmp::Reverse(**nth)));
        found.copied().ok_or_else(|| {
            let all: Vec<_> = of_flow.keys().map(|nth| name(&self.interfaces, *nth)).collect();
            let wanted = wanted.unwrap_or_default();
            format!("no interface `{wanted}` has data of this flow: expected one of {}", all.join(", "))
        })
    }
}

/// Numbers of one direction without their wraps.
#[derive(Clone, Copy, Debug, Default)]
struct Unwrapped(u64);

impl Unwrapped {
    /// The number nearest to the last one.
    fn of(&mut self, relative: u32) -> u64 {
        let last = u32::try_from(self.0 & u64::from(u32::MAX)).unwrap_or(0);
        let step = relative.wrapping_sub(last).cast_signed();
        let number = self.0.saturating_add_signed(step.into());
        self.0 = self.0.max(number);
        number
    }
}

struct Reading {
    flow: Flow,
    interface: usize,
    bases: Bases,
    /// Copies of a packet on the air have one name: tries, and those that are sent on. The first one counts.
    seen: BTreeSet<u64>,
    numbers: Unwrapped,
    highest: u64,
    /// The scale of the window, which the receiver's SYN gives.
    scale: Option<u8>,
    data: Vec<Data>,
    acks: Vec<Ack>,
    left: u64,
}

impl Reading {
    fn new(flow: Flow, interface: usize, bases: Bases) -> Reading {
        Reading {
            flow,
            interface,
            bases,
            seen: BTreeSet::new(),
            numbers: Unwrapped::default(),
            highest: 0,
            scale: None,
            data: Vec::new(),
            acks: Vec::new(),
            left: 0,
        }
    }

    fn hear(&mut self, packet: &Packet, begin: i64, wanted: &Wanted<'_>) {
        let found = layers(packet.link, &packet.block.data);
        let ip = found.ip;
        let (Some(segment), Some((_, view, _))) = (ip.and_then(Segment::of), ip.and_then(tcp)) else {
            return;
        };
        let (from, to) = self.flow;
        let is_data = segment.flow == (from, to);
        if packet.interface != self.interface || !(is_data || segment.flow == (to, from)) {
            return;
        }
        if found.air.is_some() && !self.seen.insert(segment.name) {
            return;
        }
        let at = Duration::from_nanos(u64::try_from(packet.at.saturating_sub(begin)).unwrap_or(0));
        let is_wanted = (wanted.from..=wanted.to).contains(&at);
        let has_room = self.data.len() + self.acks.len() < wanted.most;
        self.left += u64::from(is_wanted && !has_room);
        let is_drawn = is_wanted && has_room;
        let comments = said(&packet.block).comment();
        if is_data {
            self.take_data(packet.frame, at, &segment, comments, is_drawn);
        } else {
            self.take_ack(packet.frame, at, &view, comments, is_drawn);
        }
    }

    fn take_data(
        &mut self,
        frame: u64,
        at: Duration,
        segment: &Segment,
        said: Option<String>,
        is_drawn: bool,
    ) {
        if segment.len == 0 {
            return;
        }
        let from = self.numbers.of(self.bases.relative(segment.flow, segment.seq));
        let to = from + u64::from(segment.len);
        let is_again = from < self.highest;
        self.highest = self.highest.max(to);
        if is_drawn {
            self.data.push(Data { frame, at, from, to, is_again, said });
        }
    }

    fn take_ack(
        &mut self,
        frame: u64,
        at: Duration,
        view: &TcpView<'_>,
        comments: Option<String>,
        is_drawn: bool,
    ) {
        let is_syn = view.flags.contains(Flags::SYN);
        if is_syn {
            self.scale = Some(view.options.window_scale.unwrap_or(0));
        }
        if !is_drawn || is_syn || !view.flags.contains(Flags::ACK) {
            return;
        }
        let (flow, bases) = (self.flow, &self.bases);
        let mut numbers = self.numbers;
        let mut number = |seq: Seq| numbers.of(bases.relative(flow, seq));
        let to = number(view.ack);
        let sacks = view.options.sack.iter().map(|block| (number(block.left), number(block.right))).collect();
        let window = self.scale.map(|scale| to + (u64::from(view.window) << scale.min(14)));
        let reason = comments.as_deref().and_then(reason);
        self.acks.push(Ack { frame, at, to, window, sacks, reason });
    }
}

/// The reason in the comments of a packet with an ACK.
fn reason(comments: &str) -> Option<Reason> {
    let part = comments.split("; ").find(|part| Told::read(part).is_some())?;
    let Told { agent, rule, .. } = Told::read(part)?;
    let rule = if agent.is_empty() { rule } else { format!("{agent}: {rule}") };
    Some(Reason { rule, said: part.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_where_those_of_a_header_wrap() {
        let mut numbers = Unwrapped::default();
        assert_eq!(numbers.of(1), 1);
        assert_eq!(numbers.of(0x7000_0000), 0x7000_0000);
        assert_eq!(numbers.of(0xe000_0000), 0xe000_0000);
        assert_eq!(numbers.of(0xf000_0000), 0xf000_0000);
        assert_eq!(numbers.of(5), (1 << 32) + 5);
        assert_eq!(numbers.of(0xffff_fff0), 0xffff_fff0, "an old one comes again");
    }

    #[test]
    fn a_reason_is_that_of_the_ack_among_all_comments() {
        let comments = "1448 bytes, new: [cubic] allows 9000 bytes in flight, 0 were; with ACK 12: dca:w=3 decided it, \
                        count 3 of 3, 5.000 ms after the first segment it held";
        let found = reason(comments).expect("an ACK");
        assert_eq!(found.rule, "dca:w=3: count");
        assert!(found.said.ends_with("it held"), "{found:?}");
        assert_eq!(reason("10 bytes, new"), None);
    }
}
