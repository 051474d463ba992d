//! All cut flows of a proxy: their deadlines, the flows with something to send, and their memory.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU64;
use std::time::Duration;

use hopwise_core::agent::Side;
use hopwise_core::{Instant, Seq, Transmit};

use super::entries::{Charge, Entries, ProxyEntry};
use super::outbox::{LeavingNow, Outbox};
use super::read::FlowKey;
use super::relay::{Relay, place};

/// Deadlines that are handled before packets come to their turn again.
pub(super) const MOST_DUE: usize = 128;
/// The lateness of a deadline from which on no more flows are cut: each of them brings more deadlines.
const BEHIND: Duration = Duration::from_millis(250);

/// Relays change these, and so do all other flows.
pub(super) struct Books<'a> {
    pub(super) entries: &'a mut Entries,
    pub(super) out: &'a mut Outbox,
}

/// A relay with its entry, charge, deadline and queue numbers.
#[derive(Debug)]
struct Filed {
    relay: Relay,
    entry: ProxyEntry,
    charge: Charge,
    due: Option<Instant>,
    /// Its place in `Relays::still`.
    still: Option<Instant>,
    /// By side: its number in the queue of relays that may have something to send.
    numbers: [Option<NonZeroU64>; 2],
}

/// Outcome for a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfSyn {
    Taken,
    /// No relay has these ports. One that a SYN of the other end began has given way.
    Free {
        displaced: Option<Seq>,
    },
}

#[derive(Debug, Default)]
pub(super) struct Relays {
    /// In boxes: the map keeps room for twice as many values as there are, and these are large.
    all: BTreeMap<FlowKey, Box<Filed>>,
    deadlines: BTreeSet<(Instant, FlowKey)>,
    /// Relays that hold bytes, by mobile and the last time that some moved.
    still: BTreeSet<(IpAddr, Instant, FlowKey)>,
    /// By side: the relays that may have something to send, each once, in the order of their numbers.
    waiting: [BTreeMap<NonZeroU64, FlowKey>; 2],
    numbers: u64,
}

impl Relays {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The relays of a mobile.
    pub(super) fn of(&self, mobile: IpAddr) -> impl Iterator<Item = (&FlowKey, &Relay)> {
        let filed = self.all.range(FlowKey::first_of(mobile)..);
        filed.take_while(move |(key, _)| key.mobile.ip() == mobile).map(|(key, filed)| (key, &filed.relay))
    }

    /// The relay of a mobile whose data has stood still for longest.
    pub(super) fn stillest(&self, mobile: IpAddr) -> Option<FlowKey> {
        let (of, _, key) = self.still.range((mobile, Instant::ZERO, FIRST)..).next()?;
        (*of == mobile).then_some(*key)
    }

    /// Files a relay of a flow that has none.
    pub(super) fn insert(&mut self, now: Instant, key: FlowKey, relay: Relay, books: &mut Books<'_>) {
        let entry = ProxyEntry::Brief(now);
        let filed = Filed { relay, entry, charge: Charge::NONE, due: None, still: None, numbers: [None; 2] };
        books.entries.enter(key, entry);
        let before = self.all.insert(key, Box::new(filed));
        debug_assert!(before.is_none(), "a flow has one relay");
        self.settle(now, key, books);
    }

    /// Returns whether the flow is cut, and thus took the packet.
    pub(super) fn take(
        &mut self,
        now: Instant,
        from: Side,
        (key, packet): (FlowKey, &[u8]),
        books: &mut Books<'_>,
    ) -> bool {
        let Some(filed) = self.all.get_mut(&key) else { return false };
        filed.relay.live_by(books.entries.left_for(key.mobile.ip()));
        filed.relay.take(now, from, packet);
        self.settle(now, key, books);
        true
    }

