//! Ensembles: connections of one host to one peer that take turns at sending (RFC 9040). One has a burst in flight; the
//! others wait until it ends. Short flows come next, and of each kind the one that has waited longest ([`Waiting`]).
//!
//! The owner of cwnd names the burst of a turn ([`EnsembleMember`](crate::agent::EnsembleMember)). A flow with another
//! kind of owner is in no ensemble. A turn ends with its burst, or when its connection may not send or has nothing to
//! send. While others wait it also has a deadline, so that a stalled holder starves no flow.
//!
//! Invariants (checked in debug builds wherever an ensemble changes)
//! - T1: the holder's turn is `Alone` if no flow waits, else `Holding`; each flow in the queue is `Waiting`.
//! - T2: the holder has a deadline exactly if a flow waits.

mod waiting;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry::{Occupied, Vacant};

use super::Endpoint;
use crate::agent::{HostPair, Turn};
use crate::timer_heap::TimerHeap;
use crate::{Instant, Seq};
use waiting::{Spells, Waiting};

pub(super) struct Ensembles {
    all: BTreeMap<HostPair, Ensemble>,
    /// The flows that have wanted a turn, by slot; `None` before there is one. A flow without turns costs nothing, and
    /// an endpoint without such flows little.
    spells: Option<Box<Spells>>,
    /// Deadlines of turns that others wait for, by their holders' slots.
    deadlines: TimerHeap,
}

/// An ensemble lasts as long as a flow wants a turn. A flow that has the turn alone is consulted only when another one
/// wants it, or when it may not send.
struct Ensemble {
    holder: u32,
    /// The burst of the turn.
    burst: Seq,
    waiting: Waiting,
}

impl Ensembles {
    pub(super) fn new() -> Ensembles {
        Ensembles { all: BTreeMap::new(), spells: None, deadlines: TimerHeap::new() }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.peek().map(|(at, _)| at)
    }
}

