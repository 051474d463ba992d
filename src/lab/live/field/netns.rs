//! A field on this machine: TAP devices in namespaces, and the scenario's radios between them in real time.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;

use hopwise_air::frames::Framing;
use hopwise_host::{Clock, Namespace};
use hopwise_lab::live::air;
use hopwise_lab::scenario::Prepared;
use rustix::event::{EventfdFlags, eventfd};

use super::{Field, Heard};
use crate::failure::Failure;
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
        Ok(Netns { stations: Stations::open(prefix, prepared, Serves::Programs)?, prepared })
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
    served.map_err(|error| Failure::failed("carry frames", error))?;
    let queue_drops = stations.namespaces().iter().map(drops).sum();
    Ok(Heard { air: air::totals(live.world(), queue_drops), lateness: live.lateness() })
}

/// Packets that the kernel dropped because a queue of a device was full.
fn drops(namespace: &Namespace) -> u64 {
    let read = namespace.run(|| fs::read_to_string("/proc/thread-self/net/dev"));
    read.ok().and_then(Result::ok).map_or(0, |text| drops_in(&text))
}

/// The drops on the way out of all devices of the air, in the kernel's table of devices.
fn drops_in(table: &str) -> u64 {
    let of_device = |line: &str| {
        let (name, counters) = line.split_once(':')?;
        let is_air = name.trim().starts_with("air") || name.trim().starts_with("wire");
        counters.split_whitespace().nth(11)?.parse::<u64>().ok().filter(|_| is_air)
    };
    table.lines().filter_map(of_device).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_the_airs_devices_are_counted_and_no_others() {
        let table = "Inter-|   Receive                      |  Transmit\n face |bytes|bytes\n\
                     \x20 air0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
                     \x20   lo: 1 2 3 4 5 6 7 8 9 10 11 99 13 14 15 16\n\
                     \x20wire1: 0 0 0 0 0 0 0 0 0 0 0 30 0 0 0 0\n";
        assert_eq!(drops_in(table), 42);
    }
}
