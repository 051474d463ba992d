//! Judges the ACKs that a kernel's TCP sends. A receiver agent for each flow decides which of them wait.
//!
//! A packet comes in with a number, and its verdict goes out with that number: pass or drop. Nothing is written or
//! changed, so that each ACK that leaves is the kernel's own.
//!
//! Invariants
//! - A1: a pure ACK waits at most 290 ms after the first ACK of unacknowledged data, whatever the agent decides.
//! - A2: an ACK is dropped only as a newer segment of its flow leaves or waits in its place: the last ACK leaves.
//! - A3: a packet with news passes at once: duplicates, what fills their hole, new SACK blocks, congestion marks, a
//!   window at zero or from zero, SYN, FIN and RST, and the first ACKs of a flow or after a pause. A waiting ACK passes
//!   before it, or is dropped if the packet acknowledges more. Each SACK block of a dropped ACK has left before.
//! - A4: a segment that does not continue its flow by sequence number replaces no ACK: a stranger who does not know the
//!   number can neither drop an ACK nor delay one.
//!
//! Of the timestamps in ACKs the newest leave (RFC 7323 §4.3 would have the echo of the first). An ACK with the first
//! echo acknowledges less, and a changed echo would be forged. A sender that measures by echoes therefore does not see
//! the time for which an ACK waited. Linux measures by its own send times and sees that time.

mod flow;
mod read;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hopwise_core::agent::{By, HopSource, MakeReceiver, Path};
use hopwise_core::ip::Prefix;
use hopwise_core::tcp::HopCounting;
use hopwise_core::{Instant, Seq};

use flow::{AckFlow, HeldAck};
use read::{Ends, ReadHead};

/// The longest wait of an ACK. RFC 9293 MUST-40 has less than 500 ms after the data came. The kernel's own ACK may come
/// 200 ms after the data (Linux's longest delay), and a busy machine needs some time.
const CEILING: Duration = Duration::from_millis(290);
/// After this time without a packet of a flow its sender begins anew (RFC 5681 §4.1, with the least RTO of RFC 6298).
const PAUSE: Duration = Duration::from_secs(1);
/// SYNs that are remembered: a flow begins a round trip after its own.
const MOST_SYNS: usize = 256;
/// A full table looks for idle flows so often.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// Flows are forgotten after this time without a packet.
const IDLE: Duration = Duration::from_mins(1);
/// Flows in which no data was acknowledged are forgotten after this time: a stranger may invent them.
const IDLE_AND_EMPTY: Duration = Duration::from_secs(2);

/// What a [`Thin`] is made of.
pub struct ThinConfig {
    /// The agents of flows; the first rule that matches applies. Flows without a rule are not followed.
    pub rules: Vec<ThinRule>,
    /// The largest packet of the interface, which tells how many segments an ACK stands for.
    pub mtu: u16,
    /// Flows that are followed at a time. ACKs of further flows pass.
    pub most_flows: usize,
    /// Of all data since a flow's beginning, or since a pause of a second, an ACK acknowledges at most one part in so
    /// many. A sender in slow start gets seven tenths of this number of ACKs while its window doubles, and learns from
    /// them that a queue grows. With 0 the agent alone decides.
    pub growth: u32,
}

/// Chooses the agent of flows. All conditions given have to hold.
pub struct ThinRule {
    /// The interface by which the ACKs leave, by the number that comes with packets.
    pub interface: Option<u16>,
    /// The port of either end.
    pub port: Option<u16>,
    /// The network of the end that gets the ACKs.
    pub network: Option<Prefix>,
    /// Makes the agent of each flow.
    pub receiver: MakeReceiver,
}

impl ThinRule {
    fn matches(&self, interface: u16, Ends { from, to }: Ends) -> bool {
        self.interface.is_none_or(|wanted| wanted == interface)
            && self.port.is_none_or(|port| [from.port(), to.port()].contains(&port))
            && self.network.is_none_or(|network| network.contains(to.ip()))
    }
}

hopwise_core::shown!(ThinRule: port);

hopwise_core::shown!(ThinConfig: mtu, most_flows);

/// What becomes of a packet, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckFate {
    /// Data, SYN, FIN or RST: it passes.
    NoAck,
    /// It passes, because it was not understood, or because too many flows are followed.
    NotFollowed,
    /// It passes as one of the first of its flow, or of those after a pause.
    First,
    /// It passes because its flow may be in slow start: it acknowledges more than `growth` allows an ACK.
    Growing,
    /// It passes at once, with these news.
    News(&'static str),
    /// It leaves at once, or when its wait ended, because the agent wants an ACK.
    Agent,
    /// It leaves after the longest wait.
    Ceiling,
    /// It leaves before a packet that does not take its place.
    Before,
    /// It leaves because its flow or the daemon ends.
    LetGo,
    /// It is dropped for an ACK with this number.
    Replaced(Seq),
    /// It is dropped for data with this number.
    Ridden(Seq),
}

