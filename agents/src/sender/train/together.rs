//! The knowledge that flows in turn share (RFC 9040). Their trains meet one path, so that the findings of one train
//! hold for the next, whichever flow sends it.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use hopwise_core::agent::{HostPair, SendView, Turn};
use hopwise_core::{Instant, Seq};

use super::Train;
use super::constants::Part;
use super::gap::{Gap, TrainOutcome};
use super::pause::{Pause, Pausing};
use crate::sender::convoy::PathState;

/// The findings of a train that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrainReport {
    pub(super) at: Instant,
    /// `None` if the train proves nothing.
    pub(super) outcome: Option<TrainOutcome>,
    /// `None` if the train was too short.
    pub(super) bytes: Option<u64>,
}

/// The findings of a flow about its path.
#[derive(Clone, Copy, Debug)]
struct PathFindings {
    gap: Gap,
    pause: Pause,
    segments: u32,
    last_sent: Option<Instant>,
}

/// The shared knowledge of the flows between two hosts about their path. Each of these flows holds it.
///
/// One endpoint makes and drives all of them. Its agents may move to another thread with it, but the lock is always
/// free.
#[derive(Clone, Debug, Default)]
pub struct SharedPath(Arc<Mutex<Knowledge>>);

/// The knowledge by the agent whose flows have it. A flow of `convoy` may become one of `train`.
#[derive(Debug, Default)]
struct Knowledge {
    trains: Option<PathKnowledge>,
    path: PathState,
}

/// The shared paths of one maker, by the hosts of its flows.
#[derive(Debug, Default)]
pub(crate) struct SharedPaths(Mutex<PathTable>);

#[derive(Debug, Default)]
struct PathTable {
    all: BTreeMap<HostPair, Weak<Mutex<Knowledge>>>,
    /// At this size, paths without flows are removed.
    sweep_at: usize,
}

impl SharedPath {
    pub(super) fn with<R>(&self, use_it: impl FnOnce(&mut Option<PathKnowledge>) -> R) -> R {
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).trains)
    }

    pub(crate) fn path<R>(&self, use_it: impl FnOnce(&mut PathState) -> R) -> R {
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).path)
    }
}

impl SharedPaths {
    pub(crate) fn between(&self, hosts: HostPair) -> SharedPath {
        let PathTable { all, sweep_at } = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
pub(super) struct PathKnowledge {
    /// The parameters behind the findings: flows with other parameters find something else.
    parameters: Parameters,
    path: PathFindings,
    /// The name of the flow that reported the path last; `None` if that flow has found something else since.
    told_by: Option<Seq>,
    /// Trains that have left and that the next one does not wait for: the name of the flow, and the end of the train.
    under_way: VecDeque<(Seq, Seq)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Parameters {
    span_s: f64,
    most: u32,
    competes: bool,
    without: Part,
}

impl PathKnowledge {
    /// The shared knowledge; the first flow begins it with its own.
    fn of<'a>(known: &'a mut Option<PathKnowledge>, name: Seq, train: &Train) -> &'a mut PathKnowledge {
        known.get_or_insert_with(|| PathKnowledge {
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

    /// Removes the trains of this flow up to `una`, or its first train if `is_one`. Trains that left earlier are
    /// removed, too: they were lost, or their flow is gone. Returns whether any train was removed.
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

/// A flow among the flows of a host.
#[derive(Clone, Debug, Default)]
pub(super) struct Member {
    pub(super) shared: SharedPath,
    /// The flow's name: its snd_una when it joined.
    name: Option<Seq>,
    /// The trains of all flows that are under way.
    under_way: usize,
    /// The end of its last train that counts among them.
    left: Option<Seq>,
    /// The beginning of the train for which it has the turn.
    train: Option<Seq>,
    /// The report of the last train, until the other flows have it.
    pub(super) news: Option<TrainReport>,
    /// True if it knows more of the path than the other flows do.
    pub(super) is_newer: bool,
}

impl Member {
    pub(super) fn of(shared: SharedPath) -> Member {
        Member { shared, ..Member::default() }
    }
}

impl Train {
    /// Returns whether fewer trains are under way than before, so that the holder may pass on its turn.
    pub(super) fn share_with_all(&mut self, known: &mut Option<PathKnowledge>, view: &SendView<'_>) -> bool {
        let name = *self.together.name.get_or_insert(view.snd_una);
        let (news, is_newer) = (self.together.news.take(), mem::take(&mut self.together.is_newer));
        let known = PathKnowledge::of(known, name, self);
        let is_less = known.arrive(name, view.snd_una, news.is_some());
        self.together.under_way = known.under_way();
        if view.turn == Turn::Free {
            // A train that ends out of turn, after a timeout for instance, shows little of the path.
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
        known: &mut PathKnowledge,
        name: Seq,
        news: Option<TrainReport>,
        is_newer: bool,
        view: &SendView<'_>,
    ) {
        // A flow that was alone has not reported anything yet, and knows best.
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

    fn found(&self) -> PathFindings {
        PathFindings { gap: self.gap, pause: self.pause, segments: self.segments, last_sent: self.last_sent }
    }

    /// Takes over what other flows know better. A train that is under way keeps its length.
    fn take_over(&mut self, path: &PathFindings, news: Option<&TrainReport>, view: &SendView<'_>) {
        (self.gap, self.pause) = (path.gap, path.pause);
        if news.is_some() || view.snd_una == view.snd_nxt {
            // The other flow's peer may have had a larger window.
            self.segments = path.segments.min(self.beside_the_path(view));
        }
        if let Some(news) = news {
            self.learn(news, view);
        }
    }

    /// Counts its trains that have left as a whole and that the next one does not wait for.
    fn count_what_left(&mut self, known: &mut PathKnowledge, name: Seq, view: &SendView<'_>) {
        if self.pause.pausing == Pausing::Off && self.began.is_some() {
            let mut end = self.end_of(self.next_train(view), view);
            while end <= view.snd_nxt && view.snd_una < end {
                known.leave(name, end);
                self.together.left = Some(end);
                end = self.end_of(end, view);
            }
        }
        self.together.under_way = known.under_way();
    }

    /// The beginning of the train that is being sent, or of the next one. With a pause a train is under way until its
    /// ACK is in. Without one the next train begins behind those that have left.
    pub(super) fn next_train(&self, view: &SendView<'_>) -> Seq {
        let Some(began) = self.began else { return view.snd_nxt };
        let left =
            self.together.left.filter(|_| view.turn != Turn::Free && self.pause.pausing == Pausing::Off);
        // A train that left long ago shows nothing. In time its end would compare as ahead of everything.
        let left = left.filter(|left| view.snd_una < *left && *left <= view.snd_nxt);
        left.map_or(began, |left| left.max(began))
    }

    /// The beginning of the train for which a turn is wanted. A flow that has sent it keeps the turn while as many
    /// trains are under way as may be.
    pub(super) fn wanted(&self, view: &SendView<'_>) -> Seq {
        let held = self.together.train.filter(|_| view.turn == Turn::Holding);
        held.unwrap_or_else(|| self.next_train(view))
    }

    fn is_held_up(&self) -> bool {
        self.pause.pausing == Pausing::Off && self.is_full()
    }

    /// Returns whether the trains of all flows under way are as many as a lone flow may have, the last one counted
    /// whole.
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
