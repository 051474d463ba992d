//! Seats at the proxy and at each forward bound the number of clients. Without a free seat, a client makes room for the
//! next one. It is one that leaves data unread, else one that was quiet for as long, else the quietest of the source
//! with the most.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};

use super::greed::Counts;
use super::origin::Origin;

/// The time within which a client that gives way is gone; its patience may be shorter.
const GONE_WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Seats {
    /// The number of seats.
    most: usize,
    free: Arc<Semaphore>,
    taken: Mutex<Vec<Weak<Sitter>>>,
    /// The time for which a client may leave data unread, or be quiet, while others need its seat.
    patience: Duration,
    /// A source or an address gets a seat of another one only while it has fewer than this.
    per_source: usize,
    /// The number of clients that were asked to make room.
    gave_way: AtomicU64,
    began: Instant,
}

/// The seat of one client, freed when it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    sitter: Arc<Sitter>,
    _permit: OwnedSemaphorePermit,
}

#[derive(Debug)]
pub(crate) struct Sitter {
    /// The time since which data has waited for the client, in milliseconds since `began`, or `NOTHING`.
    waits_since: AtomicU64,
    /// The last time that data moved in either direction.
    moved_at: AtomicU64,
    origin: Origin,
    began: Instant,
    is_told_to_go: AtomicBool,
    go: Notify,
}

const NOTHING: u64 = u64::MAX;

impl Seats {
    /// `per_source` is half of them by default.
    pub(crate) fn new(count: usize, patience: Duration, per_source: Option<usize>) -> Seats {
        let free = Arc::new(Semaphore::new(count));
        let per_source = per_source.unwrap_or(count.div_ceil(2));
        Seats {
            most: count,
            free,
            taken: Mutex::default(),
            patience,
            per_source,
            gave_way: AtomicU64::new(0),
            began: Instant::now(),
        }
    }

    /// The taken seats, all seats, and the clients that were asked to make room.
    pub(super) fn counts(&self) -> [u64; 3] {
        let taken = self.most.saturating_sub(self.free.available_permits());
        [taken as u64, self.most as u64, self.gave_way.load(Ordering::Relaxed)]
    }

    /// A seat for a client from there, unless all clients have a right to theirs.
    pub(crate) async fn take(&self, from: impl Into<Origin>) -> Option<Seat> {
        let from = from.into();
        match Arc::clone(&self.free).try_acquire_owned() {
            Ok(permit) => Some(self.seat(permit, from)),
            Err(_) if self.send_one_away(from) => self.take_within(GONE_WITHIN, from).await,
            Err(_) => None,
        }
    }

    /// A free seat for a client from there. No other client makes room for it.
    pub(super) fn take_free(&self, from: impl Into<Origin>) -> Option<Seat> {
        let permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        Some(self.seat(permit, from.into()))
    }

    /// Ends when a seat is free.
    pub(super) async fn freed(&self) {
        // It is never closed.
        let _ = self.free.acquire().await;
    }

    /// The first of these clients that would get a seat now. Clients of the sources with the fewest seats come first.
    pub(super) fn first_of(&self, clients: impl Iterator<Item = Origin>) -> Option<Origin> {
        let crowd = Crowd::of(self.stay(), self.per_source);
        let mut clients: Vec<Origin> = clients.collect();
        clients.sort_by_key(|client| crowd.counts.at(*client));
        if self.free.available_permits() > 0 || self.over(&crowd).is_some() {
            return clients.first().copied();
        }
        clients.into_iter().find(|client| crowd.makes_room_for(*client).is_some())
    }

    async fn take_within(&self, time: Duration, from: Origin) -> Option<Seat> {
        let permit = timeout(time, Arc::clone(&self.free).acquire_owned()).await.ok()?.ok()?;
        Some(self.seat(permit, from))
    }

    fn seat(&self, permit: OwnedSemaphorePermit, origin: Origin) -> Seat {
        let sitter = Arc::new(Sitter {
            waits_since: AtomicU64::new(NOTHING),
            moved_at: AtomicU64::new(millis(self.began.elapsed())),
            origin,
            began: self.began,
            is_told_to_go: AtomicBool::new(false),
            go: Notify::new(),
        });
        let mut taken = self.taken.lock();
        taken.retain(|sitter| sitter.strong_count() > 0);
        taken.push(Arc::downgrade(&sitter));
        Seat { sitter, _permit: permit }
    }

