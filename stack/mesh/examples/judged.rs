//! Judges so many ACKs of one flow, each for two segments: `judged ACKS [AGENT]`.
//!
//! It prints how many ACKs leave. `scripts/bench mesh --counts-aarch64` counts its instructions in an emulator, on
//! aarch64 and on this machine's processor.

#![expect(clippy::print_stdout, reason = "a program of its own")]

use std::error::Error;
use std::net::SocketAddr;

use hopwise_agents::StandardAgents;
use hopwise_core::agent::AgentMaker;
use hopwise_core::wire::{TcpOptions, Timestamps};
use hopwise_core::{Instant, Seq};
use hopwise_mesh::{Thin, ThinConfig, ThinRule};
use hopwise_testing::make::Segment;

const MSS: u32 = 1_448;
/// The place of the number in a packet of IPv4.
const NUMBER: std::ops::Range<usize> = 28..32;
/// Between two ACKs for two segments at 2 Mbit/s.
const EVERY_US: u64 = 13_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let acks: u32 = words.next().ok_or("expected the number of ACKs")?.parse()?;
    let agent = words.next().unwrap_or_else(|| "delayed:d=8".to_owned());
    let receiver = StandardAgents::default().receiver(&agent).map_err(|error| error.to_string())?;
    let rules = vec![ThinRule { interface: None, port: None, network: None, receiver }];
    let mut thin = Thin::new(ThinConfig { rules, mtu: 1_500, most_flows: 4_000, growth: 16 });
    let [from, to] = [1, 2].map(|last| SocketAddr::from(([10, 9, 0, last], 5_001)));
    let options = TcpOptions { timestamps: Some(Timestamps { value: 1, echo: 1 }), ..TcpOptions::default() };
    let mut packet = Segment { seq: Seq(7), options, ..Segment::between(from, to) }.packet();
    let mut left = 0_u32;
    for nth in 0..acks {
        let now = Instant::from_micros(u64::from(nth) * EVERY_US);
        if thin.poll_timeout().is_some_and(|due| due <= now) {
            thin.handle_timeout(now);
        }
        packet[NUMBER].copy_from_slice(&nth.wrapping_mul(2 * MSS).to_be_bytes());
        thin.handle_packet(now, (nth, 0), &packet);
        while let Some((_, fate)) = thin.poll_verdict() {
            left += u32::from(fate.passes());
        }
    }
    println!("{left} of {acks} ACKs left");
    Ok(())
}
