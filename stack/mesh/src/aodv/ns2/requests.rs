//! Received RREQs and RREPs. A request makes the reverse route, then it is answered or passed on.

use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::{Instant, LinkId};

use super::super::ack_seq;
use super::super::messages::{AodvMessage, Extensions, Rrep, Rreq, bytes_of, millis};
use super::table::{Flag, INFINITE};
use super::{BUFFER_GAP, Ns2Aodv, REVERSE_ROUTE_LIFE};
use crate::on_demand::rates::RequestNews;
use crate::routing::{ControlMessage, Cx};

impl Ns2Aodv {
    pub(super) fn take_request(
        &mut self,
        cx: &Cx<'_>,
        from: Ipv4Addr,
        control: &ControlMessage<'_>,
        rreq: &Rreq,
        extensions: &Extensions<'_>,
    ) {
        let memory = self.settings.path_discovery_time();
        if rreq.origin == self.desk.own
            || self.seen.note(cx.now, (rreq.origin, rreq.id), memory, self.settings.relay_ratelimit)
                != RequestNews::New
        {
            return;
        }
        let hops = rreq.hop_count.saturating_add(1);
        self.learn_way_back(cx.now, from, control, rreq, hops);
        if rreq.dst == self.desk.own {
            self.believe(rreq.origin, extensions);
            self.answer_as_destination(cx, rreq);
        } else if !self.answer_from_table(cx.now, rreq, extensions) {
            self.pass_on(cx.now, control, *rreq, hops, extensions);
        }
    }

    fn learn_way_back(
        &mut self,
        now: Instant,
        from: Ipv4Addr,
        control: &ControlMessage<'_>,
        rreq: &Rreq,
        hops: u8,
    ) {
        let entry = self.table.entry(rreq.origin);
        entry.expires = entry.expires.max(now + REVERSE_ROUTE_LIFE);
        if !entry.is_worse_than(rreq.origin_seq, hops) {
            return;
        }
        entry.flag = Flag::Up;
        (entry.seq, entry.hops, entry.next_hop, entry.link) = (rreq.origin_seq, hops, from, control.link);
        if entry.rests_until > Instant::ZERO {
            // A packet here waited for the origin, which is now known.
            entry.found(hops);
            entry.expires = now + self.settings.active_route_timeout;
        }
        self.report_route(rreq.origin);
        self.release(now, rreq.origin, Duration::ZERO);
    }

    fn answer_as_destination(&mut self, cx: &Cx<'_>, rreq: &Rreq) {
        let raised = self.seq.max(rreq.dst_seq.unwrap_or(0)).wrapping_add(1);
        self.seq = raised + raised % 2;
        let rrep =
            Rrep::plain((self.desk.own, self.seq, 0), rreq.origin, millis(self.settings.my_route_timeout()));
        let extension =
            ack_seq::write_in_reply(&mut self.desk.ack_seqs, &self.settings, cx, self.desk.own, rreq.origin);
        self.reply(rreq.origin, &rrep, &extension);
    }

    /// Replies from a route that is not down, also while it is in repair.
    fn answer_from_table(&mut self, now: Instant, rreq: &Rreq, extensions: &Extensions<'_>) -> bool {
        let asked = rreq.dst_seq.unwrap_or(0);
        let back = self.table.get(rreq.origin).map(|back| back.next_hop);
        let Some(entry) = self.table.get_mut(rreq.dst) else { return false };
        if entry.hops == INFINITE || entry.seq < asked || rreq.is_destination_only {
            return false;
        }
        // The rest of its life, in whole seconds. For a route in repair it is negative, and read as a huge number.
        let is_over = entry.expires < now;
        let left_s = if is_over { u64::from(u32::MAX / 1_000) } else { entry.expires.since(now).as_secs() };
        let rrep =
            Rrep::plain((rreq.dst, entry.seq, entry.hops), rreq.origin, millis(Duration::from_secs(left_s)));
        let forth = entry.next_hop;
        back.into_iter().for_each(|back| entry.add_precursor(back));
        self.table.entry(rreq.origin).add_precursor(forth);
        self.reply(rreq.origin, &rrep, &[]);
        if rreq.is_gratuitous {
            self.tell_destination(now, rreq, extensions);
        }
        true
    }