    /// Makes one client give way for a client from there. Returns whether there was one.
    fn send_one_away(&self, from: Origin) -> bool {
        let crowd = Crowd::of(self.stay(), self.per_source);
        let Some(goes) = self.over(&crowd).or_else(|| crowd.makes_room_for(from)) else { return false };
        goes.is_told_to_go.store(true, Ordering::Relaxed);
        goes.go.notify_one();
        self.gave_way.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// The client that has left data unread for too long, else one that was quiet for as long.
    fn over<'a>(&self, crowd: &'a Crowd) -> Option<&'a Sitter> {
        let latest = millis(self.began.elapsed()).checked_sub(millis(self.patience));
        let is_over = |since: u64| latest.is_some_and(|latest| since <= latest);
        let slowest = crowd.sitters().min_by_key(|sitter| sitter.waits_since.load(Ordering::Relaxed));
        let slowest = slowest.filter(|sitter| is_over(sitter.waits_since.load(Ordering::Relaxed)));
        let quietest = crowd.sitters().min_by_key(|sitter| sitter.moved_at());
        slowest.or(quietest.filter(|sitter| is_over(sitter.moved_at())))
    }

    /// The clients that were not asked to give way.
    fn stay(&self) -> Vec<Arc<Sitter>> {
        let taken = self.taken.lock();
        let sitters = taken.iter().filter_map(Weak::upgrade);
        sitters.filter(|sitter| !sitter.is_told()).collect()
    }
}

/// The clients with seats, each with the number of seats of its source and of its address. All nodes of a mesh may be
/// one /64: the address with the most gives way before the others do.
#[derive(Debug)]
struct Crowd {
    sitters: Vec<(Arc<Sitter>, (usize, usize))>,
    counts: Counts,
    per_source: usize,
}

impl Crowd {
    fn of(sitters: Vec<Arc<Sitter>>, per_source: usize) -> Crowd {
        let counts = Counts::of(sitters.iter().map(|sitter| sitter.origin));
        let weighed = |sitter: Arc<Sitter>| {
            let weight = counts.at(sitter.origin);
            (sitter, weight)
        };
        let sitters = sitters.into_iter().map(weighed).collect();
        Crowd { sitters, counts, per_source }
    }

    fn sitters(&self) -> impl Iterator<Item = &Sitter> {
        self.sitters.iter().map(|(sitter, _)| &**sitter)
    }

    /// The quietest client that has to make room for one from there, since its source or address has at least two seats
    /// more.
    fn makes_room_for(&self, asks: Origin) -> Option<&Sitter> {
        let (of_source, of_address) = self.counts.at(asks);
        let gains = |own: usize, of_other: usize| own < self.per_source && own + 2 <= of_other;
        let of_others = self.quietest_of_most(|_, weight| gains(of_source, weight.0));
        of_others.or_else(|| {
            let own = asks.sharer();
            self.quietest_of_most(|other, weight| other.sharer() == own && gains(of_address, weight.1))
        })
    }

    /// Among those that may go: the quietest of the source with the most, and there of the address with the most. An
    /// address with more than a source's share comes before any source.
    fn quietest_of_most(&self, may_go: impl Fn(Origin, (usize, usize)) -> bool) -> Option<&Sitter> {
        // `max_by_key` takes the last of equal ones: the first that came.
        let may_go = self.sitters.iter().rev().filter(|(sitter, weight)| may_go(sitter.origin, *weight));
        let last = may_go.max_by_key(|(sitter, weight)| {
            let is_greedy = weight.1 > self.per_source;
            (is_greedy, *weight, Reverse(sitter.moved_at()))
        });
        last.map(|(sitter, _)| &**sitter)
    }
}

impl Seat {
    pub(crate) fn sitter(&self) -> &Sitter {
        &self.sitter
    }
}

impl Sitter {
    pub(super) fn origin(&self) -> Origin {
        self.origin
    }

    /// Returns whether it was asked to make room for another client.
    pub(crate) fn is_told(&self) -> bool {
        self.is_told_to_go.load(Ordering::Relaxed)
    }

    /// Notes that data waits for the client.
    pub(super) fn waits(&self) {
        self.waits_since.store(self.now(), Ordering::Relaxed);
    }

