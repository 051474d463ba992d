//! Received RREPs are passed on, each to one neighbour. An unconfirmed neighbour has to acknowledge it.

use hopwise_core::Instant;
use hopwise_core::trace::DropReason;

use super::messages::{Refused, RouteMessage, passed_on, rrep_ack};
use super::table::Taken;
use super::{Aodvv2, Cx, Via};
use crate::rfc5444::Message;

impl Aodvv2 {
    /// Sends a reply to a neighbour; with a request for an acknowledgement if our frames may not reach it.
    pub(super) fn send_reply(&mut self, now: Instant, to: Via, reply: Message) {
        let mut messages = vec![reply.clone()];
        if !self.neighbours.is_confirmed(to.from) {
            messages.push(rrep_ack(true));
            self.neighbours.await_ack(to.from, now + self.settings.rrep_ack_sent_timeout, Some(reply));
        }
        self.tell_neighbour(to, messages);
    }

    pub(super) fn take_reply(&mut self, cx: &Cx<'_>, via: Via, message: &Message) -> Result<(), Refused> {
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
        let is_for_us = self.is_mine(rrep.other);
        if is_for_us {
            self.believe(rrep.other, rrep.to, message);
        }
        let Some(metric) = self.longer(&rrep) else { return Ok(()) };
        if self.is_mine(rrep.to) || self.learn(now, via, &rrep, metric) == Taken::No {
            return Ok(());
        }
        if is_for_us || self.is_asleep(now) || rrep.hop_limit <= 1 || !self.may_answer(now, via) {
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
        let is_looked_for = self.is_mine(rrep.other) && self.searches.has(rrep.to);
        is_looked_for || self.desk.was_asked(now, (rrep.other, rrep.to))
    }
}
