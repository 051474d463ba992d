//! Runs the swarm: thousands of random pairs of endpoints on paths that misbehave, each from a seed of its own.
//!
//! Exit status: 0 when no seed fails, 1 when one does, 2 when the arguments are refused.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Parser;
use hopwise_testing::swarm::{self, Failure, Summary};

/// Random transfers over random paths: bytes exact or a clean error, and completion once the path has healed.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  cargo run --release -p hopwise --example swarm -- --seeds 10000
  cargo run --release -p hopwise --example swarm -- --seed 4711 --verbose | less")]
struct Arguments {
    /// Number of seeds to run
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// The first of them
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Runs this one alone
    #[arg(long, conflicts_with_all = ["seeds", "from", "jobs"])]
    seed: Option<u64>,
    /// Prints the scenario and everything that happens (with --seed)
    #[arg(long, requires = "seed")]
    verbose: bool,
    /// Threads
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..))]
    jobs: u8,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let failed = match arguments.seed {
        Some(seed) => run_one(seed, arguments.verbose),
        None => run_many(&arguments),
    };
    ExitCode::from(u8::from(failed))
}

/// Answers whether it failed.
fn run_one(seed: u64, verbose: bool) -> bool {
    let result =
        if verbose { swarm::replay(seed, &mut |text| print!("{text}")) } else { swarm::run_seed(seed) };
    match &result {
        Ok(summary) => println!("seed {seed}: {summary:?}"),
        Err(failure) => println!("seed {seed}: {failure}"),
    }
    result.is_err()
}

#[derive(Default)]
struct Tally {
    seeds: u64,
    connections: u64,
    complete: u64,
    cut_short: u64,
    bytes: u64,
    steps: u64,
    failures: Vec<u64>,
    slowest: Vec<(u64, u64)>,
}

impl Tally {
    fn take(&mut self, seed: u64, result: &Result<Summary, Failure>) {
        self.seeds += 1;
        match result {
            Ok(summary) => {
                self.connections += summary.connections;
                self.complete += summary.complete;
                self.cut_short += summary.cut_short;
                self.bytes += summary.bytes;
                self.steps += summary.steps;
                self.slowest.push((summary.slowness_milli, seed));
            }
            Err(failure) => {
                self.failures.push(seed);
                println!("seed {seed}: {failure}");
                println!("  replay: {}", swarm::replay_command(seed));
            }
        }
    }
}

fn run_many(arguments: &Arguments) -> bool {
    let next = AtomicU64::new(0);
    let tally = Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs {
            scope.spawn(|| work(arguments, &next, &tally));
        }
    });
    let mut tally = tally.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    tally.slowest.sort_unstable_by(|a, b| b.cmp(a));
    println!(
        "{} seeds: {} connections, {} complete, {} cut short as planned, {} kB, {} packets and timeouts",
        tally.seeds,
        tally.connections,
        tally.complete,
        tally.cut_short,
        tally.bytes / 1000,
        tally.steps
    );
    for (milli, seed) in tally.slowest.iter().take(3) {
        println!("slow once its path had healed: seed {seed}, {} % of the time it was given", milli / 10);
    }
    println!("{} failures", tally.failures.len());
    !tally.failures.is_empty()
}

fn work(arguments: &Arguments, next: &AtomicU64, tally: &Mutex<Tally>) {
    loop {
        let nth = next.fetch_add(1, Ordering::Relaxed);
        if nth >= arguments.seeds {
            return;
        }
        let seed = arguments.from + nth;
        let result = swarm::run_seed(seed);
        let mut tally = tally.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        tally.take(seed, &result);
        if tally.seeds.is_multiple_of(PROGRESS_EVERY) && tally.seeds < arguments.seeds {
            println!("{} of {} seeds, {} failures", tally.seeds, arguments.seeds, tally.failures.len());
        }
    }
}

const PROGRESS_EVERY: u64 = 1000;
