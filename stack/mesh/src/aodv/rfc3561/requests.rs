//! Received RREQs (RFC 3561 §6.5, §6.6): the reverse route is learned, then they are answered or passed on.

use hopwise_core::Instant;
use hopwise_core::trace::DropReason;

use super::super::ack_seq;
use super::super::messages::{AodvMessage, Extensions, Rrep, Rreq, bytes_of, millis};
use super::table::is_newer;
use super::{Aodv, Cx, Offer, Via};
use crate::on_demand::shares::OfferResult;

impl Aodv {
    pub(super) fn take_request(
        &mut self,
        cx: &Cx<'_>,
        via: Via,
        ttl: u8,
        rreq: &Rreq,
        extensions: &Extensions<'_>,
    ) {
        let now = cx.now;
        let trust = &self.desk.trust;
        let is_covered = trust.covers(rreq.origin) && trust.covers(rreq.dst);
        if self.links.is_blacklisted(now, via.from) || !is_covered {
            self.desk.dropped(DropReason::RoutingRefused, 0);
            return;
        }
        self.meet(now, via);
        if self.desk.is_mine(rreq.origin) {
            return;
        }
        let memory = self.settings.path_discovery_time();
        let news = self.seen.note(now, (rreq.origin, rreq.id), memory, self.settings.relay_ratelimit);
        if !self.desk.is_new(news) {
            return;
        }
        let hops = rreq.hop_count + 1;
        self.learn_way_back(now, via, rreq, hops);
        if self.desk.is_asleep(now) || !self.desk.may_answer(now, via.from) {
            return;
        }
        if self.desk.is_mine(rreq.dst) {
            self.believe(rreq.dst, rreq.origin, extensions);
            self.answer_as_destination(cx, rreq);
        } else if !self.answer_from_table(now, via, rreq, extensions) {
            self.pass_on(now, ttl, *rreq, extensions);
        }
    }

    /// The sender of a message is a neighbour; its number is not known by that.
    pub(super) fn meet(&mut self, now: Instant, via: Via) {
        let lives_until = now + self.settings.active_route_timeout;
        let offer = Offer { seq: None, hops: 1, link: via.link, next_hop: via.from, lives_until };
        if self.table.offer(now, via.from, &offer) == OfferResult::Yes {
            self.found(now, via.from);
        } else if let Some(route) = self.table.valid(now, via.from)
            && route.next_hop == via.from
        {
            route.lives_at_least(lives_until);
        }
    }

    fn learn_way_back(&mut self, now: Instant, via: Via, rreq: &Rreq, hops: u8) {
        let settings = &self.settings;
        let spent = 2 * u32::from(hops) * settings.node_traversal_time;
        let lives_until = now + (2 * settings.net_traversal_time()).saturating_sub(spent);
        let offer =
            Offer { seq: Some(rreq.origin_seq), hops, link: via.link, next_hop: via.from, lives_until };
        if self.table.offer(now, rreq.origin, &offer) == OfferResult::Yes {
            self.found(now, rreq.origin);
        } else if let Some(route) = self.table.valid(now, rreq.origin) {
            route.lives_at_least(lives_until);
        }
    }

    fn answer_as_destination(&mut self, cx: &Cx<'_>, rreq: &Rreq) {
        // §6.6.1: the number is never older than the one in the request.
        if let Some(asked) = rreq.dst_seq
            && is_newer(asked, self.seq)
        {
            self.seq = asked;
        }
        let rrep =
            Rrep::plain((rreq.dst, self.seq, 0), rreq.origin, millis(self.settings.my_route_timeout()));
        let extension =
            ack_seq::write_in_reply(&mut self.desk.ack_seqs, &self.settings, cx, rreq.dst, rreq.origin);
        self.send_reply(cx.now, rreq.origin, rrep, &extension);
    }

    /// §6.6.2, unless the route leads through the neighbour that sent the request: its own word would come back to it.
    fn answer_from_table(
        &mut self,
        now: Instant,
        via: Via,
        rreq: &Rreq,
        extensions: &Extensions<'_>,
    ) -> bool {
        let Some(back) = self.table.valid(now, rreq.origin).map(|back| back.next_hop) else { return false };
        let Some(route) = self.table.valid(now, rreq.dst) else { return false };
        let Some(seq) = route.seq else { return false };
        let is_old = rreq.dst_seq.is_some_and(|asked| is_newer(asked, seq));
        if is_old || rreq.is_destination_only || route.next_hop == via.from {
            return false;
        }
        let rrep =
            Rrep::plain((rreq.dst, seq, route.hops), rreq.origin, millis(route.lives_until.since(now)));
        route.add_precursor(back);
        let forth = route.next_hop;
        if let Some(back) = self.table.valid(now, rreq.origin) {
            back.add_precursor(forth);
        }
        self.send_reply(now, rreq.origin, rrep, &[]);
        if rreq.is_gratuitous {
            self.tell_destination(now, rreq, extensions);
        }
        true
    }

    /// §6.6.3: sends the destination a route to the origin, and the arrivals in its request.
    fn tell_destination(&mut self, now: Instant, rreq: &Rreq, extensions: &Extensions<'_>) {
        let Some(back) = self.table.valid(now, rreq.origin) else { return };
        let rrep = Rrep::plain(
            (rreq.origin, rreq.origin_seq, back.hops),
            rreq.dst,
            millis(back.lives_until.since(now)),
        );
        self.send_reply(now, rreq.dst, rrep, extensions.bytes());
    }

    fn pass_on(&mut self, now: Instant, ttl: u8, rreq: Rreq, extensions: &Extensions<'_>) {
        if ttl <= 1 {
            return;
        }
        // The newest number on the path goes on; the table keeps its own.
        let known = self.table.get(rreq.dst).and_then(|route| route.seq);
        let dst_seq = match (rreq.dst_seq, known) {
            (Some(asked), Some(known)) if is_newer(known, asked) => Some(known),
            (asked, known) => asked.or(known),
        };
        let passed = AodvMessage::Rreq(Rreq { hop_count: rreq.hop_count + 1, dst_seq, ..rreq });
        let at = now + self.desk.outbox.chance.up_to(self.settings.jitter);
        self.links.spoke(now);
        let memory = self.settings.path_discovery_time();
        self.desk.note_asked(now, (rreq.origin, rreq.dst), false, memory);
        let ttl = (ttl - 1).min(self.settings.net_diameter);
        self.desk.tell_everyone(Some(at), ttl, &bytes_of(&passed, extensions.bytes()));
    }
}
