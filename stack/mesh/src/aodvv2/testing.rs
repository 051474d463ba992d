//! AODVv2's routers for the network in memory.

use std::time::Duration;

use super::messages::{self, Rerr, RouteMessage};
use super::{Aodvv2, PORT, Settings};
use crate::on_demand::Trust;
use crate::on_demand::testing::{Protocol, short};
use crate::protocol::RoutingSetup;
use crate::rfc5444::{Packet, Rfc5444Message};
use crate::routing::Routing;

impl Protocol for Settings {
    fn port(&self) -> u16 {
        PORT
    }

    fn router(&self, setup: RoutingSetup) -> Box<dyn Routing> {
        Box::new(Aodvv2::new(self.clone(), RoutingSetup { trust: Trust::simulated(self.signed), ..setup }))
    }

    fn rest(&self) -> Duration {
        self.max_seqnum_lifetime
    }

    fn data_hop_limit(&self) -> u8 {
        64
    }

    fn describe(&self, ttl: u8, message: &[u8]) -> String {
        assert_eq!(ttl, 255, "messages are for neighbours alone");
        let packet = Packet::parse(message).expect("what we write is a packet");
        packet.messages.iter().map(describe).collect::<Vec<_>>().join(" + ")
    }

    fn boxed(&self) -> Box<dyn Protocol> {
        Box::new(self.clone())
    }
}

fn describe(message: &Rfc5444Message) -> String {
    let name = |address| short(std::net::IpAddr::V4(address));
    match message.kind {
        messages::RREQ => {
            let rreq = RouteMessage::of_rreq(message).expect("ours");
            let RouteMessage { to, other, seq, metric, hop_limit, .. } = rreq;
            format!("RREQ {}>{} seq {seq} hops {metric} limit {hop_limit}", name(to), name(other))
        }
        messages::RREP => {
            let rrep = RouteMessage::of_rrep(message).expect("ours");
            format!("RREP {}>{} seq {} hops {}", name(rrep.other), name(rrep.to), rrep.seq, rrep.metric)
        }
        messages::RERR => {
            let rerr = Rerr::parse(message).expect("ours");
            let gone = rerr.unreachable.iter().map(|(dst, seq)| match seq {
                Some(seq) => format!("{} {seq}", name(*dst)),
                None => name(*dst),
            });
            let whose = rerr.pkt_source.map_or(String::new(), |src| format!(" for {}", name(src)));
            format!("RERR {}{whose}", gone.collect::<Vec<_>>().join(", "))
        }
        _ if messages::is_request(message) => "RREP_Ack?".to_owned(),
        _ => "RREP_Ack".to_owned(),
    }
}
