//! One flow at a base station: its agent, its waiting packets, and how orders are carried out.
//!
//! Invariants
//! - P2: no ACK leaves in the mobile's name with a number that the mobile has not sent.
//! - P3: of each ACK at most two copies leave, and of a held one that went out with its duplicates three. A newly
//!   written one is counted by its number and window. Packets that agents let through are not altered.
//! - P4: no packet of the mobile overtakes its waiting packets, except an ACK with a lower number than one before.

mod keep;
mod orders;

use std::time::Duration;

use hopwise_core::agent::{
    BaseStationAgent, Because, Fate, FlowView, Kind, LinkNews, Orders, Passing, Says, Side,
};
use hopwise_core::trace::{Lacking, TraceKind};
use hopwise_core::wire::{Flags, TcpView};
use hopwise_core::{Instant, Seq};

use super::entries::{Charge, ProxyEntry};
use super::facts::FlowFacts;
use super::outbox::{Copies, Outbox};
use super::read::ReadPacket;
use super::store::PacketStore;
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
pub(super) struct ProxyFlow {
    pub(super) number: u32,
    agent: Box<dyn BaseStationAgent>,
    attention: Attention,
    pub(super) facts: FlowFacts,
    acks: PacketStore,
    data: PacketStore,
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
    pub(super) entry: ProxyEntry,
    /// Its memory for waiting packets, as the entries count it.
    pub(super) charge: Charge,
    /// The agent's deadline, as the table has it.
    pub(super) due: Option<Instant>,
}

/// The packet at hand.
#[derive(Clone, Copy)]
pub(super) struct CurrentPacket<'a> {
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

impl<'a> CurrentPacket<'a> {
    pub(super) fn new(
        id: u64,
        packet: &'a [u8],
        read: &'a ReadPacket<'_>,
        link: Option<LinkNews>,
        has_room: bool,
    ) -> CurrentPacket<'a> {
        CurrentPacket { id, packet, tcp: &read.tcp, pattern: read.pattern, link, has_room }
    }
}

impl ProxyFlow {
    pub(super) fn new(
        number: u32,
        agent: Box<dyn BaseStationAgent>,
        most_bytes: usize,
        now: Instant,
    ) -> ProxyFlow {
        ProxyFlow {
            number,
            agent,
            attention: Attention::NotYet,
            facts: FlowFacts::default(),
            acks: PacketStore::default(),
            data: PacketStore::default(),
            most_bytes,
            pure_ack: Vec::new(),
            copies: Copies::default(),
            pure_ack_says: None,
            overflowed: None,
            seen_at: now,
            was_reset: false,
            has_finished: [false; 2],
            has_spoken: [false; 2],
            entry: ProxyEntry::Brief(now),
            charge: Charge::NONE,
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

    fn store(&mut self, of: Side) -> &mut PacketStore {
        match of {
            Side::Mobile => &mut self.acks,
            Side::Fixed => &mut self.data,
        }
    }

    fn view(&self) -> FlowView {
        let count = |store: &PacketStore| u32::try_from(store.len()).unwrap_or(u32::MAX);
        let mut view = self.facts.view();
        (view.held_acks, view.cached_packets) = (count(&self.acks), count(&self.data));
        view.cached_bytes = self.data.payload_bytes;
        view
    }

    /// Processes a segment of the flow.
    pub(super) fn take(
        &mut self,
        now: Instant,
        from: Side,
        read: &ReadPacket<'_>,
        at_hand: CurrentPacket<'_>,
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

    fn settle(&mut self, passing: &Passing<'_>, fate: Fate, at_hand: CurrentPacket<'_>, out: &mut Outbox) {
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

    fn note_gone(&mut self, passing: &Passing<'_>, at_hand: CurrentPacket<'_>) {
        if let (Side::Mobile, Some(ack)) = (passing.from, passing.ack) {
            self.facts.note_passed(passing.now, ack);
            let is_newest = matches!(passing.kind, Kind::Ack(says) if says != Says::Less);
            if let Some(pattern) = at_hand.pattern.filter(|_| is_newest) {
                self.remember(pattern, at_hand.tcp, Copies::SAID);
            }
        }
    }

    fn forward(&mut self, passing: &Passing<'_>, at_hand: CurrentPacket<'_>, out: &mut Outbox) {
        self.note_gone(passing, at_hand);
        out.pass(passing.now, passing.from.other(), at_hand.id, at_hand.packet);
    }
}

/// The stage of a flow: whether both ends have spoken, and whether it has ended.
impl ProxyFlow {
    /// As far as can be known: one end may still send for as long as it likes after the other's FIN. Kept packets are
    /// still to be sent.
    pub(in crate::proxy) fn has_ended(&self) -> bool {
        (self.was_reset || self.has_finished == [true; 2]) && self.kept_packets() == 0
    }

    /// Returns whether both sides were seen and the agent can serve it.
    pub(in crate::proxy) fn earns_a_lasting_entry(&self) -> bool {
        self.has_spoken == [true; 2] && self.is_attended()
    }

    /// Returns whether both ends have spoken and the flow has not ended.
    pub(in crate::proxy) fn is_under_way(&self) -> bool {
        self.has_spoken == [true; 2] && !self.has_ended()
    }

    /// Notes the SYN that passed before the flow was in the table.
    pub(in crate::proxy) fn begin(&mut self, now: Instant, from: Side, syn: &ReadPacket<'_>) {
        self.has_spoken[from as usize] |= self.facts.see(now, from, syn).is_some();
    }
}
