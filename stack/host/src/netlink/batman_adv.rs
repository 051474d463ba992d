//! The kernel's batman-adv: the nodes that it knows, and settings of it (linux/batman_adv.h).

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;

use hopwise_core::StationAddress;
use rustix::net::netlink::GENERIC;

use super::ask::{ask, open};
use super::message::{DUMP, GENERIC_HEADER, NetlinkMessage, attribute, word};
use crate::nl80211;

const GET_MESH: u8 = 1;
/// The addresses behind nodes, and the nodes to which there is a path.
const GET_GLOBAL_ADDRESSES: u8 = 7;
const GET_ORIGINATORS: u8 = 8;
const SET_MESH: u8 = 15;
const MESH_INTERFACE: u16 = 3;
const ORIGINATOR: u16 = 9;
const AVOIDS_BRIDGE_LOOPS: u16 = 46;
const ORIGINATOR_INTERVAL: u16 = 57;

/// The radios of the nodes to which a mesh has a path, and whose own addresses it has learned, by the number of its
/// device. Packets reach a node once it is one of them. Fails with `NotFound` if this kernel has no batman-adv.
pub fn originators(device: u32) -> io::Result<Vec<StationAddress>> {
    let (socket, family) = opened()?;
    // A message of a node names its addresses before its path is good enough to be taken.
    let [named, reached] = [GET_GLOBAL_ADDRESSES, GET_ORIGINATORS].map(|command| {
        let question = NetlinkMessage::new(family, DUMP, 0).fixed(&[command, 0, 0, 0]);
        let mut known = BTreeSet::new();
        ask(&socket, question.attribute(MESH_INTERFACE, &device.to_ne_bytes()), |heard| {
            known.extend(originator(heard.body));
        })?;
        io::Result::Ok(known)
    });
    Ok(named?.intersection(&reached?).copied().map(StationAddress).collect())
}

/// Ends the avoidance of bridge loops of a mesh, by the number of its device. With it a node that has met others keeps
/// broadcasts back for up to half a minute, in case that both were bridged to one more network.
pub fn end_avoidance_of_bridge_loops(device: u32) -> io::Result<()> {
    set(device, AVOIDS_BRIDGE_LOOPS, &[0])
}

/// The milliseconds between originator messages of a mesh, by the number of its device.
pub(crate) fn originator_interval(device: u32) -> io::Result<Option<u32>> {
    let (socket, family) = opened()?;
    let question = NetlinkMessage::new(family, 0, 0).fixed(&[GET_MESH, 0, 0, 0]);
    let mut found = None;
    ask(&socket, question.attribute(MESH_INTERFACE, &device.to_ne_bytes()), |heard| {
        let all = heard.body.get(GENERIC_HEADER..).unwrap_or_default();
        found = found.or_else(|| word(attribute(all, ORIGINATOR_INTERVAL)?, 0));
    })?;
    Ok(found)
}

pub(crate) fn set_originator_interval(device: u32, ms: u32) -> io::Result<()> {
    set(device, ORIGINATOR_INTERVAL, &ms.to_ne_bytes())
}

fn set(device: u32, kind: u16, value: &[u8]) -> io::Result<()> {
    let (socket, family) = opened()?;
    let order = NetlinkMessage::new(family, 0, 0).fixed(&[SET_MESH, 0, 0, 0]);
    let order = order.attribute(MESH_INTERFACE, &device.to_ne_bytes()).attribute(kind, value);
    ask(&socket, order, |_| {})
}

/// A socket, and the number of the kernel's family.
fn opened() -> io::Result<(OwnedFd, u16)> {
    let socket = open(Some(GENERIC))?;
    let (family, _) = nl80211::family_named(&socket, b"batadv\0")?;
    Ok((socket, family))
}

/// The node of one address.
fn originator(body: &[u8]) -> Option<[u8; 6]> {
    attribute(body.get(GENERIC_HEADER..)?, ORIGINATOR)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::super::message::HEADER;
    use super::*;

    #[test]
    fn an_address_names_its_node() {
        let told = |kind, value: &[u8]| {
            let message = NetlinkMessage::new(0, 0, 0).fixed(&[GET_GLOBAL_ADDRESSES, 0, 0, 0]);
            message.attribute(kind, value).finish().split_off(HEADER)
        };
        assert_eq!(originator(&told(ORIGINATOR, &[2; 6])), Some([2; 6]));
        assert_eq!(originator(&told(ORIGINATOR, &[2; 5])), None);
        assert_eq!(originator(&told(MESH_INTERFACE, &[2; 6])), None);
        assert_eq!(originator(&[]), None);
    }
}