impl AckFate {
    /// True if the packet goes on.
    pub fn passes(self) -> bool {
        !matches!(self, AckFate::Replaced(_) | AckFate::Ridden(_))
    }
}

impl fmt::Display for AckFate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AckFate::NoAck => f.write_str("passed: no pure ACK"),
            AckFate::NotFollowed => f.write_str("passed: its flow is not followed"),
            AckFate::First => f.write_str("passed: one of the first of its flow, or after a pause"),
            AckFate::Growing => {
                f.write_str("passed: it acknowledges much of what its flow has brought so far")
            }
            AckFate::News(what) => write!(f, "passed: {what}"),
            AckFate::Agent => f.write_str("left: the agent wants an ACK"),
            AckFate::Ceiling => f.write_str("left: the longest wait is over"),
            AckFate::Before => f.write_str("left: a packet follows that does not take its place"),
            AckFate::LetGo => f.write_str("left: its flow is followed no longer"),
            AckFate::Replaced(by) => write!(f, "dropped: replaced by the ACK of {}", by.0),
            AckFate::Ridden(by) => write!(f, "dropped: gone with data that acknowledge {}", by.0),
        }
    }
}

/// Counts since the start; flows and waiting ACKs are those of now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThinCounts {
    /// Followed flows.
    pub flows: usize,
    /// ACKs that wait.
    pub held: usize,
    /// Pure ACKs of followed flows.
    pub acks: u64,
    /// Pure ACKs that were dropped for a newer ACK.
    pub replaced: u64,
    /// Pure ACKs that were dropped because data of their flow left with a newer number.
    pub ridden: u64,
    /// Pure ACKs that passed at once, with news or at a beginning.
    pub news: u64,
    /// Packets that passed because they were not understood: tunnels, fragments, extension headers, unknown options.
    pub untouched: u64,
    /// Pure ACKs that passed because too many flows were followed.
    pub no_room: u64,
}

/// Judges packets that leave. See the head of this file for its rules.
pub struct Thin {
    config: ThinConfig,
    flows: BTreeMap<Ends, AckFlow>,
    /// The flows with a waiting ACK, by the time at which their agents want to be asked.
    due: BTreeSet<(Instant, Ends)>,
    verdicts: VecDeque<(u32, AckFate)>,
    counts: ThinCounts,
    /// The hop limits of the last SYNs that arrived, by the flows of their answers.
    syns: VecDeque<(Ends, u8)>,
    sweep_at: Instant,
}

impl Thin {
    /// A machine without flows.
    pub fn new(config: ThinConfig) -> Thin {
        Thin {
            config,
            flows: BTreeMap::new(),
            due: BTreeSet::new(),
            verdicts: VecDeque::new(),
            counts: ThinCounts::default(),
            syns: VecDeque::new(),
            sweep_at: Instant::ZERO,
        }
    }

    /// Takes a packet that is about to leave by an interface; `head` has its headers, and may lack its data. Verdicts
    /// may follow on this packet and on waiting ones.
    pub fn handle_packet(&mut self, now: Instant, (id, interface): (u32, u16), head: &[u8]) {
        let Some(read) = read::read(head) else {
            self.counts.untouched += 1;
            return self.say(id, AckFate::NotFollowed);
        };
        if read.begins_or_resets() {
            self.forget(read.ends);
            self.say(id, AckFate::NoAck);
        } else if read.takes_numbers() {
            self.on_data(now, &read);
            self.say(id, AckFate::NoAck);
        } else {
            self.on_ack(now, (id, interface), &read);
        }
    }

    /// Takes a SYN that arrives here. It passes, and its hop limit shows the hops of its sender's data.
    pub fn handle_syn(&mut self, id: u32, head: &[u8]) {
        if let Some(syn) = read::read(head) {
            self.syns.truncate(MOST_SYNS - 1);
            self.syns.push_front((Ends { from: syn.ends.to, to: syn.ends.from }, syn.hop_limit));
        }
        self.say(id, AckFate::NoAck);
    }