impl Endpoint {
    /// After a change of a connection with this turn, it requests another one, keeps it, or passes it on.
    #[inline(never)]
    pub(super) fn take_turn_of_member(&mut self, now: Instant, slot: u32, turn: Turn) {
        let Some(entry) = self.table.get(slot) else { return };
        if turn == Turn::Alone && entry.conn.may_use_turn() {
            // No other flow wants the turn.
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

    /// Removes a connection from its ensemble.
    pub(super) fn leave_ensemble(&mut self, now: Instant, slot: u32) {
        if let Some(turn) = self.table.get(slot).and_then(|entry| entry.conn.turn()) {
            self.settle_turn(now, slot, turn, None);
            self.ensembles.spells.as_mut().and_then(|spells| spells.remove(&slot));
        }
    }

    pub(super) fn end_overdue_turns(&mut self, now: Instant) {
        while let Some((due, slot)) = self.ensembles.deadlines.peek()
            && due <= now
        {
            // This deadline has passed, whatever follows.
            self.ensembles.deadlines.set(slot, Instant::FAR);
            let wanted = self.table.get(slot).and_then(|entry| entry.conn.wanted_turn(now));
            self.give_back(now, slot, wanted);
        }
    }

    fn settle_turn(&mut self, now: Instant, slot: u32, turn: Turn, wanted: Option<Seq>) {
        match (turn, wanted) {
            (Turn::Free, None) | (Turn::Waiting, Some(_)) => {}
            (Turn::Free, Some(burst)) => self.ask_for_turn(now, slot, burst),
            (Turn::Waiting, None) => self.wait_no_more(now, slot),
            (Turn::Alone | Turn::Holding, None) => self.give_back(now, slot, None),
            (Turn::Alone, Some(burst)) => {
                if let Some(ensemble) = self.ensemble_of(slot) {
                    ensemble.burst = burst;
                }
            }
            (Turn::Holding, Some(burst)) => {
                if self.ensemble_of(slot).is_some_and(|ensemble| ensemble.burst != burst) {
                    self.give_back(now, slot, wanted);
                }
            }
        }
    }

    fn ask_for_turn(&mut self, now: Instant, slot: u32, burst: Seq) {
        let Some(between) = self.between(slot) else { return };
        let is_successor = self.ask_lone_holder(now, between);
        let bytes_acked = self.bytes_acked(slot);
        let spells = self.ensembles.spells.get_or_insert_default();
        spells.entry(slot).or_default().go_on(now, bytes_acked);
        let is_short = self.is_short(slot);
        let turn = match self.ensembles.all.entry(between) {
            Vacant(place) => {
                place.insert(Ensemble { holder: slot, burst, waiting: Waiting::default() });
                if !is_successor {
                    self.begin_ensemble(slot);
                }
                // The last holder's news is newer than this flow's.
                self.set_turn(slot, Turn::Waiting);
                self.share(slot);
                Turn::Alone
            }
            Occupied(ensemble) => {
                ensemble.into_mut().waiting.push(slot, is_short);
                Turn::Waiting
            }
        };
        self.set_turn(slot, turn);
        self.tell_holder(now, between);
    }

    /// Consults a holder that had the turn alone. Its burst may have changed, or it needs no turn any more. Returns
    /// whether the turn passes to the flow that wants one.
    fn ask_lone_holder(&mut self, now: Instant, between: HostPair) -> bool {
        let lone = self.ensembles.all.get(&between).filter(|all| all.waiting.is_empty());
        let Some(holder) = lone.map(|ensemble| ensemble.holder) else { return false };
        self.share(holder);
        let wanted = self.table.get(holder).and_then(|entry| entry.conn.wanted_turn(now));
        self.settle_turn(now, holder, Turn::Alone, wanted);
        wanted.is_none()
    }

    /// Removes a waiting flow.
    fn wait_no_more(&mut self, now: Instant, slot: u32) {
        let Some(between) = self.between(slot) else { return };
        if let Some(ensemble) = self.ensembles.all.get_mut(&between) {
            ensemble.waiting.remove(slot);
        }
        self.rest(now, slot);
        self.tell_holder(now, between);
    }

    /// Ends the holder's turn. If it wants another one, the waiting flows come first.
    fn give_back(&mut self, now: Instant, slot: u32, wanted: Option<Seq>) {
        self.ensembles.deadlines.set(slot, Instant::FAR);
        let Some(between) = self.between(slot) else { return };
        debug_assert_eq!(
            self.ensembles.all.get(&between).map(|all| all.holder),
            Some(slot),
            "only its holder gives back"
        );
        if wanted.is_some() {
            self.set_turn(slot, Turn::Waiting);
            let is_short = self.is_short(slot);
            if let Some(ensemble) = self.ensembles.all.get_mut(&between) {
                ensemble.waiting.push(slot, is_short);
            }
        } else {
            self.rest(now, slot);
        }
        let (mut skipped, mut holder) = (Vec::new(), None);
        while holder.is_none()
            && let Some(next) = self.ensembles.all.get_mut(&between).and_then(|all| all.waiting.pop())
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
        // A flow that wants no turn may send without one.
        for slot in skipped.into_iter().chain(holder) {
            self.touch(now, slot);
        }
    }

    /// Returns whether the flow still wants the turn.
    fn hand_turn_to(&mut self, now: Instant, slot: u32, between: HostPair) -> bool {
        self.share(slot);
        let wanted = self.table.get(slot).and_then(|entry| entry.conn.wanted_turn(now));
        let (Some(burst), Some(ensemble)) = (wanted, self.ensembles.all.get_mut(&between)) else {
            self.rest(now, slot);
            return false;
        };
        (ensemble.holder, ensemble.burst) = (slot, burst);
        self.set_turn(slot, Turn::Alone);
        self.tell_holder(now, between);
        true
    }

    /// Sets the holder's turn by whether others wait. The deadline starts when the first one begins to wait.
    fn tell_holder(&mut self, now: Instant, between: HostPair) {
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

    /// Lets a flow of an ensemble share its knowledge of the path. Returns whether the holder should look at it.
    fn share(&mut self, slot: u32) -> bool {
        self.ensemble_of(slot).is_some()
            && self.table.get_mut(slot).is_some_and(|entry| entry.conn.share_path())
    }

    fn begin_ensemble(&mut self, slot: u32) {
        if let Some(entry) = self.table.get_mut(slot) {
            entry.conn.begin_ensemble();
        }
    }

    /// The flow wants no turn.
    fn rest(&mut self, now: Instant, slot: u32) {
        self.set_turn(slot, Turn::Free);
        if let Some(spell) = self.ensembles.spells.as_mut().and_then(|spells| spells.get_mut(&slot)) {
            spell.rest(now);
        }
    }

    fn is_short(&self, slot: u32) -> bool {
        let spell = self.ensembles.spells.as_ref().and_then(|spells| spells.get(&slot));
        spell.is_none_or(|spell| spell.is_short(self.bytes_acked(slot)))
    }

    fn bytes_acked(&self, slot: u32) -> u64 {
        self.table.get(slot).map_or(0, |entry| entry.conn.bytes_acked())
    }

    fn set_turn(&mut self, slot: u32, turn: Turn) {
        if let Some(entry) = self.table.get_mut(slot) {
            entry.conn.set_turn(turn);
        }
    }

    fn between(&self, slot: u32) -> Option<HostPair> {
        let entry = self.table.get(slot)?;
        let (local, peer) = (entry.conn.ends().local.ip, entry.conn.ends().remote.ip);
        Some(HostPair { link: entry.link as usize, local, peer })
    }

    fn ensemble_of(&mut self, slot: u32) -> Option<&mut Ensemble> {
        let between = self.between(slot)?;
        self.ensembles.all.get_mut(&between)
    }

    #[cfg(debug_assertions)]
    fn check_ensemble(&self, between: HostPair) {
        let Some(ensemble) = self.ensembles.all.get(&between) else { return };
        let turn_of = |slot: u32| self.table.get(slot).and_then(|entry| entry.conn.turn());
        let holders = if ensemble.waiting.is_empty() { Turn::Alone } else { Turn::Holding };
        assert_eq!(turn_of(ensemble.holder), Some(holders), "T1");
        // Thousands may wait: each one is checked when it joins, and when it is next.
        ensemble.waiting.ends().for_each(|slot| assert_eq!(turn_of(slot), Some(Turn::Waiting), "T1"));
        let has_deadline = self.ensembles.deadlines.get(ensemble.holder).is_some();
        assert_eq!(has_deadline, !ensemble.waiting.is_empty(), "T2");
    }

    #[cfg(not(debug_assertions))]
    #[expect(clippy::unused_self, reason = "the checks are for debug builds")]
    fn check_ensemble(&self, _: HostPair) {}
}
