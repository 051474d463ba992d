//! The order of an ensemble's turns: short flows first, and each kind of flow in the order of its requests.
//!
//! A page that meets a long transfer would otherwise wait for a turn of that transfer after each of its own. FQ-CoDel
//! serves new flows first for the same reason (RFC 8290 §4.2).

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::Instant;

/// A flow is short until its peer has acknowledged this much since it last was idle.
const SHORT_BYTES: u64 = 256 << 10;
/// A flow that wanted no turn for this long was idle.
const IDLE: Duration = Duration::from_secs(1);
/// After this many turns of short flows in a row, a long one that waits has its turn.
const SHORT_IN_A_ROW: u8 = 3;

/// The waiting flows of an ensemble, by slot.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    short: VecDeque<u32>,
    long: VecDeque<u32>,
    /// Turns of short flows since a long one had its turn or none waited.
    in_a_row: u8,
}

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.short.is_empty() && self.long.is_empty()
    }

    pub(super) fn push(&mut self, slot: u32, is_short: bool) {
        let flows = if is_short { &mut self.short } else { &mut self.long };
        flows.push_back(slot);
    }

    /// Removes the flow that comes next.
    pub(super) fn pop(&mut self) -> Option<u32> {
        let is_long_due = self.short.is_empty() || self.in_a_row >= SHORT_IN_A_ROW;
        if is_long_due && let Some(slot) = self.long.pop_front() {
            self.in_a_row = 0;
            return Some(slot);
        }
        self.in_a_row = if self.long.is_empty() { 0 } else { self.in_a_row + 1 };
        self.short.pop_front()
    }

    /// Removes a flow. The search is linear: few flows wait, and they rarely give up.
    pub(super) fn remove(&mut self, slot: u32) {
        self.short.retain(|waiting| *waiting != slot);
        self.long.retain(|waiting| *waiting != slot);
    }

    /// The first and the last flow of each kind.
    #[cfg(debug_assertions)]
    pub(super) fn ends(&self) -> impl Iterator<Item = u32> {
        [self.short.front(), self.short.back(), self.long.front(), self.long.back()]
            .into_iter()
            .flatten()
            .copied()
    }
}

/// The data of a flow since it last was idle.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spell {
    /// The bytes that had been acknowledged before.
    bytes_before: u64,
    /// Since when it wants no turn; `None` while it wants one, and before it ever did.
    idle_since: Option<Instant>,
}

/// The flows that have wanted a turn.
pub(super) type Spells = BTreeMap<u32, Spell>;

impl Spell {
    /// The flow wants a turn.
    pub(super) fn go_on(&mut self, now: Instant, bytes_acked: u64) {
        if self.idle_since.take().is_some_and(|since| now >= since + IDLE) {
            self.bytes_before = bytes_acked;
        }
    }

    /// The flow wants no turn.
    pub(super) fn rest(&mut self, now: Instant) {
        self.idle_since.get_or_insert(now);
    }

    pub(super) fn is_short(&self, bytes_acked: u64) -> bool {
        bytes_acked - self.bytes_before < SHORT_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_flows_come_first_and_long_ones_have_every_fourth_turn() {
        let mut waiting = Waiting::default();
        waiting.push(9, false);
        let mut order = Vec::new();
        for nth in 0..8 {
            waiting.push(nth, true);
            let slot = waiting.pop().expect("two wait");
            order.push(slot);
            if slot == 9 {
                waiting.push(9, false);
            }
        }
        assert_eq!(order, [0, 1, 2, 9, 3, 4, 5, 9]);
    }

    #[test]
    fn flows_of_one_kind_come_in_the_order_of_their_requests() {
        for is_short in [false, true] {
            let mut waiting = Waiting::default();
            (0..6).for_each(|slot| waiting.push(slot, is_short));
            waiting.remove(2);
            let order: Vec<_> = std::iter::from_fn(|| waiting.pop()).collect();
            assert_eq!(order, [0, 1, 3, 4, 5]);
            assert!(waiting.is_empty());
        }
    }

    #[test]
    fn a_flow_is_short_again_once_it_was_idle() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut spell = Spell::default();
        spell.go_on(at(0), 0);
        assert!(spell.is_short(SHORT_BYTES - 1) && !spell.is_short(SHORT_BYTES));
        spell.rest(at(100));
        spell.rest(at(900));
        spell.go_on(at(1099), SHORT_BYTES);
        assert!(!spell.is_short(SHORT_BYTES), "it paused for less than a second");
        spell.rest(at(2000));
        spell.go_on(at(3000), 2 * SHORT_BYTES);
        assert!(spell.is_short(3 * SHORT_BYTES - 1));
    }
}
