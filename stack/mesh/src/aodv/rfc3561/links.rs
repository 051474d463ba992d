//! The state of neighbours: last hellos, missing acknowledgements, and one-way links.
//! Also the users of a route, which hear of its loss.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::{Instant, LinkId};

use super::super::settings::Settings;
use super::{Aodv, Cx, OwnUse, RoutedPacket, Via, v4};
use crate::on_demand::OnDemand;
use crate::on_demand::shares::{MOST_NEIGHBOURS as MOST, NeighbourStanding, gives_way};

/// A neighbour that sent a hello, or should send one.
#[derive(Clone, Copy, Debug)]
struct Neighbour {
    link: LinkId,
    /// It may be silent until then.
    until: Instant,
    heard: Instant,
    /// Until then a route over it counts as one that data uses.
    used_until: Instant,
}

#[derive(Debug, Default)]
pub(super) struct Links {
    neighbours: BTreeMap<Ipv4Addr, Neighbour>,
    /// RREPs whose acknowledgement is awaited.
    owing: BTreeMap<Ipv4Addr, Instant>,
    /// Neighbours that our frames do not reach: their requests are not answered.
    blacklist: BTreeMap<Ipv4Addr, Instant>,
    next_hello: Instant,
    /// The time of our last broadcast, which replaces a hello.
    spoke: Option<Instant>,
}

impl Links {
    pub(super) fn new(first_hello: Duration) -> Links {
        Links { next_hello: Instant::ZERO + first_hello, ..Links::default() }
    }

    pub(super) fn heard(&mut self, now: Instant, from: Ipv4Addr, life: Duration) {
        if let Some(known) = self.neighbours.get_mut(&from) {
            (known.heard, known.until) = (now, known.until.max(now + life));
        }
    }

    pub(super) fn said_hello(&mut self, now: Instant, via: Via, life: Duration) {
        if self.neighbours.len() >= MOST && !self.neighbours.contains_key(&via.from) {
            self.give_up_oldest(now);
        }
        let new = Neighbour { link: via.link, until: now, heard: now, used_until: Instant::ZERO };
        let known = self.neighbours.entry(via.from).or_insert(new);
        (known.link, known.until, known.heard) = (via.link, now + life, now);
    }

    fn give_up_oldest(&mut self, now: Instant) {
        let place = |(from, known): (&Ipv4Addr, &Neighbour)| {
            let standing =
                if known.used_until > now { NeighbourStanding::InUse } else { NeighbourStanding::Heard };
            (*from, standing, known.heard)
        };
        let oldest = gives_way(self.neighbours.iter().map(place));
        oldest.and_then(|oldest| self.neighbours.remove(&oldest));
    }

    /// Expects hellos from a next hop.
    pub(super) fn expect(&mut self, now: Instant, via: Via, life: Duration) {
        if !self.neighbours.contains_key(&via.from) {
            self.said_hello(now, via, life);
        }
    }

    pub(super) fn note_use(&mut self, via: Via, until: Instant) {
        if let Some(known) = self.neighbours.get_mut(&via.from) {
            known.used_until = until;
        }
    }

    pub(super) fn spoke(&mut self, now: Instant) {
        self.spoke = Some(now);
    }

    pub(super) fn await_ack(&mut self, from: Ipv4Addr, until: Instant) {
        if self.owing.len() < MOST {
            self.owing.entry(from).or_insert(until);
        }
    }

    pub(super) fn acknowledged(&mut self, from: Ipv4Addr) {
        self.owing.remove(&from);
    }

    pub(super) fn is_blacklisted(&self, now: Instant, neighbour: Ipv4Addr) -> bool {
        self.blacklist.get(&neighbour).is_some_and(|until| *until > now)
    }

    pub(super) fn blacklist(&mut self, neighbour: Ipv4Addr, until: Instant) {
        if self.blacklist.len() >= MOST
            && let Some(first) = self.blacklist.iter().min_by_key(|(_, until)| **until).map(|(from, _)| *from)
        {
            self.blacklist.remove(&first);
        }
        self.blacklist.insert(neighbour, until);
    }

