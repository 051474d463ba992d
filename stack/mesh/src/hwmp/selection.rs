//! Requests, replies and errors: how a node searches for a path, and what it does with messages of other nodes.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::trace::DropReason;

use super::frames::{Frame, Perr, Prep, Preq};
use super::paths::{HwmpPathNews, PathSearch, is_newer};
use super::peers::PeerKey;
use super::{Hwmp, LINK_FAIL_THRESHOLD, TIME_UNIT};
use crate::on_demand::{is_host, v4};

/// Reasons of errors.
pub(super) const NO_FORWARDING: u16 = 62;
pub(super) const UNREACHABLE: u16 = 63;

/// The time for which a node keeps its sequence number: that of a message across the network.
const NET_DIAMETER_TRAVERSAL_TIME: Duration = Duration::from_millis(50);
/// The least time between two error messages of a node: a hundred units of 802.11.
const PERR_MIN_INTERVAL: Duration = Duration::from_millis(102);
/// The largest number of requests that wait for their turn.
const MOST_QUEUED: usize = 64;

/// A request that waits for its turn.
#[derive(Clone, Copy, Debug)]
struct QueuedRequest {
    node: Ipv4Addr,
    kind: RequestKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestKind {
    First,
    /// There is a path, which ends soon: the target alone may answer.
    Refresh,
    Retry,
}

/// The numbers of a node, and the times of its messages.
#[derive(Debug, Default)]
pub(super) struct Selection {
    sn: u32,
    /// When the number last changed.
    sn_changed: Option<Instant>,
    preq_id: u32,
    queue: VecDeque<QueuedRequest>,
    last_preq: Option<Instant>,
    next_perr: Option<Instant>,
}

/// A node that a message tells of, as it was where the message comes from.
#[derive(Clone, Copy, Debug)]
struct ToldNode {
    node: Ipv4Addr,
    sn: u32,
    metric: u32,
    hops: u8,
    lifetime: u32,
}

impl Hwmp {
    /// A newer number, unless the last one is so new that all nodes may not have heard of it.
    fn renew_sn(&mut self, now: Instant) {
        if self.selection.sn_changed.is_none_or(|changed| now > changed + NET_DIAMETER_TRAVERSAL_TIME) {
            self.selection.sn = self.selection.sn.wrapping_add(1);
            self.selection.sn_changed = Some(now);
        }
    }

    /// Queues a request for a path, unless there is one. Returns false if too many searches wait for their turn.
    pub(super) fn ask(&mut self, now: Instant, node: Ipv4Addr, is_refresh: bool) -> bool {
        let kind = if is_refresh { RequestKind::Refresh } else { RequestKind::First };
        let is_searched = self.paths.get(node).is_none_or(|path| path.search.is_some());
        is_searched || self.queue(now, QueuedRequest { node, kind })
    }

    fn queue(&mut self, now: Instant, queued: QueuedRequest) -> bool {
        let is_full = self.selection.queue.len() >= MOST_QUEUED;
        let Some(path) = self.paths.known_mut(queued.node) else { return false };
        if !path.is_queued {
            if is_full {
                return false;
            }
            path.is_queued = true;
            self.selection.queue.push_back(queued);
            self.send_queued(now);
        }
        true
    }

    /// When the next queued request may leave.
    fn next_turn(&self) -> Instant {
        let interval = self.settings.preq_min_interval;
        self.selection.last_preq.map_or(Instant::ZERO, |last| last + interval)
    }

    pub(super) fn next_search(&self) -> Option<Instant> {
        let turn = (!self.selection.queue.is_empty()).then(|| self.next_turn());
        [turn, self.paths.next()].into_iter().flatten().min()
    }

    fn send_queued(&mut self, now: Instant) {
        while self.next_turn() <= now
            && let Some(queued) = self.selection.queue.pop_front()
        {
            self.start(now, queued);
        }
    }

    /// Sends a request whose turn it is.
    fn start(&mut self, now: Instant, QueuedRequest { node, kind }: QueuedRequest) {
        let first_timeout = self.settings.min_discovery_timeout;
        let Some(path) = self.paths.get_mut(now, node) else { return };
        path.is_queued = false;
        let search = match (kind, path.search) {
            (RequestKind::First | RequestKind::Refresh, Some(_)) => return,
            (RequestKind::First | RequestKind::Refresh, None) => {
                PathSearch { retries: 0, timeout: first_timeout, until: None, is_answered: false }
            }
            (RequestKind::Retry, Some(search)) if !search.is_answered => search,
            (RequestKind::Retry, _) => return self.end_answered(now, node),
        };
        path.search = Some(PathSearch { until: Some(now + search.timeout), ..search });
        let target_sn = path.sn.unwrap_or(0);
        if kind == RequestKind::First {
            self.discoveries += 1;
        }
        self.renew_sn(now);
        self.selection.last_preq = Some(now);
        let preq = Preq {
            hop_count: 0,
            ttl: self.settings.element_ttl,
            id: self.selection.preq_id,
            originator: self.own,
            originator_sn: self.selection.sn,
            lifetime: time_units(self.settings.active_path_timeout),
            metric: 0,
            target_only: kind == RequestKind::Refresh,
            target: node,
            target_sn,
        };
        self.selection.preq_id = self.selection.preq_id.wrapping_add(1);
        self.tell_everyone(now, &Frame::Preq(preq));
    }

