//! The destinations that a node searches for: whose turn it is, which give way, and which rest.
//!
//! A stranger can make a node search for addresses that no node has: it pings from them, and the node answers. First
//! requests and retries therefore take turns. Within each the highest rank comes first. Within a rank lanes take turns,
//! then the destinations with the fewest requests come, then the oldest. When too many wait, the oldest of the most
//! crowded lane of the lowest rank gives way.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::Instant;

use super::rank::{Lane, Rank, ServedLanes, Wish, most_crowded};

/// The largest number of simultaneous searches.
const MOST_SEARCHES: usize = 256;
/// The seconds of requests, retries not counted, that may wait: more searches do not wait for their first request.
const LONGEST_WAIT: u32 = 4;
/// The largest number of resting destinations, and of destinations known to answer.
const MOST_REMEMBERED: usize = 4_096;
/// The time for which a finished rest is remembered.
const REMEMBERED: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SearchState {
    /// It waits for its turn.
    Waits,
    /// A request is under way, and its timeout is this time.
    Asked(Instant),
}

/// A search; `plan` is the protocol's next request.
#[derive(Clone, Copy, Debug)]
struct Search<P> {
    origin: Ipv4Addr,
    plan: P,
    wish: Wish,
    state: SearchState,
    /// Requests so far.
    asked: u32,
    /// Its number in the order in which searches began.
    nth: u64,
}

/// A destination that was not found.
#[derive(Clone, Copy, Debug)]
struct Rest {
    until: Instant,
    rank: Rank,
    failures: u32,
}

/// The outcome of an attempt to begin a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchStart<P> {
    /// There is one already.
    Already,
    /// All waiting searches have a higher rank.
    Refused,
    /// Another one may have given way.
    New(Option<(Ipv4Addr, P)>),
}

#[derive(Debug)]
pub(crate) struct Searches<P> {
    by_dst: BTreeMap<Ipv4Addr, Search<P>>,
    begun: u64,
    limit: RateLimit,
    /// The last requests of lanes, for first requests and for retries. The two alternate. With one memory for both, one
    /// lane would always be first and the other would always retry.
    firsts: ServedLanes,
    retries: ServedLanes,
    rests: BTreeMap<Ipv4Addr, Rest>,
    /// Destinations that have answered: the targets of the node's searches, and the targets of its answers, which
    /// strangers choose.
    known: AnsweredDestinations,
    known_of_answers: AnsweredDestinations,
}

impl<P: Copy> Searches<P> {
    /// Allows `rate` requests a second; 0 sets no limit.
    pub(crate) fn new(rate: u32) -> Searches<P> {
        Searches {
            by_dst: BTreeMap::new(),
            begun: 0,
            limit: RateLimit::new(rate),
            firsts: ServedLanes::default(),
            retries: ServedLanes::default(),
            rests: BTreeMap::new(),
            known: AnsweredDestinations::default(),
            known_of_answers: AnsweredDestinations::default(),
        }
    }

    /// The next time to act, for a node that sleeps until `wakes_at`.
    pub(crate) fn next(&self, wakes_at: Instant) -> Option<Instant> {
        let allowed_at = self.limit.next().max(wakes_at);
        let due = |search: &Search<P>| match search.state {
            SearchState::Waits => allowed_at,
            SearchState::Asked(until) => until,
        };
        self.by_dst.values().map(due).min()
    }

    pub(crate) fn has(&self, dst: Ipv4Addr) -> bool {
        self.by_dst.contains_key(&dst)
    }

    /// Returns whether the destination has been found before.
    pub(crate) fn is_known(&self, dst: Ipv4Addr) -> bool {
        self.known.has(dst) || self.known_of_answers.has(dst)
    }

    /// Ends the search: the destination was found.
    pub(crate) fn end(&mut self, dst: Ipv4Addr) {
        self.rests.remove(&dst);
        if let Some(search) = self.by_dst.remove(&dst) {
            self.note_known(dst, search.wish.rank == Rank::Answer);
        }
    }

    /// Notes that the destination answers: to packets of this node, or to answers.
    pub(crate) fn note_known(&mut self, dst: Ipv4Addr, is_of_answer: bool) {
        let known = if is_of_answer { &mut self.known_of_answers } else { &mut self.known };
        known.note(dst);
    }

