//! Auto rate fallback (Kamerman and Monteban 1997). The rate rises after ten acknowledged frames in a row, or fifteen
//! since the last change. It falls after two unacknowledged frames in a row, or when the first one at a higher rate
//! fails.

const ENOUGH_GOOD: u8 = 10;
/// The paper's timer, counted in frames.
const ENOUGH_SENT: u8 = 15;
const ENOUGH_BAD: u8 = 2;

/// The state of one receiver's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ladder {
    to: u32,
    /// Steps below the profile's rate.
    pub(super) below: u8,
    good: u8,
    bad: u8,
    sent: u8,
    is_on_trial: bool,
}

impl Ladder {
    fn new(to: u32) -> Ladder {
        Ladder { to, below: 0, good: 0, bad: 0, sent: 0, is_on_trial: false }
    }

    pub(super) fn on_acknowledged(&mut self) {
        self.bad = 0;
        self.is_on_trial = false;
        self.good += 1;
        self.sent += 1;
        if self.below > 0 && (self.good >= ENOUGH_GOOD || self.sent >= ENOUGH_SENT) {
            self.step(self.below - 1);
            self.is_on_trial = true;
        }
        self.good = self.good.min(ENOUGH_GOOD);
        self.sent = self.sent.min(ENOUGH_SENT);
    }

    pub(super) fn on_unanswered(&mut self, lowest: u8) {
        self.good = 0;
        self.bad += 1;
        self.sent = (self.sent + 1).min(ENOUGH_SENT);
        if self.is_on_trial || self.bad >= ENOUGH_BAD {
            self.step((self.below + 1).min(lowest));
        }
    }

    fn step(&mut self, below: u8) {
        *self = Ladder { below, ..Ladder::new(self.to) };
    }
}

impl super::Station {
    pub(super) fn ladder(&self, to: u32) -> Option<&Ladder> {
        self.ladders.iter().find(|ladder| ladder.to == to)
    }

    pub(super) fn ladder_mut(&mut self, to: u32) -> &mut Ladder {
        let known = self.ladders.iter().position(|ladder| ladder.to == to);
        let index = known.unwrap_or_else(|| {
            self.ladders.push(Ladder::new(to));
            self.ladders.len() - 1
        });
        &mut self.ladders[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(ladder: &mut Ladder, outcomes: &str) -> u8 {
        for outcome in outcomes.chars() {
            match outcome {
                '+' => ladder.on_acknowledged(),
                _ => ladder.on_unanswered(3),
            }
        }
        ladder.below
    }

    #[test]
    fn two_in_a_row_go_down_and_ten_in_a_row_go_up() {
        let mut ladder = Ladder::new(1);
        assert_eq!(after(&mut ladder, "-+-+-"), 0, "never two in a row");
        assert_eq!(after(&mut ladder, "-"), 1);
        assert_eq!(after(&mut ladder, "+++++++++"), 1);
        assert_eq!(after(&mut ladder, "+"), 0);
    }

    #[test]
    fn the_first_at_a_higher_rate_is_on_trial() {
        let mut ladder = Ladder::new(1);
        assert_eq!(after(&mut ladder, "--++++++++++"), 0);
        assert_eq!(after(&mut ladder, "-"), 1);
        assert_eq!(after(&mut ladder, "+++++++++++"), 0);
        assert_eq!(after(&mut ladder, "-"), 0, "the trial was passed");
    }

    #[test]
    fn fifteen_frames_without_a_change_are_reason_enough_to_try() {
        let mut ladder = Ladder::new(1);
        assert_eq!(after(&mut ladder, "--"), 1);
        assert_eq!(after(&mut ladder, "+++-+++-+++-++"), 1);
        assert_eq!(after(&mut ladder, "+"), 0);
    }

    #[test]
    fn there_is_nothing_below_the_basic_rate() {
        assert_eq!(after(&mut Ladder::new(1), "--------------------"), 3);
    }
}