    pub(super) fn lost(&mut self, neighbour: Ipv4Addr) {
        self.neighbours.remove(&neighbour);
        self.owing.remove(&neighbour);
    }

    pub(super) fn forget(&mut self, now: Instant) {
        self.blacklist.retain(|_, until| *until > now);
    }

    pub(super) fn next(&self, settings: &Settings) -> Option<Instant> {
        let silence = self.neighbours.values().map(|known| known.until).min();
        let ack = self.owing.values().min().copied();
        let hello = settings.hello.then_some(self.next_hello);
        [silence, ack, hello].into_iter().flatten().min()
    }
}

impl Aodv {
    /// Handles silent neighbours, missing acknowledgements, and the next hello.
    pub(super) fn watch_links(&mut self, now: Instant) {
        let silent = |(from, known): (&Ipv4Addr, &Neighbour)| {
            (known.until <= now).then_some(Via { from: *from, link: known.link })
        };
        let silent: Vec<_> = self.links.neighbours.iter().filter_map(silent).collect();
        for via in silent {
            self.lose_neighbour(now, via, None);
        }
        let late: Vec<_> =
            self.links.owing.iter().filter(|(_, until)| **until <= now).map(|(from, _)| *from).collect();
        for neighbour in late {
            self.links.acknowledged(neighbour);
            self.links.blacklist(neighbour, now + self.settings.blacklist_timeout());
        }
        if self.settings.hello && self.links.next_hello <= now {
            self.links.next_hello = now + self.settings.hello_interval;
            let has_spoken = self.links.spoke.is_some_and(|at| now.since(at) < self.settings.hello_interval);
            // §6.9: only a node on an active route sends hellos.
            let is_on_route = !self.routes(now).is_empty();
            if is_on_route && !has_spoken && !self.desk.is_asleep(now) {
                self.say_hello();
            }
        }
    }
}

/// The users of a route, which hear of its loss: neighbours (`rerr_to_source`), and this node (`search_at_once`).
impl Aodv {
    /// Notes a packet of this node for a search once its route is lost.
    pub(super) fn note_own_use(&mut self, now: Instant, packet: &RoutedPacket<'_>) {
        let (src, Some(dst)) = (packet.src, v4(packet.dst)) else { return };
        if self.settings.search_at_once && v4(src).is_some_and(|src| self.desk.is_mine(src)) {
            let until = now + self.settings.active_route_timeout;
            let wish = self.desk.wish(now, packet, true);
            let route = self.table.get_mut(now, dst);
            route.into_iter().for_each(|route| route.own_use = Some(OwnUse { src, wish, until }));
        }
    }

    /// The neighbour that sent a packet gets errors about its route. A packet that was routed anew names its source.
    pub(super) fn note_user(&mut self, now: Instant, packet: &RoutedPacket<'_>, dst: Ipv4Addr) {
        let from = packet.from.and_then(v4);
        let from = from.filter(|from| self.table.get(*from).is_some_and(|near| near.next_hop == *from));
        if let (Some(from), Some(route)) = (from, self.table.valid(now, dst)) {
            route.add_precursor(from);
        }
    }

    /// Starts searches for lost routes that packets of this node used lately. Another one needs another packet.
    pub(super) fn search_at_once(&mut self, now: Instant, lost: &[Ipv4Addr]) {
        for dst in lost {
            let own_use = self.table.peek_mut(*dst).and_then(|route| route.own_use.take());
            let Some(OwnUse { src, wish, .. }) = own_use.filter(|used| used.until >= now) else { continue };
            if !self.searches.rests(now, *dst, wish.rank) {
                let _ = self.begin_search(now, src, (*dst, wish));
            }
        }
    }
    /// Sends the first requests of such searches.
    pub(super) fn ask_for_lost(&mut self, cx: &Cx<'_>) {
        // Other searches send theirs where they begin.
        if self.settings.search_at_once {
            self.take_turns(cx);
        }
    }
}
