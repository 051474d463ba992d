//! Odd reports of the drivers of Wi-Fi interfaces.

use std::{fs, io};

use hopwise_core::StationAddress;
use hopwise_host::nl80211::{EVERY, SanityCheck, StationSource};
use hopwise_host::{Clock, wait_for};

use super::{Finding, System};

const CHECK: &str = "stations";
/// The reports of an interface that are read. Rules that compare minutes need a daemon: its status tells those.
const REPORTS: u32 = 3;

pub(super) fn examine(system: &System) -> Vec<Finding> {
    let entries = fs::read_dir(system.path("sys/class/net")).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let radio = |name: String| {
        let source = StationSource::open(&name);
        // The radio of `hopwise air` is no Wi-Fi for the kernel.
        let is_radio = source.is_ok() || system.has(&format!("sys/class/net/{name}/phy80211"));
        is_radio.then_some((name, source))
    };
    let radios: Vec<_> = names.filter_map(radio).collect();
    if radios.is_empty() {
        return vec![Finding::skipped(CHECK, "no interface is Wi-Fi or of hopwise air")];
    }
    radios.into_iter().flat_map(|(name, source)| interface(&name, source)).collect()
}

fn interface(name: &str, source: io::Result<StationSource>) -> Vec<Finding> {
    let mut source = match source {
        Ok(source) => source,
        Err(error) => return vec![Finding::skipped(CHECK, format!("{name}: {error}"))],
    };
    let clock = Clock::start();
    for nth in 0..REPORTS {
        if nth > 0 {
            let _ = wait_for(&mut [], EVERY);
        }
        source.poll(clock.now(), &mut |_| {});
    }
    let report = source.board().read();
    findings(name, report.facts.len(), &report.broken)
}

pub(super) fn findings(
    name: &str,
    stations: usize,
    broken: &[(SanityCheck, StationAddress)],
) -> Vec<Finding> {
    if broken.is_empty() {
        return vec![Finding::ok(
            CHECK,
            match stations {
                1 => format!("{name}: nothing in the reports of 1 station is odd"),
                _ => format!("{name}: nothing in the reports of {stations} stations is odd"),
            },
        )];
    }
    let finding = |(rule, station): &(SanityCheck, StationAddress)| {
        let (rule, drops) = (rule.name(), rule.drops());
        Finding::warning(
            CHECK,
            format!("{name}: its driver's report of {station} is not believed ({rule}): without {drops}"),
            "another driver or firmware; `route` and `proxy` go on by hellos and by silence",
        )
    };
    broken.iter().map(finding).collect()
}
