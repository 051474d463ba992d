//! Small messages, short connections, and many that are idle.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::kernel;
use crate::ours::{Ours, PORT};
use crate::peers::{Running, Stack};
use crate::place::{Device, OURS};
use crate::row::{Better, Row, SMOLTCP, median};
use crate::task::Task;
use crate::theirs::{IDLE_BUFFER, Theirs};
use crate::usage::{measure, resident_mib};

/// The figures here depend above all on how soon the system wakes a sleeping thread, which varies.
const RUNS: usize = 7;
const ROUND_TRIPS: u64 = 10_000;
const CONNECTIONS: u64 = 2_000;
const IDLE: usize = 10_000;
const MOST_MIB: f64 = 20.0;
const MANY_IDLE: usize = 50_000;
/// Each has a part of their other ends: a process may have too few descriptors for all.
const PROCESSES: usize = 5;
const MOST_MIB_OF_MANY: f64 = 100.0;

/// The rate a second of an event that happens `times` in `work`.
fn rate(times: u64, work: impl FnOnce()) -> f64 {
    times as f64 / measure(work).0
}

/// Runs `work` against a server of ours.
fn with_ours<T>(work: impl FnOnce() -> T) -> T {
    let ours = Ours::start(Device::Mtu);
    let echo = ours.echo();
    let done = work();
    drop(echo);
    ours.stop();
    done
}

fn with_theirs<T: Send>(sockets: usize, idle: usize, work: impl FnOnce() -> T + Send) -> T {
    let is_over = AtomicBool::new(false);
    let mut theirs = Theirs::start(Device::Mtu, sockets, IDLE_BUFFER);
    thread::scope(|scope| {
        let working = scope.spawn(|| {
            let done = work();
            is_over.store(true, Ordering::Release);
            done
        });
        theirs.echo(idle, || is_over.load(Ordering::Acquire));
        working.join().expect("it works")
    })
}

/// The medians of runs in turn.
fn medians(mut one: impl FnMut() -> f64, mut other: impl FnMut() -> f64) -> (f64, f64) {
    let (a, b): (Vec<_>, Vec<_>) = (0..RUNS).map(|_| (one(), other())).unzip();
    (median(a), median(b))
}

/// The row of a rate and the goal for its ratio to smoltcp's, which is measured in turn unless peers are left out.
fn beside_theirs(
    (name, goal): (&str, Option<f64>),
    mut ours: impl FnMut() -> f64,
    theirs: impl FnMut() -> f64,
) -> Row {
    if crate::is_without_peers() {
        return Row::alone(name, "1/s", median((0..RUNS).map(|_| ours()).collect()));
    }
    let (ours, theirs) = medians(ours, theirs);
    let row = Row::beside(name, "1/s", Better::More, ours, (SMOLTCP, theirs));
    match goal {
        Some(goal) => row.meant_to_be(goal),
        None => row,
    }
}

fn round_trips() -> f64 {
    kernel::ping_pong((OURS, PORT).into(), ROUND_TRIPS / 10);
    rate(ROUND_TRIPS, || kernel::ping_pong((OURS, PORT).into(), ROUND_TRIPS))
}

fn opens() -> f64 {
    rate(CONNECTIONS, || kernel::open_and_close((OURS, PORT).into(), CONNECTIONS))
}

pub(crate) fn rows() -> Vec<Row> {
    let [trips, opened] = [("round trips, alone", None), ("connections opened and closed", Some(1.0))];
    vec![
        beside_theirs(trips, || with_ours(round_trips), || with_theirs(8, 0, round_trips)),
        beside_theirs(opened, || with_ours(opens), || with_theirs(64, 0, opens)),
    ]
}

/// Round trips while connections are idle, and the memory of the idle connections.
fn beside_idle(times: u64, before: f64) -> (f64, f64) {
    let idle = kernel::idle((OURS, PORT).into(), IDLE);
    let memory = resident_mib() - before;
    let trips = rate(times, || kernel::ping_pong((OURS, PORT).into(), times));
    drop(idle);
    (trips, memory)
}

/// The memory of idle connections in a process of our stack alone.
fn memory_of_many() -> f64 {
    let mut running = Running::start(Stack::Ours, Task::echo(Device::Mtu, 0));
    running.go();
    let before = running.resident_mib();
    let part = Task::echo(Device::Mtu, MANY_IDLE / PROCESSES);
    let mut holding: Vec<_> = (0..PROCESSES).map(|_| Running::start(Stack::Idle, part)).collect();
    let memory = running.resident_mib() - before;
    holding.iter_mut().for_each(|holding| {
        holding.end();
    });
    running.end();
    memory
}

pub(crate) fn crowd_rows() -> Vec<Row> {
    let mut memories = Vec::with_capacity(RUNS);
    let mut beside = || {
        let before = resident_mib();
        let (trips, memory) = with_ours(|| beside_idle(ROUND_TRIPS, before));
        memories.push(memory);
        trips
    };
    let (alone, trips) = medians(|| with_ours(round_trips), &mut beside);
    // A later run partly reuses memory that an earlier one has left.
    let memory = memories[0];
    let mut rows = crowd_beside_theirs(trips, memory);
    rows.extend([
        Row::beside("the same beside none", "1/s", Better::More, trips, ("ours alone", alone))
            .meant_to_be(0.9),
        Row::beside("memory of 10,000 idle", "MiB", Better::Less, memory, ("the limit", MOST_MIB))
            .meant_to_be(1.0),
        Row::beside(
            "memory of 50,000 idle",
            "MiB",
            Better::Less,
            memory_of_many(),
            ("the limit", MOST_MIB_OF_MANY),
        )
        .meant_to_be(1.0),
    ]);
    rows
}

fn crowd_beside_theirs(trips: f64, memory: f64) -> Vec<Row> {
    let [name, of_memory] = ["round trips beside 10,000 idle", "memory of 10,000 idle"];
    if crate::is_without_peers() {
        return vec![Row::alone(name, "1/s", trips)];
    }
    let before = resident_mib();
    let (their_trips, their_memory) = with_theirs(IDLE + 8, IDLE, || beside_idle(ROUND_TRIPS / 10, before));
    vec![
        Row::beside(name, "1/s", Better::More, trips, (SMOLTCP, their_trips)),
        Row::beside(of_memory, "MiB", Better::Less, memory, (SMOLTCP, their_memory)),
    ]
}
