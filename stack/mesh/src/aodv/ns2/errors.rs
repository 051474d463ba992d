//! Lost links and their RERRs. RERRs are always broadcast: at once by the first node, later by nodes that pass them on.

use std::net::Ipv4Addr;

use hopwise_core::{Instant, LinkId};

use super::super::PORT;
use super::super::messages::{AodvMessage, MOST_UNREACHABLE, Rerr, bytes_of};
use super::Ns2Aodv;
use super::table::{Flag, INFINITE};
use crate::on_demand::is_message;
use crate::on_demand::rank::Wish;
use crate::routing::{Cx, Purged, RoutedPacket, RoutingOrder, Undelivered};

impl Ns2Aodv {
    pub(super) fn send_error(&mut self, at: Option<Instant>, unreachable: Vec<(Ipv4Addr, u32)>) {
        for part in unreachable.chunks(MOST_UNREACHABLE) {
            let rerr = Rerr { is_no_delete: false, unreachable: part.to_vec() };
            self.desk.tell_everyone(at, 1, &bytes_of(&AodvMessage::Rerr(rerr), &[]));
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
            self.desk.outbox.push(RoutingOrder::Purge { link, via: from.into(), what: Purged::All });
        }
        lost.iter().for_each(|dst| self.report_route(*dst));
        if !concerned.is_empty() {
            let at = self.jittered(cx.now);
            self.send_error(at, concerned);
        }
        self.search_at_once(cx, &lost);
    }
}

/// Reacts to a data packet that the MAC gave up.
///
/// The rule of the defective repair decides the papers' figures beyond 6 hops. A packet that has come more hops than
/// its route has left starts a repair. The route keeps its hop count and its number, which is not raised, and a request
/// with that number goes out. The next node downstream still has its route. It replies with an equal number and an
/// equal hop count. The reply is no better, and is ignored. ns-2 schedules the end of a failed repair at twice its
/// starting time. This end never takes effect, and is left out here. The flow therefore stands still until that node's
/// route has run out (10 s unused) or a newer number comes by.
///
/// ns-2 has a switch for its repair (`AODV_LOCAL_REPAIR`), here `local_repair`. Without it each such route goes down at
/// once.
impl Ns2Aodv {
    pub(super) fn take_failure(
        &mut self,
        cx: &Cx<'_>,
        link: LinkId,
        (to, dst): (Ipv4Addr, Ipv4Addr),
        packet: &RoutedPacket<'_>,
    ) -> Undelivered {
        // The rule of data alone: lost messages have no effect.
        let is_message = packet.src == self.desk.own && packet.dst == to && is_message(packet.packet, PORT);
        if is_message {
            return Undelivered::Drop;
        }
        let hops = self.settings.data_hop_limit.saturating_sub(packet.hop_limit);
        let come = if packet.from.is_none() { 0 } else { hops };
        let Some(entry) = self.table.get_mut(dst) else { return Undelivered::Drop };
        self.desk.failures += u64::from(entry.flag == Flag::Up);
        if self.settings.local_repair && come > entry.hops {
            entry.flag = Flag::InRepair;
            self.report_route(dst);
            self.desk.keep(cx.now, (dst, Wish::SURE), packet);
            self.ask(cx, dst);
            return Undelivered::Kept;
        }
        // The rule of the purge.
        self.desk.outbox.push(RoutingOrder::Purge { link, via: to.into(), what: Purged::All });
        self.lose_neighbour(cx, to);
        Undelivered::Drop
    }

    /// All routes over a neighbour go down with their numbers raised, and one RERR reports it at once.
    fn lose_neighbour(&mut self, cx: &Cx<'_>, neighbour: Ipv4Addr) {
        let mut unreachable = Vec::new();
        for (dst, entry) in self.table.iter_mut() {
            if entry.hops != INFINITE && entry.next_hop == neighbour {
                entry.seq = entry.seq.wrapping_add(1);
                unreachable.push((dst, entry.seq));
                entry.take_down();
            }
            entry.precursors.retain(|precursor| *precursor != neighbour);
        }
        let lost: Vec<_> = unreachable.iter().map(|(dst, _)| *dst).collect();
        lost.iter().for_each(|dst| self.report_route(*dst));
        if !unreachable.is_empty() {
            self.send_error(None, unreachable);
        }
        self.search_at_once(cx, &lost);
    }
}
