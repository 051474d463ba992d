//! Bulk transfers in both directions.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use hopwise_host::Drives;

use crate::flood;
use crate::kernel;
use crate::mover::Mover;
use crate::ours::{Ours, PORT};
use crate::place::{Device, KERNELS, OURS, Other};
use crate::row::{self, Better, Row, SMOLTCP};
use crate::theirs::{BULK_BUFFER, Theirs};
use crate::usage::{measure, now_us};

/// On a virtual machine with neighbours, a few runs are no evidence.
const RUNS: usize = 7;
pub(crate) const MOVER: &str = "raw mover";
const KEEPER: &str = "mover that keeps";
const VETH: &str = "kernel, veth";
/// Our stack with the defaults of `StackConfig::new`: a thread of its own.
const THREAD: &str = "ours, own thread";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    ToKernel,
    FromKernel,
}

/// One case of a bulk transfer.
#[derive(Clone, Copy, Debug)]
struct Load {
    direction: Direction,
    device: Device,
    connections: usize,
    bytes: u64,
}

/// Megabytes a second, and CPU seconds a gigabyte.
#[derive(Clone, Copy, Debug)]
struct Figures {
    rate: f64,
    cpu: f64,
}

impl Load {
    fn new(direction: Direction, device: Device, connections: usize) -> Load {
        let bytes = if device == Device::Mtu { 300_000_000 } else { 2_000_000_000 };
        Load { direction, device, connections, bytes }
    }

    fn bytes_each(self) -> u64 {
        self.bytes / self.connections as u64
    }

    fn name(self) -> String {
        let direction =
            if self.direction == Direction::ToKernel { "to the kernel" } else { "from the kernel" };
        let plural = if self.connections == 1 { "" } else { "s" };
        format!("{direction}, {}, {} connection{plural}", self.device.name(), self.connections)
    }

    fn figures(self, work: impl FnOnce()) -> Figures {
        let (took, cpu) = measure(work);
        let bytes = (self.bytes_each() * self.connections as u64) as f64;
        Figures { rate: bytes / took / 1e6, cpu: cpu / bytes * 1e9 }
    }

    fn ours(self, drives: Drives) -> Figures {
        let ours = Ours::driven(self.device, drives);
        let figures = match self.direction {
            Direction::ToKernel => {
                let (to, sink) = kernel::sink(KERNELS, self.connections);
                self.figures(|| {
                    ours.send(to, self.connections, self.bytes_each());
                    sink.join().expect("the sink ends");
                })
            }
            Direction::FromKernel => {
                let listener = ours.listen();
                self.figures(|| {
                    let source = kernel::source((OURS, PORT).into(), self.connections, self.bytes_each());
                    ours.receive(&listener, self.connections);
                    source.join().expect("the source ends");
                })
            }
        };
        ours.stop();
        figures
    }

    fn theirs(self) -> Figures {
        let mut theirs = Theirs::start(self.device, self.connections, BULK_BUFFER);
        match self.direction {
            Direction::ToKernel => {
                let (to, sink) = kernel::sink(KERNELS, self.connections);
                self.figures(|| {
                    theirs.send(to, self.bytes_each());
                    sink.join().expect("the sink ends");
                })
            }
            Direction::FromKernel => {
                theirs.ready();
                self.figures(|| {
                    let source = kernel::source((OURS, PORT).into(), self.connections, self.bytes_each());
                    theirs.receive();
                    source.join().expect("the source ends");
                })
            }
        }
    }

    fn mover(self, mut mover: Mover) -> Figures {
        match self.direction {
            Direction::ToKernel => {
                let (to, sink) = kernel::sink(KERNELS, self.connections);
                self.figures(|| {
                    mover.send(to, self.connections, self.bytes_each());
                    sink.join().expect("the sink ends");
                })
            }
            Direction::FromKernel => self.figures(|| {
                let source = kernel::source((OURS, PORT).into(), self.connections, self.bytes_each());
                mover.receive(self.connections);
                source.join().expect("the source ends");
            }),
        }
    }

    /// The figures of the kernel with itself.
    fn veth(self) -> Figures {
        let other = Other::new();
        if self.device == Device::Mtu {
            other.without_offload();
        }
        let (to, sink) = kernel::sink_in(&other);
        self.figures(|| {
            kernel::source(to, 1, self.bytes_each()).join().expect("the source ends");
            sink.join().expect("the sink ends");
        })
    }