    /// Takes a SYN with this number, if the flow is cut. A relay that gives way to it is forgotten.
    pub(super) fn take_syn(
        &mut self,
        now: Instant,
        from: Side,
        (key, seq, packet): (FlowKey, Seq, &[u8]),
        books: &mut Books<'_>,
    ) -> OfSyn {
        let Some(filed) = self.all.get_mut(&key) else { return OfSyn::Free { displaced: None } };
        filed.relay.live_by(books.entries.left_for(key.mobile.ip()));
        let displaced = filed.relay.is_displaced_by(from);
        let is_over = filed.relay.gives_way(now, from, (seq, packet));
        if is_over {
            self.forget(&key, books);
            return OfSyn::Free { displaced };
        }
        self.settle(now, key, books);
        OfSyn::Taken
    }

    /// Returns whether the flow is cut and its opener has been silent for so long before both ends had the connection.
    pub(super) fn has_no_opener(&self, key: &FlowKey, now: Instant, silence: Duration) -> bool {
        self.all.get(key).is_some_and(|filed| filed.relay.has_no_opener(now, silence))
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|(due, _)| *due)
    }

    /// Returns whether deadlines come faster than the processor handles them.
    pub(super) fn is_behind(&self, now: Instant) -> bool {
        self.poll_timeout().is_some_and(|due| now.since(due) >= BEHIND)
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, books: &mut Books<'_>) {
        let due = self.deadlines.range(..=(now, LAST)).take(MOST_DUE);
        let due: Vec<_> = due.map(|(_, key)| *key).collect();
        for key in due {
            if let Some(filed) = self.all.get_mut(&key) {
                filed.relay.live_by(books.entries.left_for(key.mobile.ip()));
                filed.relay.handle_timeout(now);
            }
            self.settle(now, key, books);
        }
    }

    /// Takes one packet. A relay that has sent comes last.
    pub(super) fn poll_transmit(
        &mut self,
        now: Instant,
        to: Side,
        packet: &mut Vec<u8>,
        books: &mut Books<'_>,
    ) -> Option<Transmit> {
        while let Some((_, key)) = self.waiting[place(to)].pop_first() {
            let Some(filed) = self.all.get_mut(&key) else { continue };
            filed.numbers[place(to)] = None;
            let transmit = filed.relay.poll_transmit(now, to, packet);
            if transmit.is_some() {
                self.wait(key, to);
            }
            self.file(now, key, books);
            if transmit.is_some() {
                return transmit;
            }
        }
        None
    }

    /// Ends all of them: their data is lost, and both ends get a RST.
    pub(super) fn abort(&mut self, now: Instant, books: &mut Books<'_>) {
        let keys: Vec<_> = self.all.keys().copied().collect();
        for key in keys {
            if let Some(filed) = self.all.get_mut(&key) {
                filed.relay.abort(now);
            }
            self.settle(now, key, books);
        }
    }

    /// Ends one at once. Ends that may still need it get a RST.
    pub(super) fn give_up(&mut self, now: Instant, key: &FlowKey, books: &mut Books<'_>) {
        let Some(filed) = self.all.get_mut(key) else { return };
        filed.relay.abort(now);
        for to in [Side::Fixed, Side::Mobile] {
            let mut packet = Vec::new();
            while filed.relay.poll_transmit(now, to, &mut packet).is_some() {
                let (id, packet) = (books.out.next_id(), std::mem::take(&mut packet));
                books.out.send(now, to, LeavingNow { id, is_passing: false, replaceable: None, packet });
            }
        }
        self.forget(key, books);
    }

    /// Gives up relays that were silent for so long.
    pub(super) fn sweep(&mut self, now: Instant, idle: Duration, books: &mut Books<'_>) {
        let is_silent = |relay: &Relay| now.since(relay.seen_at) >= idle;
        let silent: Vec<_> =
            self.all.iter().filter(|(_, filed)| is_silent(&filed.relay)).map(|(key, _)| *key).collect();
        silent.iter().for_each(|key| self.give_up(now, key, books));
    }

    fn forget(&mut self, key: &FlowKey, books: &mut Books<'_>) {
        let Some(filed) = self.all.remove(key) else { return };
        filed.still.map(|since| self.still.remove(&(key.mobile.ip(), since, *key)));
        books.entries.leave(*key, filed.entry);
        books.entries.hold(*key, filed.charge, Charge::NONE);
        if let Some(due) = filed.due {
            self.deadlines.remove(&(due, *key));
        }
        for (number, waiting) in filed.numbers.into_iter().zip(&mut self.waiting) {
            number.map(|number| waiting.remove(&number));
        }
    }

    /// Queues it last, unless it already has a number.
    fn wait(&mut self, key: FlowKey, to: Side) {
        let Some(filed) = self.all.get_mut(&key) else { return };
        let number = &mut filed.numbers[place(to)];
        if number.is_none() {
            self.numbers += 1;
            *number = NonZeroU64::new(self.numbers);
            self.waiting[place(to)].extend(number.map(|number| (number, key)));
        }
    }

    /// After a change both sides may have something to send.
    fn settle(&mut self, now: Instant, key: FlowKey, books: &mut Books<'_>) {
        self.wait(key, Side::Fixed);
        self.wait(key, Side::Mobile);
        self.file(now, key, books);
    }

    fn file(&mut self, now: Instant, key: FlowKey, books: &mut Books<'_>) {
        let Some(filed) = self.all.get_mut(&key) else { return };
        let relay = &filed.relay;
        if relay.is_over(now) && filed.numbers == [None; 2] {
            return self.forget(&key, books);
        }
        let (entry, due) = (relay.entry(now, filed.entry), relay.deadline());
        let held = relay.held();
        let (charge, still) = (Charge::new(entry, held), (held > 0).then_some(relay.moved_at));
        if entry != filed.entry {
            books.entries.leave(key, std::mem::replace(&mut filed.entry, entry));
            books.entries.enter(key, entry);
        }
        books.entries.hold(key, std::mem::replace(&mut filed.charge, charge), charge);
        if still != filed.still {
            let mobile = key.mobile.ip();
            if let Some(old) = std::mem::replace(&mut filed.still, still) {
                self.still.remove(&(mobile, old, key));
            }
            self.still.extend(still.map(|since| (mobile, since, key)));
        }
        if due != filed.due {
            if let Some(old) = std::mem::replace(&mut filed.due, due) {
                self.deadlines.remove(&(old, key));
            }
            self.deadlines.extend(due.map(|due| (due, key)));
        }
    }
}

