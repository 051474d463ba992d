//! What flows that take turns know together (RFC 9040): the trains of all meet the same path, so that what one of them
//! finds out holds for the next one's, whoever's that is.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use hopwise_core::agent::{HostPair, SendView, Turn};
use hopwise_core::{Instant, Seq};

use super::Train;
use super::constants::Part;
use super::gap::{Gap, Outcome};
use super::pause::{Pause, Way};

/// What a train that arrived says of its path.
#[derive(Clone, Copy, Debug)]
pub(super) struct News {
    pub(super) at: Instant,
    /// Of a train that proves something.
    pub(super) outcome: Option<Outcome>,
    /// Of a train that was as long as it may be.
    pub(super) bytes: Option<u64>,
}

/// What a flow has found out of its path.
#[derive(Clone, Copy, Debug)]
struct Found {
    gap: Gap,
    pause: Pause,
    segments: u32,
    last_sent: Option<Instant>,
}

/// What the flows between two hosts know together of their path. Each of them has it.
///
/// One endpoint makes and drives all of them, and its agents may go to another thread with it. The lock is always free.
#[derive(Clone, Debug, Default)]
pub struct SharedPath(Arc<Mutex<Option<Known>>>);

/// A maker's, by the hosts of its flows.
#[derive(Debug, Default)]
pub struct SharedPaths(Mutex<Paths>);

#[derive(Debug, Default)]
struct Paths {
    all: BTreeMap<HostPair, Weak<Mutex<Option<Known>>>>,
    /// Those without flows are removed when there are so many.
    sweep_at: usize,
}

impl SharedPath {
    pub(super) fn with<R>(&self, use_it: impl FnOnce(&mut Option<Known>) -> R) -> R {
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl SharedPaths {
    pub(crate) fn between(&self, hosts: HostPair) -> SharedPath {
        let Paths { all, sweep_at } = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = all.get(&hosts).and_then(Weak::upgrade) {
            return SharedPath(shared);
        }
        if all.len() >= *sweep_at {
            all.retain(|_, shared| shared.strong_count() > 0);
            *sweep_at = (2 * all.len()).max(16);
        }
        let shared = SharedPath::default();
        all.insert(hosts, Arc::downgrade(&shared.0));
        shared
    }
}

#[derive(Debug)]
pub(super) struct Known {
    /// What it was found out by: flows with other parameters find out something else.
    parameters: Parameters,
    path: Found,
    /// The flow that told it, by its name; nobody where that flow has found out something else since.
    told_by: Option<Seq>,
    /// Trains that have left and that the next one does not wait for: whose each is, and where it ends.
    under_way: VecDeque<(Seq, Seq)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Parameters {
    span_s: f64,
    most: u32,
    competes: bool,
    without: Part,
}

impl Known {
    /// What is there, or what this flow has found out where it is the first one.
    fn of<'a>(known: &'a mut Option<Known>, name: Seq, train: &Train) -> &'a mut Known {
        known.get_or_insert_with(|| Known {
            parameters: train.parameters(),
            path: train.found(),
            told_by: Some(name),
            under_way: VecDeque::new(),
        })
    }

    fn under_way(&self) -> usize {
        self.under_way.len()
    }

    fn leave(&mut self, name: Seq, end: Seq) {
        self.under_way.push_back((name, end));
    }

    /// Everything up to `una` has arrived, and a whole train if `is_one`. What left before it is not waited for
    /// either: it was lost, or its flow is no more. Whether that is any.
    fn arrive(&mut self, name: Seq, una: Seq, is_one: bool) -> bool {
        let is_own = |train: &(Seq, Seq)| train.0 == name;
        let acked = self.under_way.iter().rposition(|train| is_own(train) && train.1 <= una);
        let first = self.under_way.iter().position(is_own).filter(|_| is_one);
        let last = acked.max(first);
        if let Some(nth) = last {
            self.under_way.drain(..=nth);
        }
        last.is_some()
    }
}

/// A flow among others.
#[derive(Clone, Debug, Default)]
pub(super) struct Member {
    pub(super) shared: SharedPath,
    /// What it is called: where it was when it came.
    name: Option<Seq>,
    /// Trains of all that are under way.
    under_way: usize,
    /// Where the last one of its own that is counted there ends.
    left: Option<Seq>,
    /// Where the train begins that it has the turn for.
    train: Option<Seq>,
    /// Of the last train that arrived, until the others know it.
    pub(super) news: Option<News>,
    /// What it knows of the path is newer than what the others do.
    pub(super) is_newer: bool,
}

impl Member {
    pub(super) fn of(shared: SharedPath) -> Member {
        Member { shared, ..Member::default() }
    }
}

impl Train {
    /// Whether less is under way than before, so that the holder may pass on its turn.
    pub(super) fn share_with_all(&mut self, known: &mut Option<Known>, view: &SendView<'_>) -> bool {
        let name = *self.together.name.get_or_insert(view.snd_una);
        let (news, is_newer) = (self.together.news.take(), mem::take(&mut self.together.is_newer));
        let known = Known::of(known, name, self);
        let is_less = known.arrive(name, view.snd_una, news.is_some());
        self.together.under_way = known.under_way();
        if view.turn == Turn::Free {
            // What ends out of turn, after a timeout for instance, says little of the path.
            known.told_by.take_if(|teller| *teller == name && news.is_some());
            return is_less;
        }
        self.last_sent = self.last_sent.max(known.path.last_sent);
        if view.turn == Turn::Alone {
            known.parameters = self.parameters();
        }
        if known.parameters == self.parameters() {
            self.tell(known, name, news.filter(|news| news.outcome.is_some()), is_newer, view);
        }
        known.path.last_sent = self.last_sent;
        self.count_what_left(known, name, view);
        if view.turn != Turn::Holding || !self.is_held_up() || self.together.train.is_none() {
            self.together.train = Some(self.next_train(view));
        }
        is_less
    }

