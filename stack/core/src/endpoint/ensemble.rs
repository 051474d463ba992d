//! Connections of one host to one peer that take turns at sending (an *ensemble*, RFC 9040): one has a train under way,
//! the others wait until it ends, and the one that has waited longest comes next.
//!
//! What a turn is for the owner of cwnd says ([`SenderAgent::turn`](crate::agent::SenderAgent::turn)); whose owner says
//! nothing is in no ensemble. A turn ends with its train, and when its connection may not send or has nothing to send;
//! while others wait it has a deadline as well, so that a holder that stands still starves nobody. What the flows know
//! of their path together is kept here too; only their owners of cwnd can read it.
//!
//! Invariants (checked in debug builds wherever an ensemble changes)
//! - T1: the holder's turn is `Alone` where nobody waits, else `Holding`; whoever stands in the queue is `Waiting`.
//! - T2: the holder has a deadline just when somebody waits.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::collections::btree_map::Entry::{Occupied, Vacant};
use std::net::IpAddr;

use super::Endpoint;
use crate::agent::{Common, Turn};
use crate::timer_heap::TimerHeap;
use crate::{Instant, Seq};

/// The link, our address, the peer's.
type Between = (usize, IpAddr, IpAddr);

pub(super) struct Ensembles {
    all: BTreeMap<Between, Ensemble>,
    /// When turns that others wait for end at the latest, by their holders' slots.
    deadlines: TimerHeap,
}

/// It lasts as long as somebody wants a turn; who has it alone is asked once somebody else does, or when it may not
/// send.
struct Ensemble {
    holder: u32,
    /// What the turn is for.
    train: Seq,
    waiting: VecDeque<u32>,
    /// What its flows know together.
    common: Common,
}

impl Ensembles {
    pub(super) fn new() -> Ensembles {
        Ensembles { all: BTreeMap::new(), deadlines: TimerHeap::new() }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.peek().map(|(at, _)| at)
    }
}

impl Endpoint {
    /// After anything happened to a connection: it asks for a turn, keeps it, or lets the next one have it.
    pub(super) fn take_turns(&mut self, now: Instant, slot: u32) {
        let Some(entry) = self.table.get(slot) else { return };
        let Some(turn) = entry.conn.turn() else { return };
        if turn == Turn::Alone && entry.conn.may_use_turn() {
            // Nobody wants to know, until somebody asks.
            return;
        }
        let wakes_holder = self.share(slot);
        let wanted = self.table.get(slot).and_then(|entry| entry.conn.wanted_turn(now));
        self.settle_turn(now, slot, turn, wanted);
        if wakes_holder
            && let Some(ensemble) = self.ensemble_of(slot)
            && ensemble.holder != slot
        {
            let holder = ensemble.holder;
            self.touch(now, holder);
        }
    }

    /// A connection that is forgotten wants no turn any more.
    pub(super) fn leave_ensemble(&mut self, now: Instant, slot: u32) {
        if let Some(turn) = self.table.get(slot).and_then(|entry| entry.conn.turn()) {
            self.settle_turn(now, slot, turn, None);
        }
    }

    pub(super) fn end_overdue_turns(&mut self, now: Instant) {
        while let Some((due, slot)) = self.ensembles.deadlines.peek()
            && due <= now
        {
            // Whoever is found there, this deadline is over.
            self.ensembles.deadlines.set(slot, Instant::FAR);
            let wanted = self.table.get(slot).and_then(|entry| entry.conn.wanted_turn(now));
            self.give_back(now, slot, wanted);
        }
    }

    fn settle_turn(&mut self, now: Instant, slot: u32, turn: Turn, wanted: Option<Seq>) {
        match (turn, wanted) {
            (Turn::Free, None) | (Turn::Waiting, Some(_)) => {}
            (Turn::Free, Some(train)) => self.ask_for_turn(now, slot, train),
            (Turn::Waiting, None) => self.wait_no_more(now, slot),
            (Turn::Alone | Turn::Holding, None) => self.give_back(now, slot, None),
            (Turn::Alone, Some(train)) => {
                if let Some(ensemble) = self.ensemble_of(slot) {
                    ensemble.train = train;
                }
            }
            (Turn::Holding, Some(train)) => {
                if self.ensemble_of(slot).is_some_and(|ensemble| ensemble.train != train) {
                    self.give_back(now, slot, wanted);
                }
            }
        }
    }

    fn ask_for_turn(&mut self, now: Instant, slot: u32, train: Seq) {
        let Some(between) = self.between(slot) else { return };
        let common = self.ask_who_is_alone(now, between);
        let turn = match self.ensembles.all.entry(between) {
            Vacant(place) => {
                place.insert(Ensemble { holder: slot, train, waiting: VecDeque::new(), common });
                // It comes later than whoever told this.
                self.set_turn(slot, Turn::Waiting);
                self.share(slot);
                Turn::Alone
            }
            Occupied(ensemble) => {
                ensemble.into_mut().waiting.push_back(slot);
                Turn::Waiting
            }
        };
        self.set_turn(slot, turn);
        self.tell_holder(now, between);
    }

    /// Which train a holder whom nobody has asked yet has come to; or that it needs no turn, and what it knows.
    fn ask_who_is_alone(&mut self, now: Instant, between: Between) -> Common {
        let ensemble = self.ensembles.all.get(&between).filter(|all| all.waiting.is_empty())?;
        let holder = ensemble.holder;
        self.share(holder);
        let wanted = self.table.get(holder).and_then(|entry| entry.conn.wanted_turn(now));
        let left = self.ensembles.all.get_mut(&between).filter(|_| wanted.is_none());
        let common = left.and_then(|ensemble| ensemble.common.take());
        self.settle_turn(now, holder, Turn::Alone, wanted);
        common
    }

