//! Checks of a mesh's radios: the modes of the driver, power save, rates, and the channel.

use std::io;
use std::time::Duration;

use hopwise_host::netlink::index_of;
use hopwise_host::nl80211::radio::{HeardNetwork, InterfaceType, Radio, RadioState};
use hopwise_host::nl80211::{ChannelUse, Nl80211};
use hopwise_host::rfkill::{Blocks, blocks_below};

use super::finding::Finding;
use super::{System, faults};

/// A network counts if its last beacon is younger.
const LATELY: Duration = Duration::from_secs(30);
/// Channels with less between their middles overlap.
const OVERLAP_MHZ: u32 = 20;
/// Networks that are named; further networks are counted.
const NAMED: usize = 3;
/// The share of busy time from which a channel is too busy, in thousandths.
const BUSY_PERMILLE: u128 = 300;

/// Facts about a radio that the kernel tells.
#[derive(Clone, Debug)]
pub(super) struct RadioFacts {
    /// The types that its interfaces can have.
    pub(super) kinds: Vec<InterfaceType>,
    pub(super) power_save: Option<bool>,
    pub(super) state: Option<RadioState>,
    pub(super) networks: Vec<HeardNetwork>,
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
        })
    }
}

/// The use of an interface's channel now, if its driver counts it.
pub(super) fn channel_use(name: &str) -> Option<ChannelUse> {
    Nl80211::open().ok()?.channel_use(index_of(name).ok()?).ok().flatten()
}

pub(super) fn examine(name: &str, facts: &RadioFacts) -> Vec<Finding> {
    vec![mode(name, &facts.kinds), power_save(name, facts.power_save), networks(name, facts)]
}

/// A radio that is switched off.
pub(super) fn switch(system: &System, name: &str) -> Finding {
    let check = faults::RADIO_BLOCKED.check;
    match blocks_below(&system.path("sys"), name) {
        None => Finding::skipped(check, format!("{name}: its radio has no switch")),
        Some(Blocks { soft: false, hard: false }) => Finding::ok(check, format!("{name} is not blocked")),
        Some(Blocks { hard: true, .. }) => {
            faults::RADIO_BLOCKED.found(format!("{name}: a button or the firmware blocks its radio (hard)"))
        }
        Some(_) => faults::RADIO_BLOCKED.found(format!("{name}: a program blocks its radio (soft)")),
    }
}

fn mode(name: &str, kinds: &[InterfaceType]) -> Finding {
    let has: Vec<_> = kinds.iter().map(ToString::to_string).collect();
    let has = has.join(", ");
    match (kinds.contains(&InterfaceType::IBSS), kinds.contains(&InterfaceType::MESH)) {
        (true, _) => Finding::ok(faults::NO_AD_HOC.check, format!("{name} can be in an ad hoc network")),
        (false, true) => faults::NO_AD_HOC.found(format!("{name}: its driver has no IBSS: it has {has}")),
        (false, false) => faults::NO_MESH_MODE
            .found(format!("{name}: its driver has neither IBSS nor mesh point: it has {has}")),
    }
}

fn power_save(name: &str, is_on: Option<bool>) -> Finding {
    let check = faults::POWER_SAVE.check;
    match is_on {
        None => Finding::skipped(check, format!("{name}: its driver does not tell")),
        Some(false) => Finding::ok(check, format!("{name} does not sleep")),
        Some(true) => faults::POWER_SAVE.found(format!("{name} sleeps between frames")).with("IF", name),
    }
}

fn networks(name: &str, facts: &RadioFacts) -> Finding {
    let check = faults::OTHER_NETWORKS.check;
    let Some((state, channel)) = facts.state.as_ref().and_then(|state| Some((state, state.channel?))) else {
        return Finding::skipped(check, format!("{name} is in no network"));
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
        0 => Finding::ok(check, format!("{name} hears no other network at {} MHz", channel.mhz)),
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
    let check = faults::CHANNEL_BUSY.check;
    let between = |of: fn(&ChannelUse) -> Option<Duration>| {
        of(after.as_ref()?)?.checked_sub(of(before.as_ref()?)?).map(|time| time.as_millis())
    };
    let (active, busy) = (between(|used| used.active), between(|used| used.busy));
    let sent = between(|used| used.sending).unwrap_or(0);
    let permille =
        active.zip(busy).and_then(|(active, busy)| (busy.saturating_sub(sent) * 1_000).checked_div(active));
    match permille {
        None => Finding::skipped(check, format!("{name}: its driver does not count the use of its channel")),
        Some(permille) if permille < BUSY_PERMILLE => {
            Finding::ok(check, format!("{name}: its channel is busy for {} % of the time", permille / 10))
        }
        Some(permille) => faults::CHANNEL_BUSY
            .found(format!("{name}: its channel is busy for {} % of the time", permille / 10)),
    }
}
