//! Received RREQs and RREPs. A request makes the reverse route, then its target replies or it is passed on.

use hopwise_core::Instant;
use hopwise_core::trace::DropReason;

use super::messages::{MessageResult, RouteMessage, passed_on, rrep_ack};
use super::table::{OfferedRoute, is_newer};
use super::{Aodvv2, Cx, Via};
use crate::on_demand::shares::OfferResult;
use crate::rfc5444::Rfc5444Message;

impl Aodvv2 {
    pub(super) fn take_request(&mut self, cx: &Cx<'_>, via: Via, message: &Rfc5444Message) -> MessageResult {
        let now = cx.now;
        let rreq = RouteMessage::of_rreq(message)?;
        let trust = &self.desk.trust;
        let is_covered = trust.covers(rreq.to) && trust.covers(rreq.other);
        if self.neighbours.is_blacklisted(now, via.from) || !is_covered {
            self.desk.dropped(DropReason::RoutingRefused, 0);
            return Ok(());
        }
        let Some(metric) = self.longer(&rreq) else { return Ok(()) };
        if self.desk.is_mine(rreq.to) {
            return Ok(());
        }
        // A node that took this route from us could be on our older route: the neighbour is to be confirmed first.
        let is_confirmed = self.neighbours.is_confirmed(via.from);
        if !is_confirmed && !self.desk.is_mine(rreq.other) && self.table.valid(now, rreq.to).is_some() {
            self.hold(now, via, message);
            return Ok(());
        }
        let (memory, rate) = (self.settings.rtemsg_entry_time, self.settings.relay_ratelimit);
        let news = self.seen.note(now, (rreq.to, rreq.other), (rreq.seq, metric), memory, rate);
        if !self.desk.is_new(news)
            || self.learn(now, via, &rreq, metric) == OfferResult::No
            || self.desk.is_asleep(now)
            || !self.desk.may_answer(now, via.from)
        {
            return Ok(());
        }
        if self.desk.is_mine(rreq.other) {
            self.believe(rreq.other, rreq.to, message);
            self.answer(cx, via, &rreq);
        } else if rreq.hop_limit > 1 {
            if let Some(route) = self.table.get_mut(now, rreq.to).filter(|_| !is_confirmed) {
                route.tell_of_unconfirmed();
            }
            let at = now + self.desk.outbox.chance.up_to(self.settings.jitter);
            self.desk.note_asked(now, (rreq.to, rreq.other), false, self.settings.rtemsg_entry_time);
            self.tell_everyone(Some(at), passed_on(message, rreq.hop_limit - 1, metric));
        }
        Ok(())
    }

    /// Hops from here to the node that a message offers; `None` beyond the largest hop count.
    pub(super) fn longer(&self, message: &RouteMessage) -> Option<u8> {
        let metric = message.metric.checked_add(1)?;
        (metric <= self.settings.max_hopcount).then_some(metric)
    }

    /// Takes the route in a message: at once over a confirmed neighbour, else after a confirmation.
    pub(super) fn learn(
        &mut self,
        now: Instant,
        via: Via,
        message: &RouteMessage,
        metric: u8,
    ) -> OfferResult {
        let ends = message.validity.map(|validity| now + validity);
        let offer = OfferedRoute { seq: message.seq, metric, link: via.link, next_hop: via.from, ends };
        if !self.neighbours.is_confirmed(via.from) {
            return self.table.offer_unconfirmed(now, message.to, &offer);
        }
        let taken = self.table.offer(now, message.to, &offer);
        if taken == OfferResult::Yes {
            self.found(now, message.to);
        }
        taken
    }

    fn answer(&mut self, cx: &Cx<'_>, via: Via, rreq: &RouteMessage) {
        if let Some(asked) = rreq.other_seq
            && is_newer(asked, self.seq)
        {
            self.seq = asked;
        }
        let rrep = self.route_message(rreq.other, (rreq.to, None));
        let mut message = rrep.rrep();
        let said = self.desk.ack_seqs.write(cx, rreq.other, rreq.to);
        message.tlvs.extend(said.map(super::messages::statement));
        self.send_reply(cx.now, via, message);
    }
}

/// Received RREPs are passed on, each to one neighbour. An unconfirmed neighbour has to acknowledge it.
impl Aodvv2 {
    /// Sends a reply to a neighbour; with a request for an acknowledgement if our frames may not reach it.
    pub(super) fn send_reply(&mut self, now: Instant, to: Via, reply: Rfc5444Message) {
        let mut messages = vec![reply.clone()];
        if !self.neighbours.is_confirmed(to.from) {
            messages.push(rrep_ack(true));
            self.neighbours.await_ack(to.from, now + self.settings.rrep_ack_sent_timeout, Some(reply));
        }
        self.tell_neighbour(to, messages);
    }

    pub(super) fn take_reply(&mut self, cx: &Cx<'_>, via: Via, message: &Rfc5444Message) -> MessageResult {
        let now = cx.now;
        let rrep = RouteMessage::of_rrep(message)?;
        let trust = &self.desk.trust;
        let is_covered = trust.covers(rrep.to) && trust.covers(rrep.other);
        if !is_covered || !self.is_awaited(now, &rrep) {
            self.desk.dropped(DropReason::RoutingRefused, 0);
            return Ok(());
        }
        // It answers our request, so that our frames reach it.
        self.confirm(cx, via);
        let is_for_us = self.desk.is_mine(rrep.other);
        if is_for_us {
            self.believe(rrep.other, rrep.to, message);
        }
        let Some(metric) = self.longer(&rrep) else { return Ok(()) };
        if self.desk.is_mine(rrep.to) || self.learn(now, via, &rrep, metric) == OfferResult::No {
            return Ok(());
        }
        if is_for_us
            || self.desk.is_asleep(now)
            || rrep.hop_limit <= 1
            || !self.desk.may_answer(now, via.from)
        {
            return Ok(());
        }
        let back = self.table.get_mut(now, rrep.other).and_then(|route| route.newest().copied());
        if let Some(back) = back.filter(|back| back.next_hop != via.from) {
            let to = Via { from: back.next_hop, link: back.link };
            self.send_reply(now, to, passed_on(message, rrep.hop_limit - 1, metric));
        }
        Ok(())
    }

    /// Returns whether it answers a request that this node made or passed on.
    fn is_awaited(&self, now: Instant, rrep: &RouteMessage) -> bool {
        let is_looked_for = self.desk.is_mine(rrep.other) && self.searches.has(rrep.to);
        is_looked_for || self.desk.was_asked(now, (rrep.other, rrep.to))
    }
}
