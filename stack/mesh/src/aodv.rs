//! AODV (RFC 3561): routes that are found when a packet needs them.
//!
//! [`Settings::rules`] choose a node's rules: the RFC's, or ns-2 2.35's, with which the papers were measured (`ns2`).
//! Both share the messages and the table of seen requests. The common part of all on-demand protocols is in
//! `on_demand`.

mod ack_seq;
mod icv;
#[cfg(test)]
mod losses;
pub mod messages;
mod ns2;
pub mod rfc3561;
mod settings;
#[cfg(test)]
mod testing;

use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

use hopwise_core::Instant;

use crate::constants::RuleSet;
use crate::on_demand::ack_seq::AckSeqs;
use crate::on_demand::rates::{Limits, Origins, RequestNews};
use crate::on_demand::{AuthForm, BufferBounds, Desk, Manners};
use crate::protocol::{DaemonProtocol, LiveRouter, PacketMark, RoutingProtocol, RoutingSetup};
use crate::routing::Routing;

pub use crate::on_demand::{Interface, Key, Trust};
pub use settings::Settings;

/// The UDP port (RFC 3561 §8).
pub const PORT: u16 = 654;

const FORM: AuthForm = AuthForm { sign: icv::sign, verify: icv::verify, cost: icv::COST };

/// AODV in the registry.
pub static DESCRIPTOR: RoutingProtocol = RoutingProtocol {
    name: "aodv",
    summary: "AODV (RFC 3561).",
    constants: Settings::CONSTANTS,
    subject: "AODV",
    is_flat: true,
    mark: PacketMark::Port(PORT),
    needs_positions: false,
    live: LiveRouter::Daemon,
    daemon: Some(DaemonProtocol {
        port: PORT,
        everyone: Ipv4Addr::BROADCAST,
        rest: |constants| Settings::from(constants).delete_period(),
        make: |constants, setup| Box::new(rfc3561::Aodv::new(constants.into(), setup)),
    }),
    make: |constants, setup| routing(constants.into(), setup),
};

/// A node that follows the rules of its settings.
pub fn routing(settings: Settings, setup: RoutingSetup) -> Box<dyn Routing> {
    match settings.rules {
        RuleSet::Ns2 => Box::new(ns2::Ns2Aodv::new(settings, setup)),
        RuleSet::Standard => Box::new(rfc3561::Aodv::new(settings, setup)),
    }
}

/// The longest time that a packet waits for a route.
const BUFFER_TIME: Duration = Duration::from_secs(30);

fn desk(settings: &Settings, setup: RoutingSetup) -> Desk {
    let counter = setup.counter;
    let manners = Manners { port: PORT, everyone: Ipv4Addr::BROADCAST };
    let is_shared = settings.rules == RuleSet::Standard;
    let bounds = BufferBounds { packets: settings.buffer_packets, time: BUFFER_TIME, is_shared };
    let ack_seqs = AckSeqs::new(settings.ack_seq, settings.key, counter);
    let limits = Limits::new(settings.message_ratelimit, settings.answer_ratelimit, settings.rerr_ratelimit);
    Desk::new(setup, manners, bounds, ack_seqs).with_limits(limits).signed(FORM, counter)
}

/// The largest number of remembered requests; beyond it the oldest are forgotten.
const MOST: usize = 8_192;

/// Requests that a node has processed: each once, remembered for a while, bounded however many come.
#[derive(Debug, Default)]
struct SeenRequest {
    known: BTreeSet<(Ipv4Addr, u32)>,
    /// In the order of their time.
    until: VecDeque<(Instant, (Ipv4Addr, u32))>,
    origins: Origins,
}

impl SeenRequest {
    fn note(&mut self, now: Instant, key: (Ipv4Addr, u32), memory: Duration, rate: u32) -> RequestNews {
        while let Some((until, oldest)) = self.until.front().copied()
            && (until <= now || self.until.len() >= MOST)
        {
            self.until.pop_front();
            self.known.remove(&oldest);
        }
        if !self.known.insert(key) {
            return RequestNews::Redundant;
        }
        self.until.push_back((now + memory, key));
        self.origins.news(now, key.0, rate)
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: Duration = Duration::from_secs(6);

    #[test]
    fn a_request_is_new_once_until_it_is_forgotten() {
        let mut seen = SeenRequest::default();
        let key = (Ipv4Addr::new(10, 0, 0, 1), 7);
        let mut note = |s, key| seen.note(Instant::from_secs(s), key, MEMORY, 0);
        assert_eq!(note(0, key), RequestNews::New);
        assert_eq!(note(5, key), RequestNews::Redundant);
        assert_eq!(note(5, (key.0, 8)), RequestNews::New);
        assert_eq!(note(6, key), RequestNews::New);
    }

    #[test]
    fn a_flood_of_requests_is_told_and_takes_bounded_memory() {
        let mut seen = SeenRequest::default();
        let origin = Ipv4Addr::new(10, 0, 0, 1);
        let news = (0..100).map(|id| seen.note(Instant::ZERO, (origin, id), MEMORY, 20));
        assert_eq!(news.filter(|news| *news == RequestNews::New).count(), 20);
        for id in 0..50_000 {
            seen.note(Instant::ZERO, (Ipv4Addr::from_bits(id), id), MEMORY, 20);
        }
        assert!(seen.len() <= MOST && seen.origins.len() <= MOST && seen.until.len() <= MOST);
    }
}
