//! A change as a line of a file on disk. The file is root's alone: a line is read as it was written, or not at all.

use hopwise_core::ip::Prefix;

use super::change::{InterfaceChange, What};
use super::managers::Manager;
use crate::nl80211::radio::{ChannelSetting, InterfaceType, MeshCell, Rates};

/// Stands for no bytes, as no word of a line is empty.
const NONE: &str = "-";

/// The line of a change.
pub(super) fn of(change: &InterfaceChange) -> String {
    let words = match &change.what {
        What::Link(is_up) => format!("link {}", u8::from(*is_up)),
        What::Mtu(mtu) => format!("mtu {mtu}"),
        What::Add(message) => format!("address {}", hex(message)),
        What::Remove(prefix) => format!("no-address {prefix}"),
        What::Route(message) => format!("route {}", hex(message)),
        What::Kind(kind) => format!("type {}", kind.number()),
        What::Join(kind, cell) => join(*kind, cell),
        What::Leave(kind) => format!("leave {}", kind.number()),
        What::Rates(mhz, rates) => format!("rates {mhz} {} {}", hex(&rates.legacy), hex(&rates.mcs)),
        What::Blocked(is_on) => format!("blocked {}", u8::from(*is_on)),
        What::Offloads(names, is_on) => format!("offloads {} {}", u8::from(*is_on), names.join(",")),
        What::Switch(key, value) => format!("switch {key} {value}"),
        What::Setting(name, value) => format!("setting {name} {value}"),
        What::Run(command) => format!("run {}", hex(command.as_bytes())),
        What::Country(code) => format!("country {code}"),
        What::Managed(manager, has) => format!("manager {} {}", u8::from(*has), manager.word()),
    };
    format!("{} {words}", change.index)
}

/// A network is joined again by what the kernel told of it.
fn join(kind: InterfaceType, cell: &MeshCell) -> String {
    let ChannelSetting { mhz, width, centre_mhz } = cell.channel;
    format!("join {} {} {mhz} {width} {centre_mhz}", kind.number(), hex(&cell.name))
}

/// Reads a line; `None` for one that none of us wrote.
pub(super) fn read(line: &str) -> Option<InterfaceChange> {
    let (index, rest) = line.split_once(' ')?;
    let words: Vec<_> = rest.split(' ').collect();
    let number = |word: &str| word.parse::<u32>().ok();
    let what = match words[..] {
        ["link", is_up] => What::Link(flag(is_up)?),
        ["mtu", mtu] => What::Mtu(number(mtu)?),
        ["address", message] => What::Add(bytes(message)?),
        ["no-address", prefix] => What::Remove(prefix.parse().ok()?),
        ["route", message] => What::Route(bytes(message)?),
        ["type", kind] => What::Kind(InterfaceType::of(number(kind)?)),
        ["join", kind, name, mhz, width, centre_mhz] => {
            let (mhz, width, centre_mhz) = (number(mhz)?, number(width)?, number(centre_mhz)?);
            let channel = ChannelSetting { mhz, width, centre_mhz };
            What::Join(InterfaceType::of(number(kind)?), MeshCell::told(bytes(name)?, channel))
        }
        ["leave", kind] => What::Leave(InterfaceType::of(number(kind)?)),
        ["rates", mhz, legacy, mcs] => {
            What::Rates(number(mhz)?, Rates { legacy: bytes(legacy)?, mcs: bytes(mcs)? })
        }
        ["blocked", is_on] => What::Blocked(flag(is_on)?),
        ["offloads", is_on, names] => {
            What::Offloads(names.split(',').map(str::to_owned).collect(), flag(is_on)?)
        }
        ["switch", key, value] => What::Switch(key.to_owned(), value.to_owned()),
        ["setting", name, value] => What::Setting(name.to_owned(), number(value)?),
        ["run", command] => What::Run(String::from_utf8(bytes(command)?).ok()?),
        ["country", code] => What::Country(code.to_owned()),
        ["manager", has, name] => What::Managed(Manager::read(name)?, flag(has)?),
        _ => return None,
    };
    Some(InterfaceChange::new(number(index)?, what))
}

