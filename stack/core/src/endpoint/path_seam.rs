//! The interface of routing and endpoint on one node. Routing reports routes and the arrivals at a peer; the endpoint
//! reports its own arrivals.

use std::cmp::Reverse;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::Endpoint;
use crate::agent::{Path, PathEvent};
use crate::{Instant, LinkFacts, LinkId, NextHop, Seq};

/// Implemented by [`Endpoint`], called by the node that routes for it.
pub trait PathSeam {
    /// `ports` (the peer's, ours) name one connection and are given only with `AckSeq`; without them every connection
    /// to the peer gets the event. `path` is routing's current knowledge.
    fn handle_path(
        &mut self,
        now: Instant,
        peer: IpAddr,
        ports: Option<(u16, u16)>,
        event: &PathEvent,
        path: &Path,
    );
    /// `rcv_nxt` of the flows from that peer that have received data, with their ports (the peer's, ours). Those that
    /// received data last come first.
    fn ack_hints(&self, peer: IpAddr, sink: &mut dyn FnMut((u16, u16), Seq));
}

/// The most flows in one routing message.
const MOST_HINTS: usize = 8;

impl Endpoint {
    /// Gives each connection the facts about our own link on the way to its peer, as `facts_of` knows them for a peer.
    /// `None` means that they are unknown. Agents see them in their next view.
    pub fn set_links(&mut self, facts_of: &mut dyn FnMut(IpAddr) -> Option<Arc<LinkFacts>>) {
        for slot in self.table.slots(|_| true) {
            if let Some(entry) = self.table.get_mut(slot) {
                entry.conn.set_link(facts_of(entry.conn.ends().remote.ip));
            }
        }
    }

    /// The peer of each connection; some come more than once.
    pub fn peers(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.table.iter().map(|(_, entry)| entry.conn.ends().remote.ip)
    }

    /// The link by which packets to an address leave, and the neighbour that gets them.
    pub fn way_to(&self, peer: IpAddr) -> Option<(LinkId, NextHop)> {
        let link = self.links.towards(peer)?;
        Some((self.links.config(link).id, self.links.next_hop(link, peer)))
    }
}

impl PathSeam for Endpoint {
    fn handle_path(
        &mut self,
        now: Instant,
        peer: IpAddr,
        ports: Option<(u16, u16)>,
        event: &PathEvent,
        path: &Path,
    ) {
        let concerned = self.table.slots(|entry| {
            let goes_there = entry.conn.ends().remote.ip == peer;
            goes_there && ports.is_none_or(|ports| ports == port_pair(entry.conn.flow()))
        });
        for slot in concerned {
            self.with(now, slot, |conn, cx| conn.handle_path(cx, event, path));
        }
    }

    fn ack_hints(&self, peer: IpAddr, sink: &mut dyn FnMut((u16, u16), Seq)) {
        let mut heard: Vec<_> = self
            .table
            .iter()
            .filter(|(_, entry)| entry.conn.ends().remote.ip == peer)
            .filter_map(|(_, entry)| Some((entry.conn.received()?, port_pair(entry.conn.flow()))))
            .collect();
        heard.sort_by_key(|((last, _), ports)| (Reverse(*last), *ports));
        for ((_, rcv_nxt), ports) in heard.into_iter().take(MOST_HINTS) {
            sink(ports, rcv_nxt);
        }
    }
}

fn port_pair(flow: crate::tcp::Flow) -> (u16, u16) {
    let port = |socket: SocketAddr| socket.port();
    (port(flow.remote), port(flow.local))
}
