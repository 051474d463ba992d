//! How often something may be done in a second.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::Instant;

const WINDOW: Duration = Duration::from_secs(1);

/// So many in every second that begins with the first of them; 0: as many as there are.
#[derive(Debug)]
pub(crate) struct Rate {
    most: u32,
    began: Instant,
    count: u32,
}

impl Rate {
    pub(crate) fn new(most: u32) -> Rate {
        Rate { most, began: Instant::ZERO, count: 0 }
    }

    /// Takes one, or says when there will be another.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Instant> {
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

/// Origins that are counted at once.
const MOST_ORIGINS: usize = 8_192;

/// What each node does in the second that began then.
#[derive(Debug, Default)]
pub(crate) struct Origins(BTreeMap<Ipv4Addr, (Instant, u32)>);

impl Origins {
    /// Counts one more, and says how many those are in its second.
    pub(crate) fn count(&mut self, now: Instant, origin: Ipv4Addr) -> u32 {
        if self.0.len() >= MOST_ORIGINS {
            self.0.retain(|_, (began, _)| now.since(*began) < WINDOW);
        }
        if self.0.len() >= MOST_ORIGINS && !self.0.contains_key(&origin) {
            return u32::MAX; // Thousands of origins in one second are a flood whoever they are.
        }
        let (began, count) = self.0.entry(origin).or_insert((now, 0));
        if now.since(*began) >= WINDOW {
            (*began, *count) = (now, 0);
        }
        *count += 1;
        *count
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
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
