//! One flow at a base station: its agent, its waiting packets, and how orders are carried out.
//!
//! Invariants
//! - P2: no ACK leaves in the mobile's name with a number that the mobile has not sent.
//! - P3: of each ACK at most two copies leave. A newly written one is counted by its number and window. Packets that
//!   agents let through are not altered.
//! - P4: no packet of the mobile overtakes its waiting packets, except an ACK with a lower number than one before.

mod keep;
mod stage;

use std::time::Duration;

use hopwise_core::agent::{
    BaseStationAgent, Because, Fate, FlowView, Kind, LinkNews, Order, Orders, Passing, Says, Side, Told,
};
use hopwise_core::trace::{DropReason, Lacking, TraceKind};
use hopwise_core::wire::{Checksums, Flags, IpHeader, TcpHeader, TcpOptions, TcpView, protocol};
use hopwise_core::{Instant, Seq};

use super::copies::Copies;
use super::facts::{Facts, Newest};
use super::outbox::{Label, Leaving, Outbox};
use super::read::{Read, parse, pattern};
use super::seats::{Claim, Seat};
use super::store::{Kept, Store};
use keep::Keeps;

/// After this pause a flow that ran out of memory may keep packets again, while the link is up.
const MEMORY_AGAIN: Duration = Duration::from_secs(1);

/// The state of the agent's service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attention {
    NotYet,
    Given,
    /// The flow lacks something that the agent needs.
    Withdrawn,
}

#[derive(Debug)]
pub(super) struct Flow {
    pub(super) number: u32,
    agent: Box<dyn BaseStationAgent>,
    attention: Attention,
    pub(super) facts: Facts,
    acks: Store,
    data: Store,
    /// The largest number of bytes that one flow may keep.
    most_bytes: usize,
    /// The mobile's newest pure ACK that went on or was replaced by a written one, and its copies.
    pure_ack: Vec<u8>,
    copies: Copies,
    /// The values that distinguish that ACK, if it has a timestamp: number, window and clock.
    pure_ack_says: Option<(Seq, u16, u32)>,
    /// Since then no packet is kept, because memory was short.
    overflowed: Option<Instant>,
    pub(super) seen_at: Instant,
    /// A reset was seen, which its receiver need not accept.
    was_reset: bool,
    /// Indexed by side.
    has_finished: [bool; 2],
    /// By side: it sent a segment other than a RST.
    has_spoken: [bool; 2],
    pub(super) seat: Seat,
    /// Its memory for waiting packets, as the seats count it.
    pub(super) claim: Claim,
    /// The agent's deadline, as the table has it.
    pub(super) due: Option<Instant>,
}

/// The packet at hand.
#[derive(Clone, Copy)]
pub(super) struct AtHand<'a> {
    pub(super) id: u64,
    pub(super) packet: &'a [u8],
    pub(super) tcp: &'a TcpView<'a>,
    /// The part of it that can serve as a pattern for ACKs.
    pub(super) pattern: Option<&'a [u8]>,
    /// The last news of the mobile's link, if it is not up.
    pub(super) link: Option<LinkNews>,
    /// The memory has room to keep it.
    pub(super) has_room: bool,
}

impl<'a> AtHand<'a> {
    pub(super) fn new(
        id: u64,
        packet: &'a [u8],
        read: &'a Read<'_>,
        link: Option<LinkNews>,
        has_room: bool,
    ) -> AtHand<'a> {
        AtHand { id, packet, tcp: &read.tcp, pattern: read.pattern, link, has_room }
    }
}

impl Flow {
    pub(super) fn new(
        number: u32,
        agent: Box<dyn BaseStationAgent>,
        most_bytes: usize,
        now: Instant,
    ) -> Flow {
        Flow {
            number,
            agent,
            attention: Attention::NotYet,
            facts: Facts::default(),
            acks: Store::default(),
            data: Store::default(),
            most_bytes,
            pure_ack: Vec::new(),
            copies: Copies::default(),
            pure_ack_says: None,
            overflowed: None,
            seen_at: now,
            was_reset: false,
            has_finished: [false; 2],
            has_spoken: [false; 2],
            seat: Seat::Brief(now),
            claim: Claim::NONE,
            due: None,
        }
    }

