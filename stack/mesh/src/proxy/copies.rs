//! How often an ACK has left a base station.
//!
//! Invariant P3: of each ACK at most two copies leave, one that is written anew counted by its number and window.

use hopwise_core::Seq;
use hopwise_core::agent::Told;

/// Of each ACK, the mobile's own among them.
const MOST_COPIES: u8 = 2;

/// How often an ACK has left: with the window as it was, and with it closed.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    open: u8,
    closed: u8,
}

/// How often the mobile's newest pure ACK has left, and of those written from it the one with the highest other number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Copies {
    own: Times,
    another: Option<Seq>,
    of_another: Times,
}

impl Copies {
    /// It went on once.
    pub(super) const SAID: Copies =
        Copies { own: Times { open: 1, closed: 0 }, another: None, of_another: Times { open: 0, closed: 0 } };

    /// As many of `wanted` as may leave with this number, where the ACK's own is `own`. A window is closed only while
    /// the ACK that opens it again may leave, too.
    pub(super) fn take(&mut self, wanted: u8, number: Seq, own: Seq, window: Told) -> u8 {
        let times = if number == own {
            &mut self.own
        } else {
            // Of one that has been passed by nobody knows any more how often it left.
            if self.another.is_some_and(|another| number < another) {
                return 0;
            }
            if self.another != Some(number) {
                (self.another, self.of_another) = (Some(number), Times::default());
            }
            &mut self.of_another
        };
        if window == Told::Zero && times.open >= MOST_COPIES {
            return 0;
        }
        let left = if window == Told::Zero { &mut times.closed } else { &mut times.open };
        let taken = wanted.min(MOST_COPIES.saturating_sub(*left));
        *left += taken;
        taken
    }

    /// Whether it may leave once more as it is.
    pub(super) fn take_own(&mut self) -> bool {
        let may_leave = self.own.open < MOST_COPIES;
        self.own.open += u8::from(may_leave);
        may_leave
    }
}