#[cfg(test)]
impl Relays {
    pub(super) fn get(&self, key: &FlowKey) -> Option<&Relay> {
        self.all.get(key).map(|filed| &filed.relay)
    }

    /// Compares the entries with each relay, and counts relays without a lasting entry. Other flows keep `kept` bytes.
    pub(super) fn check(&self, entries: &Entries, kept: usize) -> usize {
        let held: usize = self.all.values().map(|filed| filed.relay.held()).sum();
        assert_eq!(entries.bytes(), held + kept);
        for waiting in &self.waiting {
            assert!(waiting.len() <= self.all.len(), "{} wait of {}", waiting.len(), self.all.len());
        }
        let holders = self.all.iter().filter(|(_, filed)| filed.relay.held() > 0);
        let still = holders.map(|(key, filed)| (key.mobile.ip(), filed.relay.moved_at, *key));
        assert_eq!(self.still, still.collect());
        self.all.values().filter(|filed| filed.entry != ProxyEntry::Lasting).count()
    }
}

/// A key before every flow.
const FIRST: FlowKey = FlowKey { mobile: FIRST_SOCKET, fixed: FIRST_SOCKET };
const FIRST_SOCKET: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
/// A key after every flow of one instant.
const LAST: FlowKey = FlowKey { mobile: LAST_SOCKET, fixed: LAST_SOCKET };
const LAST_SOCKET: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::from_bits(u128::MAX)), u16::MAX);
