//! Chaos: daemons of Hopwise are killed, stopped, flooded and lied to at random, while honest programs transfer bytes
//! through them. `--soak` leaves the daemons alone and watches their use of the machine.
//!
//! With `--thin` there is a single site: two kernels whose ACKs daemons thin. No transfer may be cut there.
//!
//! Four sites share nothing: a mesh with AODV, one with DYMO, a base station with a proxy, and a pair of transparent
//! nodes. Each has a radio world of its own (`hopwise air`), and honest programs that transfer random bytes both ways.
//! Both ends compare SHA-256. A seed draws the events and their order: kills, stops, full disks, clocks that jump,
//! links that flap, floods and forged messages. Real processes meet them at other instants each time, so the list of
//! events is printed.
//!
//! A transfer may be cut. Only the death of a daemon may end one early and cleanly, since the kernel closes its
//! sockets. After the events all is quiet, and each program has to succeed. Then daemons end in order, and each station
//! has to be as it was: devices, routes, rules, nft, switches, sockets, processes. The test runs in namespaces of
//! network, mounts and processes of its own. It may know the daemons by their command, files, signals and what the
//! kernel reports of them, but not by their code. It may not set the machine's clock: libfaketime moves what single
//! daemons read.
//!
//! Exit status: 0 when no rule was violated, 1 when one was or a signal ended the run early. It is 2 when the arguments
//! are refused, and 77 when it cannot run here.

mod cell;
mod daemon;
mod event;
mod flow;
mod forge;
mod inside;
mod leftovers;
mod lies;
mod mesh;
mod pair;
mod place;
mod round;
mod site;
mod soak;
mod thinned;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Parser;
use hopwise_host::Clock;
use hopwise_lab::units::Time;
use hopwise_testing::memory::Random;
use parking_lot::Mutex;

use inside::elapsed;

/// The longest wait for a single thing. A slow and busy machine takes minutes for seconds' work.
const WAIT: Duration = Duration::from_secs(300);

/// Kills, floods and lies at random under honest transfers, and holds that no byte is wrong and nothing is left behind
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  scripts/chaos --for 2min
  scripts/chaos --for 120min --seed 7 --json
  scripts/chaos --thin
  scripts/chaos --soak --for 60min")]
struct Arguments {
    /// Time during which events happen, or the length of a soak (default: 2min; 10min with --thin)
    #[arg(long = "for", value_name = "TIME", overrides_with = "lasts")]
    lasts: Option<Time>,
    /// Seed of all events; without it one is chosen and printed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The longest round: after each, everything is ended and looked for
    #[arg(long, value_name = "TIME", default_value = "10min")]
    round: Time,
    /// Connections of the kernel whose ACKs `hopwise thin` thins, in place of all other daemons: none may be cut
    #[arg(long)]
    thin: bool,
    /// Steady load and no events; fails when a daemon grows
    #[arg(long)]
    soak: bool,
    /// One JSON object on standard output at the end; everything else goes to standard error
    #[arg(long)]
    json: bool,
    /// Program under test (default: the one beside this program's folder)
    #[arg(long, value_name = "FILE")]
    hopwise: Option<PathBuf>,
}

impl Arguments {
    fn lasts(&self) -> Duration {
        let minutes = if self.thin { 10 } else { 2 };
        self.lasts.map_or(Duration::from_mins(minutes), |lasts| lasts.0)
    }
}

/// Shared by a whole run.
#[derive(Debug)]
pub(crate) struct Run {
    hopwise: PathBuf,
    /// The library that moves the clocks of daemons, if it is installed.
    faketime: Option<PathBuf>,
    /// Daemons that thin ACKs, and no other ones.
    is_thinned: bool,
    tally: Arc<Tally>,
}

/// Counts events, and keeps violations.
#[derive(Debug)]
pub(crate) struct Tally {
    clock: Clock,
    whole: AtomicU64,
    cut: AtomicU64,
    left: AtomicU64,
    events: AtomicU64,
    rounds: AtomicU64,
    /// The most memory of any daemon at any time.
    most_rss_kb: AtomicU64,
    most_descriptors: AtomicU64,
    violations: Mutex<Vec<String>>,
    /// Events by their kind.
    kinds: Mutex<BTreeMap<&'static str, u64>>,
    /// Transfers that were cut, by their clients' errors.
    cut_by: Mutex<BTreeMap<String, u64>>,
}

impl Tally {
    fn new(clock: Clock) -> Tally {
        let zero = || AtomicU64::new(0);
        Tally {
            clock,
            whole: zero(),
            cut: zero(),
            left: zero(),
            events: zero(),
            rounds: zero(),
            most_rss_kb: zero(),
            most_descriptors: zero(),
            violations: Mutex::default(),
            kinds: Mutex::default(),
            cut_by: Mutex::default(),
        }
    }

