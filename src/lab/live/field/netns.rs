//! A field on this machine: TAP devices in namespaces, and the scenario's radios between them in real time.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;

use hopwise_air::frames::Framing;
use hopwise_air::{Live, Outside};
use hopwise_host::{Clock, Namespace};
use hopwise_lab::live::air;
use hopwise_lab::scenario::Prepared;
use hopwise_lab::sim::QueueTotals;
use rustix::event::{EventfdFlags, eventfd};

use super::{Field, Heard};
use crate::failure::Failure;
use crate::lab::live::lost;
use crate::lab::run::watch::{Epoch, Wanted, Watch};
use crate::mesh::air::medium;
use crate::mesh::air::stations::{Serves, Stations};
use crate::signals::{Over, ring};

#[derive(Debug)]
pub(in crate::lab::live) struct Netns<'a> {
    stations: Stations,
    prepared: &'a Prepared,
}

impl Netns<'_> {
    /// Makes the namespaces; `prefix` begins their names.
    pub(in crate::lab::live) fn open<'a>(prefix: &str, prepared: &'a Prepared) -> Result<Netns<'a>, Failure> {
        Ok(Netns { stations: Stations::open(prefix, prepared, Serves::of(&prepared.plan.arm))?, prepared })
    }
}

impl Field for Netns<'_> {
    fn namespace(&self, node: u32) -> &Namespace {
        &self.stations.namespaces()[node as usize]
    }

    fn on_the_air<T: Send>(
        &self,
        capture: Option<&Path>,
        ends: &OwnedFd,
        work: impl FnOnce() -> Result<T, Failure> + Send,
    ) -> Result<(T, Heard), Failure> {
        let done = eventfd(0, EventfdFlags::CLOEXEC);
        let done = done.map_err(|error| Failure::failed("make an eventfd", error))?;
        let air = || {
            let heard = carry(&self.stations, self.prepared, capture, &done);
            // Without radios the work would wait until its last second.
            if heard.is_err() {
                ring(ends);
            }
            heard
        };
        thread::scope(|scope| {
            let air = scope.spawn(air);
            // Ends the radios, also after a panic of the work.
            let over = Over(&done);
            let worked = work();
            drop(over);
            let heard = air.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok((worked?, heard))
        })
    }
}

fn carry(
    stations: &Stations,
    prepared: &Prepared,
    capture: Option<&Path>,
    ends: &OwnedFd,
) -> Result<Heard, Failure> {
    let mut live = air::world(&prepared.plan);
    let clock = Clock::start();
    let wanted = Wanted { capture: capture.is_some(), frames: false, trace: false };
    let epoch = Epoch { begins: clock.wall_offset(), left_out: live.left_out() };
    let out = capture.unwrap_or(Path::new("."));
    let watch = Watch::begin(wanted, (live.world(), Framing::Ethernet), (prepared, epoch), out)?;
    let served = medium::serve((&mut live, clock), stations, ends, None);
    watch.end()?;
    let dropped = served.map_err(|error| Failure::failed("carry frames", error))?;
    let not_taken = dropped.not_taken.iter().sum();
    let queues = queue_totals(stations, &live);
    Ok(Heard {
        air: air::totals(live.world(), queues),
        lateness: live.lateness(),
        lost: not_taken,
        deaf: Vec::new(),
    })
}

/// The packets that the kernels' queues and the world's have dropped.
fn queue_totals(stations: &Stations, live: &Live<Outside>) -> QueueTotals {
    let outside = || live.machines().iter();
    let of_kernels: Option<u64> = stations.namespaces().iter().map(queue_drops).sum();
    let of_world: u64 = outside().map(Outside::queue_drops).sum();
    let marks = outside().filter_map(Outside::queue_marks).reduce(|sum, more| sum + more);
    QueueTotals {
        drops: of_kernels.map(|drops| drops + of_world),
        codel_drops: marks.map(|_| outside().map(Outside::codel_drops).sum()),
        marks,
    }
}

/// Packets that the kernel dropped because a radio's or a wire's queue was full, if it tells.
fn queue_drops(namespace: &Namespace) -> Option<u64> {
    let of_the_air = |name: &str| name.starts_with("air") || name.starts_with("wire");
    namespace.run(|| lost::by_devices(of_the_air)).ok()?
}
