//! Beside flows that fill every queue: what they keep in it, and the share that is taken there.
//!
//! Flows of the own kind let a few segments queue and no more, however many they are, so that a queue far beyond is
//! somebody else's, and its path is never empty: to wait for that costs the flow its share and wins nothing. While it
//! lasts as many segments are kept in flight as come to a part of what the others have there. Since that is less than
//! theirs it ends with them: flows that take such a share beside each other have less of it with each train.

/// Segments of others in the queue from which on it is crowded, and down to which it stays so.
const CROWDED: f64 = 16.0;
const EMPTIED: f64 = 8.0;
/// Trains in a row that must say so.
const CROWDED_TRAINS: u32 = 5;
const EMPTIED_TRAINS: u32 = 3;
/// Of what others have in the queue, so much is in flight.
const SHARE: f64 = 0.8;
const LEAST_SHARE: f64 = 2.0;
/// No more than the longest train.
const MOST_SHARE: f64 = 64.0;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crowd {
    /// Segments that others have in the queue.
    others: f64,
    /// Trains in a row that say that what is done now is wrong.
    contrary: u32,
    share: Option<f64>,
}

impl Crowd {
    /// Segments to keep in flight while others fill the queue.
    pub(super) fn share(&self) -> Option<f64> {
        self.share
    }

    /// A train found so many segments queued, and this many of the own could be among them.
    pub(super) fn take(&mut self, queued: f64, own: f64) {
        let others = (queued - self.share.unwrap_or(own)).max(0.0);
        self.others += (others - self.others) / 4.0;
        let (is_contrary, trains) = match self.share {
            None => (others > CROWDED, CROWDED_TRAINS),
            Some(_) => (others < EMPTIED, EMPTIED_TRAINS),
        };
        self.contrary = if is_contrary { self.contrary + 1 } else { 0 };
        if self.contrary == trains {
            self.contrary = 0;
            if self.share.take().is_some() {
                return;
            }
            self.others = others;
        } else if self.share.is_none() {
            return;
        }
        self.share = Some((SHARE * self.others).clamp(LEAST_SHARE, MOST_SHARE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_taken_after_five_trains_that_met_a_queue_of_others() {
        let mut crowd = Crowd::default();
        (0..4).for_each(|_| crowd.take(43.0, 3.0));
        assert_eq!(crowd.share(), None);
        crowd.take(15.0, 3.0);
        (0..4).for_each(|_| crowd.take(43.0, 3.0));
        assert_eq!(crowd.share(), None, "five in a row");
        crowd.take(43.0, 3.0);
        assert_eq!(crowd.share(), Some(32.0), "0.8 of the forty that are not its own");
    }

    /// What the flow has there itself keeps nothing alive.
    #[test]
    fn a_share_ends_when_the_others_have_gone() {
        let mut crowd = Crowd::default();
        (0..5).for_each(|_| crowd.take(43.0, 3.0));
        (0..50).for_each(|_| crowd.take(40.0 + crowd.share().expect("a share"), 3.0));
        (0..3).for_each(|_| crowd.take(2.0 + crowd.share().expect("a share"), 3.0));
        assert_eq!(crowd.share(), None);
    }

    #[test]
    fn flows_that_took_shares_beside_others_let_each_other_go() {
        let mut crowds = [Crowd::default(); 2];
        for crowd in &mut crowds {
            (0..5).for_each(|_| crowd.take(63.0, 3.0));
        }
        for _ in 0..60 {
            let queued = crowds.iter().map(|crowd| crowd.share().unwrap_or(4.0)).sum();
            crowds.iter_mut().for_each(|crowd| crowd.take(queued, 4.0));
        }
        assert!(crowds.iter().all(|crowd| crowd.share().is_none()), "{crowds:?}");
    }

    #[test]
    fn a_share_is_never_more_than_a_train() {
        let mut crowd = Crowd::default();
        (0..9).for_each(|_| crowd.take(1e12, 3.0));
        assert_eq!(crowd.share(), Some(MOST_SHARE));
    }
}