fn flag(word: &str) -> Option<bool> {
    match word {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// Bytes as one word.
pub(super) fn hex(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return NONE.to_owned();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of such a word.
pub(super) fn bytes(word: &str) -> Option<Vec<u8>> {
    if word == NONE {
        return Some(Vec::new());
    }
    if !word.is_ascii() || !word.len().is_multiple_of(2) {
        return None;
    }
    (0..word.len()).step_by(2).map(|at| u8::from_str_radix(&word[at..at + 2], 16).ok()).collect()
}

/// The address in the kernel's message, for people.
pub(super) fn address(message: &[u8]) -> String {
    crate::netlink::device::prefix_in(message)
        .map_or_else(|| "?".to_owned(), |prefix: Prefix| prefix.to_string())
}

/// Rates for people.
pub(super) fn rates(rates: &Rates) -> String {
    let legacy = rates.legacy.iter().map(|half| {
        let (whole, tenth) = (half / 2, if half % 2 == 1 { ".5" } else { "" });
        format!("{whole}{tenth}")
    });
    let mcs = rates.mcs.iter().map(|index| format!("MCS {index}"));
    let (legacy, mcs): (Vec<_>, Vec<_>) = (legacy.collect(), mcs.collect());
    match (legacy.is_empty(), mcs.is_empty()) {
        (_, true) => format!("at {} Mbit/s", legacy.join(", ")),
        (true, false) => format!("at {}", mcs.join(", ")),
        (false, false) => format!("at {} Mbit/s and {}", legacy.join(", "), mcs.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_comes_back_from_its_line() {
        let channel = ChannelSetting { mhz: 5_180, width: 2, centre_mhz: 5_190 };
        let cell = MeshCell::told(b"a name".to_vec(), channel);
        let prefix = |text: &str| text.parse().expect("a prefix");
        for what in [
            What::Link(true),
            What::Mtu(1_500),
            What::Add(vec![2, 24, 0, 255]),
            What::Remove(prefix("fd00::1/64")),
            What::Route(vec![1, 2, 3, 4]),
            What::Kind(InterfaceType::MESH),
            What::Join(InterfaceType::IBSS, cell),
            What::Leave(InterfaceType::IBSS),
            What::Rates(2_412, Rates { legacy: vec![2, 11], mcs: vec![] }),
            What::Blocked(true),
            What::Offloads(vec!["rx-gro".into(), "tx-tcp-segmentation".into()], false),
            What::Switch("ipv4/conf/{}/forwarding".into(), "1".into()),
            What::Setting("rts_threshold".into(), u32::MAX),
            What::Switch("ipv4/ip_local_reserved_ports".into(), String::new()),
            What::Run("iw dev wlan0 set mcast_rate 24".into()),
            What::Country("DE".into()),
            What::Managed(Manager::WpaSupplicant, true),
        ] {
            let change = InterfaceChange::new(7, what);
            assert_eq!(read(&of(&change)), Some(change.clone()), "{}", of(&change));
        }
    }

    #[test]
    fn a_line_of_another_form_is_no_change() {
        for line in
            ["", "7", "7 link", "7 link 2", "x link 1", "7 address 0", "7 address é0", "7 join 1 00", "7 x 1"]
        {
            assert_eq!(read(line), None, "{line}");
        }
    }

    #[test]
    fn rates_are_told_as_people_know_them() {
        assert_eq!(rates(&Rates { legacy: vec![2, 11], mcs: vec![] }), "at 1, 5.5 Mbit/s");
        assert_eq!(rates(&Rates { legacy: vec![], mcs: vec![0, 7] }), "at MCS 0, MCS 7");
        assert_eq!(rates(&Rates { legacy: vec![12], mcs: vec![3] }), "at 6 Mbit/s and MCS 3");
    }
}
