//! Queues of an interface as Linux has them in mac80211, for worlds and links.
//!
//! [`FqCodel`] holds the packets of all stations and TIDs, and the device's queue below them. Packets for a station and
//! a TID are divided into flows. The flows take turns by bytes (RFC 8290), and CoDel watches each (RFC 8289). A station
//! may have so much airtime in the device ([`AirtimeLimits`], Linux's AQL), and stations take turns by airtime.
//!
//! These rules are mac80211's where it differs from the RFCs:
//!
//! - The target is 20 ms, and packets of flows with ECN are marked.
//! - All stations share one table of flows. A flow whose place belongs to another station at the moment shares one flow
//!   with others of its kind.
//! - CoDel lets the last packet of a flow pass, and not the last MTU of bytes.
//! - Each access category has a device queue, turns and airtime of its own, if the link takes packets by category.
//! - Beyond a limit of packets or of memory the first packet of the longest flow is dropped.
//!
//! The target that mac80211 has for slow stations needs a driver that reports a throughput: here is none.

mod airtime;
mod category;
mod codel;
mod flows;
mod fq_codel;

use std::hash::Hasher;
use std::net::IpAddr;
use std::time::Duration;

pub use airtime::{AirtimeEstimate, AirtimeLimits, Spent};
pub use category::Category;
pub use fq_codel::FqCodel;

use crate::wire::{IpView, protocol};
use crate::{Instant, NextHop, QueueClass};

use siphasher::sip::SipHasher13;

/// A packet that waits for its link.
#[derive(Debug)]
pub struct Queued {
    /// The next hop on the link.
    pub to: NextHop,
    /// Data, or a message of routing. Queues of drop-tail send the latter first.
    pub class: QueueClass,
    /// The number by which the link reports its fate.
    pub id: u64,
    /// When it came here.
    pub at: Instant,
    /// The whole packet.
    pub packet: Vec<u8>,
}

/// Buffers of packets that are gone, at most `MOST`, which later packets get.
#[derive(Debug, Default)]
pub struct SpareBuffers<const MOST: usize>(Vec<Vec<u8>>);

impl<const MOST: usize> SpareBuffers<MOST> {
    /// An empty buffer.
    #[inline]
    pub fn empty(&mut self) -> Vec<u8> {
        let mut buffer = self.0.pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// A buffer with a copy of a packet.
    #[inline]
    pub fn copy(&mut self, packet: &[u8]) -> Vec<u8> {
        let mut buffer = self.empty();
        buffer.extend_from_slice(packet);
        buffer
    }

    /// Keeps a buffer while there is room.
    #[inline]
    pub fn keep(&mut self, buffer: Vec<u8>) {
        if self.0.len() < MOST {
            self.0.push(buffer);
        }
    }
}

/// A packet that would leave in one frame with those that a link holds for the same neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside {
    /// The category of all of them, where the link takes packets by category.
    pub category: Category,
    /// The neighbour.
    pub to: IpAddr,
    /// The most bytes that it may have.
    pub bytes: usize,
    /// The packets that the link holds.
    pub held: usize,
}

/// The settings of a queue as mac80211 has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCodelConfig {
    /// The time that packets of a flow may wait for longer than `interval`.
    pub target: Duration,
    /// The time for which a flow's packets must wait too long before one is dropped.
    pub interval: Duration,
    /// Packets of flows with ECN are marked, and not dropped.
    pub ecn: bool,
    /// The bytes of a flow's turn.
    pub quantum: u32,
    /// The places in the table of flows.
    pub flows: u32,
    /// The most packets above the device.
    pub packets: usize,
    /// The most memory above the device, in bytes.
    pub memory: usize,
    /// The most airtime in the device; `None` has no limit.
    pub airtime: Option<AirtimeLimits>,
    /// Stations take turns by airtime.
    pub is_fair: bool,
    /// The most packets that the device holds and has not begun to send.
    pub device_packets: usize,
    /// The bytes of a packet before its IP header.
    pub header: usize,
    /// The expected airtime of a packet, until the radio has told of one.
    pub estimate: AirtimeEstimate,
    /// The key of the hash that gives packets to flows.
    pub key: u64,
}

impl FqCodelConfig {
    /// Linux's settings for a device of 802.11n.
    pub const LINUX: FqCodelConfig = FqCodelConfig {
        target: Duration::from_millis(20),
        interval: Duration::from_millis(100),
        ecn: true,
        quantum: 300,
        flows: 4_096,
        packets: 8_192,
        memory: 4 << 20,
        airtime: Some(AirtimeLimits::LINUX),
        is_fair: true,
        device_packets: 128,
        header: 0,
        estimate: AirtimeEstimate::NONE,
        key: 0,
    };
}

#[cfg(test)]
mod tests;

// The fields of packets that decide where they wait.

/// The place of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Label {
    /// Equal for packets of one flow: addresses, protocol and ports, as far as the packet has them.
    hash: u64,
    /// The traffic class of 802.11: the user priority of the DSCP, as in Linux.
    tid: u8,
}

impl Label {
    /// The label of an IP packet. All others are of one flow.
    fn of(key: u64, packet: &[u8]) -> Label {
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
