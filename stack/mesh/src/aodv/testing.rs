//! AODV's routers for the network in memory.

use std::time::Duration;

use super::messages::AodvMessage;
use super::{PORT, Settings, Trust, routing};
use crate::on_demand::testing::{Protocol, short};
use crate::protocol::RoutingSetup;
use crate::routing::Routing;

impl Protocol for Settings {
    fn port(&self) -> u16 {
        PORT
    }

    fn router(&self, setup: RoutingSetup) -> Box<dyn Routing> {
        routing(self.clone(), RoutingSetup { trust: Trust::simulated(self.signed), ..setup })
    }

    fn rest(&self) -> Duration {
        self.delete_period()
    }

    fn data_hop_limit(&self) -> u8 {
        self.data_hop_limit
    }

    fn describe(&self, ttl: u8, message: &[u8]) -> String {
        match AodvMessage::parse(message).expect("what we write is a message").0 {
            AodvMessage::Rreq(rreq) => format!(
                "RREQ {}>{} seq {:?} hops {} ttl {ttl}",
                short(rreq.origin.into()),
                short(rreq.dst.into()),
                rreq.dst_seq,
                rreq.hop_count
            ),
            AodvMessage::Rrep(rrep) => format!(
                "RREP {}>{} seq {} hops {}",
                short(rrep.origin.into()),
                short(rrep.dst.into()),
                rrep.dst_seq,
                rrep.hop_count
            ),
            AodvMessage::Rerr(rerr) => {
                let gone =
                    rerr.unreachable.iter().map(|(dst, seq)| format!("{} {seq}", short((*dst).into())));
                format!("RERR {}", gone.collect::<Vec<_>>().join(", "))
            }
            AodvMessage::RrepAck => "RREP-ACK".to_owned(),
        }
    }

    fn boxed(&self) -> Box<dyn Protocol> {
        Box::new(self.clone())
    }
}