    pub(crate) fn begin(&mut self, dst: Ipv4Addr, origin: Ipv4Addr, wish: Wish, plan: P) -> SearchStart<P> {
        if self.by_dst.contains_key(&dst) {
            self.want_more(dst, wish);
            return SearchStart::Already;
        }
        let victim = if self.waiting(true).count() >= self.limit.most_waiting() {
            self.lowest(self.waiting(true).collect())
        } else if self.by_dst.len() >= MOST_SEARCHES {
            self.lowest(self.by_dst.iter().collect())
        } else {
            None
        };
        if victim.is_some_and(|(_, least)| least.wish.rank > wish.rank) {
            return SearchStart::Refused;
        }
        if let Some((gone, _)) = victim {
            self.by_dst.remove(&gone);
        }
        self.begun += 1;
        let search = Search { origin, plan, wish, state: SearchState::Waits, asked: 0, nth: self.begun };
        self.by_dst.insert(dst, search);
        SearchStart::New(victim.map(|(gone, search)| (gone, search.plan)))
    }

    /// A destination that several packets want gets the best of their places, so that a stranger's packet spoils none.
    fn want_more(&mut self, dst: Ipv4Addr, wish: Wish) {
        let Some(before) = self.by_dst.get(&dst).map(|search| search.wish) else { return };
        let is_better = match wish.rank.cmp(&before.rank) {
            Ordering::Less => false,
            Ordering::Equal => wish.lane != before.lane && self.crowd(wish) < self.crowd(before),
            Ordering::Greater => true,
        };
        if let Some(search) = self.by_dst.get_mut(&dst).filter(|_| is_better) {
            search.wish = wish;
        }
    }

    /// For each level, the number of searches of that rank whose lane agrees down to that level.
    fn crowd(&self, wish: Wish) -> [usize; Lane::LEVELS] {
        let lanes = self.by_dst.values().filter(|search| search.wish.rank == wish.rank);
        let lanes: Vec<_> = lanes.map(|search| search.wish.lane).collect();
        std::array::from_fn(|level| {
            lanes.iter().filter(|lane| lane.0[..=level] == wish.lane.0[..=level]).count()
        })
    }

    /// The search that gives way.
    fn lowest(&self, mut all: Vec<(&Ipv4Addr, &Search<P>)>) -> Option<(Ipv4Addr, Search<P>)> {
        let lowest = all.iter().map(|(_, search)| search.wish.rank).min()?;
        all.retain(|(_, search)| search.wish.rank == lowest);
        all.sort_by_key(|(_, search)| search.nth);
        let lanes: Vec<_> = all.iter().map(|(_, search)| search.wish.lane.0).collect();
        most_crowded(&lanes).map(|nth| (*all[nth].0, *all[nth].1))
    }

    /// The next search whose request may leave now: destination, origin and plan. It then waits with `patience`.
    pub(crate) fn next_request(
        &mut self,
        now: Instant,
        patience: impl Fn(&P) -> Duration,
    ) -> Option<(Ipv4Addr, Ipv4Addr, P)> {
        let [has_first, has_retry] = [true, false].map(|is_first| self.waiting(is_first).next().is_some());
        let attempt = self.limit.take(now, has_first, has_retry)?;
        let dst = self.most_wanted(attempt == SearchAttempt::First)?;
        let search = self.by_dst.get_mut(&dst)?;
        let served = if search.asked == 0 { &mut self.firsts } else { &mut self.retries };
        served.note(search.wish.rank, search.wish.lane);
        search.asked += 1;
        search.state = SearchState::Asked(now + patience(&search.plan));
        Some((dst, search.origin, search.plan))
    }

    /// The searches that wait for their first request, or for a retry.
    fn waiting(&self, is_first: bool) -> impl Iterator<Item = (&Ipv4Addr, &Search<P>)> {
        let waits =
            move |search: &Search<P>| search.state == SearchState::Waits && (search.asked == 0) == is_first;
        self.by_dst.iter().filter(move |(_, search)| waits(search))
    }

