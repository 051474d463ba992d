//! The seats of the proxy's table, and which flow gives way when there are no more.
//!
//! A flow sits briefly until both sides were seen and its agent can serve it; then its seat lasts. Brief seats are
//! given up before lasting ones, and those of the mobile with the most before those of others.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use hopwise_core::Instant;

use super::read::FlowKey;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seat {
    /// Since then.
    Brief(Instant),
    Lasting,
}

/// The seats of one mobile.
#[derive(Debug, Default)]
struct Held {
    brief: BTreeSet<(Instant, FlowKey)>,
    lasting: usize,
}

#[derive(Debug, Default)]
pub(super) struct Seats {
    mobiles: BTreeMap<IpAddr, Held>,
    /// Mobiles by their brief seats; of two with as many, the one whose oldest is older comes last.
    by_brief: BTreeSet<(usize, Reverse<Instant>, IpAddr)>,
    by_lasting: BTreeSet<(usize, IpAddr)>,
    brief: usize,
}

impl Seats {
    /// How many sit briefly.
    pub(super) fn brief(&self) -> usize {
        self.brief
    }

    pub(super) fn sit(&mut self, key: FlowKey, seat: Seat) {
        self.change(key.mobile.ip(), |held| match seat {
            Seat::Brief(since) => held.brief.insert((since, key)),
            Seat::Lasting => {
                held.lasting += 1;
                true
            }
        });
        self.brief += usize::from(seat != Seat::Lasting);
    }

    pub(super) fn leave(&mut self, key: FlowKey, seat: Seat) {
        self.change(key.mobile.ip(), |held| match seat {
            Seat::Brief(since) => held.brief.remove(&(since, key)),
            Seat::Lasting => {
                held.lasting -= 1;
                true
            }
        });
        self.brief -= usize::from(seat != Seat::Lasting);
    }

    pub(super) fn sit_briefly(&self) -> impl Iterator<Item = FlowKey> {
        self.mobiles.values().flat_map(|held| held.brief.iter().map(|(_, key)| *key))
    }

    /// The oldest brief seat of the mobile with the most.
    pub(super) fn first_to_go(&self) -> Option<FlowKey> {
        let (_, _, mobile) = self.by_brief.last()?;
        self.mobiles.get(mobile)?.brief.first().map(|(_, key)| *key)
    }

    /// The mobile with the most lasting seats, where it would still have as many as this one after giving it a seat.
    pub(super) fn has_too_many(&self, beside: IpAddr) -> Option<IpAddr> {
        let own = self.mobiles.get(&beside).map_or(0, |held| held.lasting);
        let (most, mobile) = self.by_lasting.last()?;
        (*most > own + 1).then_some(*mobile)
    }

    fn change(&mut self, mobile: IpAddr, change: impl FnOnce(&mut Held) -> bool) {
        let held = self.mobiles.entry(mobile).or_default();
        if let Some((oldest, _)) = held.brief.first() {
            self.by_brief.remove(&(held.brief.len(), Reverse(*oldest), mobile));
        }
        self.by_lasting.remove(&(held.lasting, mobile));
        let is_as_expected = change(held);
        debug_assert!(is_as_expected, "a seat is taken once and left once");
        if let Some((oldest, _)) = held.brief.first() {
            self.by_brief.insert((held.brief.len(), Reverse(*oldest), mobile));
        }
        if held.lasting > 0 {
            self.by_lasting.insert((held.lasting, mobile));
        } else if held.brief.is_empty() {
            self.mobiles.remove(&mobile);
        }
    }
}
