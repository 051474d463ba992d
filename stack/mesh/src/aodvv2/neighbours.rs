//! The state of neighbours: heard, confirmed or blacklisted. A message to one neighbour may need an acknowledgement.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::trace::DropReason;
use hopwise_core::{Instant, LinkId};

use super::Settings;
use super::messages::rrep_ack;
use super::{Aodvv2, Cx, Via};
use crate::on_demand::shares::{MOST_NEIGHBOURS as MOST, NeighbourStanding, gives_way};
use crate::rfc5444::Rfc5444Message;

/// The number of retries of an RREP that is not acknowledged.
const RREP_RETRIES: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkState {
    /// Frames of it arrive here; ours may not arrive there.
    Heard,
    Confirmed,
    Blacklisted(Instant),
}

/// An awaited acknowledgement, of a reply or of a probe without one.
#[derive(Clone, Debug)]
struct Awaited {
    until: Instant,
    tries: u8,
    reply: Option<Rfc5444Message>,
    /// A request of the neighbour that is processed once our frames are known to reach it.
    held: Option<Rfc5444Message>,
}

#[derive(Clone, Debug)]
struct NeighbourState {
    link: LinkId,
    state: LinkState,
    heard: Instant,
    awaited: Option<Awaited>,
    watched: Option<NextHopWatch>,
    /// It has not answered a probe yet.
    owes_life: bool,
}

impl NeighbourState {
    fn standing(&self) -> NeighbourStanding {
        match self.state {
            _ if self.watched.is_some() => NeighbourStanding::InUse,
            LinkState::Heard => NeighbourStanding::Heard,
            LinkState::Blacklisted(_) => NeighbourStanding::Blacklisted,
            LinkState::Confirmed => NeighbourStanding::Confirmed,
        }
    }
}

/// A next hop in use, which is probed.
#[derive(Clone, Copy, Debug)]
struct NextHopWatch {
    until: Instant,
    asks_at: Instant,
    unanswered: u8,
}

#[derive(Debug, Default)]
pub(super) struct Neighbours(BTreeMap<Ipv4Addr, NeighbourState>);

impl Neighbours {
    pub(super) fn heard(&mut self, now: Instant, via: Via) {
        if self.0.len() >= MOST && !self.0.contains_key(&via.from) && !self.give_up_oldest() {
            return;
        }
        let new = NeighbourState {
            link: via.link,
            state: LinkState::Heard,
            heard: now,
            awaited: None,
            watched: None,
            owes_life: false,
        };
        let neighbour = self.0.entry(via.from).or_insert(new);
        (neighbour.heard, neighbour.link) = (now, via.link);
        if let Some(watch) = &mut neighbour.watched {
            watch.unanswered = 0;
        }
    }

    /// A neighbour whose acknowledgement is awaited stays.
    fn give_up_oldest(&mut self) -> bool {
        let settled = self.0.iter().filter(|(_, known)| known.awaited.is_none());
        let oldest = gives_way(settled.map(|(from, known)| (*from, known.standing(), known.heard)));
        oldest.is_some_and(|oldest| self.0.remove(&oldest).is_some())
    }

    pub(super) fn is_confirmed(&self, neighbour: Ipv4Addr) -> bool {
        self.0.get(&neighbour).is_some_and(|known| known.state == LinkState::Confirmed)
    }

    pub(super) fn is_blacklisted(&mut self, now: Instant, neighbour: Ipv4Addr) -> bool {
        let Some(known) = self.0.get_mut(&neighbour) else { return false };
        match known.state {
            LinkState::Blacklisted(until) if until > now => true,
            LinkState::Blacklisted(_) => {
                known.state = LinkState::Heard;
                false
            }
            LinkState::Heard | LinkState::Confirmed => false,
        }
    }

    /// Returns whether it owes an acknowledgement.
    pub(super) fn is_asked(&self, neighbour: Ipv4Addr) -> bool {
        self.0.get(&neighbour).is_some_and(|known| known.awaited.is_some())
    }

    /// Returns whether it was asked for an acknowledgement. Once one has come, no second one is believed.
    fn settle(&mut self, neighbour: Ipv4Addr) -> bool {
        self.0
            .get_mut(&neighbour)
            .is_some_and(|known| std::mem::take(&mut known.owes_life) || known.awaited.is_some())
    }

    /// Returns a request that was held until now.
    fn confirm(&mut self, neighbour: Ipv4Addr) -> Option<Rfc5444Message> {
        let known = self.0.get_mut(&neighbour)?;
        known.state = LinkState::Confirmed;
        known.awaited.take()?.held
    }

    pub(super) fn lost(&mut self, neighbour: Ipv4Addr) {
        if let Some(known) = self.0.get_mut(&neighbour) {
            known.watched = None;
            if known.state == LinkState::Confirmed {
                known.state = LinkState::Heard;
            }
        }
    }

    /// A retry repeats the newest reply.
    pub(super) fn await_ack(&mut self, neighbour: Ipv4Addr, until: Instant, reply: Option<Rfc5444Message>) {
        if let Some(known) = self.0.get_mut(&neighbour) {
            let before = known.awaited.take();
            let tries = before.as_ref().map_or(0, |awaited| awaited.tries);
            let held = before.and_then(|awaited| awaited.held);
            known.awaited = Some(Awaited { until, tries, reply, held });
        }
    }

