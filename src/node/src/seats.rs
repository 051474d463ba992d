//! Seats bound the clients of a service, and the clients of one source. Without a free seat, one client makes room for
//! the next one. It is the quietest, once it has carried nothing for long. Else it is the quietest of the source with
//! the most clients, if that has at least two more than the newcomer's. For a source that has its bound, only the first
//! rule holds, and only among its own clients.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use hopwise_core::millis;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::origin::{Origin, Sharer};

#[derive(Debug)]
pub(crate) struct Seats {
    /// The number of seats, and the number for one source.
    most: usize,
    per_source: usize,
    taken: Mutex<Vec<Weak<Sitter>>>,
    /// The time for which a client may carry nothing while another client needs its seat.
    patience: Duration,
    /// The number of clients that were asked to make room.
    gave_way: AtomicU64,
    began: Instant,
}

/// The seat of one client, free when this is dropped, or as soon as the client is told to go.
#[derive(Debug)]
pub(crate) struct Seat(Arc<Sitter>);

#[derive(Debug)]
pub(crate) struct Sitter {
    /// The last time that data moved in either direction, in milliseconds since `began`.
    moved_at: AtomicU64,
    origin: Origin,
    began: Instant,
    is_told_to_go: AtomicBool,
    go: Notify,
}

impl Seats {
    /// Without a bound for a source that is less than all seats, one alone may have all of them.
    pub(crate) fn new(most: usize, patience: Duration, per_source: Option<usize>) -> Seats {
        let per_source = per_source.filter(|bound| *bound < most).unwrap_or(usize::MAX);
        let (taken, gave_way, began) = (Mutex::default(), AtomicU64::new(0), Instant::now());
        Seats { most, per_source, taken, patience, gave_way, began }
    }

    /// The taken seats, all seats, and the clients that were asked to make room.
    pub(super) fn counts(&self) -> [u64; 3] {
        let taken = staying(&mut self.taken.lock()).len();
        [taken as u64, self.most as u64, self.gave_way.load(Ordering::Relaxed)]
    }

    /// A seat for a client from there, unless all clients have a right to theirs.
    pub(crate) fn take(&self, from: impl Into<Origin>) -> Option<Seat> {
        let from = from.into();
        let mut taken = self.taken.lock();
        let crowd = SeatedClients::of(staying(&mut taken));
        if crowd.sitters.len() >= self.most || self.has_its_bound(&crowd, from) {
            self.makes_room(&crowd, from)?.tell_to_go();
            self.gave_way.fetch_add(1, Ordering::Relaxed);
        }
        Some(self.sit(&mut taken, from))
    }

    /// A free seat for a client from there. No other client makes room for it, so that each client leaves room for the
    /// next one.
    pub(super) fn take_free(&self, from: impl Into<Origin>) -> Option<Seat> {
        let from = from.into();
        let mut taken = self.taken.lock();
        let crowd = SeatedClients::of(staying(&mut taken));
        let free = self.most.saturating_sub(crowd.sitters.len());
        let has_room = crowd.counts.leave_room(from, free) && !self.has_its_bound(&crowd, from);
        has_room.then(|| self.sit(&mut taken, from))
    }

    fn sit(&self, taken: &mut Vec<Weak<Sitter>>, from: Origin) -> Seat {
        let sitter = Arc::new(Sitter {
            moved_at: AtomicU64::new(millis(self.began.elapsed())),
            origin: from,
            began: self.began,
            is_told_to_go: AtomicBool::new(false),
            go: Notify::new(),
        });
        taken.push(Arc::downgrade(&sitter));
        Seat(sitter)
    }

    fn has_its_bound(&self, crowd: &SeatedClients, from: Origin) -> bool {
        crowd.counts.at(from).0 >= self.per_source
    }

    fn makes_room(&self, crowd: &SeatedClients, from: Origin) -> Option<Arc<Sitter>> {
        let is_bound = self.has_its_bound(crowd, from);
        let rivals = crowd.sitters.iter().filter(|rival| !is_bound || rival.origin.sharer() == from.sharer());
        let latest = millis(self.began.elapsed()).checked_sub(millis(self.patience));
        let quiet =
            rivals.min_by_key(|rival| rival.moved_at()).filter(|rival| Some(rival.moved_at()) <= latest);
        if is_bound { quiet.cloned() } else { quiet.or_else(|| crowd.quietest_of_most(from)).cloned() }
    }
}