    pub(super) fn go_on_searching(&mut self, now: Instant) {
        for node in self.paths.due(now) {
            self.go_on(now, node);
        }
        self.send_queued(now);
    }

    /// The wait for an answer is over: a search ends with an answer, or after its last retry.
    fn go_on(&mut self, now: Instant, node: Ipv4Addr) {
        let most = self.settings.max_preq_retries;
        let Some(path) = self.paths.get_mut(now, node) else { return };
        let Some(search) = path.search else { return };
        if search.is_answered {
            return self.end_answered(now, node);
        }
        if search.retries < most {
            let (retries, timeout) = (search.retries + 1, search.timeout * 2);
            path.search = Some(PathSearch { retries, timeout, until: None, is_answered: false });
            path.is_queued = false;
            if !self.queue(now, QueuedRequest { node, kind: RequestKind::Retry })
                && let Some(path) = self.paths.known_mut(node)
            {
                // Too many searches wait for their turn: this search waits as long again.
                path.search = Some(PathSearch { until: Some(now + search.timeout), ..search });
            }
            return;
        }
        path.search = None;
        path.ends = now;
        path.is_active = false;
        self.report(node);
        self.drop_waiting(node);
    }

    /// A search that was answered is over. Its path may be lost again, and packets may wait for it.
    fn end_answered(&mut self, now: Instant, node: Ipv4Addr) {
        let Some(path) = self.paths.get_mut(now, node) else { return };
        path.search = None;
        if path.via().is_none() && !path.waiting.is_empty() && !self.ask(now, node, false) {
            self.drop_waiting(node);
        }
    }

    /// Drops the packets that wait for a path.
    pub(super) fn drop_waiting(&mut self, node: Ipv4Addr) {
        let waiting = self.paths.known_mut(node).map(|path| std::mem::take(&mut path.waiting));
        waiting
            .into_iter()
            .flatten()
            .for_each(|waiting| self.outbox.dropped(DropReason::NoRoute, waiting.id));
    }

    /// Takes what a request or a reply tells of a node and of the neighbour that brought it. Returns the metric of the
    /// whole path if the message goes on.
    fn learn(&mut self, now: Instant, from: PeerKey, told: &ToldNode) -> Option<u32> {
        let last_hop = self.peers.link_mut(from)?.metric(LINK_FAIL_THRESHOLD);
        let metric = told.metric.saturating_add(last_hop);
        let ends = now + TIME_UNIT.saturating_mul(told.lifetime);
        let mut goes_on = told.node != self.own;
        if goes_on {
            let news = HwmpPathNews { via: from, metric, hops: told.hops, ends };
            let path = self.paths.entry(now, told.node)?;
            goes_on = path.yields_to(told.sn, &news);
            if goes_on {
                path.take(Some(told.sn), &news);
                self.found(told.node, from);
            }
        }
        if told.node != from.1 {
            let news = HwmpPathNews { via: from, metric: last_hop, hops: 1, ends };
            let path = self.paths.entry(now, from.1)?;
            if path.yields_to_neighbour(&news) {
                path.take(None, &news);
                self.found(from.1, from);
            }
        }
        goes_on.then_some(metric)
    }

    /// There is a new path.
    fn found(&mut self, node: Ipv4Addr, via: PeerKey) {
        if let Some(link) = self.peers.link_mut(via) {
            link.begin_path();
        }
        self.report(node);
        self.release(node);
    }

