//! The stations of Wi-Fi interfaces: odd reports of drivers, and rates that the rate control changes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use hopwise_core::{LinkFacts, StationAddress};
use hopwise_host::nl80211::{EVERY, SanityCheck, StationSource};
use hopwise_host::{Clock, wait_for};

use super::finding::Finding;
use super::{System, faults};

/// No rate carries frames reliably below the first signal, and many rates do from the second on.
const HOPELESS_DBM: i8 = -85;
const GOOD_DBM: i8 = -60;
/// A station whose frames come at this rate or more is near enough for fast frames to it.
const GOOD_BPS: u64 = 24_000_000;
/// Frames to a near station have more than this part of the rate of its frames.
const MOST_RATIO: u64 = 4;
/// The lowest rate of 802.11n.
const LOWEST_BPS: u64 = 6_500_000;
/// Fewer packets say nothing about the control of rates.
const LEAST_PACKETS: u64 = 100;

/// The reports of an interface's driver during a look.
#[derive(Clone, Debug, Default)]
pub(super) struct Looked {
    /// The last report.
    pub(super) facts: Vec<LinkFacts>,
    pub(super) broken: Vec<(SanityCheck, StationAddress)>,
    /// The rates of frames to each station, in bits a second.
    pub(super) rates: BTreeMap<StationAddress, BTreeSet<u64>>,
    /// The packets to each station before the look.
    pub(super) before: BTreeMap<StationAddress, u64>,
}

/// Returns whether the interface has stations, by what is in `/sys` and by who offers them.
pub(super) fn is_radio(system: &System, name: &str) -> bool {
    // The radio of `hopwise air` is no Wi-Fi for the kernel.
    is_wifi(system, name) || StationSource::open(name).is_ok()
}

pub(super) fn is_down(system: &System, name: &str) -> bool {
    system.read(&format!("sys/class/net/{name}/operstate")).as_deref() == Some("down")
}

/// The radios to look at where none is named. A radio that is down does no harm if another radio is up: the mesh uses
/// the latter.
pub(super) fn radios_in_use(system: &System) -> (Vec<String>, Vec<Finding>) {
    let mut radios = system.names("sys/class/net");
    radios.retain(|name| is_radio(system, name));
    let (down, up): (Vec<_>, Vec<_>) = radios.into_iter().partition(|name| is_down(system, name));
    if up.is_empty() {
        return (down, Vec::new());
    }
    let left_out = |name: &String| {
        let said = format!("{name} is down, and no --interface names it: it is not looked at");
        faults::INTERFACE_DOWN.skipped(said)
    };
    let findings = down.iter().map(left_out).collect();
    (up, findings)
}

/// Returns whether the kernel knows a radio of the interface.
pub(super) fn is_wifi(system: &System, name: &str) -> bool {
    system.has(&format!("sys/class/net/{name}/phy80211"))
}

/// Reads reports for a while. Rules that compare minutes need a daemon, and stand in its status.
pub(super) fn look(name: &str, during: Duration) -> io::Result<Looked> {
    let mut source = StationSource::open(name)?;
    let (clock, mut looked) = (Clock::start(), Looked::default());
    loop {
        source.poll(clock.now(), &mut |_| {});
        for facts in source.facts() {
            looked.before.entry(facts.station).or_insert(facts.tx_packets.unwrap_or(0));
            if let Some(rate) = facts.tx_bitrate_bps {
                looked.rates.entry(facts.station).or_default().insert(rate);
            }
        }
        if clock.now().since(hopwise_core::Instant::ZERO) >= during {
            break;
        }
        let _ = wait_for(&mut [], EVERY);
    }
    let report = source.board().read();
    (looked.facts, looked.broken) = (report.facts, report.broken);
    Ok(looked)
}

pub(super) fn examine(name: &str, looked: &io::Result<Looked>) -> Vec<Finding> {
    match looked {
        Ok(looked) => {
            let mut findings = odd(name, looked.facts.len(), &looked.broken);
            findings.push(rates(name, &looked.rates));
            findings.extend(looked.facts.iter().filter_map(|facts| signal(name, facts, looked)));
            findings
        }
        Err(error) => vec![faults::DRIVER_ODD.skipped(format!("{name}: {error}"))],
    }
}

pub(super) fn odd(name: &str, stations: usize, broken: &[(SanityCheck, StationAddress)]) -> Vec<Finding> {
    if broken.is_empty() {
        let said = match stations {
            1 => format!("{name}: nothing in the reports of 1 station is odd"),
            _ => format!("{name}: nothing in the reports of {stations} stations is odd"),
        };
        return vec![faults::DRIVER_ODD.ok(said)];
    }
    let finding = |(rule, station): &(SanityCheck, StationAddress)| {
        let (rule, drops) = (rule.name(), rule.drops());
        faults::DRIVER_ODD.found(format!(
            "{name}: its driver's report of {station} is not believed ({rule}): without {drops}"
        ))
    };
    broken.iter().map(finding).collect()
}

/// A station with a signal that is too weak, or with rates that are too slow for what comes from it.
fn signal(name: &str, facts: &LinkFacts, looked: &Looked) -> Option<Finding> {
    let LinkFacts { station, rx_bitrate_bps, .. } = *facts;
    let dbm = facts.signal_average_dbm.or(facts.signal_dbm);
    if let Some(dbm) = dbm.filter(|dbm| *dbm < HOPELESS_DBM) {
        let said = format!("{name}: frames of {station} have {dbm} dBm, expected {HOPELESS_DBM} dBm or more");
        return Some(faults::SIGNAL_HOPELESS.found(said).with("IF", name));
    }
    let fastest = *looked.rates.get(&station)?.last()?;
    let before = looked.before.get(&station).copied().unwrap_or(0);
    if facts.tx_packets?.saturating_sub(before) < LEAST_PACKETS {
        return None;
    }
    let (comes, least) = match (dbm, rx_bitrate_bps) {
        (_, Some(bps)) if bps >= GOOD_BPS && fastest <= bps / MOST_RATIO => {
            (format!("at {} kbit/s", bps / 1_000), bps / MOST_RATIO)
        }
        (Some(dbm), _) if dbm >= GOOD_DBM && fastest <= LOWEST_BPS => {
            (format!("with a signal of {dbm} dBm"), LOWEST_BPS)
        }
        _ => return None,
    };
    let (to, least) = (fastest / 1_000, least / 1_000);
    let said = format!(
        "{name}: frames to {station} go at {to} kbit/s, expected more than {least} kbit/s: frames from it come {comes}"
    );
    Some(faults::RATE_STUCK.found(said).with("IF", name))
}

fn rates(name: &str, rates: &BTreeMap<StationAddress, BTreeSet<u64>>) -> Finding {
    let shown = |rates: &BTreeSet<u64>| {
        let mbit = |bps: &u64| format!("{}.{}", bps / 1_000_000, bps / 100_000 % 10);
        rates.iter().map(mbit).collect::<Vec<_>>().join(", ")
    };
    if let Some((station, several)) = rates.iter().find(|(_, rates)| rates.len() > 1) {
        let said = format!("{name}: frames to {station} went at {} Mbit/s", shown(several));
        return faults::RATE_ROAMS.found(said).with("IF", name);
    }
    match rates.values().next() {
        Some(one) => faults::RATE_ROAMS.ok(format!("{name}: {} Mbit/s during the look", shown(one))),
        None => faults::RATE_ROAMS.skipped(format!("{name}: its driver tells no rate of a station")),
    }
}
