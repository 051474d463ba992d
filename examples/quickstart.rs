//! One transfer under two receiver agents over a lossy path in memory, several seeds each, with the results.
//!
//! `cargo run --release -p hopwise --example quickstart`

use std::error::Error;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use hopwise_agents::StandardAgents;
use hopwise_core::endpoint::{
    AgentChoice, ConnId, ConnectOptions, EndpointConfig, LinkConfig, ListenOptions, ListenerId, RecvError,
};
use hopwise_core::trace::text::TraceText;
use hopwise_core::{Endpoint, Instant};
use hopwise_testing::memory::{End, PathConfig, TwoHosts};

const ARMS: [&str; 2] = ["immediate", "delayed"];
const SEEDS: u64 = 5;
const BYTES: usize = 2_000_000;
const TRACE: &str = "results/quickstart/trace.txt";
const PATIENCE: Instant = Instant::from_secs(600);

const HELP: &str = "\
Sends 2 MB from one endpoint to another over a path in memory, once per seed and receiver agent, and compares.

The path: 2 Mbit/s and 10 ms each way, 1 % of the packets lost in both directions, a queue of 50.
It writes the trace of one run to results/quickstart/trace.txt.

Usage: cargo run --release -p hopwise --example quickstart [-- --help]";

type Failure = Box<dyn Error + Send + Sync>;

/// The results of one transfer.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    goodput_kbps: f64,
    segments: f64,
    acks: f64,
    resent: f64,
    timeouts: f64,
}

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some() {
        println!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match compare() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quickstart: {error}");
            ExitCode::FAILURE
        }
    }
}

fn compare() -> Result<(), Failure> {
    println!("2 MB over 2 Mbit/s, 10 ms each way, 1 % loss both ways; means of {SEEDS} seeds\n");
    println!(
        "receiver    goodput (least to most), kbit/s   segments   sent again   timeouts   ACKs   ACKs/segment"
    );
    let mut arms = Vec::new();
    for arm in ARMS {
        let mut sum = Outcome::default();
        let (mut least, mut most) = (f64::MAX, 0.0_f64);
        for seed in 1..=SEEDS {
            let outcome = Transfer::new(arm, seed)?.run()?;
            least = least.min(outcome.goodput_kbps);
            most = most.max(outcome.goodput_kbps);
            sum = sum.plus(&outcome);
        }
        let mean = sum.over(SEEDS as f64);
        println!(
            "{arm:<9} {:>10.0} ({least:.0} to {most:.0}) {:>18.0} {:>12.1} {:>10.1} {:>6.0} {:>14.2}",
            mean.goodput_kbps,
            mean.segments,
            mean.resent,
            mean.timeouts,
            mean.acks,
            mean.acks / mean.segments
        );
        arms.push((mean, least..most));
    }
    explain(&arms[0], &arms[1]);
    Ok(())
}

/// A mean, and the goodputs between which all seeds lie.
type Arm = (Outcome, Range<f64>);

fn explain((immediate, range): &Arm, (delayed, other): &Arm) {
    let overlap = if range.start <= other.end && other.start <= range.end {
        "the ranges overlap: chance alone could do that"
    } else {
        "the ranges do not overlap"
    };
    let fewer = 100.0 * (1.0 - delayed.acks / immediate.acks);
    let faster = 100.0 * (delayed.goodput_kbps / immediate.goodput_kbps - 1.0);
    println!(
        "\n`delayed` sent {fewer:.0} % fewer ACKs for the same bytes; its mean goodput differs by {faster:+.1} %\n\
         ({overlap}).\n\
         Here ACKs have a way of their own, so thinning them gains little. On a chain of radios they share the\n\
         channel with the data: that is what the agents are for, and it takes the 802.11 hosts to show it.\n\n\
         Why was each ACK sent, or held back?\n  \
         cargo run --release -- capture trace {TRACE} --conn 1 --event ack-decided --event ack-held --until 200ms"
    );
}

impl Outcome {
    fn plus(&self, other: &Outcome) -> Outcome {
        Outcome {
            goodput_kbps: self.goodput_kbps + other.goodput_kbps,
            segments: self.segments + other.segments,
            acks: self.acks + other.acks,
            resent: self.resent + other.resent,
            timeouts: self.timeouts + other.timeouts,
        }
    }