/// The clients that were not told to go.
fn staying(taken: &mut Vec<Weak<Sitter>>) -> Vec<Arc<Sitter>> {
    let mut sitters = Vec::with_capacity(taken.len());
    taken.retain(|sitter| {
        let stays = sitter.upgrade().filter(|sitter| !sitter.is_told());
        let is_there = stays.is_some();
        sitters.extend(stays);
        is_there
    });
    sitters
}

/// The clients with seats, the first one first, and the numbers of each source and of each address.
#[derive(Debug)]
struct SeatedClients {
    sitters: Vec<Arc<Sitter>>,
    counts: ClientCounts,
}

impl SeatedClients {
    fn of(sitters: Vec<Arc<Sitter>>) -> SeatedClients {
        let counts = ClientCounts::of(sitters.iter().map(|sitter| sitter.origin));
        SeatedClients { sitters, counts }
    }

    /// The client of the source with the most that has to make room for one from there. All nodes of a mesh may be one
    /// /64: within a source, addresses count likewise.
    fn quietest_of_most(&self, from: Origin) -> Option<&Arc<Sitter>> {
        let (of_source, of_address) = self.counts.weight(from);
        let gains = |own: usize, of_other: usize| own.checked_add(2).is_some_and(|own| own <= of_other);
        let may_go = |other: Origin| {
            let (source, address) = self.counts.weight(other);
            gains(of_source, source) || other.sharer() == from.sharer() && gains(of_address, address)
        };
        // `max_by_key` takes the last of equal ones: the first that came.
        let may_go = self.sitters.iter().rev().filter(|sitter| may_go(sitter.origin));
        may_go.max_by_key(|sitter| (self.counts.weight(sitter.origin), Reverse(sitter.moved_at())))
    }
}

impl Seat {
    pub(crate) fn sitter(&self) -> &Sitter {
        &self.0
    }
}

impl Sitter {
    pub(super) fn origin(&self) -> Origin {
        self.origin
    }

    fn tell_to_go(&self) {
        self.is_told_to_go.store(true, Ordering::Relaxed);
        self.go.notify_one();
    }

    /// Returns whether it was asked to make room for another client.
    pub(crate) fn is_told(&self) -> bool {
        self.is_told_to_go.load(Ordering::Relaxed)
    }

    /// Notes that data moved in either direction.
    pub(crate) fn moves(&self) {
        self.moved_at.store(self.now(), Ordering::Relaxed);
    }

    /// Ends when no data has moved for so long.
    pub(super) async fn quiet_for(&self, time: Duration) {
        loop {
            let quiet = Duration::from_millis(self.now().saturating_sub(self.moved_at()));
            let Some(left) = time.checked_sub(quiet).filter(|left| !left.is_zero()) else { return };
            sleep(left).await;
        }
    }

    fn moved_at(&self) -> u64 {
        self.moved_at.load(Ordering::Relaxed)
    }

    /// Ends when another client needs the seat.
    pub(crate) async fn told_to_go(&self) {
        self.go.notified().await;
    }

    fn now(&self) -> u64 {
        millis(self.began.elapsed())
    }
}

// Finds the client that takes the most of a shared resource.

/// Number of clients of each client's source, and of its address. A network of many hosts is one source; the second
/// number finds the host that takes the most there.
pub(super) fn weights(clients: impl Iterator<Item = Origin> + Clone) -> Vec<(usize, usize)> {
    let counts = ClientCounts::of(clients.clone());
    clients.map(|client| counts.weight(client)).collect()
}

/// The number of clients of each source, and of each address.
#[derive(Debug, Default)]
pub(super) struct ClientCounts {
    sources: BTreeMap<Sharer, usize>,
    addresses: BTreeMap<Origin, usize>,
}

impl ClientCounts {
    pub(super) fn of(clients: impl Iterator<Item = Origin>) -> ClientCounts {
        let mut counts = ClientCounts::default();
        for client in clients {
            *counts.sources.entry(client.sharer()).or_default() += 1;
            *counts.addresses.entry(client).or_default() += 1;
        }
        counts
    }

