//! The categories of a station that are not at hand (EDCA).
//!
//! A [`DcfStation`] holds the fields of the category at hand. Another one is taken up by an exchange of fields.

use std::mem;

use hopwise_core::queue::Category;

use super::mpdu::Mpdu;
use super::station::{Backoff, DcfStation, PacketInService};
use crate::frames::DrawnBackoff;
use crate::phy::Phy;

/// An exchange that has succeeded, whose TXOP may go on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Success {
    pub(super) of: Category,
    pub(super) at: u64,
    /// The end of its answer.
    pub(super) ended: u64,
}

/// A category that is put by. Its fields have the names of [`DcfStation`]'s.
#[derive(Debug, Default)]
pub(super) struct Contender {
    pub(super) category: Category,
    pub(super) service: Option<PacketInService>,
    mpdus: Vec<Mpdu>,
    slots_from: u64,
    slots: u32,
    drawn: Option<DrawnBackoff>,
    backoff: Backoff,
    is_undrawn: bool,
    cw: u16,
    cw_range: (u16, u16),
    short_tries: u8,
    long_tries: u8,
}

impl Contender {
    fn new(phy: &Phy, category: Category) -> Contender {
        let cw_range = phy.contention(category).cw;
        Contender { category, cw: cw_range.0, cw_range, ..Contender::default() }
    }
}

impl DcfStation {
    /// Exchanges the category at hand with one that was put by.
    pub(super) fn swap(&mut self, place: usize) {
        let other = &mut self.others[place];
        mem::swap(&mut self.category, &mut other.category);
        mem::swap(&mut self.service, &mut other.service);
        mem::swap(&mut self.mpdus, &mut other.mpdus);
        mem::swap(&mut self.slots_from, &mut other.slots_from);
        mem::swap(&mut self.slots, &mut other.slots);
        mem::swap(&mut self.drawn, &mut other.drawn);
        mem::swap(&mut self.backoff, &mut other.backoff);
        mem::swap(&mut self.is_undrawn, &mut other.is_undrawn);
        mem::swap(&mut self.cw, &mut other.cw);
        mem::swap(&mut self.cw_range, &mut other.cw_range);
        mem::swap(&mut self.short_tries, &mut other.short_tries);
        mem::swap(&mut self.long_tries, &mut other.long_tries);
    }

    pub(super) fn place_of(&self, category: Category) -> Option<usize> {
        self.others.iter().position(|other| other.category == category)
    }

    /// Takes a category in hand.
    pub(super) fn take_up(&mut self, phy: &Phy, category: Category) {
        if self.category == category {
            return;
        }
        let place = self.place_of(category).unwrap_or_else(|| {
            self.others.push(Contender::new(phy, category));
            self.others.len() - 1
        });
        self.swap(place);
    }

    /// When the backoff of the category at hand runs out, if it is running.
    pub(super) fn runs_out(&self, slot_ns: u32) -> Option<u64> {
        let is_running = self.backoff == Backoff::Running;
        is_running.then(|| self.slots_from + u64::from(self.slots) * u64::from(slot_ns))
    }
}