    /// Our rate, and the rows.
    fn rows(self) -> (f64, Vec<Row>) {
        let (is_alone, with_peers) = (self.connections == 1, !crate::is_without_peers());
        let sends_bundles = self.device == Device::Offload && self.direction == Direction::ToKernel;
        let mut runs: [Vec<Figures>; 6] = Default::default();
        for run in 0..=RUNS {
            let figures = [
                Some(self.ours(Drives::Runtime)),
                with_peers.then(|| self.theirs()),
                with_peers.then(|| self.mover(Mover::start(self.device))),
                (with_peers && sends_bundles).then(|| self.mover(Mover::that_keeps(self.device))),
                (with_peers && is_alone).then(|| self.veth()),
                (with_peers && is_alone).then(|| self.ours(Drives::Thread)),
            ];
            // The first run of each warms up.
            if run > 0 {
                runs.iter_mut().zip(figures).for_each(|(runs, figures)| runs.extend(figures));
            }
        }
        let [ours, theirs, mover, keeper, veth, thread] = runs.map(median);
        let ours = ours.expect("it ran");
        if !with_peers {
            let cpu = format!("CPU, {}", self.name());
            let rows =
                vec![Row::alone(self.name(), "MB/s", ours.rate), Row::alone(cpu, "ms/GB", ours.cpu * 1e3)];
            return (ours.rate, rows);
        }
        let mut rows = Vec::new();
        let peers = [(SMOLTCP, theirs), (MOVER, mover), (KEEPER, keeper), (VETH, veth), (THREAD, thread)];
        for (peer, figures) in peers {
            let Some(figures) = figures else { continue };
            let rate = Row::beside(self.name(), "MB/s", Better::More, ours.rate, (peer, figures.rate));
            let cpu = format!("CPU, {}", self.name());
            let cpu = Row::beside(cpu, "ms/GB", Better::Less, ours.cpu * 1e3, (peer, figures.cpu * 1e3));
            let [rate_goal, cpu_goal] = self.goals(peer);
            for (row, goal) in [(rate, rate_goal), (cpu, cpu_goal)] {
                rows.push(match goal {
                    Some(goal) => row.meant_to_be(goal),
                    None => row,
                });
            }
        }
        (ours.rate, rows)
    }

    /// The goals for the ratios of rates and of CPU time.
    fn goals(self, peer: &str) -> [Option<f64>; 2] {
        match (peer, self.device) {
            (MOVER, _) => [Some(0.8), None],
            (SMOLTCP, _) => [Some(1.0), Some(1.0)],
            _ => [None, None],
        }
    }
}

fn median(mut figures: Vec<Figures>) -> Option<Figures> {
    let middle = figures.len() / 2;
    figures.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    let rate = figures.get(middle)?.rate;
    figures.sort_by(|a, b| a.cpu.total_cmp(&b.cpu));
    Some(Figures { rate, cpu: figures.get(middle)?.cpu })
}

const FLOOD_PER_SECOND: u64 = 100_000;
/// A flood lasts.
const FLOODED_BYTES: u64 = 2_000_000_000;

/// A transfer from the kernel to a port that receives SYNs from made-up addresses, and a transfer to a port without
/// such SYNs.
pub(crate) fn flood_rows() -> Vec<Row> {
    let load = Load::new(Direction::FromKernel, Device::Mtu, 1);
    let load = Load { bytes: FLOODED_BYTES, ..load };
    let mut rates: [Vec<f64>; 3] = Default::default();
    for _ in 0..RUNS {
        let alone = load.ours(Drives::Runtime).rate;
        let (sent, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let began = now_us();
        let flooded = thread::scope(|scope| {
            scope.spawn(|| flood::run(OURS, PORT, FLOOD_PER_SECOND, &sent, &stop));
            let rate = load.ours(Drives::Runtime).rate;
            stop.store(true, Ordering::Relaxed);
            rate
        });
        let syns = sent.load(Ordering::Relaxed) as f64 / (now_us() - began) as f64 * 1e6;
        rates.iter_mut().zip([alone, flooded, syns]).for_each(|(rates, rate)| rates.push(rate));
    }
    let [alone, flooded, syns] = rates.map(row::median);
    vec![
        Row::beside("from the kernel under a flood", "MB/s", Better::More, flooded, ("ours alone", alone))
            .meant_to_be(0.8),
        Row::alone("SYNs meanwhile", "1/s", syns),
    ]
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut plain = Vec::new();
    for device in [Device::Mtu, Device::Offload] {
        for connections in [1, 16] {
            for direction in [Direction::ToKernel, Direction::FromKernel] {
                let load = Load::new(direction, device, connections);
                let (rate, of_load) = load.rows();
                rows.extend(of_load);
                if device == Device::Mtu {
                    plain.push(rate);
                } else if !crate::is_without_peers() {
                    let peer = ("ours, 1500 bytes", plain.remove(0));
                    rows.push(Row::beside(load.name(), "MB/s", Better::More, rate, peer).meant_to_be(10.0));
                }
            }
        }
    }
    rows
}