    /// Notes that the client has taken the data.
    pub(super) fn has_taken(&self) {
        self.waits_since.store(NOTHING, Ordering::Relaxed);
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

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(NOTHING - 1)
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const PATIENCE: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn who_does_not_take_what_waits_for_it_gives_its_seat_to_the_next() {
        let seats = Seats::new(3, PATIENCE, None);
        let quiet = seats.take(HERE).await.expect("free");
        let (first, second) = (seats.take(HERE).await.expect("free"), seats.take(HERE).await.expect("free"));
        first.sitter().waits();
        sleep(Duration::from_secs(1)).await;
        second.sitter().waits();
        assert!(seats.take(HERE).await.is_none(), "it may still take it");
        sleep(PATIENCE).await;
        quiet.sitter().moves();
        // Both are late: the slowest goes first, and no client is sent away twice.
        let mut kept = Vec::new();
        for late in [first, second] {
            let goes = async {
                late.sitter().told_to_go().await;
                drop(late);
            };
            let (next, ()) = tokio::join!(seats.take(HERE), goes);
            kept.push(next.expect("a seat was given up"));
        }
        assert!(seats.take(HERE).await.is_none(), "the others are neither late nor quiet");
        drop(quiet);
        assert!(seats.take(HERE).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_quietest_makes_room_once_it_has_been_quiet_for_long() {
        let seats = Seats::new(2, PATIENCE, None);
        let (busy, quiet) = (seats.take(HERE).await.expect("free"), seats.take(HERE).await.expect("free"));
        sleep(PATIENCE - Duration::from_secs(1)).await;
        busy.sitter().moves();
        assert!(seats.take(HERE).await.is_none(), "not for long enough");
        sleep(Duration::from_secs(1)).await;
        let goes = async {
            quiet.sitter().told_to_go().await;
            drop(quiet);
        };
        let (next, ()) = tokio::join!(seats.take(HERE), goes);
        assert!(next.is_some());
        assert!(seats.take(HERE).await.is_none(), "the other one is not quiet");
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_with_more_than_its_share_makes_room_for_another_source() {
        let there = IpAddr::from([10, 7, 0, 9]);
        let seats = Seats::new(4, PATIENCE, Some(2));
        let mut taken = Vec::new();
        for _ in 0..4 {
            taken.push(seats.take(HERE).await.expect("nobody else wants one"));
            sleep(Duration::from_secs(1)).await;
        }
        assert!(seats.take(HERE).await.is_none(), "it has its share");
        let mut given = Vec::new();
        for quietest in taken.drain(..2) {
            let goes = async {
                quietest.sitter().told_to_go().await;
                drop(quietest);
            };
            let (next, ()) = tokio::join!(seats.take(there), goes);
            given.push(next.expect("a seat was given up"));
        }
        assert!(seats.take(there).await.is_none(), "both have their share");
    }

    /// A machine with an address of each family is two sources, and each of them may have half.
    #[tokio::test(start_paused = true)]
    async fn two_sources_with_half_of_the_seats_each_keep_no_third_out() {
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        let seats = Seats::new(12, PATIENCE, None);
        let mut taken = Vec::new();
        for from in [ip("10.7.0.2"), ip("fd07::2")].repeat(6) {
            taken.push(seats.take(from).await.expect("free"));
            sleep(Duration::from_secs(1)).await;
        }
        let is_told = |seat: &Seat| seat.sitter().is_told();
        for (nth, goes_first) in ["10.7.0.2", "fd07::2", "10.7.0.2", "fd07::2"].into_iter().enumerate() {
            let goes = async {
                sleep(Duration::from_millis(1)).await;
                let nth = taken.iter().position(is_told).expect("one is told");
                taken.remove(nth).sitter().origin()
            };
            let (seat, gone) = tokio::join!(seats.take(ip("10.9.0.1")), goes);
            assert_eq!(gone, Origin::from(ip(goes_first)), "{nth}");
            taken.push(seat.expect("one made room"));
        }
        for source in ["10.9.0.1", "10.7.0.2", "fd07::2"] {
            assert!(seats.take(ip(source)).await.is_none(), "all three have four: {source}");
        }
    }

    /// Takes four seats from these addresses. Returns whether another client then gets one, and which of the four goes.
    async fn given(taken_from: [&str; 4], asks: &str) -> (bool, Option<usize>) {
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        let seats = Seats::new(4, PATIENCE, Some(2));
        let mut taken = Vec::new();
        for from in taken_from {
            taken.push(seats.take(ip(from)).await.expect("free"));
            sleep(Duration::from_secs(1)).await;
        }
        let is_told = |seat: &Seat| seat.sitter().is_told();
        let gone = async {
            sleep(Duration::from_millis(1)).await;
            let nth = taken.iter().position(is_told)?;
            taken.remove(nth);
            Some(nth)
        };
        let (seat, gone) = tokio::join!(seats.take(ip(asks)), gone);
        (seat.is_some(), gone)
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_with_many_addresses_has_one_share() {
        let network = ["fd66::1", "fd66::2", "fd66::3", "fd66::4"];
        assert_eq!(given(network, "fd09::2").await, (true, Some(0)));
        assert_eq!(given(network, "fd66::5").await, (false, None), "it is the same source");
        let loopback = ["127.0.0.1", "127.1.0.1", "127.2.0.1", "::1"];
        assert_eq!(given(loopback, "10.7.0.9").await, (true, Some(0)));
        assert_eq!(given(loopback, "127.3.0.1").await, (false, None));
    }

    #[tokio::test(start_paused = true)]
    async fn users_of_this_machine_have_a_share_each() {
        let seats = Seats::new(2, PATIENCE, Some(1));
        let (greedy, other) = (Origin::User(1000), Origin::User(1001));
        let first = seats.take(greedy).await.expect("free");
        let _second = seats.take(greedy).await.expect("nobody else wants it");
        assert!(seats.take(greedy).await.is_none());
        let goes = async {
            first.sitter().told_to_go().await;
            drop(first);
        };
        let (given, ()) = tokio::join!(seats.take(other), goes);
        assert!(given.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn programs_of_a_machine_that_gives_no_user_have_seats_as_one_source() {
        let seats = Seats::new(2, PATIENCE, None);
        let greedy = IpAddr::V4(Ipv4Addr::new(10, 7, 0, 9));
        let first = seats.take(greedy).await.expect("free");
        let _second = seats.take(greedy).await.expect("nobody else wants it");
        let goes = async {
            first.sitter().told_to_go().await;
            drop(first);
        };
        let (local, ()) = tokio::join!(seats.take(Origin::Local), goes);
        assert!(local.is_some());
        assert!(seats.take(Origin::Local).await.is_none(), "all of them have one share");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_of_this_machine_whose_user_is_unknown_gives_way_first() {
        let seats = Seats::new(3, PATIENCE, None);
        let unknown = seats.take(Origin::Unknown).await.expect("free");
        let own = Origin::User(1000);
        let _taken = [seats.take(own).await.expect("free"), seats.take(own).await.expect("free")];
        assert!(seats.take(own).await.is_none(), "it has its share");
        assert!(seats.take(Origin::Unknown).await.is_none());
        let goes = async {
            unknown.sitter().told_to_go().await;
            drop(unknown);
        };
        let (given, ()) = tokio::join!(seats.take(Origin::User(1001)), goes);
        assert!(given.is_some());
    }

    /// As in a mesh whose nodes are one /64.
    #[tokio::test(start_paused = true)]
    async fn an_address_with_more_than_a_share_goes_before_others_of_its_source() {
        let taken = ["fd07::2", "fd07::3", "fd07::3", "fd07::3"];
        for asks in ["fd07::4", "fd09::2"] {
            assert_eq!(given(taken, asks).await, (true, Some(1)), "{asks}");
        }
        assert_eq!(given(taken, "fd07::3").await, (false, None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_for_which_nothing_is_carried_is_quiet() {
        let seats = Seats::new(1, PATIENCE, None);
        let only = seats.take(HERE).await.expect("free");
        let began = Instant::now();
        let moves = async {
            sleep(Duration::from_secs(50)).await;
            only.sitter().moves();
        };
        tokio::join!(only.sitter().quiet_for(Duration::from_secs(60)), moves);
        assert_eq!(began.elapsed().as_secs(), 110);
    }

    #[tokio::test(start_paused = true)]
    async fn a_seat_is_handed_over_however_short_the_patience_is() {
        let seats = Seats::new(1, Duration::from_millis(1), None);
        let late = seats.take(HERE).await.expect("free");
        late.sitter().waits();
        sleep(Duration::from_millis(2)).await;
        let goes = async {
            late.sitter().told_to_go().await;
            sleep(GONE_WITHIN / 2).await;
            drop(late);
        };
        let (next, ()) = tokio::join!(seats.take(HERE), goes);
        assert!(next.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_it_in_time_keeps_its_seat() {
        let seats = Seats::new(1, PATIENCE, None);
        let only = seats.take(HERE).await.expect("free");
        for _ in 0..3 {
            only.sitter().waits();
            sleep(PATIENCE - Duration::from_secs(1)).await;
            only.sitter().has_taken();
            assert!(seats.take(HERE).await.is_none());
            sleep(PATIENCE).await;
        }
    }
}
