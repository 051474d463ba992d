//! S1 of TCP-pgy over DSR: an option for one other node, with the arrivals at a node.
//!
//! A request carries its origin's arrivals to its target, and the target's reply carries the target's. A node on the
//! route that replies from its cache hands the origin's option on to the target, as AODV's gratuitous RREP does. The
//! option is not signed: DSR runs in simulations alone.

use std::net::Ipv4Addr;

use hopwise_core::Instant;

use super::options::{Arrivals, DsrOption};
use super::parcel::Parcel;
use super::{Dsr, Order};
use crate::on_demand::ack_seq::Statement;
use crate::routing::Cx;

impl Dsr {
    /// The arrivals option for a request or a reply to `peer`, if there is one to send.
    pub(super) fn arrivals_for(&mut self, cx: &Cx<'_>, peer: Ipv4Addr) -> Option<DsrOption> {
        let of = self.desk.own;
        match self.desk.ack_seqs.write(cx, of, peer)? {
            Statement::Open(flows) | Statement::Signed(flows) => {
                Some(DsrOption::Arrivals(Arrivals { of, flows }))
            }
        }
    }

    /// Takes the arrivals at peers from a packet for this node.
    pub(super) fn believe(&mut self, now: Instant, parcel: &Parcel<'_>) {
        let own = self.desk.own;
        for Arrivals { of, flows } in arrivals_in(parcel).filter(|said| said.of != own) {
            let said = self.desk.ack_seqs.read(own, *of, Some(flows), None);
            let hops = self.cache.hops(now, *of);
            self.desk.tell_arrivals(*of, said, hops);
        }
    }

    /// A packet that carries the arrivals at a request's origin to the target.
    pub(super) fn hand_on(&mut self, parcel: &Parcel<'_>, way: &[Ipv4Addr]) -> Option<Order> {
        let said =
            arrivals_in(parcel).find(|said| said.of == parcel.src).filter(|_| self.settings.ack_seq)?;
        self.control(way, vec![DsrOption::Arrivals(said.clone())])
    }
}

fn arrivals_in<'a>(parcel: &'a Parcel<'_>) -> impl Iterator<Item = &'a Arrivals> {
    parcel.options().iter().filter_map(|option| match option {
        DsrOption::Arrivals(said) => Some(said),
        _ => None,
    })
}
