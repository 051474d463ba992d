//! The fields of packets that decide where they wait.

use std::hash::Hasher;
use std::net::IpAddr;

use siphasher::sip::SipHasher13;

use super::Category;
use crate::wire::{IpView, protocol};

/// The place of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label {
    /// Equal for packets of one flow: addresses, protocol and ports, as far as the packet has them.
    pub(super) hash: u64,
    /// The traffic class of 802.11: the user priority of the DSCP, as in Linux.
    pub(super) tid: u8,
}

impl Label {
    /// The label of an IP packet. All others are of one flow.
    pub(super) fn of(key: u64, packet: &[u8]) -> Label {
        let mut hasher = SipHasher13::new_with_keys(key, 0);
        let Ok(view) = IpView::parse(packet) else { return Label { hash: hasher.finish(), tid: 0 } };
        for address in [view.src, view.dst] {
            match address {
                IpAddr::V4(address) => hasher.write(&address.octets()),
                IpAddr::V6(address) => hasher.write(&address.octets()),
            }
        }
        hasher.write_u8(view.protocol);
        let has_ports = matches!(view.protocol, protocol::TCP | protocol::UDP) && view.fragment.is_none();
        if let Some(ports) = view.payload.get(..4).filter(|_| has_ports) {
            hasher.write(ports);
        }
        Label { hash: hasher.finish(), tid: Category::priority_of(view.dscp) }
    }
}
