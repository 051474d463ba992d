//! How often something may be done in a second.

use std::time::Duration;

use hopwise_core::Instant;

const WINDOW: Duration = Duration::from_secs(1);

/// So many in every second that begins with the first of them; 0: as many as there are.
#[derive(Debug)]
pub(super) struct Rate {
    most: u32,
    began: Instant,
    count: u32,
}

impl Rate {
    pub(super) fn new(most: u32) -> Rate {
        Rate { most, began: Instant::ZERO, count: 0 }
    }

    /// Takes one, or says when there will be another.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Instant> {
        if self.count == 0 || now.since(self.began) >= WINDOW {
            (self.began, self.count) = (now, 0);
        }
        if self.most > 0 && self.count >= self.most {
            return Err(self.began + WINDOW);
        }
        self.count += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_a_second_and_not_one_more() {
        let mut rate = Rate::new(10);
        let taken = (0..30).filter(|n| rate.take(Instant::from_millis(1_000 + n)).is_ok());
        assert_eq!(taken.count(), 10);
        assert_eq!(rate.take(Instant::from_millis(1_999)), Err(Instant::from_millis(2_000)));
        assert_eq!(rate.take(Instant::from_millis(2_000)), Ok(()));
    }
}
