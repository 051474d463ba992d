//! Received RREPs (RFC 3561 §6.7) are acknowledged (§6.8) and passed on. Hellos show that a neighbour is there (§6.9).

use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::trace::DropReason;

use super::super::messages::{AodvMessage, Extensions, HELLO_INTERVAL, Rrep, bytes_of, millis};
use super::{Aodv, Cx, Offer, Via};
use crate::on_demand::MessageReceiver;
use crate::on_demand::shares::OfferResult;

/// The shortest interval between hellos.
const SHORTEST_HELLO: Duration = Duration::from_millis(10);

impl Aodv {
    /// Sends a RREP one hop towards a node.
    pub(super) fn send_reply(&mut self, now: Instant, towards: Ipv4Addr, rrep: Rrep, extension: &[u8]) {
        let Some(back) = self.table.valid(now, towards) else { return };
        back.lives_at_least(now + self.settings.active_route_timeout);
        let (link, next_hop) = (back.link, back.next_hop);
        let wants_ack = self.settings.rrep_ack;
        if wants_ack {
            self.links.await_ack(next_hop, now + self.settings.next_hop_wait());
        }
        let rrep = AodvMessage::Rrep(Rrep { wants_ack, ..rrep });
        self.tell_neighbour(link, next_hop, &bytes_of(&rrep, extension));
    }

    pub(super) fn take_reply(&mut self, cx: &Cx<'_>, via: Via, rrep: &Rrep, extensions: &Extensions<'_>) {
        let now = cx.now;
        let trust = &self.desk.trust;
        let is_covered = trust.covers(rrep.dst) && trust.covers(rrep.origin);
        if !is_covered || !self.is_awaited(now, rrep) {
            self.desk.dropped(DropReason::RoutingRefused, 0);
            return;
        }
        let before = self.table.get(rrep.dst).map(|route| (route.state, route.hops));
        let life = Duration::from_millis(rrep.lifetime_ms.into()).min(self.settings.delete_period());
        let offer = Offer {
            seq: Some(rrep.dst_seq),
            hops: rrep.hop_count + 1,
            link: via.link,
            next_hop: via.from,
            lives_until: now + life,
        };
        // A destination's own reply is judged before the destination counts as met: meeting it makes its route active,
        // and a reply with the route's number then goes no further.
        let is_taken =
            !self.desk.is_mine(rrep.dst) && self.table.offer(now, rrep.dst, &offer) == OfferResult::Yes;
        self.meet(now, via);
        if rrep.wants_ack && self.desk.may_answer(now, via.from) {
            self.tell_neighbour(via.link, via.from, &bytes_of(&AodvMessage::RrepAck, &[]));
        }
        let is_for_us = self.desk.is_mine(rrep.origin);
        if is_for_us {
            self.believe(rrep.origin, rrep.dst, extensions);
        }
        if !is_taken {
            return;
        }
        self.mended(now, rrep.dst, before);
        self.found(now, rrep.dst);
        if !is_for_us && !self.desk.is_asleep(now) && self.desk.may_answer(now, via.from) {
            self.pass_reply_on(now, via, rrep, extensions);
        }
    }

    /// Returns whether it answers a request that this node made or passed on. A gratuitous RREP answers none (§6.6.3),
    /// so that it is taken only if the node itself requests gratuitous RREPs.
    fn is_awaited(&self, now: Instant, rrep: &Rrep) -> bool {
        let is_looked_for = self.desk.is_mine(rrep.origin) && self.searches.has(rrep.dst);
        is_looked_for || self.settings.gratuitous || self.desk.was_asked(now, (rrep.origin, rrep.dst))
    }

    fn pass_reply_on(&mut self, now: Instant, via: Via, rrep: &Rrep, extensions: &Extensions<'_>) {
        let Some(back) = self.table.valid(now, rrep.origin).map(|back| back.next_hop) else { return };
        for dst in [rrep.dst, via.from] {
            if let Some(route) = self.table.valid(now, dst) {
                route.add_precursor(back);
            }
        }
        let passed = Rrep { hop_count: rrep.hop_count + 1, ..*rrep };
        self.send_reply(now, rrep.origin, passed, extensions.bytes());
    }

    pub(super) fn take_hello(&mut self, now: Instant, via: Via, rrep: &Rrep, extensions: &Extensions<'_>) {
        if rrep.dst != via.from || rrep.hop_count != 0 {
            self.desk.dropped(DropReason::RoutingRefused, 0);
            return;
        }
        let interval = extensions.find(HELLO_INTERVAL).and_then(|data| data.try_into().ok());
        let life = interval.map_or(self.settings.hello_life(), |ms| {
            let interval = Duration::from_millis(u32::from_be_bytes(ms).into());
            let interval = interval.clamp(SHORTEST_HELLO, self.settings.delete_period().max(SHORTEST_HELLO));
            interval * u32::from(self.settings.allowed_hello_loss)
        });
        self.links.said_hello(now, via, life);
        let lives_until = now + life;
        let offer =
            Offer { seq: Some(rrep.dst_seq), hops: 1, link: via.link, next_hop: via.from, lives_until };
        if self.table.offer(now, via.from, &offer) == OfferResult::Yes {
            self.found(now, via.from);
        } else {
            self.meet(now, via);
            if let Some(route) = self.table.valid(now, via.from)
                && route.next_hop == via.from
            {
                route.lives_at_least(lives_until);
            }
        }
    }

    pub(super) fn say_hello(&mut self) {
        let rrep =
            Rrep::plain((self.desk.own, self.seq, 0), self.desk.own, millis(self.settings.hello_life()));
        for interface in self.desk.interfaces.clone() {
            let rrep = Rrep { dst: interface.address, origin: interface.address, ..rrep };
            let bytes = bytes_of(&AodvMessage::Rrep(rrep), &[]);
            let order = self.desk.outbox.order(&interface, MessageReceiver::Everyone, 1, &bytes);
            self.desk.outbox.push(order);
        }
    }
}