    pub(super) fn is_attended(&self) -> bool {
        self.attention == Attention::Given
    }

    pub(super) fn is_unserved(&self) -> bool {
        self.attention == Attention::Withdrawn
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        if self.is_attended() { self.agent.deadline() } else { None }
    }

    pub(super) fn gauges(&self, sink: &mut dyn FnMut(&'static str, u64)) {
        self.agent.gauges(sink);
    }

    pub(super) fn kept_packets(&self) -> usize {
        self.acks.len() + self.data.len()
    }

    pub(super) fn kept_bytes(&self) -> usize {
        self.acks.bytes() + self.data.bytes()
    }

    fn store(&mut self, of: Side) -> &mut Store {
        match of {
            Side::Mobile => &mut self.acks,
            Side::Fixed => &mut self.data,
        }
    }

    fn view(&self) -> FlowView {
        let count = |store: &Store| u32::try_from(store.len()).unwrap_or(u32::MAX);
        FlowView {
            held_acks: count(&self.acks),
            cached_packets: count(&self.data),
            cached_bytes: self.data.payload_bytes(),
            ..self.facts.view()
        }
    }

    /// Processes a segment of the flow.
    pub(super) fn take(
        &mut self,
        now: Instant,
        from: Side,
        read: &Read<'_>,
        at_hand: AtHand<'_>,
        out: &mut Outbox,
    ) {
        let Some(passing) = self.facts.see(now, from, read) else {
            out.unfit += 1;
            return out.pass(now, from.other(), at_hand.id, at_hand.packet);
        };
        self.seen_at = now;
        // In a fade no packet is kept until it is over; agents that keep packets without a fade get another chance.
        let may_try_again = |at: Instant| at_hand.link.is_none() && now.since(at) >= MEMORY_AGAIN;
        self.overflowed = self.overflowed.filter(|at| !may_try_again(*at));
        self.was_reset |= passing.flags.contains(Flags::RST) && self.facts.is_next(from, passing.seq);
        self.has_finished[from as usize] |= passing.flags.contains(Flags::FIN);
        self.has_spoken[from as usize] |= !passing.flags.contains(Flags::RST);
        let has_timestamps = read.tcp.options.timestamps.is_some();
        if self.is_unclear(has_timestamps) {
            self.look(now, &passing, has_timestamps, out);
            if let (true, Some(news)) = (self.is_attended(), at_hand.link) {
                self.hear(now, news, out);
            }
        }
        if !self.is_attended() {
            return self.forward(&passing, at_hand, out);
        }
        let mut orders = Orders::new();
        let view = self.view();
        let fate = self.agent.on_segment(&passing, &view, &mut orders);
        let is_newest = matches!(passing.kind, Kind::Ack(says) if says != Says::Less);
        let pattern = at_hand.pattern.filter(|_| is_newest);
        if let (Side::Mobile, Fate::Drop(_), Some(pattern)) = (from, fate, pattern) {
            // ACKs that are written in its place follow it.
            self.remember(pattern, at_hand.tcp, Copies::default());
        }
        self.obey(now, &orders, out);
        self.settle(&passing, fate, at_hand, out);
    }

    /// Returns whether no segment has shown yet that the flow has what the agent needs. Without a seen beginning the
    /// first segment may be forged: timestamps may come later.
    fn is_unclear(&self, has_timestamps: bool) -> bool {
        match self.attention {
            Attention::NotYet => true,
            Attention::Given => false,
            Attention::Withdrawn => has_timestamps && !self.facts.has_timestamps && !self.facts.is_whole(),
        }
    }

    /// A segment that shows whether the flow has what the agent needs.
    fn look(&mut self, now: Instant, passing: &Passing<'_>, has_timestamps: bool, out: &mut Outbox) {
        if passing.ack.is_none() || passing.flags.contains(Flags::RST) {
            return;
        }
        self.facts.has_timestamps = has_timestamps;
        let requires = self.agent.requires();
        let lacking = if requires.timestamps && !has_timestamps {
            Lacking::Timestamps
        } else if requires.beginning && !self.facts.is_whole() {
            Lacking::Beginning
        } else {
            self.attention = Attention::Given;
            return;
        };
        self.attention = Attention::Withdrawn;
        out.note(now, self.number, 0, TraceKind::Fallback(lacking));
    }

    pub(super) fn hear(&mut self, now: Instant, news: LinkNews, out: &mut Outbox) {
        if !self.is_attended() {
            return;
        }
        let mut orders = Orders::new();
        let view = self.view();
        self.agent.on_link(now, news, &view, &mut orders);
        self.obey(now, &orders, out);
        if news == LinkNews::Up {
            self.overflowed = None;
        }
    }

    pub(super) fn handle_deadline(&mut self, now: Instant, out: &mut Outbox) {
        let mut orders = Orders::new();
        let view = self.view();
        self.agent.on_deadline(now, &view, &mut orders);
        self.obey(now, &orders, out);
    }

    /// Releases all waiting packets.
    pub(super) fn let_go(&mut self, now: Instant, because: Because, out: &mut Outbox) {
        for of in [Side::Mobile, Side::Fixed] {
            self.release(now, of, u32::MAX, because, out);
        }
    }

    fn obey(&mut self, now: Instant, orders: &Orders, out: &mut Outbox) {
        for order in orders.iter() {
            match order {
                Order::Release { of, packets, because } => self.release(now, of, packets, because, out),
                Order::Discard { of, reason } => self.discard(now, of, reason, out),
                Order::Forget { below } => {
                    while let Some(kept) = self.data.pop_below(below) {
                        out.recycle(kept.packet);
                    }
                }
                Order::Repeat { because } => self.repeat(now, because, out),
                Order::Resend { seq, because } => self.resend(now, seq, because, out),
                Order::Acknowledge { number, window, copies } => {
                    self.acknowledge(now, number, window, copies, out);
                }
            }
        }
    }

    fn release(&mut self, now: Instant, of: Side, packets: u32, because: Because, out: &mut Outbox) {
        let mut left = packets;
        while left > 0 {
            let Some(kept) = self.store(of).pop() else { return };
            let is_known = kept.len() > 0 && self.facts.acked.is_some_and(|acked| kept.end <= acked);
            if of == Side::Fixed && is_known {
                out.recycle(kept.packet);
                continue;
            }
            left -= 1;
            self.let_out(now, of, kept, because, out);
        }
    }

    fn let_out(&mut self, now: Instant, of: Side, kept: Kept, because: Because, out: &mut Outbox) {
        let label = Label { from: of, number: kept.number(), len: kept.len(), because };
        out.note(now, self.number, kept.id, label.released());
        if let (Side::Mobile, Some(ack)) = (of, kept.ack) {
            self.facts.note_passed(now, ack);
            if let Some((ip, tcp)) = parse(&kept.packet)
                && let Some(pattern) = pattern(&kept.packet, &ip)
            {
                self.remember(pattern, &tcp, Copies::SAID);
            }
        }
        let Kept { id, packet, .. } = kept;
        out.send(now, of.other(), Leaving { id, is_passing: false, replaceable: None, packet });
    }

    fn discard(&mut self, now: Instant, of: Side, reason: DropReason, out: &mut Outbox) {
        while let Some(kept) = self.store(of).pop() {
            out.dropped(now, self.number, kept.id, reason);
            out.recycle(kept.packet);
        }
    }

    /// P3. A late ACK is no new one, since written ACKs bear the newest clock. A repeated one is no new one, either.
    fn remember(&mut self, pattern: &[u8], tcp: &TcpView<'_>, copies: Copies) {
        let says = tcp.options.timestamps.map(|told| (tcp.ack, tcp.window, told.value));
        let is_again = says.is_some() && says == self.pure_ack_says;
        if is_again || (!self.pure_ack.is_empty() && self.facts.newest.is_after(tcp)) {
            return;
        }
        self.pure_ack_says = says;
        self.pure_ack.clear();
        self.pure_ack.extend_from_slice(pattern);
        self.copies = copies;
    }

    /// P3.
    fn repeat(&mut self, now: Instant, because: Because, out: &mut Outbox) {
        let Some((_, tcp)) = parse(&self.pure_ack) else { return };
        // After data of the mobile the fixed end would take it for an old one, and it may not be altered.
        if !self.facts.newest.is(&tcp) || !self.copies.take_own() {
            return;
        }
        let number = tcp.ack;
        let id = out.next_id();
        let label = Label { from: Side::Mobile, number, len: 0, because };
        out.note(now, self.number, id, label.released());
        let packet = out.copy(&self.pure_ack);
        out.send(now, Side::Fixed, Leaving { id, is_passing: false, replaceable: None, packet });
    }

    fn resend(&mut self, now: Instant, seq: Seq, because: Because, out: &mut Outbox) {
        let Some(kept) = self.data.find(seq) else { return };
        let label = Label { from: Side::Fixed, number: kept.seq, len: kept.len(), because };
        let packet = out.copy(&kept.packet);
        let id = out.next_id();
        out.note(now, self.number, id, label.released());
        out.send(now, Side::Mobile, Leaving { id, is_passing: false, replaceable: None, packet });
    }

    /// P2. Written from the mobile's newest pure ACK, with its latest values: data may have come since.
    fn acknowledge(&mut self, now: Instant, number: Seq, window: Told, copies: u8, out: &mut Outbox) {
        let is_said = self.facts.acked.is_some_and(|acked| number <= acked);
        let Some((ip, tcp)) = parse(&self.pure_ack).filter(|_| is_said) else { return };
        let Newest { next, timestamps, window: as_before } = self.facts.newest;
        let copies = self.copies.take(copies, number, tcp.ack, window);
        if copies == 0 {
            return;
        }
        let window = match window {
            Told::Zero => 0,
            Told::AsBefore => as_before,
        };
        let options = TcpOptions { timestamps, ..TcpOptions::default() };
        let header = TcpHeader {
            src_port: tcp.src_port,
            dst_port: tcp.dst_port,
            seq: next.unwrap_or(tcp.seq),
            ack: number,
            flags: Flags::ACK,
            window,
            urgent: 0,
            options: &options,
        };
        let mut packet = Vec::new();
        let hop_limit = ip.hop_limit;
        IpHeader { hop_limit, ..IpHeader::plain(ip.src, ip.dst, protocol::TCP) }
            .emit(header.len(), &mut packet);
        header.emit(ip.src, ip.dst, (&[], &[]), Checksums::Verify, &mut packet);
        let id = out.next_id();
        out.note(now, self.number, id, TraceKind::Said { number, window, copies });
        for _ in 0..copies {
            let packet = packet.clone();
            out.send(now, Side::Fixed, Leaving { id, is_passing: false, replaceable: None, packet });
        }
        self.facts.note_passed(now, number);
    }

    fn settle(&mut self, passing: &Passing<'_>, fate: Fate, at_hand: AtHand<'_>, out: &mut Outbox) {
        let (now, from) = (passing.now, passing.from);
        match fate {
            Fate::Forward => {
                // P4. Data that no agent keeps must not push kept packets into a link that is gone.
                let may_overtake = from == Side::Fixed || passing.kind == Kind::Ack(Says::Less);
                if self.acks.withholds() && !may_overtake {
                    self.release(now, from, u32::MAX, Because::NoWaiting, out);
                }
                self.forward(passing, at_hand, out);
            }
            Fate::Replace(_) => {
                self.note_gone(passing, at_hand);
                out.replace(now, self.number, from.other(), at_hand.id, at_hand.packet);
            }
            Fate::Drop(reason) => out.dropped(now, self.number, at_hand.id, reason),
            Fate::Hold(because) => self.keep(passing, because, Keeps::Original, at_hand, out),
            Fate::Copy(because) => self.keep(passing, because, Keeps::Copy, at_hand, out),
        }
    }

    fn note_gone(&mut self, passing: &Passing<'_>, at_hand: AtHand<'_>) {
        if let (Side::Mobile, Some(ack)) = (passing.from, passing.ack) {
            self.facts.note_passed(passing.now, ack);
            let is_newest = matches!(passing.kind, Kind::Ack(says) if says != Says::Less);
            if let Some(pattern) = at_hand.pattern.filter(|_| is_newest) {
                self.remember(pattern, at_hand.tcp, Copies::SAID);
            }
        }
    }

    fn forward(&mut self, passing: &Passing<'_>, at_hand: AtHand<'_>, out: &mut Outbox) {
        self.note_gone(passing, at_hand);
        out.pass(passing.now, passing.from.other(), at_hand.id, at_hand.packet);
    }
}