    /// Prints a line with its time.
    pub(crate) fn note(&self, what: &str) {
        eprintln!("{:9.1}  {what}", elapsed(&self.clock).as_secs_f64());
    }

    pub(crate) fn violated(&self, what: String) {
        self.note(&format!("VIOLATED {what}"));
        self.violations.lock().push(what);
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.violations.lock().is_empty()
    }

    pub(crate) fn progress(&self) -> String {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        format!(
            "{} events, {} transfers whole, {} cut, {} left by their client, {} violations",
            count(&self.events),
            count(&self.whole),
            count(&self.cut),
            count(&self.left),
            self.violations.lock().len()
        )
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if !inside::is_inside() {
        if let Some(reason) = inside::obstacle() {
            println!("skipped: {reason}");
            return ExitCode::from(77);
        }
        eprintln!("unshare: {}", inside::enter());
        return ExitCode::FAILURE;
    }
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether no rule was violated.
fn run(arguments: &Arguments) -> Result<bool, String> {
    inside::furnish()?;
    inside::hear_signals().map_err(|error| format!("signals: {error}"))?;
    let clock = Clock::start();
    let hopwise = match &arguments.hopwise {
        Some(path) => path.clone(),
        None => {
            beside().ok_or("expected --hopwise FILE: there is no hopwise beside this program's folder")?
        }
    };
    let hopwise = hopwise.canonicalize().map_err(|error| format!("{}: {error}", hopwise.display()))?;
    let tally = Arc::new(Tally::new(clock));
    let run = Run { hopwise, faketime: faketime(), is_thinned: arguments.thin, tally: Arc::clone(&tally) };
    let seed = arguments.seed.unwrap_or_else(|| clock.wall_offset().as_nanos() as u64 >> 10);
    tally.note(&format!("seed {seed}"));
    if run.faketime.is_none() {
        tally.note("clocks do not jump: libfaketime (Debian: libfaketime) is not installed");
    }
    let folder = std::env::temp_dir().join(format!("hopwise-chaos-{seed}"));
    // An earlier run of this seed may have failed.
    let _ = std::fs::remove_dir_all(&folder);
    let done = if arguments.soak {
        soak::soak(&run, arguments.lasts(), seed, &folder)
    } else {
        rounds(&run, arguments, seed, &folder)
    };
    if let Err(error) = done {
        tally.violated(error);
    }
    tally.note(&tally.progress());
    if let Some(signal) = inside::told_to_end_by() {
        tally.note(&format!("{signal} ended this run early"));
    }
    if tally.is_sound() {
        let _ = std::fs::remove_dir_all(&folder);
    } else {
        tally.note(&format!("logs and files of what failed are in {}", folder.display()));
    }
    if arguments.json {
        println!("{}", summary(&tally, seed));
    }
    Ok(tally.is_sound() && !inside::is_told_to_end())
}

/// Runs one round after the other, until the time is over or a rule was violated.
fn rounds(run: &Run, arguments: &Arguments, seed: u64, folder: &Path) -> Result<(), String> {
    let mut random = Random::new(seed, 0);
    let mut left = arguments.lasts();
    while left > Duration::ZERO && run.tally.is_sound() && !inside::is_told_to_end() {
        let lasts = left.min(arguments.round.0);
        let nth = run.tally.rounds.fetch_add(1, Ordering::Relaxed) + 1;
        let seed = if nth == 1 { seed } else { random.next_u64() };
        run.tally.note(&format!("round {nth}, seed {seed}, {} s of events", lasts.as_secs()));
        round::round(run, lasts, seed, &folder.join(nth.to_string()))?;
        left = left.saturating_sub(lasts);
    }
    Ok(())
}

/// Cargo puts the command beside or above the folder of its examples.
fn beside() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let folder = program.parent()?;
    let places = [folder.join("hopwise"), folder.parent()?.join("hopwise")];
    places.into_iter().find(|path| path.is_file())
}

fn faketime() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?.flatten();
    let libraries = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    libraries.into_iter().find(|library| library.is_file())
}

fn summary(tally: &Tally, seed: u64) -> serde_json::Value {
    let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
    serde_json::json!({
        "seed": seed,
        "ended_early_by": inside::told_to_end_by(),
        "seconds": elapsed(&tally.clock).as_secs(),
        "rounds": count(&tally.rounds),
        "events": count(&tally.events),
        "events_by_kind": *tally.kinds.lock(),
        "transfers": {
            "whole": count(&tally.whole),
            "cut": count(&tally.cut),
            "left": count(&tally.left),
            "cut_by": *tally.cut_by.lock(),
        },
        "most_rss_kb": count(&tally.most_rss_kb),
        "most_descriptors": count(&tally.most_descriptors),
        "violations": *tally.violations.lock(),
    })
}