    /// Sends the destination a route to the origin, and the arrivals in the request.
    fn tell_destination(&mut self, now: Instant, rreq: &Rreq, extensions: &Extensions<'_>) {
        let Some(back) = self.table.get(rreq.origin) else { return };
        let rrep =
            Rrep::plain((rreq.origin, rreq.origin_seq, back.hops), rreq.dst, millis(back.expires.since(now)));
        self.reply(rreq.dst, &rrep, extensions.bytes());
    }

    fn reply(&mut self, towards: Ipv4Addr, rrep: &Rrep, extension: &[u8]) {
        if let Some(entry) = self.table.get(towards).filter(|entry| entry.hops != INFINITE) {
            let (link, next_hop) = (entry.link, entry.next_hop);
            self.tell_neighbour(link, next_hop, &bytes_of(&AodvMessage::Rrep(*rrep), extension));
        }
    }

    fn pass_on(
        &mut self,
        now: Instant,
        control: &ControlMessage<'_>,
        rreq: Rreq,
        hops: u8,
        extensions: &Extensions<'_>,
    ) {
        if control.hop_limit <= 1 {
            return;
        }
        // The highest number on the path goes on.
        let dst_seq = self.table.get(rreq.dst).map(|entry| entry.seq).max(rreq.dst_seq);
        let passed = AodvMessage::Rreq(Rreq { hop_count: hops, dst_seq, ..rreq });
        let at = self.jittered(now);
        self.desk.tell_everyone(at, control.hop_limit - 1, &bytes_of(&passed, extensions.bytes()));
    }
}

/// Received RREPs: taken and passed on only if they are newer, or as new and shorter.
impl Ns2Aodv {
    pub(super) fn take_reply(
        &mut self,
        cx: &Cx<'_>,
        from: Ipv4Addr,
        link: LinkId,
        rrep: &Rrep,
        extensions: &Extensions<'_>,
    ) {
        if rrep.origin == self.desk.own {
            self.believe(rrep.dst, extensions);
        }
        let hops = rrep.hop_count.saturating_add(1);
        if rrep.dst == self.desk.own || !self.learn_way_forth(cx.now, (from, link), rrep, hops) {
            return;
        }
        if rrep.origin != self.desk.own {
            self.pass_reply_on(rrep, hops, extensions);
        }
    }

    fn learn_way_forth(&mut self, now: Instant, via: (Ipv4Addr, LinkId), rrep: &Rrep, hops: u8) -> bool {
        let is_own = rrep.origin == self.desk.own;
        let entry = self.table.entry(rrep.dst);
        if !entry.is_worse_than(rrep.dst_seq, hops) {
            return false;
        }
        entry.flag = Flag::Up;
        (entry.seq, entry.hops, (entry.next_hop, entry.link)) = (rrep.dst_seq, hops, via);
        entry.expires = now + Duration::from_millis(rrep.lifetime_ms.into());
        if is_own && entry.asked_at > Instant::ZERO {
            let per_hop = now.since(entry.asked_at) / u32::from(hops);
            entry.learn_latency(per_hop);
        }
        entry.found(hops);
        self.report_route(rrep.dst);
        // The rule of the ARP gap.
        self.release(now, rrep.dst, BUFFER_GAP);
        true
    }

    fn pass_reply_on(&mut self, rrep: &Rrep, hops: u8, extensions: &Extensions<'_>) {
        let Some(back) = self.table.get(rrep.origin).filter(|back| back.hops != INFINITE) else { return };
        let (link, next_hop) = (back.link, back.next_hop);
        let passed = AodvMessage::Rrep(Rrep { hop_count: hops, ..*rrep });
        self.tell_neighbour(link, next_hop, &bytes_of(&passed, extensions.bytes()));
        self.table.entry(rrep.dst).add_precursor(next_hop);
    }
}
