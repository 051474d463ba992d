//! Received RREPs: taken and passed on only if they are newer, or as new and shorter.

use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::{Instant, LinkId};

use super::super::messages::{Extensions, Message, Rrep, bytes_of};
use super::Ns2Aodv;
use super::table::{Flag, INFINITE};
use crate::routing::Cx;

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
        self.release(now, rrep.dst, self.settings.buffer_gap);
        true
    }

    fn pass_reply_on(&mut self, rrep: &Rrep, hops: u8, extensions: &Extensions<'_>) {
        let Some(back) = self.table.get(rrep.origin).filter(|back| back.hops != INFINITE) else { return };
        let (link, next_hop) = (back.link, back.next_hop);
        let passed = Message::Rrep(Rrep { hop_count: hops, ..*rrep });
        self.tell_neighbour(link, next_hop, &bytes_of(&passed, extensions.bytes()));
        self.table.entry(rrep.dst).add_precursor(next_hop);
    }
}
