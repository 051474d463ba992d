//! AODV's routers for the network in memory.

use std::time::Duration;

use super::messages::Message;
use super::{Config, Interface, PORT, Settings, Trust, routing};
use crate::on_demand::testing::{Birth, LINK, Protocol, behind, short};
use crate::routing::Routing;

impl Protocol for Settings {
    fn port(&self) -> u16 {
        PORT
    }

    fn router(&self, birth: &Birth) -> Box<dyn Routing> {
        routing(Config {
            settings: self.clone(),
            interfaces: vec![Interface { link: LINK, address: birth.address }],
            serves: vec![behind(birth.address)],
            seed: birth.seed,
            counter: birth.counter,
            wakes_at: birth.wakes_at,
            trust: Trust::simulated(self.signed),
        })
    }

    fn rest(&self) -> Duration {
        self.delete_period()
    }

    fn data_hop_limit(&self) -> u8 {
        self.data_hop_limit
    }

    fn describe(&self, ttl: u8, message: &[u8]) -> String {
        match Message::parse(message).expect("what we write is a message").0 {
            Message::Rreq(rreq) => format!(
                "RREQ {}>{} seq {:?} hops {} ttl {ttl}",
                short(rreq.origin.into()),
                short(rreq.dst.into()),
                rreq.dst_seq,
                rreq.hop_count
            ),
            Message::Rrep(rrep) => format!(
                "RREP {}>{} seq {} hops {}",
                short(rrep.origin.into()),
                short(rrep.dst.into()),
                rrep.dst_seq,
                rrep.hop_count
            ),
            Message::Rerr(rerr) => {
                let gone =
                    rerr.unreachable.iter().map(|(dst, seq)| format!("{} {seq}", short((*dst).into())));
                format!("RERR {}", gone.collect::<Vec<_>>().join(", "))
            }
            Message::RrepAck => "RREP-ACK".to_owned(),
        }
    }

    fn boxed(&self) -> Box<dyn Protocol> {
        Box::new(self.clone())
    }
}