    /// Asks the agents that are due, and ends waits at the ceiling.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((_, ends)) = self.due.first().copied().filter(|(due, _)| *due <= now) {
            let Some(flow) = self.flows.get_mut(&ends) else {
                unreachable!("a flow with a waiting ACK stays")
            };
            self.due.pop_first();
            if let Some((held, fate)) = flow.on_deadline(now) {
                self.end(held, fate);
            }
            self.file(ends);
        }
    }

    /// The instant of the next work.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// The next verdict, with the number of its packet. Verdicts have to be carried out in this order.
    pub fn poll_verdict(&mut self) -> Option<(u32, AckFate)> {
        self.verdicts.pop_front()
    }

    /// Lets all waiting ACKs pass, and forgets all flows.
    pub fn let_go(&mut self) {
        while let Some(ends) = self.flows.keys().next().copied() {
            self.forget(ends);
        }
    }

    /// The counts.
    pub fn counts(&self) -> ThinCounts {
        ThinCounts { flows: self.flows.len(), ..self.counts }
    }

    fn say(&mut self, id: u32, fate: AckFate) {
        self.verdicts.push_back((id, fate));
    }

    /// Data, or a FIN: it carries the newest number, so that an ACK need not leave before it.
    fn on_data(&mut self, now: Instant, read: &ReadHead) {
        let Some(flow) = self.flows.get_mut(&read.ends) else { return };
        let held = flow.held.take();
        if !flow.hear(now, read, self.config.mtu) {
            flow.settle(now, By::Piggyback);
        }
        flow.note(now, read);
        if let Some(held) = held {
            let rides = held.goes_on_in(read) && read.ack >= held.number;
            self.counts.ridden += u64::from(rides);
            self.end(held, if rides { AckFate::Ridden(read.ack) } else { AckFate::Before });
        }
        self.file(read.ends);
    }

    fn on_ack(&mut self, now: Instant, (id, interface): (u32, u16), read: &ReadHead) {
        if !read.is_plain {
            self.counts.untouched += 1;
            self.forget(read.ends);
            return self.say(id, AckFate::NotFollowed);
        }
        if !self.flows.contains_key(&read.ends) {
            let fate = self.begin(now, interface, read);
            return self.say(id, fate);
        }
        let Some(flow) = self.flows.get_mut(&read.ends) else { return };
        self.counts.acks += 1;
        let news = flow.news(read).map(AckFate::News);
        let held = flow.held.take();
        let is_wanted = flow.hear(now, read, self.config.mtu);
        let news = news.or_else(|| flow.is_growing(self.config.growth).then_some(AckFate::Growing));
        self.counts.news += u64::from(news.is_some());
        if news.is_some() && !is_wanted {
            flow.settle(now, By::Forced);
        }
        flow.note(now, read);
        let leaves = news.or(is_wanted.then_some(AckFate::Agent));
        if leaves.is_none() {
            flow.held = Some(HeldAck { id, seq: read.seq, number: read.ack });
            self.counts.held += 1;
        }
        if let Some(held) = held {
            let is_replaced = held.goes_on_in(read) && read.ack > held.number;
            self.counts.replaced += u64::from(is_replaced);
            self.end(held, if is_replaced { AckFate::Replaced(read.ack) } else { AckFate::Before });
        }
        if let Some(fate) = leaves {
            self.say(id, fate);
        }
        self.file(read.ends);
    }

    /// Ends the wait of an ACK.
    fn end(&mut self, held: HeldAck, fate: AckFate) {
        self.counts.held -= 1;
        self.say(held.id, fate);
    }

    /// Follows a flow from this ACK on, which itself passes: a beginning has no number to compare with.
    fn begin(&mut self, now: Instant, interface: u16, read: &ReadHead) -> AckFate {
        let rule = self.config.rules.iter().find(|rule| rule.matches(interface, read.ends));
        let Some(receiver) = rule.map(|rule| Arc::clone(&rule.receiver)) else { return AckFate::NotFollowed };
        if self.flows.len() >= self.config.most_flows {
            self.sweep(now);
        }
        if self.flows.len() >= self.config.most_flows {
            self.counts.no_room += 1;
            return AckFate::NotFollowed;
        }
        self.counts.acks += 1;
        let flow = AckFlow::new(now, receiver(), self.path_of(read.ends), read);
        self.flows.insert(read.ends, flow);
        AckFate::First
    }

    /// The hops as a node infers them, if a SYN of the flow is remembered.
    fn path_of(&self, ends: Ends) -> Path {
        let syn = self.syns.iter().find(|(of, _)| *of == ends);
        let hops = syn.and_then(|(_, hop_limit)| HopCounting::default().hops(*hop_limit, 0));
        Path { hops_from_peer: hops.map(|hops| (hops, HopSource::Ttl)), ..Path::default() }
    }

    fn sweep(&mut self, now: Instant) {
        if now < self.sweep_at {
            return;
        }
        self.sweep_at = now + SWEEP_EVERY;
        self.flows.retain(|_, flow| {
            let most = if flow.has_acknowledged() { IDLE } else { IDLE_AND_EMPTY };
            flow.held.is_some() || flow.silence(now) < most
        });
    }

    fn forget(&mut self, ends: Ends) {
        let Some(mut flow) = self.flows.remove(&ends) else { return };
        if let Some(due) = flow.filed.take() {
            self.due.remove(&(due, ends));
        }
        if let Some(held) = flow.held {
            self.end(held, AckFate::LetGo);
        }
    }

    /// Must be called after each change of a flow: its agent may have another deadline.
    fn file(&mut self, ends: Ends) {
        let Some(flow) = self.flows.get_mut(&ends) else { return };
        let due = flow.due();
        if let Some(before) = std::mem::replace(&mut flow.filed, due) {
            self.due.remove(&(before, ends));
        }
        self.due.extend(due.map(|due| (due, ends)));
    }
}

impl fmt::Debug for Thin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thin").field("counts", &self.counts()).finish_non_exhaustive()
    }
}
