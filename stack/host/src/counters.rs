//! The counters of a link: no packet is lost silently.

use std::collections::BTreeMap;

use crate::link::{Received, Sent};

hopwise_core::named! {
    /// The reason why a link let a packet go; the names are what metrics print.
    pub enum LinkDrop {
        /// Longer than a read buffer; the rest of it was lost.
        Oversized = "oversized",
        /// Shorter than its link layer's header, or than any IP header.
        Truncated = "truncated",
        /// Not an IP packet of version 4 or 6.
        NotIp = "not-ip",
        /// A frame of a VLAN, on a link that takes untagged frames alone.
        Vlan = "vlan",
        /// A part of a TCP packet, which no queue of several can be told to have.
        Fragment = "fragment",
        /// The link layer's description of the packet contradicts it.
        Malformed = "malformed",
        /// A checksum that the link vouches for is wrong.
        Checksum = "checksum",
        /// Longer than the link carries.
        TooBig = "too-big",
        /// The device is down.
        Down = "down",
        /// The device does not exist any more.
        Gone = "gone",
        /// The kernel refused the packet for another reason.
        Refused = "refused",
        /// The kernel's buffers overflowed before it was read.
        Overrun = "overrun",
        /// No host answered for the next hop's address.
        Unresolved = "unresolved",
        /// Too many packets waited for an address, or for their time.
        QueueFull = "queue-full",
        /// A link that only listens does not send.
        ReceiveOnly = "receive-only",
        /// Lost on purpose.
        FaultLost = "fault-lost",
        /// Lost on purpose, because the bottleneck's queue was full.
        FaultRate = "fault-rate",
    }
}

/// Packets and bytes, including IP headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The number of packets; a bundle of segments counts once.
    pub packets: u64,
    /// Their bytes, with IP headers and without link headers.
    pub bytes: u64,
}

impl Traffic {
    /// Counts one packet and its bytes.
    pub fn count(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }
}

/// Received, sent and dropped packets since the link was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// The name of the link's device.
    pub name: String,
    /// Packets that the machine got.
    pub received: Traffic,
    /// Packets that the link took from the machine.
    pub sent: Traffic,
    /// The dropped packets by reason.
    pub drops: BTreeMap<LinkDrop, u64>,
    /// The device does not exist any more.
    pub is_gone: bool,
}

/// The counters as a link keeps them.
#[derive(Clone, Debug)]
pub struct LinkTally {
    pub(crate) name: String,
    pub(crate) received: Traffic,
    pub(crate) sent: Traffic,
    drops: [u64; LinkDrop::ALL.len()],
    /// The device does not exist any more.
    pub(crate) is_gone: bool,
}

impl LinkTally {
    /// The tally of a link that was opened just now on the device of that name.
    pub fn new(name: &str) -> LinkTally {
        let (name, none) = (name.to_owned(), Traffic::default());
        LinkTally { name, received: none, sent: none, drops: [0; LinkDrop::ALL.len()], is_gone: false }
    }

    /// The name of the link's device, for errors.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Counts a packet that left.
    pub(crate) fn taken(&mut self, bytes: usize) -> Sent {
        self.sent.count(bytes);
        Sent::Taken
    }

    /// Counts a packet that does not leave.
    pub(crate) fn refused(&mut self, reason: LinkDrop) -> Sent {
        self.dropped(reason);
        Sent::Refused(reason)
    }

    /// Counts a packet that came and goes no further.
    pub(crate) fn lost(&mut self, reason: LinkDrop) -> Received {
        self.dropped(reason);
        Received::Dropped
    }

    /// Notes that the device is gone.
    pub(crate) fn gone(&mut self) -> Received {
        self.is_gone = true;
        Received::Gone
    }

    pub(crate) fn dropped(&mut self, reason: LinkDrop) {
        self.dropped_many(reason, 1);
    }

    pub(crate) fn dropped_many(&mut self, reason: LinkDrop, packets: u64) {
        self.drops[reason as usize] += packets;
    }

    pub(crate) fn show(&self) -> LinkCounters {
        let drops = LinkDrop::ALL.iter().map(|reason| (*reason, self.drops[*reason as usize]));
        LinkCounters {
            name: self.name.clone(),
            received: self.received,
            sent: self.sent,
            drops: drops.filter(|(_, packets)| *packets > 0).collect(),
            is_gone: self.is_gone,
        }
    }
}
