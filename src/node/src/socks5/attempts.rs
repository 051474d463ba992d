//! Wrong passwords. After each one the next login of its source waits, twice as long as the one before.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::log_limit::LogLimit;
use crate::origin::{Origin, Sharer};

/// The pause after the first wrong password, and the longest one.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(3);
/// Logins of one source take turns, however many come at once. One that would wait longer is refused.
const TURN_WITHIN: Duration = Duration::from_secs(9);
/// A source without a wrong password for so long begins anew.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
/// The largest number of sources that are remembered. Beyond it the one is forgotten that was wrong first.
const MOST_SOURCES: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct Attempts {
    wrong: Mutex<BTreeMap<Sharer, Wrong>>,
    log: LogLimit,
}

/// The wrong passwords of a source.
#[derive(Clone, Copy, Debug)]
struct Wrong {
    pause: Duration,
    last: Instant,
    /// The time of the next turn.
    next: Instant,
}

impl Attempts {
    /// Waits for the turn of a login from there. Returns false if it comes too late.
    pub(super) async fn turn(&self, from: Origin) -> bool {
        let Some(at) = self.next(from.sharer()) else { return true };
        if at > Instant::now() + TURN_WITHIN {
            return false;
        }
        sleep_until(at).await;
        true
    }

    /// The time of the next turn of a source, which is taken unless it is too late.
    fn next(&self, source: Sharer) -> Option<Instant> {
        let (now, mut all) = (Instant::now(), self.wrong.lock());
        let wrong = all.get_mut(&source)?;
        if now.duration_since(wrong.last) >= FORGOTTEN_AFTER {
            all.remove(&source);
            return None;
        }
        let at = wrong.next.max(now);
        if at <= now + TURN_WITHIN {
            wrong.next = at + wrong.pause;
        }
        Some(at)
    }

    pub(super) fn was_wrong(&self, from: Origin) {
        if let Some(times) = self.log.due() {
            tracing::warn!(?from, times, "socks5: a wrong name or password");
        }
        let (now, mut all) = (Instant::now(), self.wrong.lock());
        if all.len() >= MOST_SOURCES && !all.contains_key(&from.sharer()) {
            let oldest = all.iter().min_by_key(|(_, wrong)| wrong.last).map(|(source, _)| *source);
            oldest.and_then(|oldest| all.remove(&oldest));
        }
        let wrong = all.entry(from.sharer()).or_insert(Wrong { pause: FIRST / 2, last: now, next: now });
        wrong.pause = LONGEST.min(wrong.pause * 2);
        wrong.next = wrong.next.max(now + wrong.pause);
        wrong.last = now;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::task::JoinSet;
    use tokio::time::sleep;

    use super::*;

    fn from(text: &str) -> Origin {
        Origin::from(text.parse::<std::net::IpAddr>().expect("an address"))
    }

    #[tokio::test(start_paused = true)]
    async fn each_wrong_password_makes_the_next_login_of_its_network_wait_longer() {
        let (attempts, began) = (Attempts::default(), Instant::now());
        let mut waited = Vec::new();
        for nth in 1..=8 {
            let before = began.elapsed();
            assert!(attempts.turn(from(&format!("fd07::{nth}"))).await);
            attempts.was_wrong(from(&format!("fd07::{nth}")));
            waited.push((began.elapsed() - before).as_millis());
        }
        assert_eq!(waited, [0, 100, 200, 400, 800, 1600, 3000, 3000]);
        let before = began.elapsed();
        assert!(attempts.turn(from("fd08::1")).await);
        assert_eq!(began.elapsed(), before, "another network does not wait");
        sleep(FORGOTTEN_AFTER).await;
        let before = began.elapsed();
        assert!(attempts.turn(from("fd07::1")).await);
        assert_eq!(began.elapsed(), before, "the source begins anew");
    }

    #[tokio::test(start_paused = true)]
    async fn logins_of_one_source_at_once_take_turns_and_the_last_ones_are_refused() {
        let attempts = Arc::new(Attempts::default());
        (0..9).for_each(|_| attempts.was_wrong(from("10.7.0.9")));
        let (began, mut logins) = (Instant::now(), JoinSet::new());
        for _ in 0..100 {
            let attempts = Arc::clone(&attempts);
            logins.spawn(async move { attempts.turn(from("10.7.0.9")).await });
        }
        let turns = logins.join_all().await.into_iter().filter(|turn| *turn).count();
        assert_eq!((turns, began.elapsed()), (3, 3 * LONGEST));
    }

    #[test]
    fn a_bounded_number_of_sources_is_remembered() {
        let attempts = Attempts::default();
        for nth in 0..2 * MOST_SOURCES {
            attempts.was_wrong(from(&format!("10.7.{}.{}", nth / 256, nth % 256)));
        }
        assert_eq!(attempts.wrong.lock().len(), MOST_SOURCES);
        assert!(attempts.next(from("10.7.0.1").sharer()).is_none());
    }
}
