//! RERRs (RFC 3561 §6.11): a link broke, data came for which there is no route, or a neighbour reports either.

use std::net::Ipv4Addr;

use hopwise_core::Instant;

use super::super::messages::{AodvMessage, Rerr, bytes_of};
use super::table::{State, is_newer};
use super::{Aodv, Route, Via};
use crate::on_demand::MessageReceiver;
use crate::on_demand::rates::Cause;
use crate::routing::{Purged, RoutingOrder};

/// The receivers of an error, and the lost routes.
#[derive(Debug, Default)]
struct Notice {
    unreachable: Vec<(Ipv4Addr, u32)>,
    precursors: Vec<(Ipv4Addr, hopwise_core::LinkId)>,
}

impl Aodv {
    /// Gives up all routes over a neighbour, and informs their users. `kept` is in repair.
    pub(super) fn lose_neighbour(&mut self, now: Instant, via: Via, kept: Option<Ipv4Addr>) {
        self.links.lost(via.from);
        let until = now + self.settings.delete_period();
        let mut gone = Vec::new();
        let (routes, changes) = self.table.all_mut();
        for (dst, route) in routes {
            if route.is_valid() && route.next_hop == via.from && Some(dst) != kept {
                changes.note(dst);
                route.give_up(until);
                gone.push(dst);
            }
            route.precursors.retain(|precursor| *precursor != via.from);
        }
        self.desk.failures += u64::from(!gone.is_empty() || kept.is_some());
        self.announce(now, &gone, false);
    }

    /// A neighbour's error: routes over it are given up. It is believed whatever its numbers, and ours grow from our
    /// own.
    pub(super) fn take_error(&mut self, now: Instant, via: Via, rerr: &Rerr) {
        let until = now + self.settings.delete_period();
        let mut gone = Vec::new();
        let trust = self.desk.trust.clone();
        for (dst, seq) in rerr.unreachable.iter().filter(|(dst, _)| trust.covers(*dst)) {
            let Some(route) = self.table.valid(now, *dst) else { continue };
            if route.next_hop != via.from || *dst == via.from {
                continue;
            }
            if !rerr.is_no_delete {
                let told = *seq;
                route.give_up(until);
                route.seq = route.seq.map(|own| if is_newer(told, own) { told } else { own });
            }
            gone.push(*dst);
        }
        if rerr.is_no_delete {
            self.announce_mended(now, &gone);
        } else {
            if self.settings.rerr_discards {
                self.discard(via, &gone);
            }
            self.announce(now, &gone, false);
        }
    }

    /// Drops packets of other nodes to these destinations that wait in the queue for that neighbour. The buffer of
    /// packets without a route holds none for them, as their routes were valid.
    fn discard(&mut self, via: Via, gone: &[Ipv4Addr]) {
        for dst in gone {
            self.desk.outbox.push(RoutingOrder::Purge {
                link: via.link,
                via: via.from.into(),
                what: Purged::PassedOn((*dst).into()),
            });
        }
    }

    /// Reacts to data that cannot be forwarded.
    pub(super) fn refuse_data(&mut self, now: Instant, dst: Ipv4Addr) {
        if self.desk.is_asleep(now) {
            // §6.13: the wait starts again while data comes through here.
            self.desk.wakes_at = (now + self.settings.delete_period()).min(self.wakes_by);
        }
        let until = now + self.settings.delete_period();
        let mut seq = 0;
        if let Some(route) = self.table.get_mut(now, dst) {
            // Once at one instant is enough: queued packets come all at once.
            if route.last_rerr == now {
                return;
            }
            route.last_rerr = now;
            if route.state == State::Invalid {
                route.lives_at_least(until);
            }
            seq = route.seq.unwrap_or(0);
        }
        self.send_error((now, Cause::Data), MessageReceiver::Everyone, None, &[(dst, seq)], false);
    }

    /// Reports these lost routes to the nodes that use them, and to our own connections.
    pub(super) fn announce(&mut self, now: Instant, gone: &[Ipv4Addr], is_no_delete: bool) {
        let mut notice = Notice::default();
        for dst in gone {
            self.report_route(*dst);
            self.note(now, *dst, &mut notice);
        }
        self.send_notice(now, notice, is_no_delete);
        self.search_at_once(now, gone);
    }

    /// Reports repaired routes that are longer now.
    pub(super) fn announce_mended(&mut self, now: Instant, longer: &[Ipv4Addr]) {
        let mut notice = Notice::default();
        for dst in longer {
            if let Some(route) = self.table.get(*dst)
                && let Some(seq) = route.seq
            {
                notice.unreachable.push((*dst, seq));
                let known = route.precursors.iter().filter_map(|p| Some((*p, self.table.get(*p)?.link)));
                notice.precursors.extend(known);
            }
        }
        self.send_notice(now, notice, true);
    }

    fn note(&mut self, now: Instant, dst: Ipv4Addr, notice: &mut Notice) {
        let Some(route) = self.table.get_mut(now, dst) else { return };
        route.last_rerr = now;
        let (seq, users) = (route.seq.unwrap_or(0), std::mem::take(&mut route.precursors));
        if users.is_empty() {
            return;
        }
        notice.unreachable.push((dst, seq));
        let link =
            |user: Ipv4Addr| self.table.get(user).map_or(hopwise_core::LinkId(0), |route: &Route| route.link);
        notice.precursors.extend(users.into_iter().map(|user| (user, link(user))));
    }

    fn send_notice(&mut self, now: Instant, mut notice: Notice, is_no_delete: bool) {
        notice.precursors.sort_unstable();
        notice.precursors.dedup();
        let (to, link) = match notice.precursors[..] {
            [] => return,
            [(only, link)] => (MessageReceiver::Neighbour(only), Some(link)),
            _ => (MessageReceiver::Everyone, None),
        };
        self.send_error((now, Cause::Break), to, link, &notice.unreachable, is_no_delete);
    }

    pub(super) fn send_error(
        &mut self,
        (now, cause): (Instant, Cause),
        to: MessageReceiver,
        link: Option<hopwise_core::LinkId>,
        unreachable: &[(Ipv4Addr, u32)],
        is_no_delete: bool,
    ) {
        let room = Rerr::room(self.desk.most_bytes());
        for part in unreachable.chunks(room) {
            if !self.desk.may_report(now, cause) {
                return;
            }
            let rerr = AodvMessage::Rerr(Rerr { is_no_delete, unreachable: part.to_vec() });
            match (to, link) {
                (MessageReceiver::Neighbour(one), Some(link)) => {
                    self.tell_neighbour(link, one, &bytes_of(&rerr, &[]));
                }
                _ => self.desk.tell_everyone(None, 1, &bytes_of(&rerr, &[])),
            }
        }
    }
}
