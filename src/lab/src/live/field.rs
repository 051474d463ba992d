//! The field of a live run: hosts in namespaces of their own, and the scenario's radios between them.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;

use hopwise_air::frames::Framing;
use hopwise_air::{Lateness, Live, OutsideDevices};
use hopwise_host::{Clock, Namespace};
use hopwise_lab::live::air;
use hopwise_lab::scenario::Prepared;
use hopwise_lab::sim::{AirTotals, QueueTotals};
use rustix::event::{EventfdFlags, eventfd};

use crate::air::hwsim::{CarriedRadios, HwsimNetwork};
use crate::air::netns::medium;
use crate::air::netns::stations::{NetnsStations, ServedAddresses};
use crate::run::watch::{Epoch, RunWatch, WantedFiles};
use hopwise_daemon::failure::Failure;
use hopwise_daemon::signals::{RingAtDrop, ring};
use hopwise_part::lost;

/// Dropping it removes all of it.
pub(super) trait LiveField {
    fn namespace(&self, node: u32) -> &Namespace;

    /// Prepares once the nodes have joined each other. Then it does the work with the radios on the air, whose clock
    /// begins with the work. The descriptor is readable once the user wants no more.
    fn on_the_air<P: Send, T: Send>(
        &self,
        limits: (Option<&Path>, &OwnedFd),
        prepare: impl FnOnce() -> Result<P, Failure> + Send,
        work: impl FnOnce(P) -> Result<T, Failure> + Send,
    ) -> Result<(T, RadioCounters), Failure>;
}

/// The radios' counters at the end of the work.
#[derive(Debug)]
pub(super) struct RadioCounters {
    pub(super) air: AirTotals,
    pub(super) lateness: Lateness,
    /// Frames that the system lost between nodes and radios.
    pub(super) lost: u64,
    /// Nodes that did not hear all of their neighbours before the work.
    pub(super) deaf: Vec<String>,
}

impl LiveField for HwsimNetwork<'_> {
    fn namespace(&self, node: u32) -> &Namespace {
        self.namespace(node)
    }

    fn on_the_air<P: Send, T: Send>(
        &self,
        limits: (Option<&Path>, &OwnedFd),
        prepare: impl FnOnce() -> Result<P, Failure> + Send,
        work: impl FnOnce(P) -> Result<T, Failure> + Send,
    ) -> Result<(T, RadioCounters), Failure> {
        let (done, carried) = self.on_the_air(limits, prepare, work)?;
        let CarriedRadios { mut live, dropped, refusals, deaf } = carried;
        let queues = QueueTotals { drops: Some(dropped.by_queue.iter().sum()), ..QueueTotals::default() };
        let (air, lateness) = (air::totals(live.world(), queues), live.lateness());
        Ok((done, RadioCounters { air, lateness, lost: refusals.overruns, deaf }))
    }
}

#[derive(Debug)]
pub(super) struct Netns<'a> {
    stations: NetnsStations,
    prepared: &'a Prepared,
}

impl Netns<'_> {
    /// Makes the namespaces; `prefix` begins their names.
    pub(in crate::live) fn open<'a>(prefix: &str, prepared: &'a Prepared) -> Result<Netns<'a>, Failure> {
        Ok(Netns {
            stations: NetnsStations::open(prefix, prepared, ServedAddresses::of(&prepared.plan.arm))?,
            prepared,
        })
    }
}

impl LiveField for Netns<'_> {
    fn namespace(&self, node: u32) -> &Namespace {
        &self.stations.namespaces()[node as usize]
    }

    fn on_the_air<P: Send, T: Send>(
        &self,
        (capture, ends): (Option<&Path>, &OwnedFd),
        prepare: impl FnOnce() -> Result<P, Failure> + Send,
        work: impl FnOnce(P) -> Result<T, Failure> + Send,
    ) -> Result<(T, RadioCounters), Failure> {
        let prepared = prepare()?;
        let done = eventfd(0, EventfdFlags::CLOEXEC).map_err(Failure::during("make an eventfd"))?;
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
            let over = RingAtDrop(&done);
            let worked = work(prepared);
            drop(over);
            let heard = air.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok((worked?, heard))
        })
    }
}

fn carry(
    stations: &NetnsStations,
    prepared: &Prepared,
    capture: Option<&Path>,
    ends: &OwnedFd,
) -> Result<RadioCounters, Failure> {
    let mut live = air::world(&prepared.plan);
    let clock = Clock::start();
    let wanted = WantedFiles { capture: capture.is_some(), frames: false, trace: false };
    let epoch = Epoch { begins: clock.wall_offset(), left_out: live.left_out() };
    let out = capture.unwrap_or(Path::new("."));
    let watch = RunWatch::begin(wanted, (live.world(), Framing::Ethernet), (prepared, epoch), out)?;
    let served = medium::serve((&mut live, clock), stations, ends, None);
    watch.end()?;
    let dropped = served.map_err(Failure::during("carry frames"))?;
    let not_taken = dropped.not_taken.iter().sum();
    let queues = queue_totals(stations, &live);
    Ok(RadioCounters {
        air: air::totals(live.world(), queues),
        lateness: live.lateness(),
        lost: not_taken,
        deaf: Vec::new(),
    })
}

/// The packets that the kernels' queues and the world's have dropped.
fn queue_totals(stations: &NetnsStations, live: &Live<OutsideDevices>) -> QueueTotals {
    let outside = || live.machines().iter();
    let of_kernels: Option<u64> = stations.namespaces().iter().map(queue_drops).sum();
    let of_world: u64 = outside().map(OutsideDevices::queue_drops).sum();
    let marks = outside().filter_map(OutsideDevices::queue_marks).reduce(|sum, more| sum + more);
    QueueTotals {
        drops: of_kernels.map(|drops| drops + of_world),
        codel_drops: marks.map(|_| outside().map(OutsideDevices::codel_drops).sum()),
        marks,
    }
}

/// Packets that the kernel dropped because a radio's or a wire's queue was full, if it tells.
fn queue_drops(namespace: &Namespace) -> Option<u64> {
    let of_the_air = |name: &str| name.starts_with("air") || name.starts_with("wire");
    namespace.run(|| lost::by_devices(of_the_air)).ok()?
}