    /// The counts of a client's source, and of its address.
    pub(super) fn at(&self, client: Origin) -> (usize, usize) {
        let of_source = self.sources.get(&client.sharer()).copied().unwrap_or(0);
        (of_source, self.addresses.get(&client).copied().unwrap_or(0))
    }

    /// Returns whether a client may take something of which so many are free, so that other clients find some, too. It
    /// may not once the mean of its source's and its address's number is as much as what is free. One address thus gets
    /// half of all, and all addresses of a source two thirds.
    pub(super) fn leave_room(&self, client: Origin, free: usize) -> bool {
        let (of_source, of_address) = self.at(client);
        of_source + of_address < 2 * free
    }

    /// The same, as it weighs against other clients. A client of this machine without a known user may be any user's
    /// second one. It counts as if it had the most, and gives way first.
    pub(super) fn weight(&self, client: Origin) -> (usize, usize) {
        if client == Origin::Unknown { (usize::MAX, usize::MAX) } else { self.at(client) }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const PATIENCE: Duration = Duration::from_secs(30);
    const SECOND: Duration = Duration::from_secs(1);

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    /// Takes seats from these addresses, one a second.
    async fn taken(seats: &Seats, from: &[&str]) -> Vec<Seat> {
        let mut taken = Vec::new();
        for from in from {
            taken.push(seats.take(ip(from)).expect("free"));
            sleep(SECOND).await;
        }
        taken
    }

    /// Takes a seat for each of these, and returns whether another client then gets one, and which of them goes.
    async fn given(from: &[&str], asks: &str) -> (bool, Option<usize>) {
        let seats = Seats::new(from.len(), PATIENCE, None);
        let taken = taken(&seats, from).await;
        let seat = seats.take(ip(asks));
        (seat.is_some(), taken.iter().position(|seat| seat.sitter().is_told()))
    }

    #[tokio::test(start_paused = true)]
    async fn the_quietest_makes_room_once_it_has_carried_nothing_for_long() {
        let seats = Seats::new(2, PATIENCE, None);
        let (busy, quiet) = (seats.take(HERE).expect("free"), seats.take(HERE).expect("free"));
        sleep(PATIENCE - SECOND).await;
        busy.sitter().moves();
        assert!(seats.take(HERE).is_none(), "not for long enough");
        sleep(SECOND).await;
        let _next = seats.take(HERE).expect("one is quiet");
        quiet.sitter().told_to_go().await;
        assert!(seats.take(HERE).is_none(), "neither of the two is quiet");
        drop(busy);
        assert!(seats.take(HERE).is_some());
        assert_eq!(seats.counts(), [1, 2, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_gets_no_more_than_its_bound_however_many_seats_are_free() {
        let seats = Seats::new(8, PATIENCE, Some(2));
        let other = seats.take(ip("10.7.0.8")).expect("free");
        let own = taken(&seats, &["10.7.0.9", "10.7.0.9"]).await;
        assert!(seats.take(ip("10.7.0.9")).is_none() && seats.take_free(ip("10.7.0.9")).is_none());
        sleep(PATIENCE).await;
        assert!(seats.take_free(ip("10.7.0.9")).is_none());
        let _next = seats.take(ip("10.7.0.9")).expect("one of its own is quiet");
        assert!(own[0].sitter().is_told() && !other.sitter().is_told());
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_with_two_more_makes_room_for_another_source() {
        let seats = Seats::new(4, PATIENCE, None);
        let greedy = taken(&seats, &["127.0.0.1"; 4]).await;
        assert!(seats.take(HERE).is_none() && seats.take_free(ip("10.7.0.9")).is_none());
        let _given =
            [seats.take(ip("10.7.0.9")), seats.take(ip("10.7.0.9"))].map(|seat| seat.expect("it has less"));
        assert_eq!(greedy.iter().filter(|seat| seat.sitter().is_told()).count(), 2);
        assert!(greedy[0].sitter().is_told() && greedy[1].sitter().is_told());
        assert!(seats.take(ip("10.7.0.9")).is_none(), "both have two");
    }

    /// Sources of free seats may be made up: nobody makes room for them.
    #[tokio::test(start_paused = true)]
    async fn whoever_takes_free_seats_leaves_some_for_other_addresses_and_for_other_sources() {
        for (sources, given) in [
            (["10.1.0.2", "10.1.0.3", "10.1.0.4", "10.1.0.5", "10.1.0.6", "10.1.0.7"], [12, 6, 3, 2, 1, 0]),
            (["fd01::2", "fd01::3", "fd01::4", "fd01::5", "fd02::2", "10.1.0.2"], [12, 3, 1, 0, 4, 2]),
        ] {
            let (seats, mut all) = (Seats::new(24, PATIENCE, None), Vec::new());
            let taken = sources.map(|from| {
                let before = all.len();
                all.extend(std::iter::from_fn(|| seats.take_free(ip(from))));
                all.len() - before
            });
            assert_eq!(taken, given, "{sources:?}");
            assert_eq!(seats.counts()[2], 0, "nobody goes");
        }
    }

    /// A machine with an address of each family is two sources.
    #[tokio::test(start_paused = true)]
    async fn two_sources_with_half_of_the_seats_each_keep_no_third_out() {
        let seats = Seats::new(12, PATIENCE, None);
        let greedy = taken(&seats, &["10.7.0.2", "fd07::2"].repeat(6)).await;
        let mut given = Vec::new();
        for (nth, goes) in greedy.iter().enumerate().take(4) {
            given.push(seats.take(ip("10.9.0.1")).expect("one makes room"));
            assert!(goes.sitter().is_told(), "{nth}");
        }
        for source in ["10.9.0.1", "10.7.0.2", "fd07::2"] {
            assert!(seats.take(ip(source)).is_none(), "all three have four: {source}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_with_many_addresses_has_one_share() {
        let network = ["fd66::1", "fd66::2", "fd66::3", "fd66::4"];
        assert_eq!(given(&network, "fd09::2").await, (true, Some(0)));
        assert_eq!(given(&network, "fd66::5").await, (false, None), "it is the same source");
        let loopback = ["127.0.0.1", "127.1.0.1", "127.2.0.1", "::1"];
        assert_eq!(given(&loopback, "10.7.0.9").await, (true, Some(0)));
        assert_eq!(given(&loopback, "127.3.0.1").await, (false, None));
    }

    /// As in a mesh whose nodes are one /64.
    #[tokio::test(start_paused = true)]
    async fn an_address_with_two_more_goes_before_others_of_its_source() {
        let taken = ["fd07::2", "fd07::3", "fd07::3", "fd07::3"];
        for asks in ["fd07::4", "fd09::2"] {
            assert_eq!(given(&taken, asks).await, (true, Some(1)), "{asks}");
        }
        assert_eq!(given(&taken, "fd07::3").await, (false, None));
    }

    #[tokio::test(start_paused = true)]
    async fn users_of_this_machine_are_a_source_each_and_clients_of_unknown_users_give_way_first() {
        let (own, other) = (Origin::User(1000), Origin::User(1001));
        let seats = Seats::new(3, PATIENCE, None);
        let _taken = [seats.take(own).expect("free"), seats.take(own).expect("free")];
        let unknown = seats.take(Origin::Unknown).expect("free");
        assert!(seats.take(Origin::Unknown).is_none());
        let _given = seats.take(other).expect("one makes room");
        assert!(unknown.sitter().is_told());
        assert_eq!(seats.counts(), [3, 3, 1]);
        assert!(seats.take(own).is_none() && seats.take(other).is_none());
        let seats = Seats::new(2, PATIENCE, None);
        let _taken = [seats.take(HERE).expect("free"), seats.take(HERE).expect("free")];
        let _given = seats.take(Origin::Local).expect("one makes room");
        assert!(seats.take(Origin::Local).is_none(), "all of them are one source");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_for_which_nothing_is_carried_is_quiet() {
        let seats = Seats::new(1, PATIENCE, None);
        let only = seats.take(HERE).expect("free");
        let began = Instant::now();
        let moves = async {
            sleep(Duration::from_secs(50)).await;
            only.sitter().moves();
        };
        tokio::join!(only.sitter().quiet_for(Duration::from_secs(60)), moves);
        assert_eq!(began.elapsed().as_secs(), 110);
    }
}