    pub(super) fn take_preq(&mut self, now: Instant, from: PeerKey, preq: &Preq) {
        if !is_host(preq.originator) || !is_host(preq.target) {
            return self.outbox.dropped(DropReason::RoutingRefused, 0);
        }
        let told = ToldNode {
            node: preq.originator,
            sn: preq.originator_sn,
            metric: preq.metric,
            hops: preq.hop_count.saturating_add(1),
            lifetime: preq.lifetime,
        };
        let Some(metric) = self.learn(now, from, &told) else { return };
        if preq.target == self.own {
            if is_newer(preq.target_sn, self.selection.sn) {
                self.selection.sn = preq.target_sn;
            }
            self.renew_sn(now);
            return self.reply(now, from, preq, (self.selection.sn, 0));
        }
        let mut preq = *preq;
        if let Some(path) = self.paths.get_mut(now, preq.target) {
            match path.sn {
                Some(sn) if !is_newer(preq.target_sn, sn) => {
                    if !preq.target_only && path.is_active {
                        let known = (sn, path.metric);
                        self.reply(now, from, &preq, known);
                        (preq.target_only, preq.target_sn) = (true, sn);
                    }
                }
                _ => path.sn = Some(preq.target_sn),
            }
        }
        if preq.ttl > 1 {
            let (hop_count, ttl) = (preq.hop_count.saturating_add(1), preq.ttl - 1);
            let at = self.soon(now);
            self.tell_everyone(at, &Frame::Preq(Preq { hop_count, ttl, metric, ..preq }));
        }
    }

    /// Answers a request with the number of its target, and with the metric from here.
    fn reply(&mut self, now: Instant, to: PeerKey, preq: &Preq, (target_sn, metric): (u32, u32)) {
        let prep = Prep {
            hop_count: 0,
            ttl: self.settings.element_ttl,
            target: preq.target,
            target_sn,
            lifetime: preq.lifetime,
            metric,
            originator: preq.originator,
            originator_sn: preq.originator_sn,
        };
        let at = self.soon(now);
        self.tell(at, to, &Frame::Prep(prep));
    }

    pub(super) fn take_prep(&mut self, now: Instant, from: PeerKey, prep: &Prep) {
        if !is_host(prep.originator) || !is_host(prep.target) {
            return self.outbox.dropped(DropReason::RoutingRefused, 0);
        }
        let told = ToldNode {
            node: prep.target,
            sn: prep.target_sn,
            metric: prep.metric,
            hops: prep.hop_count.saturating_add(1),
            lifetime: prep.lifetime,
        };
        let Some(metric) = self.learn(now, from, &told) else { return };
        if prep.originator == self.own || prep.ttl <= 1 {
            return;
        }
        let Some(next) = self.paths.get_mut(now, prep.originator).and_then(|path| path.via()) else { return };
        let (hop_count, ttl) = (prep.hop_count.saturating_add(1), prep.ttl - 1);
        let at = self.soon(now);
        self.tell(at, next, &Frame::Prep(Prep { hop_count, ttl, metric, ..*prep }));
    }

    pub(super) fn take_perr(&mut self, now: Instant, from: PeerKey, perr: &Perr) {
        if perr.ttl <= 1 {
            return;
        }
        let Some(path) = self.paths.get_mut(now, perr.destination) else { return };
        let is_newer = perr.sn == 0 || path.sn.is_none_or(|sn| is_newer(perr.sn, sn));
        if path.via() != Some(from) || !is_newer {
            return;
        }
        path.is_active = false;
        path.sn = path.sn.map(|sn| if perr.sn == 0 { sn.wrapping_add(1) } else { perr.sn });
        self.failures += 1;
        self.report(perr.destination);
        self.send_error(now, None, &Perr { ttl: perr.ttl - 1, ..*perr });
    }

    /// Tells all neighbours of a path that is lost.
    pub(super) fn tell_error(&mut self, now: Instant, (destination, sn): (Ipv4Addr, u32), reason: u16) {
        self.send_error(now, None, &Perr { ttl: self.settings.element_ttl, destination, sn, reason });
    }

    /// Tells the neighbour that sent a packet that there is no path from here.
    pub(super) fn refuse(&mut self, now: Instant, destination: Ipv4Addr, from: Option<IpAddr>) {
        let to = from.and_then(v4).and_then(|from| self.peers.of(from));
        let perr = Perr { ttl: self.settings.element_ttl, destination, sn: 0, reason: NO_FORWARDING };
        if let Some(to) = to {
            self.send_error(now, Some(to), &perr);
        }
    }

    /// Errors leave at a bounded rate. The rest is lost.
    fn send_error(&mut self, now: Instant, to: Option<PeerKey>, perr: &Perr) {
        if self.selection.next_perr.is_some_and(|next| now < next) {
            return;
        }
        self.selection.next_perr = Some(now + PERR_MIN_INTERVAL);
        let at = self.soon(now);
        match to {
            Some(to) => self.tell(at, to, &Frame::Perr(*perr)),
            None => self.tell_everyone(at, &Frame::Perr(*perr)),
        }
    }
}

fn time_units(time: Duration) -> u32 {
    u32::try_from(time.as_micros() / TIME_UNIT.as_micros()).unwrap_or(u32::MAX)
}
