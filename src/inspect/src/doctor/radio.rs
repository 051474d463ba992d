//! Checks of a mesh's radios: the modes of the driver, power save, rates, and the channel.

use std::fmt::Display;
use std::io;
use std::time::Duration;

use hopwise_host::bringup::Setting;
use hopwise_host::netlink::index_of;
use hopwise_host::nl80211::radio::{HeardNetwork, InterfaceType, Radio, RadioState};
use hopwise_host::nl80211::{ChannelUse, Nl80211};
use hopwise_host::rfkill::{Blocks, blocks_below};

use super::finding::{CheckFault, Finding};
use super::{System, faults};

/// A network counts if its last beacon is younger.
const LATELY: Duration = Duration::from_secs(30);
/// Channels with less between their middles overlap.
const OVERLAP_MHZ: u32 = 20;
/// Networks that are named; further networks are counted.
const NAMED: usize = 3;
/// The share of busy time from which a channel is too busy, in thousandths.
const BUSY_PERMILLE: u128 = 300;
/// Coverage classes from this one on are for links of 9 km or more.
const FAR_CLASS: u32 = 20;
/// The slowest rate of 802.11.
const SLOWEST_BPS: u32 = 1_000_000;
/// Drivers with which a station that is alone in an ad hoc network is not found by later ones.
const UNHEARD_ALONE: [&str; 1] = ["mt76x2u"];

/// Facts about a radio that the kernel tells.
#[derive(Clone, Debug)]
pub(super) struct RadioFacts {
    /// The types that its interfaces can have.
    pub(super) kinds: Vec<InterfaceType>,
    pub(super) power_save: Option<bool>,
    pub(super) state: Option<RadioState>,
    pub(super) networks: Vec<HeardNetwork>,
    /// The country of the regulatory domain.
    pub(super) country: Option<String>,
    pub(super) coverage_class: Option<u32>,
    pub(super) driver: Option<String>,
}

impl RadioFacts {
    pub(super) fn of(name: &str) -> io::Result<RadioFacts> {
        let index = index_of(name).map_err(io::Error::other)?;
        let radio = Radio::open()?;
        Ok(RadioFacts {
            kinds: radio.abilities(index)?.kinds,
            // A driver need not tell these.
            power_save: radio.power_save(index).unwrap_or(None),
            state: radio.state(index)?,
            networks: radio.networks(index).unwrap_or_default(),
            country: radio.country().unwrap_or(None),
            coverage_class: setting_of(name, "coverage_class").and_then(|class| class.parse().ok()),
            driver: setting(name, "").driver(),
        })
    }
}

fn setting(interface: &str, name: &str) -> Setting {
    Setting { interface: Some(interface.to_owned()), name: name.to_owned() }
}

/// The value of a setting of an interface, if its driver tells it.
pub(super) fn setting_of(interface: &str, name: &str) -> Option<String> {
    setting(interface, name).value().ok().flatten()
}

/// The use of an interface's channel now, if its driver counts it.
pub(super) fn channel_use(name: &str) -> Option<ChannelUse> {
    Nl80211::open().ok()?.channel_use(index_of(name).ok()?).ok().flatten()
}

/// The findings of a radio with so many stations.
pub(super) fn examine(name: &str, facts: &RadioFacts, stations: usize) -> Vec<Finding> {
    let mut findings =
        vec![mode(name, &facts.kinds), power_save(name, facts.power_save), networks(name, facts)];
    findings.extend(settings(name, facts));
    findings.extend(alone(name, facts, stations));
    findings
}

/// A radio that is switched off.
pub(super) fn switch(system: &System, name: &str) -> Finding {
    match blocks_below(&system.path("sys"), name) {
        None => faults::RADIO_BLOCKED.skipped(format!("{name}: its radio has no switch")),
        Some(Blocks { soft: false, hard: false }) => {
            faults::RADIO_BLOCKED.ok(format!("{name} is not blocked"))
        }
        Some(Blocks { hard: true, .. }) => {
            faults::RADIO_BLOCKED.found(format!("{name}: a button or the firmware blocks its radio (hard)"))
        }
        Some(_) => faults::RADIO_BLOCKED.found(format!("{name}: a program blocks its radio (soft)")),
    }
}

fn mode(name: &str, kinds: &[InterfaceType]) -> Finding {
    let has = InterfaceType::list(kinds);
    match (kinds.contains(&InterfaceType::IBSS), kinds.contains(&InterfaceType::MESH)) {
        (true, _) => faults::NO_AD_HOC.ok(format!("{name} can be in an ad hoc network")),
        (false, true) => faults::NO_AD_HOC.found(format!("{name}: its driver has no IBSS: it has {has}")),
        (false, false) => faults::NO_MESH_MODE
            .found(format!("{name}: its driver has neither IBSS nor mesh point: it has {has}")),
    }
}

fn power_save(name: &str, is_on: Option<bool>) -> Finding {
    match is_on {
        None => faults::POWER_SAVE.skipped(format!("{name}: its driver does not tell")),
        Some(false) => faults::POWER_SAVE.ok(format!("{name} does not sleep")),
        Some(true) => faults::POWER_SAVE.found(format!("{name} sleeps between frames")).with("IF", name),
    }
}

