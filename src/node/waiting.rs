//! Clients that wait for a seat. Those of the sources with the fewest seats are seated first, however many others wait.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::greed::weights;
use super::origin::Origin;
use super::seats::{Seat, Seats};

/// The largest number of clients of a service that wait.
pub(super) const MOST_WAITING: usize = 256;
/// The pause between two attempts: a client may lose its right to its seat without any event.
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Waiting<C> {
    /// By arrival, the oldest first.
    clients: Mutex<VecDeque<(C, Origin)>>,
    came: Notify,
}

impl<C> Waiting<C> {
    pub(super) fn new() -> Waiting<C> {
        Waiting { clients: Mutex::default(), came: Notify::new() }
    }

    /// Returns a client that finds no room to wait: the newest of the source with the most.
    pub(super) fn join(&self, client: C, from: Origin) -> Option<C> {
        let mut clients = self.clients.lock();
        clients.push_back((client, from));
        self.came.notify_one();
        if clients.len() <= MOST_WAITING {
            return None;
        }
        let weights = weights(clients.iter().map(|(_, from)| *from));
        // `max_by_key` takes the last of equal ones.
        let (nth, _) = weights.iter().enumerate().max_by_key(|(_, weight)| **weight)?;
        clients.remove(nth).map(|(client, _)| client)
    }

    /// The next client that gets a seat, and the seat.
    pub(super) async fn next(&self, seats: &Seats) -> (C, Seat) {
        loop {
            let from: Vec<Origin> = self.clients.lock().iter().map(|(_, from)| *from).collect();
            if from.is_empty() {
                self.came.notified().await;
                continue;
            }
            let seat = match seats.first_of(from.into_iter()) {
                Some(from) => seats.take(from).await,
                None => None,
            };
            match seat {
                Some(seat) => {
                    if let Some(client) = self.leave(seat.sitter().origin()) {
                        return (client, seat);
                    }
                }
                None => {
                    tokio::select! {
                        _ = timeout(LOOK_EVERY, seats.freed()) => {}
                        () = self.came.notified() => {}
                    }
                }
            }
        }
    }

    fn leave(&self, from: Origin) -> Option<C> {
        let mut clients = self.clients.lock();
        let nth = clients.iter().position(|(_, other)| *other == from)?;
        clients.remove(nth).map(|(client, _)| client)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const HERE: Origin = Origin::Host(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));
    const PATIENCE: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_client_that_waits_is_seated_as_soon_as_another_is_late_or_leaves() {
        let (seats, waiting) = (Seats::new(1, PATIENCE, None), Waiting::new());
        let late = seats.take(HERE).await.expect("free");
        late.sitter().waits();
        let began = Instant::now();
        let goes = async {
            late.sitter().told_to_go().await;
            drop(late);
        };
        assert_eq!(waiting.join("first", HERE), None);
        let ((client, seat), ()) = tokio::join!(waiting.next(&seats), goes);
        assert_eq!(client, "first");
        assert!((PATIENCE..PATIENCE + 2 * LOOK_EVERY).contains(&began.elapsed()));
        let leaves = async {
            tokio::time::sleep(PATIENCE / 2).await;
            drop(seat);
        };
        assert_eq!(waiting.join("second", HERE), None);
        let began = Instant::now();
        let ((client, _seat), ()) = tokio::join!(waiting.next(&seats), leaves);
        assert_eq!((client, began.elapsed()), ("second", PATIENCE / 2));
    }

    /// As if a machine with an address of each family has half of the seats from each, and more clients waiting.
    #[tokio::test(start_paused = true)]
    async fn those_that_can_have_no_seat_yet_keep_no_other_waiting() {
        let (seats, waiting) = (Seats::new(6, PATIENCE, None), Waiting::new());
        let greedy = [Origin::from([10, 7, 0, 2]), Origin::from([10, 8, 0, 2])];
        let mut taken = Vec::new();
        for from in greedy.repeat(3) {
            taken.push(seats.take(from).await.expect("free"));
        }
        for (nth, from) in greedy.repeat(20).into_iter().chain([HERE, HERE]).enumerate() {
            assert_eq!(waiting.join(nth, from), None);
        }
        for client in [40, 41] {
            let goes = async {
                loop {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    let goes = taken.iter().position(|seat| seat.sitter().is_told());
                    if let Some(nth) = goes {
                        return drop(taken.remove(nth));
                    }
                }
            };
            let both = async { tokio::join!(waiting.next(&seats), goes) };
            let ((next, seat), ()) = timeout(PATIENCE / 2, both).await.expect("one makes room at once");
            assert_eq!(next, client);
            taken.push(seat);
        }
    }

    #[test]
    fn the_newest_of_the_source_with_the_most_finds_no_room() {
        let waiting = Waiting::new();
        let there = |host: usize| Origin::from([0xfd07, 0, 0, 0, 0, 0, 0, host as u16]);
        assert_eq!(waiting.join(0, HERE), None);
        for nth in 1..MOST_WAITING {
            assert_eq!(waiting.join(nth, there(nth)), None);
        }
        assert_eq!(waiting.join(1000, HERE), Some(MOST_WAITING - 1));
        assert_eq!(waiting.join(1001, there(1)), Some(1001), "its own source has the most");
        assert_eq!(waiting.join(1002, HERE), Some(MOST_WAITING - 2));
    }
}