    /// It goes through all who wait: few flows of a host to one peer do, and hardly one gives up.
    fn wait_no_more(&mut self, now: Instant, slot: u32) {
        let Some(between) = self.between(slot) else { return };
        if let Some(ensemble) = self.ensembles.all.get_mut(&between) {
            ensemble.waiting.retain(|waiting| *waiting != slot);
        }
        self.set_turn(slot, Turn::Free);
        self.tell_holder(now, between);
    }

    /// The holder's turn is over. Where it wants another one it comes after those who wait.
    fn give_back(&mut self, now: Instant, slot: u32, wanted: Option<Seq>) {
        self.ensembles.deadlines.set(slot, Instant::FAR);
        let Some(between) = self.between(slot) else { return };
        debug_assert_eq!(
            self.ensembles.all.get(&between).map(|all| all.holder),
            Some(slot),
            "only its holder gives back"
        );
        self.set_turn(slot, if wanted.is_some() { Turn::Waiting } else { Turn::Free });
        if wanted.is_some()
            && let Some(ensemble) = self.ensembles.all.get_mut(&between)
        {
            ensemble.waiting.push_back(slot);
        }
        let (mut skipped, mut holder) = (Vec::new(), None);
        while holder.is_none()
            && let Some(next) = self.ensembles.all.get_mut(&between).and_then(|all| all.waiting.pop_front())
        {
            if self.hand_turn_to(now, next, between) {
                holder = Some(next);
            } else {
                skipped.push(next);
            }
        }
        if holder.is_none() {
            self.ensembles.all.remove(&between);
        }
        // Whoever wants no turn any more may send without one.
        for slot in skipped.into_iter().chain(holder) {
            self.touch(now, slot);
        }
    }

    /// Whether it still wants one.
    fn hand_turn_to(&mut self, now: Instant, slot: u32, between: Between) -> bool {
        self.share(slot);
        let wanted = self.table.get(slot).and_then(|entry| entry.conn.wanted_turn(now));
        let (Some(train), Some(ensemble)) = (wanted, self.ensembles.all.get_mut(&between)) else {
            self.set_turn(slot, Turn::Free);
            return false;
        };
        (ensemble.holder, ensemble.train) = (slot, train);
        self.set_turn(slot, Turn::Alone);
        self.tell_holder(now, between);
        true
    }

    /// Whether others wait; from when on they do, its turn has a deadline.
    fn tell_holder(&mut self, now: Instant, between: Between) {
        let Some(ensemble) = self.ensembles.all.get(&between) else { return };
        let holder = ensemble.holder;
        let turn = if ensemble.waiting.is_empty() { Turn::Alone } else { Turn::Holding };
        let Some(entry) = self.table.get_mut(holder) else { return };
        match (entry.conn.turn(), turn) {
            (Some(Turn::Alone), Turn::Holding) => {
                self.ensembles.deadlines.set(holder, now + entry.conn.longest_turn());
            }
            (Some(Turn::Holding), Turn::Alone) => self.ensembles.deadlines.set(holder, Instant::FAR),
            _ => {}
        }
        entry.conn.set_turn(turn);
        self.check_ensemble(between);
    }

    /// What one finds out of the path all know. Whether the holder is to look at it.
    fn share(&mut self, slot: u32) -> bool {
        let Some(between) = self.between(slot) else { return false };
        let (Some(entry), Some(ensemble)) = (self.table.get_mut(slot), self.ensembles.all.get_mut(&between))
        else {
            return false;
        };
        entry.conn.share(&mut ensemble.common)
    }

    fn set_turn(&mut self, slot: u32, turn: Turn) {
        if let Some(entry) = self.table.get_mut(slot) {
            entry.conn.set_turn(turn);
        }
    }

    fn between(&self, slot: u32) -> Option<Between> {
        let entry = self.table.get(slot)?;
        Some((entry.link, entry.conn.flow.local.ip(), entry.conn.flow.remote.ip()))
    }

    fn ensemble_of(&mut self, slot: u32) -> Option<&mut Ensemble> {
        let between = self.between(slot)?;
        self.ensembles.all.get_mut(&between)
    }

    #[cfg(debug_assertions)]
    fn check_ensemble(&self, between: Between) {
        let Some(ensemble) = self.ensembles.all.get(&between) else { return };
        let turn_of = |slot: u32| self.table.get(slot).and_then(|entry| entry.conn.turn());
        let holders = if ensemble.waiting.is_empty() { Turn::Alone } else { Turn::Holding };
        assert_eq!(turn_of(ensemble.holder), Some(holders), "T1");
        // Thousands may wait: each of them is looked at when it comes, and when it is next.
        let ends = ensemble.waiting.front().into_iter().chain(ensemble.waiting.back());
        ends.for_each(|slot| assert_eq!(turn_of(*slot), Some(Turn::Waiting), "T1"));
        let has_deadline = self.ensembles.deadlines.get(ensemble.holder).is_some();
        assert_eq!(has_deadline, !ensemble.waiting.is_empty(), "T2");
    }

    #[cfg(not(debug_assertions))]
    #[expect(clippy::unused_self, reason = "the checks are for debug builds")]
    fn check_ensemble(&self, _: Between) {}
}
