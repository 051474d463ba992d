//! The share of the queue that a flow takes beside flows that fill every queue.
//!
//! Flows of the own kind let only a few segments queue, however many flows there are. A queue far beyond that belongs
//! to others, and its path is never empty. Waiting for an empty path would cost the flow its share and win nothing.
//! While the crowd lasts, the flow keeps in flight a part of what the others have queued. This is less than theirs, so
//! it ends with them: flows that take such shares beside each other lower them with each train.

use super::constants::{FLOWING_QUEUE, SHARE, TRAINS};

/// The share is no more than the longest train, and never nothing.
const MOST_SHARE: f64 = 64.0;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crowd {
    /// Segments that others have in the queue.
    others: f64,
    /// Trains in a row that contradict the current state.
    contrary: u32,
    share: Option<f64>,
}

impl Crowd {
    /// Segments to keep in flight while others fill the queue.
    pub(super) fn share(&self) -> Option<f64> {
        self.share
    }

    /// A train found `queued` segments in the queue, of which `own` could be its own.
    pub(super) fn take(&mut self, queued: f64, own: f64) {
        let others = (queued - self.share.unwrap_or(own)).max(0.0);
        self.others += (others - self.others) / f64::from(TRAINS);
        let is_contrary = match self.share {
            None => others > FLOWING_QUEUE,
            Some(_) => others < 0.5 * FLOWING_QUEUE,
        };
        self.contrary = if is_contrary { self.contrary + 1 } else { 0 };
        if self.contrary == TRAINS {
            self.contrary = 0;
            if self.share.take().is_some() {
                return;
            }
            self.others = others;
        } else if self.share.is_none() {
            return;
        }
        self.share = Some((SHARE * self.others).clamp(1.0, MOST_SHARE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_taken_after_eight_trains_that_met_a_queue_of_others() {
        let mut crowd = Crowd::default();
        (0..7).for_each(|_| crowd.take(43.0, 3.0));
        assert_eq!(crowd.share(), None);
        crowd.take(15.0, 3.0);
        (0..7).for_each(|_| crowd.take(43.0, 3.0));
        assert_eq!(crowd.share(), None, "eight in a row");
        crowd.take(43.0, 3.0);
        assert_eq!(crowd.share(), Some(32.0), "0.8 of the forty that are not its own");
    }

    /// The flow's own segments in the queue do not keep its share alive.
    #[test]
    fn a_share_ends_when_the_others_have_gone() {
        let mut crowd = Crowd::default();
        (0..8).for_each(|_| crowd.take(43.0, 3.0));
        (0..50).for_each(|_| crowd.take(40.0 + crowd.share().expect("a share"), 3.0));
        (0..8).for_each(|_| crowd.take(2.0 + crowd.share().expect("a share"), 3.0));
        assert_eq!(crowd.share(), None);
    }

    #[test]
    fn flows_that_took_shares_beside_others_let_each_other_go() {
        let mut crowds = [Crowd::default(); 2];
        for crowd in &mut crowds {
            (0..8).for_each(|_| crowd.take(63.0, 3.0));
        }
        for _ in 0..120 {
            let queued = crowds.iter().map(|crowd| crowd.share().unwrap_or(4.0)).sum();
            crowds.iter_mut().for_each(|crowd| crowd.take(queued, 4.0));
        }
        assert!(crowds.iter().all(|crowd| crowd.share().is_none()), "{crowds:?}");
    }

    #[test]
    fn a_share_is_never_more_than_a_train() {
        let mut crowd = Crowd::default();
        (0..12).for_each(|_| crowd.take(1e12, 3.0));
        assert_eq!(crowd.share(), Some(MOST_SHARE));
    }
}
