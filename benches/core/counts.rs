//! Counts that no clock measures: the instructions, branches, cache misses and allocations of one unit of work, of both
//! stacks. A busy machine changes none of them. `scripts/bench core --counts` prints them.
//!
//! Each count comes from processes of their own under Valgrind's callgrind, whose caches are a model with the sizes
//! below. A process that does the work twice as often has counts that are higher by the work alone: the difference is
//! free of what a process needs to begin.

use std::env;
use std::process::Command;

use crate::bulk::{self, Case, HandOver};
use crate::open_close::open_and_close;
use crate::ours::{Ours, Settings, Trace};
use crate::pair::{Acks, Packets, Pair, Sums, settle};
use crate::ping_pong::play;
use crate::row::{Better, Row, SMOLTCP};
use crate::theirs::Theirs;

/// Asks this program for the counts.
pub(crate) const OPTION: &str = "--counts";
/// Asks it to do the work of one case, as `--work CASE STACK TIMES`.
pub(crate) const WORK: &str = "--work";

/// The cases, each with its number of units. A run must not end with a wait for a delayed ACK, whose turns would count
/// as work.
pub(crate) const CASES: [(&str, &str, u64, Work); 7] = [
    ("bulk", "segment", 8000, Work::Bulk(PLAIN)),
    ("bulk, no checksums", "segment", 8000, Work::Bulk(Case { sums: Sums::Off, ..PLAIN })),
    ("bulk, an ACK each", "segment", 8000, Work::Bulk(Case { acks: Acks::Immediate, ..PLAIN })),
    ("bulk, window by window", "segment", 8000, Work::Bulk(Case { hand_over: HandOver::Window, ..PLAIN })),
    ("bulk, in bundles", "segment", 8000, Work::Bulk(Case { packets: Packets::Bundles, ..PLAIN })),
    ("ping-pong", "round trip", 2000, Work::PingPong),
    ("open and close", "connection", 1000, Work::OpenAndClose),
];

const PLAIN: Case =
    Case { sums: Sums::On, acks: Acks::Delayed, packets: Packets::Segments, hand_over: HandOver::Each };

/// The caches of the model, as size, ways and bytes a line. Valgrind would take this machine's.
const CACHES: [&str; 3] = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"];

#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    Bulk(Case),
    PingPong,
    OpenAndClose,
}

/// The counts of one unit of work.
#[derive(Clone, Copy, Debug)]
struct Counts {
    instructions: f64,
    branches: f64,
    /// Conditional and indirect branches that the model's predictor gets wrong.
    mispredicted: f64,
    /// Lines that the first-level caches of the model lack.
    data_misses: f64,
    code_misses: f64,
    allocations: f64,
}

/// Does the work of one case, if that is what this process is for.
pub(crate) fn works() -> bool {
    let words: Vec<String> = env::args().skip_while(|word| word != WORK).skip(1).collect();
    let [case, stack, times] = words.as_slice() else { return false };
    let (_, _, _, work) = CASES.into_iter().find(|(name, ..)| name == case).expect("the parent names a case");
    let times = times.parse().expect("the parent gives a number");
    let allocations = if stack == SMOLTCP {
        allocations(&mut Theirs::new(work.sums(), work.acks(), work.packets()), work, times)
    } else {
        let settings =
            Settings { sums: work.sums(), acks: work.acks(), packets: work.packets(), trace: Trace::Kept };
        allocations(&mut Ours::new(settings), work, times)
    };
    println!("{allocations}");
    true
}

impl Work {
    fn case(self) -> Case {
        match self {
            Work::Bulk(case) => case,
            Work::PingPong | Work::OpenAndClose => PLAIN,
        }
    }

    fn sums(self) -> Sums {
        self.case().sums
    }

    fn acks(self) -> Acks {
        self.case().acks
    }

    fn packets(self) -> Packets {
        self.case().packets
    }
}

/// Allocations of the work, without the allocations before it.
fn allocations(pair: &mut impl Pair, work: Work, times: u64) -> u64 {
    if !matches!(work, Work::OpenAndClose) {
        pair.open();
        settle(pair);
    }
    let counted = allocation_counter::measure(|| {
        match work {
            Work::Bulk(case) => bulk::transfer(pair, case.hand_over, times),
            Work::PingPong => play(pair, times),
            Work::OpenAndClose => open_and_close(pair, times),
        };
    });
    counted.count_total
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, unit, times, _) in CASES {
        let [ours, theirs] = ["ours", SMOLTCP].map(|stack| counts(name, stack, times));
        let mut row = |what: &str, ours, theirs| {
            let name = format!("{name}: {what}");
            rows.push(Row::beside(name, per(unit), Better::Less, ours, (SMOLTCP, theirs)));
        };
        row("instructions", ours.instructions, theirs.instructions);
        row("branches", ours.branches, theirs.branches);
        row("mispredicted", ours.mispredicted, theirs.mispredicted);
        row("data lines missed", ours.data_misses, theirs.data_misses);
        row("code lines missed", ours.code_misses, theirs.code_misses);
        row("allocations", ours.allocations, theirs.allocations);
    }
    rows
}

pub(crate) fn per(unit: &str) -> &'static str {
    match unit {
        "segment" => "1/segment",
        "round trip" => "1/round trip",
        _ => "1/connection",
    }
}

fn counts(case: &str, stack: &str, times: u64) -> Counts {
    let (once, twice) = (events(case, stack, times), events(case, stack, 2 * times));
    let each = |name: &str| (twice.of(name) - once.of(name)) / times as f64;
    Counts {
        instructions: each("Ir"),
        branches: each("Bc") + each("Bi"),
        mispredicted: each("Bcm") + each("Bim"),
        data_misses: each("D1mr") + each("D1mw"),
        code_misses: each("I1mr"),
        allocations: (twice.allocations - once.allocations) / times as f64,
    }
}

/// The totals of one process, by callgrind's names.
struct Events {
    totals: Vec<(String, f64)>,
    allocations: f64,
}

impl Events {
    fn of(&self, name: &str) -> f64 {
        let found = self.totals.iter().find(|(known, _)| known == name);
        found.unwrap_or_else(|| panic!("callgrind counts no {name}: {:?}", self.totals)).1
    }
}

fn events(case: &str, stack: &str, times: u64) -> Events {
    let program = env::current_exe().expect("this program has a path");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--cache-sim=yes"]);
    valgrind.arg("--branch-sim=yes").args(CACHES).arg(program);
    valgrind.args([WORK, case, stack, &times.to_string()]);
    let output = valgrind.output().unwrap_or_else(|error| {
        panic!("valgrind: {error}; the counts need it, and Debian's package valgrind has it")
    });
    let (told, counted) = (text(&output.stderr), text(&output.stdout));
    assert!(output.status.success(), "valgrind: {}: {told}", output.status);
    let line = |label: &str| -> Vec<String> {
        let found = told.lines().find_map(|line| line.split_once(label));
        let (_, rest) = found.unwrap_or_else(|| panic!("valgrind prints no line with {label}: {told}"));
        rest.trim_start_matches([' ', ':']).split_whitespace().map(str::to_owned).collect()
    };
    let figures = line("Collected").into_iter().map(|figure| number(&figure));
    Events { totals: line("Events").into_iter().zip(figures).collect(), allocations: number(counted.trim()) }
}

pub(crate) fn number(figure: &str) -> f64 {
    figure.parse().unwrap_or_else(|_| panic!("{figure}: expected a number"))
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