    fn most_wanted(&self, is_first: bool) -> Option<Ipv4Addr> {
        let served = if is_first { &self.firsts } else { &self.retries };
        let place = |search: &Search<P>| {
            let Wish { rank, lane } = search.wish;
            (Reverse(rank), served.last(rank, lane), search.asked, search.nth)
        };
        self.waiting(is_first).min_by_key(|(_, search)| place(search)).map(|(dst, _)| *dst)
    }

    /// The searches whose timeout is over.
    pub(crate) fn unanswered(&self, now: Instant) -> Vec<(Ipv4Addr, P)> {
        let is_due = |search: &Search<P>| matches!(search.state, SearchState::Asked(until) if until <= now);
        let due = self.by_dst.iter().filter(|(_, search)| is_due(search));
        due.map(|(dst, search)| (*dst, search.plan)).collect()
    }

    /// Queues a search for a retry.
    pub(crate) fn go_on(&mut self, dst: Ipv4Addr, plan: P) {
        if let Some(search) = self.by_dst.get_mut(&dst) {
            (search.plan, search.state) = (plan, SearchState::Waits);
        }
    }

    /// The destination was not found, and rests for `hold`. Its argument counts the failures in a row; 0 if it has
    /// answered before.
    pub(crate) fn fail(&mut self, now: Instant, dst: Ipv4Addr, hold: impl FnOnce(u32, Rank) -> Duration) {
        let Some(search) = self.by_dst.remove(&dst) else { return };
        let before = self.rests.get(&dst).map_or(0, |rest| rest.failures);
        let failures = if self.is_known(dst) { 0 } else { before.saturating_add(1) };
        let rest = hold(failures, search.wish.rank);
        if rest.is_zero() {
            return;
        }
        if self.rests.len() >= MOST_REMEMBERED
            && let Some(first) = self.rests.iter().min_by_key(|(_, rest)| rest.until).map(|(dst, _)| *dst)
        {
            self.rests.remove(&first);
        }
        self.rests.insert(dst, Rest { until: now + rest, rank: search.wish.rank, failures });
    }

    /// Returns whether a destination that was not found still rests. A search of a lower rank holds none back.
    pub(crate) fn rests(&self, now: Instant, dst: Ipv4Addr, rank: Rank) -> bool {
        self.rests.get(&dst).is_some_and(|rest| rest.until > now && rest.rank >= rank)
    }

