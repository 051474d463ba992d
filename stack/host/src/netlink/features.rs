//! Offloads of a device that join or cut segments, by ethtool's family of netlink (linux/ethtool_netlink.h).

use std::io;

use rustix::net::netlink::GENERIC;

use super::ask::{KernelRefusal, ask, open, open_for_words, request};
use super::message::{GENERIC_HEADER, NetlinkMessage, attribute, attributes};
use crate::nl80211::family_named;

const GET: u8 = 11;
const SET: u8 = 12;
const HEADER: u16 = 1;
const HEADER_DEVICE: u16 = 1;
const WANTED: u16 = 3;
const ACTIVE: u16 = 4;
const FIXED: u16 = 5;
const NO_MASK: u16 = 1;
const BITS: u16 = 3;
const BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;

/// The kernel's names of offloads with which a segment that is counted is not one on the wire: GRO, LRO, TSO and GSO.
pub(crate) const OFFLOADS: [&str; 10] = [
    "rx-gro",
    "rx-gro-hw",
    "rx-gro-list",
    "rx-lro",
    "tx-generic-segmentation",
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-accecn-segmentation",
    "tx-tcp-mangleid-segmentation",
];

/// The offloads of TSO.
pub(crate) const TSO: &[&str] = OFFLOADS.split_at(5).1;

fn ethtool() -> io::Result<u16> {
    Ok(family_named(open(Some(GENERIC))?, b"ethtool\0")?.0)
}

fn message(family: u16, command: u8, index: u32) -> NetlinkMessage {
    let message = NetlinkMessage::new(family, 0, 0).fixed(&[command, 1, 0, 0]);
    message.nest(HEADER, |header| header.attribute(HEADER_DEVICE, &index.to_ne_bytes()))
}

/// The kernel's names of offloads by which a device computes the checksums of what it sends.
const CHECKSUMS: [&str; 3] = ["tx-checksum-ipv4", "tx-checksum-ip-generic", "tx-checksum-ipv6"];

/// The offloads of a device that join or cut segments (GRO, LRO, TSO, GSO), by the kernel's names. They are on, and can
/// be turned off.
pub fn joining_offloads(device: &str) -> io::Result<Vec<String>> {
    offloads_on(super::index_of(device).map_err(io::Error::other)?)
}

/// Returns whether a device computes checksums of what it sends: captured before, a packet has none.
pub fn computes_checksums(device: &str) -> io::Result<bool> {
    let index = super::index_of(device).map_err(io::Error::other)?;
    Ok(active(index)?.iter().any(|name| CHECKSUMS.contains(&name.as_str())))
}

/// All features of a device that are on, by the kernel's names.
pub(crate) fn active(index: u32) -> io::Result<Vec<String>> {
    let mut on = Vec::new();
    each_answer(index, |body| on.extend(bits(body.get(GENERIC_HEADER..).unwrap_or_default(), ACTIVE)))?;
    Ok(on)
}

/// The offloads of [`OFFLOADS`] that are on and can be turned off.
pub(crate) fn offloads_on(index: u32) -> io::Result<Vec<String>> {
    let mut on = Vec::new();
    each_answer(index, |body| on.extend(changeable(body)))?;
    Ok(on)
}

fn each_answer(index: u32, mut sink: impl FnMut(&[u8])) -> io::Result<()> {
    ask(open(Some(GENERIC))?, message(ethtool()?, GET, index), |heard| sink(heard.body))
}

fn changeable(body: &[u8]) -> Vec<String> {
    let all = body.get(GENERIC_HEADER..).unwrap_or_default();
    let (active, fixed) = (bits(all, ACTIVE), bits(all, FIXED));
    let is_ours = |name: &String| OFFLOADS.contains(&name.as_str()) && !fixed.contains(name);
    active.into_iter().filter(is_ours).collect()
}

/// The names of the bits that are set.
fn bits(all: &[u8], kind: u16) -> Vec<String> {
    let Some(set) = attribute(all, kind) else { return Vec::new() };
    // A list without a mask has only the bits that are set.
    let are_all_set = attribute(set, NO_MASK).is_some();
    let bits = attributes(attribute(set, BITS).unwrap_or_default()).filter(|(kind, _)| *kind == BIT);
    let is_set = |bit: &&[u8]| are_all_set || attribute(bit, BIT_VALUE).is_some();
    let name =
        |bit| Some(String::from_utf8_lossy(attribute(bit, BIT_NAME)?).trim_end_matches('\0').to_owned());
    bits.map(|(_, bit)| bit).filter(is_set).filter_map(name).collect()
}

/// Turns these offloads on or off.
pub(crate) fn set_offloads(index: u32, names: &[String], is_on: bool) -> Result<(), KernelRefusal> {
    let bit = |list: NetlinkMessage, name: &String| {
        list.nest(BIT, |bit| {
            let bit = bit.attribute(BIT_NAME, format!("{name}\0").as_bytes());
            if is_on { bit.attribute(BIT_VALUE, &[]) } else { bit }
        })
    };
    let wanted = |set: NetlinkMessage| set.nest(BITS, |list| names.iter().fold(list, bit));
    let question = message(ethtool()?, SET, index).nest(WANTED, wanted);
    request(open_for_words(Some(GENERIC))?, question, |_| {})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(message: NetlinkMessage, kind: u16, names: &[&str]) -> NetlinkMessage {
        let bit = |list: NetlinkMessage, name: &&str| {
            list.nest(BIT, |bit| bit.attribute(BIT_NAME, format!("{name}\0").as_bytes()))
        };
        message.nest(kind, |set| {
            let set = set.attribute(NO_MASK, &[]);
            set.nest(BITS, |list| names.iter().fold(list, bit))
        })
    }

    #[test]
    fn offloads_that_join_or_cut_are_found_unless_the_driver_holds_them() {
        let message = NetlinkMessage::new(0, 0, 0).fixed(&[GET, 1, 0, 0]);
        let message =
            set(message, ACTIVE, &["rx-gro", "tx-checksum-ip-generic", "tx-tcp-segmentation", "rx-lro"]);
        let message = set(message, FIXED, &["rx-lro", "rx-all"]);
        let body = message.finish().split_off(super::super::message::HEADER);
        assert_eq!(changeable(&body), ["rx-gro", "tx-tcp-segmentation"]);
        assert_eq!(changeable(&[]), [""; 0]);
    }
}
