//! Counts how often an ACK has left a base station.
//!
//! Invariant P3: of each ACK at most two copies leave, and of a held one that went out with its duplicates three. The
//! fourth would show a loss (RFC 5681 §3.2). A newly written one is counted by its number and window.

use hopwise_core::Seq;
use hopwise_core::agent::AdvertisedWindow;

/// The largest number of copies of an ACK, the mobile's own included.
const MOST_COPIES: u8 = 2;
/// The largest number of duplicates that go ahead of an ACK that waits.
pub(super) const MOST_DUPLICATES: u8 = 2;

/// The number of times that an ACK has left, with its own window and with a closed one.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    open: u8,
    closed: u8,
}

/// The copies of the mobile's newest pure ACK, and of the one written from it with the highest other number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Copies {
    own: Times,
    another: Option<Seq>,
    of_another: Times,
}

impl Copies {
    /// The ACK went on once.
    pub(super) const SAID: Copies =
        Copies { own: Times { open: 1, closed: 0 }, another: None, of_another: Times { open: 0, closed: 0 } };

    /// The ACK went on, behind so many of its duplicates.
    pub(super) fn said_behind(duplicates: u8) -> Copies {
        Copies { own: Times { open: 1 + duplicates, closed: 0 }, ..Copies::default() }
    }

    /// The number of `wanted` copies that may leave with this number; `own` is the number of the ACK itself. A window
    /// is closed only while the ACK that opens it again may leave, too.
    pub(super) fn take(&mut self, wanted: u8, number: Seq, own: Seq, window: AdvertisedWindow) -> u8 {
        let times = if number == own {
            &mut self.own
        } else {
            // The count of a number that was passed by is no longer known.
            if self.another.is_some_and(|another| number < another) {
                return 0;
            }
            if self.another != Some(number) {
                (self.another, self.of_another) = (Some(number), Times::default());
            }
            &mut self.of_another
        };
        if window == AdvertisedWindow::Zero && times.open >= MOST_COPIES {
            return 0;
        }
        let left = if window == AdvertisedWindow::Zero { &mut times.closed } else { &mut times.open };
        let taken = wanted.min(MOST_COPIES.saturating_sub(*left));
        *left += taken;
        taken
    }

    /// Returns whether it may leave once more as it is, and counts it.
    pub(super) fn take_own(&mut self) -> bool {
        let may_leave = self.own.open < MOST_COPIES;
        self.own.open += u8::from(may_leave);
        may_leave
    }
}
