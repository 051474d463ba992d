//! Requests: when they leave, how far they go, and when a destination rests.

use std::net::Ipv4Addr;

use hopwise_core::Instant;

use super::super::ack_seq;
use super::super::messages::{AodvMessage, Rreq, bytes_of};
use super::table::Flag;
use super::{Ns2Aodv, REST};
use crate::routing::Cx;

impl Ns2Aodv {
    /// Requests lost routes that packets of this node used lately. Another such search needs another packet.
    pub(super) fn search_at_once(&mut self, cx: &Cx<'_>, lost: &[Ipv4Addr]) {
        for dst in lost {
            let Some(entry) = self.table.get_mut(*dst) else { continue };
            let until = std::mem::replace(&mut entry.own_use_until, Instant::ZERO);
            if until > cx.now && entry.rests_until <= cx.now {
                entry.is_wanted = true;
                self.ask(cx, *dst);
            }
        }
    }

    /// Sends a request, unless it is too early. Every packet and every sweep calls it.
    pub(super) fn ask(&mut self, cx: &Cx<'_>, dst: Ipv4Addr) {
        let (now, own) = (cx.now, self.desk.own);
        let settings = &self.settings;
        let Some(entry) = self.table.get_mut(dst) else { return };
        if entry.flag == Flag::Up || entry.rests_until > now {
            return;
        }
        if entry.wide_requests > settings.rreq_retries {
            (entry.rests_until, entry.wide_requests) = (now + REST, 0);
            (entry.is_asking, entry.is_wanted) = (false, false);
            self.desk.drop_waiting(dst);
            return;
        }
        // The rule of the first request: `last_hops` begins at infinity.
        let known = entry.last_ttl.max(entry.last_hops);
        let ttl = if known == 0 {
            settings.ttl_start
        } else if known < settings.ttl_threshold {
            known.saturating_add(settings.ttl_increment)
        } else {
            entry.wide_requests = entry.wide_requests.saturating_add(1);
            settings.net_diameter
        };
        entry.last_ttl = ttl;
        let mut wait = 2 * u32::from(ttl) * entry.time_per_hop(settings.node_traversal_time);
        if entry.wide_requests > 0 {
            wait *= u32::from(entry.wide_requests);
        }
        entry.rests_until = now + wait.min(REST);
        entry.expires = Instant::ZERO;
        entry.asked_at = now;
        self.desk.discoveries += u64::from(!entry.is_asking);
        entry.is_asking = true;
        let dst_seq = Some(entry.seq);
        self.seq = self.seq.wrapping_add(2);
        let rreq = Rreq {
            is_join: false,
            is_repair: false,
            is_gratuitous: settings.gratuitous,
            is_destination_only: settings.destination_only,
            hop_count: 0,
            id: self.request_id,
            dst,
            dst_seq,
            origin: own,
            origin_seq: self.seq,
        };
        self.request_id = self.request_id.wrapping_add(1);
        let extension = ack_seq::write(&mut self.desk.ack_seqs, cx, own, dst);
        self.desk.tell_everyone(None, ttl, &bytes_of(&AodvMessage::Rreq(rreq), &extension));
    }
}
