//! What flows that take turns know together (RFC 9040): the trains of all meet the same path, so that what one of them
//! finds out holds for the next one's, whoever's that is.

use std::collections::VecDeque;
use std::mem;

use hopwise_core::agent::{Common, SendView, Turn};
use hopwise_core::{Instant, Seq};

use super::Train;
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
    pub(super) lost: bool,
}

/// What a flow has found out of its path.
#[derive(Clone, Copy, Debug)]
struct Found {
    gap: Gap,
    pause: Pause,
    segments: u32,
    last_sent: Option<Instant>,
}

#[derive(Debug)]
struct Known {
    path: Found,
    /// The flow that told it, by its name.
    told_by: Seq,
    /// Trains that have left and that the next one does not wait for: whose each is, and where it ends.
    under_way: VecDeque<(Seq, Seq)>,
}

impl Known {
    /// What is there, or what this flow has found out where it is the first one.
    fn of(common: &mut Common, name: Seq, found: impl FnOnce() -> Found) -> &mut Known {
        if !common.as_ref().is_some_and(|known| known.is::<Known>()) {
            *common = Some(Box::new(Known { path: found(), told_by: name, under_way: VecDeque::new() }));
        }
        common.as_mut().and_then(|known| known.downcast_mut()).expect("it was put there")
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
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Member {
    /// What it is called: where it was when it came.
    name: Option<Seq>,
    /// Trains of all that are under way.
    under_way: usize,
    /// Where the last one of its own that is counted there ends.
    left: Option<Seq>,
    /// Of the last train that arrived, until the others know it.
    pub(super) news: Option<News>,
    /// What it knows of the path is newer than what the others do.
    pub(super) is_newer: bool,
}

impl Train {
    /// Whether less is under way than before, so that the holder may pass on its turn.
    pub(super) fn share_with_all(&mut self, common: &mut Common, view: &SendView<'_>) -> bool {
        let name = *self.together.name.get_or_insert(view.snd_una);
        let (news, is_newer) = (self.together.news.take(), mem::take(&mut self.together.is_newer));
        let known = Known::of(common, name, || self.found());
        let is_less = known.arrive(name, view.snd_una, news.is_some());
        self.together.under_way = known.under_way();
        if view.turn == Turn::Free {
            // What ends out of turn, after a timeout for instance, says little of the path.
            return is_less;
        }
        self.last_sent = self.last_sent.max(known.path.last_sent);
        // Whom nobody has asked has told nobody, and knows best.
        let is_newer = is_newer || view.turn == Turn::Alone;
        if known.told_by != name && !is_newer {
            self.take_over(&known.path, news.as_ref(), view);
        }
        if news.is_some() || is_newer {
            (known.told_by, known.path) = (name, self.found());
        }
        known.path.last_sent = self.last_sent;
        for end in self.left_behind(view) {
            if self.together.left < Some(end) {
                self.together.left = Some(end);
                known.leave(name, end);
            }
        }
        self.together.under_way = known.under_way();
        is_less
    }

    fn found(&self) -> Found {
        Found { gap: self.gap, pause: self.pause, segments: self.segments, last_sent: self.last_sent }
    }

    /// Others know more. A train that is under way stays as long as it is.
    fn take_over(&mut self, path: &Found, news: Option<&News>, view: &SendView<'_>) {
        (self.gap, self.pause) = (path.gap, path.pause);
        if view.snd_una == view.snd_nxt {
            self.segments = path.segments;
        }
        if let Some(news) = news {
            self.learn(news, view);
        }
    }

    /// Where its trains end that have left as a whole, and that the next one does not wait for.
    fn left_behind(&self, view: &SendView<'_>) -> impl Iterator<Item = Seq> + use<> {
        let flowing = self.began.filter(|_| self.pause.way() == Way::Flowing);
        let (una, nxt) = (view.snd_una, view.snd_nxt);
        let ends = flowing.map(|began| {
            let train = self.end_of(began, view).bytes_since(began).max(1);
            (1..=nxt.bytes_since(began) / train).map(move |nth| began + nth * train)
        });
        ends.into_iter().flatten().filter(move |end| una < *end)
    }

    /// Where the train begins that a turn is wanted for. One that is waited for is under way until its ACK is in, and
    /// where as much is under way as may be, so is the last one that left.
    pub(super) fn wanted(&self, view: &SendView<'_>) -> Seq {
        let Some(began) = self.began else { return view.snd_nxt };
        let train = self.end_of(began, view).bytes_since(began).max(1);
        let over = view.snd_nxt.bytes_since(began);
        if self.pause.way() == Way::Waiting || over < train {
            return began;
        }
        began + (over / train - u32::from(self.is_full())) * train
    }

    /// The trains of all that are under way are as many as they may be of a flow alone.
    pub(super) fn is_full(&self) -> bool {
        self.together.under_way > (self.ahead() / self.segments.max(1)) as usize
    }
}
