//! The rows of `scripts/bench host --peers`: bulk, round trips and connections of each stack.

use std::net::{IpAddr, Ipv4Addr};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::kernel;
use crate::ours::PORT;
use crate::peers::{Running, Stack, in_turn, say_who_is_missing};
use crate::place::Device;
use crate::row::{Better, Row};
use crate::task::{Mode, Task};
use crate::usage::measure;

const RUNS: usize = 7;
const ROUND_TRIPS: u64 = 10_000;
const CONNECTIONS: u64 = 2_000;
/// Round trips before the counted ones: a new process has cold caches.
const WARM_UP: u64 = 1_000;
/// The sockets of smoltcp, which looks at all of them. Closed ones end a little later than the next are opened.
const SOCKETS_FOR_ONE: usize = 8;
const SOCKETS: usize = 64;

/// A figure of a case.
struct Figure {
    /// Stands before the name of the case.
    what: &'static str,
    unit: &'static str,
    better: Better,
}

const fn figure(what: &'static str, unit: &'static str, better: Better) -> Figure {
    Figure { what, unit, better }
}

/// The rows of a case: our stack and each other stack, figure by figure.
fn rows_of<const N: usize>(
    case: &str,
    figures: &[Figure; N],
    device: Device,
    measure: impl FnMut(Stack) -> [f64; N],
) -> Vec<Row> {
    let stacks = Stack::all_on(device);
    let measured = in_turn(&stacks, RUNS, measure);
    let (ours, others) = measured.split_first().expect("ours is one of them");
    let mut rows = Vec::new();
    for (nth, Figure { what, unit, better }) in figures.iter().enumerate() {
        for (stack, theirs) in stacks[1..].iter().zip(others) {
            let peer = (stack.name(), theirs[nth].as_slice());
            rows.push(Row::in_pairs(format!("{what}{case}"), unit, *better, &ours[nth], peer));
        }
    }
    rows
}

const DEVICES: [Device; 2] = [Device::Mtu, Device::Offload];

pub(crate) fn bulk() -> Vec<Row> {
    say_who_is_missing();
    let mut rows = Vec::new();
    for device in DEVICES {
        for connections in [1, 16] {
            for mode in [Mode::Send, Mode::Receive] {
                rows.extend(bulk_of(device, connections, mode));
            }
        }
    }
    rows
}

fn bulk_of(device: Device, connections: usize, mode: Mode) -> Vec<Row> {
    const FIGURES: [Figure; 2] = [figure("", "MB/s", Better::More), figure("CPU, ", "ms/GB", Better::Less)];
    let direction = if mode == Mode::Send { "to the kernel" } else { "from the kernel" };
    let plural = if connections == 1 { "" } else { "s" };
    let case = format!("{direction}, {}, {connections} connection{plural}", device.name());
    rows_of(&case, &FIGURES, device, |stack| {
        let all: u64 = if device == Device::Mtu { 300_000_000 } else { 1_000_000_000 };
        let bytes_each = all / connections as u64;
        let task = |port| Task { mode, device, connections, bytes_each, port };
        let (took, cpu) = if mode == Mode::Send { sent(stack, task) } else { received(stack, task(PORT)) };
        [all as f64 / took / 1e6, cpu / all as f64 * 1e12]
    })
}

fn sent(stack: Stack, task: impl Fn(u16) -> Task) -> (f64, f64) {
    // Over the wire, the kernel's end has an address only while the wire is there.
    let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let Task { connections, .. } = task(0);
    let (at, sink) = kernel::sink(any, connections);
    let mut running = Running::start(stack, task(at.port()));
    let (took, kernels) = measure(|| {
        running.go();
        sink.join().expect("the sink ends");
    });
    (took, kernels + running.end())
}

fn received(stack: Stack, task: Task) -> (f64, f64) {
    let mut running = Running::start(stack, task);
    let to = running.address();
    let (took, kernels) = measure(|| {
        running.go();
        kernel::source(to, task.connections, task.bytes_each).join().expect("the source ends");
    });
    (took, kernels + running.end())
}

/// Round trips and connections, on one processor and on all.
pub(crate) fn messages() -> Vec<Row> {
    say_who_is_missing();
    let mut rows = Vec::new();
    for device in DEVICES {
        for cores in ["one core", "all cores"] {
            let before = sched_getaffinity(None).expect("it is a thread of ours");
            if cores == "one core" {
                let mut one = CpuSet::new();
                one.set((0..CpuSet::MAX_CPU).find(|cpu| before.is_set(*cpu)).expect("it runs somewhere"));
                sched_setaffinity(None, &one).expect("it may run there");
            }
            let case = format!("{}, {cores}", device.name());
            rows.extend(round_trips(&case, device));
            rows.extend(connections(&case, device));
            sched_setaffinity(None, &before).expect("it ran there");
        }
    }
    rows
}

fn round_trips(case: &str, device: Device) -> Vec<Row> {
    const FIGURES: [Figure; 4] = [
        figure("round trips, ", "1/s", Better::More),
        figure("CPU of a round trip, ", "us", Better::Less),
        figure("p50 of a round trip, ", "us", Better::Less),
        figure("p99 of a round trip, ", "us", Better::Less),
    ];
    rows_of(case, &FIGURES, device, |stack| {
        let mut running = Running::start(stack, Task::echo(device, SOCKETS_FOR_ONE));
        running.go();
        let to = running.address();
        kernel::ping_pong(to, WARM_UP);
        let mut times = Vec::new();
        let (took, kernels) = measure(|| times = kernel::timed_ping_pong(to, ROUND_TRIPS));
        let theirs = running.end() / (WARM_UP + ROUND_TRIPS) as f64;
        times.sort_unstable();
        let part = |of_hundred: usize| times[times.len() * of_hundred / 100] as f64 / 1e3;
        let trips = ROUND_TRIPS as f64;
        [trips / took, (kernels / trips + theirs) * 1e6, part(50), part(99)]
    })
}

fn connections(case: &str, device: Device) -> Vec<Row> {
    const FIGURES: [Figure; 2] =
        [figure("connections, ", "1/s", Better::More), figure("CPU of a connection, ", "us", Better::Less)];
    rows_of(case, &FIGURES, device, |stack| {
        let mut running = Running::start(stack, Task::echo(device, SOCKETS));
        running.go();
        let to = running.address();
        let (took, kernels) = measure(|| kernel::open_and_close(to, CONNECTIONS));
        let cpu = kernels + running.end();
        [CONNECTIONS as f64 / took, cpu / CONNECTIONS as f64 * 1e6]
    })
}
