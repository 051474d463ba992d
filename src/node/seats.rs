//! Seats at the proxy, and at each forward: so many clients at a time. Where none is free, one that does not take what
//! waits for it gives its own to the next; one that is merely quiet keeps it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

/// Who is told to go has little to do before it is gone; this is not up to its patience, which may be shorter.
const GONE_WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Seats {
    free: Arc<Semaphore>,
    taken: Mutex<Vec<Weak<Sitter>>>,
    /// How long a client may leave what waits for it, where others want its seat.
    patience: Duration,
    began: Instant,
}

/// One client's; free again when it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    sitter: Arc<Sitter>,
    _permit: OwnedSemaphorePermit,
}

#[derive(Debug)]
pub(super) struct Sitter {
    /// Since when something has waited for the client, in milliseconds since `began`; `NOTHING` if nothing does.
    waits_since: AtomicU64,
    began: Instant,
    is_told_to_go: AtomicBool,
    go: Notify,
}

const NOTHING: u64 = u64::MAX;

impl Seats {
    pub(super) fn new(count: usize, patience: Duration) -> Seats {
        let free = Arc::new(Semaphore::new(count));
        Seats { free, taken: Mutex::default(), patience, began: Instant::now() }
    }

    /// A seat, unless all are taken by clients that are quiet or read what comes.
    pub(super) async fn take(&self) -> Option<Seat> {
        match Arc::clone(&self.free).try_acquire_owned() {
            Ok(permit) => Some(self.seat(permit)),
            Err(_) if self.send_one_away() => self.take_within(GONE_WITHIN).await,
            Err(_) => None,
        }
    }

    /// A seat, however long it takes: whoever has one finishes, or is late some day.
    pub(super) async fn wait(&self) -> Seat {
        loop {
            if let Some(seat) = self.take().await {
                return seat;
            }
            if let Some(seat) = self.take_within(GONE_WITHIN).await {
                return seat;
            }
        }
    }

    async fn take_within(&self, time: Duration) -> Option<Seat> {
        let permit = timeout(time, Arc::clone(&self.free).acquire_owned()).await.ok()?.ok()?;
        Some(self.seat(permit))
    }

    fn seat(&self, permit: OwnedSemaphorePermit) -> Seat {
        let sitter = Arc::new(Sitter {
            waits_since: AtomicU64::new(NOTHING),
            began: self.began,
            is_told_to_go: AtomicBool::new(false),
            go: Notify::new(),
        });
        let mut taken = self.taken.lock();
        taken.retain(|sitter| sitter.strong_count() > 0);
        taken.push(Arc::downgrade(&sitter));
        Seat { sitter, _permit: permit }
    }

    /// Whether there was one whose patience is over; the one that has been waited for longest goes.
    fn send_one_away(&self) -> bool {
        let taken = self.taken.lock();
        let sitters = taken.iter().filter_map(Weak::upgrade);
        let stays = sitters.filter(|sitter| !sitter.is_told_to_go.load(Ordering::Relaxed));
        let Some(slowest) = stays.min_by_key(|sitter| sitter.waits_since.load(Ordering::Relaxed)) else {
            return false;
        };
        let latest = slowest.now().checked_sub(millis(self.patience));
        let is_over = latest.is_some_and(|latest| slowest.waits_since.load(Ordering::Relaxed) <= latest);
        if is_over {
            slowest.is_told_to_go.store(true, Ordering::Relaxed);
            slowest.go.notify_one();
        }
        is_over
    }
}

impl Seat {
    pub(super) fn sitter(&self) -> &Sitter {
        &self.sitter
    }
}

impl Sitter {
    /// Something waits for the client to take it.
    pub(super) fn waits(&self) {
        self.waits_since.store(self.now(), Ordering::Relaxed);
    }

    /// It has taken it.
    pub(super) fn has_taken(&self) {
        self.waits_since.store(NOTHING, Ordering::Relaxed);
    }

    /// Ends when the seat is wanted by somebody else.
    pub(super) async fn told_to_go(&self) {
        self.go.notified().await;
    }

    fn now(&self) -> u64 {
        millis(self.began.elapsed())
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(NOTHING - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn who_does_not_take_what_waits_for_it_gives_its_seat_to_the_next() {
        let seats = Seats::new(3, PATIENCE);
        let quiet = seats.take().await.expect("free");
        let (first, second) = (seats.take().await.expect("free"), seats.take().await.expect("free"));
        first.sitter().waits();
        tokio::time::sleep(Duration::from_secs(1)).await;
        second.sitter().waits();
        assert!(seats.take().await.is_none(), "it may still take it");
        tokio::time::sleep(PATIENCE).await;
        // Both are late; who is slowest goes first, and nobody is sent away twice.
        let mut kept = Vec::new();
        for late in [first, second] {
            let goes = async {
                late.sitter().told_to_go().await;
                drop(late);
            };
            let (next, ()) = tokio::join!(seats.take(), goes);
            kept.push(next.expect("a seat was given up"));
        }
        assert!(seats.take().await.is_none(), "nobody else is late");
        drop(quiet);
        assert!(seats.take().await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_seat_is_handed_over_however_short_the_patience_is() {
        let seats = Seats::new(1, Duration::from_millis(1));
        let late = seats.take().await.expect("free");
        late.sitter().waits();
        tokio::time::sleep(Duration::from_millis(2)).await;
        let goes = async {
            late.sitter().told_to_go().await;
            tokio::time::sleep(GONE_WITHIN / 2).await;
            drop(late);
        };
        let (next, ()) = tokio::join!(seats.take(), goes);
        assert!(next.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_gets_a_seat_as_soon_as_somebody_is_late_or_leaves() {
        let seats = Seats::new(1, PATIENCE);
        let late = seats.take().await.expect("free");
        late.sitter().waits();
        let began = Instant::now();
        let goes = async {
            late.sitter().told_to_go().await;
            drop(late);
        };
        let (next, ()) = tokio::join!(seats.wait(), goes);
        assert!((PATIENCE..PATIENCE + 2 * GONE_WITHIN).contains(&began.elapsed()));
        let leaves = async {
            tokio::time::sleep(PATIENCE).await;
            drop(next);
        };
        tokio::join!(seats.wait(), leaves);
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_it_in_time_keeps_its_seat() {
        let seats = Seats::new(1, PATIENCE);
        let only = seats.take().await.expect("free");
        for _ in 0..3 {
            only.sitter().waits();
            tokio::time::sleep(PATIENCE - Duration::from_secs(1)).await;
            only.sitter().has_taken();
            assert!(seats.take().await.is_none());
            tokio::time::sleep(PATIENCE).await;
        }
    }
}