/// What three settings are worth that the kernel tells.
fn settings(name: &str, facts: &RadioFacts) -> [Finding; 3] {
    let own = facts.networks.iter().find(|network| network.is_ours);
    let (country, slowest) = (facts.country.as_deref(), own.and_then(|network| network.slowest_basic_bps));
    [
        worth(&faults::COUNTRY_UNSET, name, country, |code| *code == "00", "a country such as DE"),
        worth(&faults::COVERAGE_FAR, name, facts.coverage_class, |class| *class >= FAR_CLASS, "19 or less"),
        worth(&faults::MULTICAST_SLOW, name, slowest, |bps| *bps <= SLOWEST_BPS, "2000000 bit/s or more"),
    ]
}

fn worth<T: Display>(
    fault: &CheckFault,
    name: &str,
    value: Option<T>,
    is_bad: impl Fn(&T) -> bool,
    wanted: &str,
) -> Finding {
    let what = fault.check;
    match value {
        None => fault.skipped(format!("{name}: its {what} is not told")),
        Some(bad) if is_bad(&bad) => {
            fault.found(format!("{name}: its {what} is {bad}, expected {wanted}")).with("IF", name)
        }
        Some(good) => fault.ok(format!("{name}: its {what} is {good}")),
    }
}

fn alone(name: &str, facts: &RadioFacts, stations: usize) -> Option<Finding> {
    let driver = facts.driver.as_deref().filter(|driver| UNHEARD_ALONE.contains(driver))?;
    let is_alone = stations == 0 && facts.state.as_ref()?.kind == InterfaceType::IBSS;
    let said = || format!("{name}: {driver} hears no station in its ad hoc network, expected one or more");
    is_alone.then(|| faults::ALONE_UNHEARD.found(said()))
}

fn networks(name: &str, facts: &RadioFacts) -> Finding {
    let Some((state, channel)) = facts.state.as_ref().and_then(|state| Some((state, state.channel?))) else {
        return faults::OTHER_NETWORKS.skipped(format!("{name} is in no network"));
    };
    let is_heard = |network: &&HeardNetwork| {
        network.mhz.abs_diff(channel.mhz) < OVERLAP_MHZ && network.age.is_none_or(|age| age < LATELY)
    };
    let heard: Vec<_> = facts.networks.iter().filter(is_heard).collect();
    let is_named_as_ours = |network: &HeardNetwork| state.ssid.as_ref() == Some(&network.name);
    let (ours, others): (Vec<_>, Vec<_>) =
        heard.into_iter().partition(|network| network.is_ours || is_named_as_ours(network));
    let is_apart = |network: &&&HeardNetwork| !network.is_ours && state.kind == InterfaceType::IBSS;
    if let (Some(other), Some(own)) = (ours.iter().find(is_apart), ours.iter().find(|one| one.is_ours)) {
        let said = format!("{name} is in {}, and hears the same network in {}", own.bssid, other.bssid);
        return faults::CELL_SPLIT.found(said);
    }
    match others.len() {
        0 => faults::OTHER_NETWORKS.ok(format!("{name} hears no other network at {} MHz", channel.mhz)),
        count => {
            let named: Vec<_> = others.iter().take(NAMED).map(|network| named(network)).collect();
            let more = count.saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let said = format!("{name} hears at {} MHz: {}{more}", channel.mhz, named.join(", "));
            faults::OTHER_NETWORKS.found(said)
        }
    }
}

fn named(network: &HeardNetwork) -> String {
    let name = String::from_utf8_lossy(&network.name);
    let name = if name.is_empty() { "a hidden one" } else { &name };
    match network.signal_dbm {
        Some(dbm) => format!("{name} ({}, {} MHz, {dbm} dBm)", network.bssid, network.mhz),
        None => format!("{name} ({}, {} MHz)", network.bssid, network.mhz),
    }
}

/// The share of busy time between two looks, without what the radio itself sent.
pub(super) fn busy(name: &str, before: Option<ChannelUse>, after: Option<ChannelUse>) -> Finding {
    let between = |of: fn(&ChannelUse) -> Option<Duration>| {
        of(after.as_ref()?)?.checked_sub(of(before.as_ref()?)?).map(|time| time.as_millis())
    };
    let (active, busy) = (between(|used| used.active), between(|used| used.busy));
    let sent = between(|used| used.sending).unwrap_or(0);
    let permille =
        active.zip(busy).and_then(|(active, busy)| (busy.saturating_sub(sent) * 1_000).checked_div(active));
    match permille {
        None => {
            faults::CHANNEL_BUSY.skipped(format!("{name}: its driver does not count the use of its channel"))
        }
        Some(permille) if permille < BUSY_PERMILLE => faults::CHANNEL_BUSY
            .ok(format!("{name}: its channel is busy for {} % of the time", permille / 10)),
        Some(permille) => faults::CHANNEL_BUSY
            .found(format!("{name}: its channel is busy for {} % of the time", permille / 10)),
    }
}