    fn tell(
        &mut self,
        known: &mut Known,
        name: Seq,
        news: Option<News>,
        is_newer: bool,
        view: &SendView<'_>,
    ) {
        // Whom nobody has asked has told nobody, and knows best.
        let is_newer = is_newer || view.turn == Turn::Alone;
        if known.told_by != Some(name) && !is_newer {
            self.take_over(&known.path, news.as_ref(), view);
        }
        if news.is_some() || is_newer {
            (known.told_by, known.path) = (Some(name), self.found());
        }
    }

    fn parameters(&self) -> Parameters {
        Parameters {
            span_s: self.span_s,
            most: self.most,
            competes: self.gap.competes(),
            without: self.without,
        }
    }

    fn found(&self) -> Found {
        Found { gap: self.gap, pause: self.pause, segments: self.segments, last_sent: self.last_sent }
    }

    /// Others know more. A train that is under way stays as long as it is.
    fn take_over(&mut self, path: &Found, news: Option<&News>, view: &SendView<'_>) {
        (self.gap, self.pause) = (path.gap, path.pause);
        if news.is_some() || view.snd_una == view.snd_nxt {
            // The other's peer may have had a larger window.
            self.segments = path.segments.min(self.beside_the_path(view));
        }
        if let Some(news) = news {
            self.learn(news, view);
        }
    }

    /// Its trains that have left as a whole, and that the next one does not wait for.
    fn count_what_left(&mut self, known: &mut Known, name: Seq, view: &SendView<'_>) {
        if self.pause.way() == Way::Flowing && self.began.is_some() {
            let mut end = self.end_of(self.next_train(view), view);
            while end <= view.snd_nxt && view.snd_una < end {
                known.leave(name, end);
                self.together.left = Some(end);
                end = self.end_of(end, view);
            }
        }
        self.together.under_way = known.under_way();
    }

    /// Where the train begins that is being sent, or is the next one. With a pause it is under way until its ACK is in;
    /// without one, behind those that have left.
    pub(super) fn next_train(&self, view: &SendView<'_>) -> Seq {
        let Some(began) = self.began else { return view.snd_nxt };
        let left = self.together.left.filter(|_| view.turn != Turn::Free && self.pause.way() == Way::Flowing);
        // What left long ago says nothing, and would be ahead of all in the end.
        let left = left.filter(|left| view.snd_una < *left && *left <= view.snd_nxt);
        left.map_or(began, |left| left.max(began))
    }

    /// Where the train begins that a turn is wanted for. Who has sent it keeps the turn while as many are under way as
    /// may be.
    pub(super) fn wanted(&self, view: &SendView<'_>) -> Seq {
        let held = self.together.train.filter(|_| view.turn == Turn::Holding);
        held.unwrap_or_else(|| self.next_train(view))
    }

    fn is_held_up(&self) -> bool {
        self.pause.way() == Way::Flowing && self.is_full()
    }

    /// The trains of all that are under way are as many as they may be of a flow alone, the last one counted whole.
    pub(super) fn is_full(&self) -> bool {
        self.together.under_way > self.ahead().div_ceil(self.segments.max(1)) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn hosts(nth: u32) -> HostPair {
        let peer = IpAddr::V4(Ipv4Addr::from_bits(nth));
        HostPair { link: 0, local: IpAddr::V4(Ipv4Addr::LOCALHOST), peer }
    }

    #[test]
    fn flows_between_the_same_hosts_have_one_path_as_long_as_one_of_them_lives() {
        let paths = SharedPaths::default();
        let (a, b, other) = (paths.between(hosts(1)), paths.between(hosts(1)), paths.between(hosts(2)));
        assert!(Arc::ptr_eq(&a.0, &b.0) && !Arc::ptr_eq(&a.0, &other.0));
        assert!(!Arc::ptr_eq(&a.0, &SharedPaths::default().between(hosts(1)).0), "another endpoint's");
        drop((a, b));
        assert_eq!(Arc::strong_count(&paths.between(hosts(1)).0), 1);
    }

    #[test]
    fn hosts_without_flows_are_forgotten() {
        let paths = SharedPaths::default();
        let stays = paths.between(hosts(0));
        for nth in 1..10_000 {
            paths.between(hosts(nth));
        }
        assert!(paths.0.lock().expect("no thread panics with it").all.len() <= 16);
        assert!(Arc::ptr_eq(&stays.0, &paths.between(hosts(0)).0));
    }
}