    pub(crate) fn forget(&mut self, now: Instant) {
        self.rests.retain(|_, rest| rest.until + REMEMBERED > now);
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SearchAttempt {
    First,
    #[default]
    Retry,
}

const WINDOW: Duration = Duration::from_secs(1);

/// At most `most` requests in every second that begins with the first of them. At most half of them are retries; while
/// retries wait, first requests leave them that half. Once some had to wait, requests leave evenly. Routers on the
/// route delay each at random (RFC 5148), and AODVv2 passes none on that a later one has overtaken.
#[derive(Debug, Default)]
struct RateLimit {
    most: u32,
    began: Instant,
    firsts: u32,
    retries: u32,
    last: SearchAttempt,
    /// Requests wait, and the next one is not before then.
    next: Option<Instant>,
    /// Only retries wait for it.
    is_for_retries: bool,
}

impl RateLimit {
    fn new(most: u32) -> RateLimit {
        RateLimit { most, ..RateLimit::default() }
    }

    fn next(&self) -> Instant {
        self.next.unwrap_or(Instant::ZERO)
    }

    fn most_waiting(&self) -> usize {
        if self.most == 0 {
            MOST_SEARCHES
        } else {
            self.most.div_ceil(2).saturating_mul(LONGEST_WAIT) as usize
        }
    }

    fn take(&mut self, now: Instant, has_first: bool, has_retry: bool) -> Option<SearchAttempt> {
        if !has_first && !has_retry {
            self.next = None;
            return None;
        }
        let may_not_wait = has_first && self.is_for_retries;
        if !may_not_wait && self.next.is_some_and(|next| next > now) {
            return None;
        }
        if self.firsts + self.retries == 0 || now.since(self.began) >= WINDOW {
            (self.began, self.firsts, self.retries) = (now, 0, 0);
        }
        let Some(attempt) = self.choose(has_first, has_retry) else {
            (self.next, self.is_for_retries) = (Some(self.began + WINDOW), !has_first);
            return None;
        };
        *(if attempt == SearchAttempt::First { &mut self.firsts } else { &mut self.retries }) += 1;
        (self.last, self.is_for_retries) = (attempt, false);
        self.next = self.next.map(|_| now + WINDOW / self.most.max(1));
        Some(attempt)
    }

    fn choose(&self, has_first: bool, has_retry: bool) -> Option<SearchAttempt> {
        let is_free = self.most == 0;
        if !is_free && self.firsts + self.retries >= self.most {
            return None;
        }
        let kept = if has_retry { self.most / 2 } else { 0 };
        let first = has_first && (is_free || self.firsts < self.most - kept);
        let retry = has_retry && (is_free || self.retries < self.most.div_ceil(2));
        match (first, retry, self.last) {
            (false, false, _) => None,
            (true, false, _) | (true, true, SearchAttempt::Retry) => Some(SearchAttempt::First),
            (false, true, _) | (true, true, SearchAttempt::First) => Some(SearchAttempt::Retry),
        }
    }
}

/// Destinations that have answered; at the bound the one that was noted first is forgotten.
#[derive(Debug, Default)]
struct AnsweredDestinations {
    noted: BTreeMap<Ipv4Addr, u64>,
    order: BTreeSet<(u64, Ipv4Addr)>,
    count: u64,
}

impl AnsweredDestinations {
    fn has(&self, dst: Ipv4Addr) -> bool {
        self.noted.contains_key(&dst)
    }

    fn note(&mut self, dst: Ipv4Addr) {
        self.count += 1;
        if let Some(before) = self.noted.insert(dst, self.count) {
            self.order.remove(&(before, dst));
        }
        self.order.insert((self.count, dst));
        if self.noted.len() > MOST_REMEMBERED
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.noted.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn address(n: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(n)
    }

    fn begin(searches: &mut Searches<u8>, n: u32, rank: Rank) -> SearchStart<u8> {
        searches.begin(address(n), address(0), Wish { rank, lane: Lane::OTHERS }, 0)
    }

    fn requests_at(searches: &mut Searches<u8>, now: Instant) -> Vec<u32> {
        let next = || searches.next_request(now, |_| SECOND).map(|(dst, ..)| dst.to_bits());
        std::iter::from_fn(next).collect()
    }

    fn requests(searches: &mut Searches<u8>, s: u64) -> Vec<u32> {
        requests_at(searches, Instant::from_secs(s))
    }

    #[test]
    fn retries_take_half_of_a_second_and_leave_the_other_half() {
        let mut searches = Searches::new(4);
        (1..=4).for_each(|n| assert_eq!(begin(&mut searches, n, Rank::Sure), SearchStart::New(None)));
        assert_eq!(
            requests(&mut searches, 1),
            [1, 2, 3, 4],
            "first ones have all of it while nothing is retried"
        );
        let late = |searches: &mut Searches<u8>, s| {
            let late = searches.unanswered(Instant::from_secs(s));
            late.iter().for_each(|(dst, plan)| searches.go_on(*dst, plan + 1));
            late.len()
        };
        assert_eq!(late(&mut searches, 2), 4);
        assert_eq!(requests(&mut searches, 2), [1, 2], "half, also when nobody else waits");
        (5..=7).for_each(|n| assert_eq!(begin(&mut searches, n, Rank::Sure), SearchStart::New(None)));
        assert_eq!(requests(&mut searches, 2), [5]);
        assert_eq!(searches.next(Instant::ZERO), Some(Instant::from_millis(2_250)));
        let evenly = [2_249, 2_250, 2_500, 3_000, 3_250, 3_500].map(Instant::from_millis);
        let evenly = evenly.map(|now| requests_at(&mut searches, now));
        assert_eq!(
            evenly,
            [vec![], vec![6], vec![], vec![3], vec![7], vec![4]],
            "in turn, one after the other"
        );
        let mut one = Searches::new(1);
        (1..=2).for_each(|n| assert_eq!(begin(&mut one, n, Rank::Sure), SearchStart::New(None)));
        assert_eq!([1, 2].map(|s| requests(&mut one, s)), [[1], [2]]);
        begin(&mut one, 3, Rank::Sure);
        late(&mut one, 9);
        assert_eq!([9, 10, 11].map(|s| requests(&mut one, s)), [[1], [3], [2]], "one a second is for both");
    }

    #[test]
    fn the_oldest_of_the_lowest_rank_gives_way_and_the_most_wanted_goes_first() {
        let mut searches = Searches::new(2);
        assert_eq!(begin(&mut searches, 1, Rank::Sure), SearchStart::New(None));
        (2..=4).for_each(|n| assert_eq!(begin(&mut searches, n, Rank::Answer), SearchStart::New(None)));
        assert_eq!(begin(&mut searches, 5, Rank::Answer), SearchStart::New(Some((address(2), 0))));
        assert_eq!(begin(&mut searches, 6, Rank::Sure), SearchStart::New(Some((address(3), 0))));
        assert_eq!(begin(&mut searches, 4, Rank::Sure), SearchStart::Already);
        assert_eq!(begin(&mut searches, 7, Rank::Sure), SearchStart::New(Some((address(5), 0))));
        assert_eq!(begin(&mut searches, 8, Rank::Answer), SearchStart::Refused);
        let at = [1_000, 2_000, 2_500].map(Instant::from_millis);
        assert_eq!(at.map(|now| requests_at(&mut searches, now)), [vec![1, 4], vec![6], vec![7]]);
    }

    #[test]
    fn a_flood_of_one_lane_leaves_another_its_turns_and_spoils_no_place() {
        let mut searches = Searches::new(2);
        let lane = |port| Wish { rank: Rank::Unsure, lane: Lane([1, 0, 17, port, 0]) };
        let mut begin = |n, port| searches.begin(address(n), address(0), lane(port), 0);
        (1..=4).for_each(|n| assert_eq!(begin(n, 53), SearchStart::New(None)));
        assert_eq!(begin(9, 40), SearchStart::New(Some((address(1), 0))));
        (10..=50).for_each(|n| assert!(matches!(begin(n, 53), SearchStart::New(Some(_)))));
        assert_eq!([begin(9, 53), begin(50, 41)], [SearchStart::Already; 2], "both are in the emptier lane");
        (51..=90).for_each(|n| assert!(matches!(begin(n, 53), SearchStart::New(Some(_)))));
        assert_eq!(requests(&mut searches, 1), [9, 50]);
    }

    #[test]
    fn what_was_not_found_rests_longer_each_time_and_what_has_answered_does_not() {
        let mut searches = Searches::new(0);
        let mut fail = |n, rank, s| {
            begin(&mut searches, n, rank);
            searches.fail(Instant::from_secs(s), address(n), |failures, _| failures * SECOND);
            [1, 2].map(|later| searches.rests(Instant::from_secs(s + later - 1), address(n), rank))
        };
        assert_eq!(fail(1, Rank::Sure, 1), [true, false]);
        assert_eq!(fail(1, Rank::Sure, 10), [true, true]);
        assert_eq!(fail(2, Rank::Answer, 20), [true, false]);
        assert!(!searches.rests(Instant::from_secs(20), address(2), Rank::Sure));
        begin(&mut searches, 1, Rank::Sure);
        searches.end(address(1));
        begin(&mut searches, 1, Rank::Sure);
        searches.fail(Instant::from_secs(30), address(1), |failures, _| failures * SECOND);
        assert!(!searches.rests(Instant::from_secs(30), address(1), Rank::Sure));
        searches.forget(Instant::from_secs(500));
        assert!(searches.rests.is_empty());
    }

    #[test]
    fn a_flood_takes_bounded_memory() {
        let mut searches = Searches::new(0);
        for n in 0..10_000 {
            searches.note_known(address(n), n >= 5_000);
            begin(&mut searches, n + 20_000, Rank::Sure);
            searches.fail(Instant::ZERO, address(n + 20_000), |_, _| SECOND);
        }
        assert_eq!((searches.rests.len(), searches.known.noted.len()), (MOST_REMEMBERED, MOST_REMEMBERED));
        assert_eq!(searches.known.order.len(), MOST_REMEMBERED);
        assert!(searches.is_known(address(4_999)), "answers to others push none out that was looked for");
        (0..1_000).for_each(|n| assert_ne!(begin(&mut searches, n, Rank::Answer), SearchStart::Refused));
        assert_eq!(searches.by_dst.len(), MOST_SEARCHES);
    }
}
