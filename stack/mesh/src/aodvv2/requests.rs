//! Received RREQs: the reverse route is learned, then their target replies or they are passed on.

use hopwise_core::Instant;
use hopwise_core::trace::DropReason;

use super::messages::{Refused, RouteMessage, passed_on};
use super::seen::Request;
use super::table::{Offer, Taken, is_newer};
use super::{Aodvv2, Cx, Via};
use crate::rfc5444::Message;

impl Aodvv2 {
    pub(super) fn take_request(&mut self, cx: &Cx<'_>, via: Via, message: &Message) -> Result<(), Refused> {
        let now = cx.now;
        let rreq = RouteMessage::of_rreq(message)?;
        let trust = &self.desk.trust;
        let is_covered = trust.covers(rreq.to) && trust.covers(rreq.other);
        if self.neighbours.is_blacklisted(now, via.from) || !is_covered {
            self.desk.dropped(DropReason::RoutingRefused, 0);
            return Ok(());
        }
        let Some(metric) = self.longer(&rreq) else { return Ok(()) };
        if self.is_mine(rreq.to) {
            return Ok(());
        }
        // A node that took this route from us could be on our older route: the neighbour is to be confirmed first.
        let is_confirmed = self.neighbours.is_confirmed(via.from);
        if !is_confirmed && !self.is_mine(rreq.other) && self.table.valid(now, rreq.to).is_some() {
            self.hold(now, via, message);
            return Ok(());
        }
        let (memory, rate) = (self.settings.rtemsg_entry_time, self.settings.relay_ratelimit);
        match self.seen.note(now, (rreq.to, rreq.other), (rreq.seq, metric), memory, rate) {
            Request::New => {}
            Request::Redundant => return Ok(()),
            Request::Flood => {
                self.desk.dropped(DropReason::RoutingRateLimited, 0);
                return Ok(());
            }
        }
        if self.learn(now, via, &rreq, metric) == Taken::No
            || self.is_asleep(now)
            || !self.may_answer(now, via)
        {
            return Ok(());
        }
        if self.is_mine(rreq.other) {
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
    pub(super) fn learn(&mut self, now: Instant, via: Via, message: &RouteMessage, metric: u8) -> Taken {
        let ends = message.validity.map(|validity| now + validity);
        let offer = Offer { seq: message.seq, metric, link: via.link, next_hop: via.from, ends };
        if !self.neighbours.is_confirmed(via.from) {
            return self.table.offer_unconfirmed(now, message.to, &offer);
        }
        let taken = self.table.offer(now, message.to, &offer);
        if taken == Taken::Yes {
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
        let rrep = RouteMessage {
            hop_limit: self.settings.max_hopcount,
            to: rreq.other,
            seq: self.next_seq(),
            metric: 0,
            validity: None,
            other: rreq.to,
            other_seq: None,
        };
        let mut message = rrep.rrep();
        let said = self.desk.ack_seqs.write(cx, rreq.other, rreq.to);
        message.tlvs.extend(said.map(super::messages::statement));
        self.send_reply(cx.now, via, message);
    }
}
