//! RERRs are always broadcast: at once by the first node, later by nodes that pass them on.

use std::net::Ipv4Addr;

use hopwise_core::{Instant, LinkId};

use super::super::messages::{MOST_UNREACHABLE, Message, Rerr, bytes_of};
use super::Ns2Aodv;
use super::table::INFINITE;
use crate::routing::{Cx, Order, Purged};

impl Ns2Aodv {
    pub(super) fn send_error(&mut self, at: Option<Instant>, unreachable: Vec<(Ipv4Addr, u32)>) {
        for part in unreachable.chunks(MOST_UNREACHABLE) {
            let rerr = Rerr { is_no_delete: false, unreachable: part.to_vec() };
            self.desk.tell_everyone(at, 1, &bytes_of(&Message::Rerr(rerr), &[]));
        }
    }

    /// Routes over the sender go down. The error goes on for the routes that other nodes use through here.
    pub(super) fn take_error(&mut self, cx: &Cx<'_>, from: Ipv4Addr, link: LinkId, rerr: &Rerr) {
        let mut concerned = Vec::new();
        let mut lost = Vec::new();
        for (dst, seq) in &rerr.unreachable {
            let Some(entry) = self.table.get_mut(*dst) else { continue };
            if entry.hops == INFINITE || entry.next_hop != from || entry.seq > *seq {
                continue;
            }
            entry.seq = *seq;
            entry.take_down();
            lost.push(*dst);
            if !entry.precursors.is_empty() {
                entry.precursors.clear();
                concerned.push((*dst, *seq));
            }
        }
        if !lost.is_empty() {
            self.desk.outbox.push(Order::Purge { link, via: from.into(), what: Purged::All });
        }
        lost.iter().for_each(|dst| self.report_route(*dst));
        if !concerned.is_empty() {
            let at = self.jittered(cx.now);
            self.send_error(at, concerned);
        }
        self.search_at_once(cx, &lost);
    }
}