    fn over(&self, n: f64) -> Outcome {
        Outcome {
            goodput_kbps: self.goodput_kbps / n,
            segments: self.segments / n,
            acks: self.acks / n,
            resent: self.resent / n,
            timeouts: self.timeouts / n,
        }
    }
}

/// One run: A sends, B receives under the arm's agent.
struct Transfer {
    hosts: TwoHosts<Endpoint>,
    listener: ListenerId,
    client: ConnId,
    server: Option<ConnId>,
    sent: usize,
    received: usize,
    trace: Option<TraceText>,
}

impl Transfer {
    fn new(arm: &str, seed: u64) -> Result<Transfer, Failure> {
        let path = PathConfig::clean(Duration::from_millis(10)).with(|path| {
            path.bits_per_second = 2_000_000;
            path.loss_ppm = 10_000;
        });
        let mut hosts =
            TwoHosts::new(host("10.7.0.1/24", seed)?, host("10.7.0.2/24", !seed)?, path, path, seed);
        let agents = AgentChoice { receiver: Some(arm.into()), ..AgentChoice::default() };
        let listener = hosts.b.listen(None, 80, ListenOptions { agents, ..ListenOptions::default() })?;
        let to = "10.7.0.2:80".parse()?;
        let client = hosts.a.connect(Instant::ZERO, to, &ConnectOptions::default())?;
        let is_shown = arm == "delayed" && seed == 1;
        let trace = is_shown.then(TraceText::new);
        Ok(Transfer { hosts, listener, client, server: None, sent: 0, received: 0, trace })
    }

    fn run(mut self) -> Result<Outcome, Failure> {
        while self.received < BYTES {
            self.act()?;
            if !self.hosts.step(PATIENCE) {
                return Err(format!("only {} of {BYTES} bytes arrived in ten minutes", self.received).into());
            }
            self.note_trace();
        }
        self.write_trace()?;
        let now = self.hosts.now();
        let sender = self.hosts.a.info(now, self.client)?.stats;
        let server = self.server.ok_or("nothing was accepted")?;
        let receiver = self.hosts.b.info(now, server)?.stats;
        Ok(Outcome {
            goodput_kbps: self.received as f64 * 8.0 * 1e6 / now.0 as f64,
            segments: sender.segments_sent as f64,
            acks: receiver.acks_sent as f64,
            resent: sender.segments_retransmitted as f64,
            timeouts: f64::from(sender.timeouts),
        })
    }

    /// Lets both programs act after an event: write what fits, read all that is there.
    fn act(&mut self) -> Result<(), Failure> {
        let now = self.hosts.now();
        if self.sent < BYTES {
            let chunk = [0; 16_384];
            let wanted = chunk.len().min(BYTES - self.sent);
            self.sent += self.hosts.a.send(now, self.client, &chunk[..wanted])?;
        }
        self.server = self.server.or_else(|| self.hosts.b.accept(now, self.listener));
        let Some(server) = self.server else { return Ok(()) };
        let mut buffer = [0; 16_384];
        loop {
            match self.hosts.b.recv(now, server, &mut buffer) {
                Ok(0) | Err(RecvError::Finished) => return Ok(()),
                Ok(bytes) => self.received += bytes,
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn note_trace(&mut self) {
        let Some(text) = &mut self.trace else { return };
        self.hosts.drain_trace(End::B, &mut |event| text.push(event));
    }

    fn write_trace(&self) -> Result<(), Failure> {
        let Some(text) = &self.trace else { return Ok(()) };
        let file = Path::new(TRACE);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(file, text.as_str())?;
        Ok(())
    }
}

/// The key makes a host's numbers its own; here it comes from the seed, and a run repeats to the byte.
fn host(address: &str, seed: u64) -> Result<Endpoint, Failure> {
    let link = LinkConfig::wire(0, 1500, vec![address.parse()?]);
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_be_bytes());
    Endpoint::new(EndpointConfig::new(link, key), Box::new(StandardAgents::default()))
}
