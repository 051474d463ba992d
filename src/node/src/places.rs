//! Places of clients that have not sent their request yet. A new client always gets one. Without a free place, the
//! oldest client of the source with the most gives way.
//!
//! A service whose clients may come in a burst waits for [`Places::room`] before it accepts the next one.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use super::origin::Origin;
use super::seats::weights;

/// The time that a client has, of a service that waits for room. An honest one takes milliseconds, however many come at
/// once; a flood that says nothing has a place this long.
const YOUNG: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    /// By age.
    taken: VecDeque<HeldPlace>,
}

#[derive(Debug)]
struct HeldPlace {
    task: AbortHandle,
    from: Origin,
    since: Instant,
}

impl Places {
    pub(crate) fn new(most: usize) -> Places {
        Places { most, taken: VecDeque::new() }
    }

    /// Takes a place for the task of a client from there. Returns whether another client gave way.
    pub(crate) fn take(&mut self, task: AbortHandle, from: Origin) -> bool {
        self.taken.push_back(HeldPlace { task, from, since: Instant::now() });
        let goes = self.goes(self.most + 1).and_then(|nth| self.taken.remove(nth));
        goes.inspect(|goes| goes.task.abort()).is_some()
    }

    /// Ends when a place is free, or the client that has to give way has had its time.
    pub(crate) async fn room(&mut self) {
        if let Some(nth) = self.goes(self.most) {
            sleep_until(self.taken[nth].since + YOUNG).await;
        }
    }

    /// The client that gives way, if there are `many` clients already.
    fn goes(&mut self, many: usize) -> Option<usize> {
        if self.taken.len() >= many {
            self.taken.retain(|place| !place.task.is_finished());
        }
        if self.taken.len() < many {
            return None;
        }
        let weights = weights(self.taken.iter().map(|place| place.from));
        // `max_by_key` takes the last of equal ones.
        (0..weights.len()).rev().max_by_key(|nth| weights[*nth])
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::task::JoinSet;
    use tokio::task::yield_now;

    use super::*;

    const HERE: [u8; 4] = [127, 0, 0, 1];

    /// The clients from these addresses that have given way in the end.
    async fn gone(most: usize, from: &[[u8; 4]]) -> Vec<usize> {
        let (mut tasks, mut places) = (JoinSet::new(), Places::new(most));
        let mut all = Vec::new();
        for from in from {
            let task = tasks.spawn(pending::<()>());
            all.push(task.clone());
            places.take(task, Origin::from(*from));
        }
        yield_now().await;
        (0..all.len()).filter(|nth| all[*nth].is_finished()).collect()
    }

    #[tokio::test]
    async fn the_oldest_of_the_source_with_the_most_gives_way() {
        assert_eq!(gone(3, &[HERE; 5]).await, [0, 1]);
        let there = [10, 7, 0, 9];
        assert_eq!(gone(3, &[there, HERE, HERE, HERE, HERE]).await, [1, 2]);
        assert_eq!(gone(3, &[there, [127, 0, 0, 1], [127, 0, 0, 2], [127, 0, 0, 3]]).await, [1]);
        assert_eq!(gone(2, &[[10, 7, 0, 1], [10, 7, 0, 2], [10, 7, 0, 3]]).await, [0]);
    }

    #[tokio::test]
    async fn a_place_is_free_when_its_task_has_ended() {
        let (mut tasks, mut places) = (JoinSet::new(), Places::new(1));
        for _ in 0..3 {
            places.take(tasks.spawn(async {}), Origin::from(HERE));
            assert!(tasks.join_next().await.expect("a task").is_ok());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_one_waits_while_the_client_that_would_go_is_young_and_none_ends() {
        let (mut tasks, mut places) = (JoinSet::new(), Places::new(2));
        let began = Instant::now();
        let ends_after = |time| async move { tokio::time::sleep(time).await };
        places.take(tasks.spawn(pending::<()>()), Origin::from(HERE));
        places.room().await;
        assert_eq!(began.elapsed(), Duration::ZERO, "a place is free");
        places.take(tasks.spawn(ends_after(YOUNG / 2)), Origin::from(HERE));
        tokio::select! {
            () = places.room() => panic!("both are young"),
            ended = tasks.join_next() => assert!(ended.is_some_and(|ended| ended.is_ok())),
        }
        places.room().await;
        assert_eq!(began.elapsed(), YOUNG / 2);
        assert!(!places.take(tasks.spawn(pending::<()>()), Origin::from(HERE)));
        places.room().await;
        assert_eq!(began.elapsed(), YOUNG);
        assert!(places.take(tasks.spawn(pending::<()>()), Origin::from(HERE)), "the silent one gives way");
    }
}
