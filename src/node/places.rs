//! Places of clients that have not sent their request yet. A new client always gets one. Without a free place, the
//! oldest client of the source with the most gives way.

use std::collections::VecDeque;

use tokio::task::AbortHandle;

use super::greed::weights;
use super::origin::Origin;

#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    /// The task of each client, by age.
    taken: VecDeque<(AbortHandle, Origin)>,
}

impl Places {
    pub(crate) fn new(most: usize) -> Places {
        Places { most, taken: VecDeque::new() }
    }

    /// Takes a place for the task of a client from there. Returns whether another client gave way.
    pub(crate) fn take(&mut self, task: AbortHandle, from: Origin) -> bool {
        self.taken.push_back((task, from));
        if self.taken.len() > self.most {
            self.taken.retain(|(task, _)| !task.is_finished());
        }
        if self.taken.len() > self.most {
            let weights = weights(self.taken.iter().map(|(_, from)| *from));
            // `max_by_key` takes the last of equal ones.
            let oldest = (0..weights.len()).rev().max_by_key(|nth| weights[*nth]);
            if let Some((task, _)) = oldest.and_then(|nth| self.taken.remove(nth)) {
                task.abort();
                return true;
            }
        }
        false
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
}
