//! A queue that sweeps out stale entries.

use std::collections::VecDeque;

/// A shorter queue is not worth sweeping.
const WORTH_SWEEPING: usize = 64;

/// Holds at most twice as many entries as were alive at the last sweep, or [`WORTH_SWEEPING`]. A sweep costs a constant
/// for each entry that came in since.
#[derive(Debug)]
pub(super) struct Swept<T> {
    queue: VecDeque<T>,
    sweep_at: usize,
}

impl<T> Swept<T> {
    pub(super) fn new() -> Swept<T> {
        Swept { queue: VecDeque::new(), sweep_at: WORTH_SWEEPING }
    }
    #[inline]
    pub(super) fn push_back(&mut self, entry: T, is_alive: impl FnMut(&T) -> bool) {
        if self.queue.len() >= self.sweep_at {
            self.sweep(is_alive);
        }
        self.queue.push_back(entry);
    }

    #[cold]
    fn sweep(&mut self, is_alive: impl FnMut(&T) -> bool) {
        self.queue.retain(is_alive);
        self.sweep_at = (2 * self.queue.len()).max(WORTH_SWEEPING);
    }

    /// Puts an entry that was just taken out at the end.
    pub(super) fn put_back(&mut self, entry: T) {
        self.queue.push_back(entry);
    }

    /// Puts an entry that was just taken out back to the front.
    pub(super) fn put_first(&mut self, entry: T) {
        self.queue.push_front(entry);
    }

    pub(super) fn pop_front(&mut self) -> Option<T> {
        self.queue.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stale_are_swept_out_and_the_living_keep_their_order() {
        let mut queue = Swept::new();
        for entry in 0..10_000 {
            queue.push_back(entry, |entry| entry % 1000 == 0);
            assert!(queue.queue.len() <= WORTH_SWEEPING + 1);
        }
        let living: Vec<_> =
            std::iter::from_fn(|| queue.pop_front()).filter(|entry| entry % 1000 == 0).collect();
        assert_eq!(living, [0, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000]);
    }

    #[test]
    fn a_queue_of_the_living_grows_without_being_swept_at_each_step() {
        let (mut queue, mut looked_at) = (Swept::new(), 0);
        for entry in 0..10_000 {
            queue.push_back(entry, |_| {
                looked_at += 1;
                true
            });
        }
        assert_eq!(queue.queue.len(), 10_000);
        assert!(looked_at <= 20_000, "{looked_at} looks");
    }
}