    /// Probes a next hop in use, if no link layer reports losses.
    pub(super) fn note_use(&mut self, now: Instant, via: Via, settings: &Settings) {
        if !settings.hello {
            return;
        }
        if !self.0.contains_key(&via.from) {
            // It has made room for other neighbours.
            self.heard(now, via);
        }
        if let Some(known) = self.0.get_mut(&via.from) {
            let until = now + settings.active_interval;
            let new = NextHopWatch { until, asks_at: now + settings.hello_interval, unanswered: 0 };
            known.watched = Some(NextHopWatch { until, ..known.watched.unwrap_or(new) });
        }
    }

    pub(super) fn forget(&mut self, now: Instant, life: Duration) {
        self.0.retain(|_, known| match known.state {
            LinkState::Blacklisted(until) => until > now,
            LinkState::Heard | LinkState::Confirmed => {
                known.awaited.is_some() || now.since(known.heard) <= life
            }
        });
    }

    pub(super) fn next(&self) -> Option<Instant> {
        let of = |known: &NeighbourState| {
            [known.awaited.as_ref().map(|awaited| awaited.until), known.watched.map(|watch| watch.asks_at)]
        };
        self.0.values().flat_map(of).flatten().min()
    }
}

impl Aodvv2 {
    /// A neighbour acknowledges that our frames reach it.
    pub(super) fn take_ack(&mut self, cx: &Cx<'_>, via: Via) {
        if self.neighbours.settle(via.from) {
            self.confirm(cx, via);
        } else {
            self.desk.dropped(DropReason::RoutingRefused, 0);
        }
    }

    /// Requests an acknowledgement of a neighbour, unless one is due, and holds its newest request until then.
    pub(super) fn hold(&mut self, now: Instant, via: Via, request: &Rfc5444Message) {
        if !self.neighbours.is_asked(via.from) {
            if !self.desk.may_answer(now, via.from) {
                return;
            }
            self.neighbours.await_ack(via.from, now + self.settings.rrep_ack_sent_timeout, None);
            self.tell_neighbour(via, vec![rrep_ack(true)]);
        }
        let known = self.neighbours.0.get_mut(&via.from);
        if let Some(awaited) = known.and_then(|known| known.awaited.as_mut()) {
            awaited.held = Some(request.clone());
        }
    }

    /// Routes that waited for this neighbour are used now, and its request is processed.
    pub(super) fn confirm(&mut self, cx: &Cx<'_>, via: Via) {
        let held = self.neighbours.confirm(via.from);
        for dst in self.table.confirm(cx.now, via.from) {
            self.found(cx.now, dst);
        }
        if let Some(request) = held {
            // It was read once already.
            let _ = self.take_request(cx, via, &request);
        }
    }

    /// Our frames do not reach a neighbour: its messages are ignored for a while.
    fn blacklist(&mut self, cx: &Cx<'_>, via: Via) {
        let until = cx.now + self.settings.max_blacklist_time;
        self.lose_neighbour(cx.now, via);
        if let Some(known) = self.neighbours.0.get_mut(&via.from) {
            (known.state, known.awaited) = (LinkState::Blacklisted(until), None);
        }
        for dst in self.table.doubt(via.from) {
            let is_ours = self.table.get(dst).is_some_and(|route| route.is_ours);
            match self.desk.buffer.wish(dst).filter(|_| is_ours) {
                Some(wish) => self.search(cx, self.desk.own.into(), (dst, wish)),
                None => self.desk.drop_waiting(dst),
            }
        }
    }

    /// Handles missing acknowledgements and due probes.
    pub(super) fn watch_neighbours(&mut self, cx: &Cx<'_>) {
        let now = cx.now;
        let of = |(from, known): (&Ipv4Addr, &NeighbourState)| {
            let is_late = known.awaited.as_ref().is_some_and(|awaited| awaited.until <= now);
            let is_to_ask = known.watched.is_some_and(|watch| watch.asks_at <= now);
            (is_late || is_to_ask).then_some((Via { from: *from, link: known.link }, is_late))
        };
        let due: Vec<_> = self.neighbours.0.iter().filter_map(of).collect();
        for (via, is_late) in due {
            if is_late {
                self.ask_again(cx, via);
            } else {
                self.ask_for_life(now, via);
            }
        }
    }

    fn ask_again(&mut self, cx: &Cx<'_>, via: Via) {
        let wait = self.settings.rrep_ack_sent_timeout;
        let Some(known) = self.neighbours.0.get_mut(&via.from) else { return };
        let Some(awaited) = known.awaited.as_mut() else { return };
        if awaited.tries >= RREP_RETRIES {
            self.blacklist(cx, via);
            return;
        }
        awaited.tries += 1;
        awaited.until = cx.now + wait;
        let again = awaited.reply.clone().into_iter().chain([rrep_ack(true)]).collect();
        if self.desk.may_answer(cx.now, via.from) {
            self.tell_neighbour(via, again);
        }
    }

    fn ask_for_life(&mut self, now: Instant, via: Via) {
        let (interval, most) = (self.settings.hello_interval, self.settings.allowed_hello_loss);
        let Some(known) = self.neighbours.0.get_mut(&via.from) else { return };
        let Some(watch) = &mut known.watched else { return };
        if watch.until <= now {
            known.watched = None;
        } else if watch.unanswered >= most {
            self.lose_neighbour(now, via);
        } else {
            watch.asks_at = now + interval;
            // No probe is needed soon after another message.
            if now.since(known.heard) >= interval / 2 {
                watch.unanswered += 1;
                known.owes_life = true;
                self.tell_neighbour(via, vec![rrep_ack(true)]);
            }
        }
    }
}
