//! Links in memory and kernels that lack something, for unit tests.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::os::fd::BorrowedFd;

use hopwise_core::endpoint::Offload;
use hopwise_core::wire::Checksums;
use hopwise_core::{Instant, Transmit};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, SeccompRule, apply_filter};

use crate::counters::LinkTally;
use crate::link::{Arrived, Gather, Link, LinkProperties, Received, Sent};

/// From now on the kernel refuses this thread a call with an error. With rules it refuses calls that match one of them.
pub(crate) fn refuse(call: i64, rules: Vec<SeccompRule>, error: i32) {
    let refused = SeccompAction::Errno(error.unsigned_abs());
    let machine = std::env::consts::ARCH.try_into().expect("a machine of seccompiler's");
    let calls = BTreeMap::from([(call, rules)]);
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, refused, machine).expect("a filter");
    apply_filter(&BpfProgram::try_from(filter).expect("a program")).expect("the kernel takes it");
}

/// The far end of a link in memory.
pub(crate) trait Far: Debug + Send {
    fn says(&mut self) -> Option<Vec<u8>>;
    fn hears(&mut self, packet: &[u8]) -> Sent;
    /// Returns whether it takes whole bundles.
    fn cuts(&self) -> bool {
        true
    }
    /// The descriptor that is readable when it has a packet.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    /// The bundles that it takes.
    fn offload(&self) -> Offload {
        Offload::None
    }
    fn checksums(&self) -> Checksums {
        Checksums::Verify
    }
    /// Returns whether its link takes packets in pieces.
    fn gathers(&self) -> bool {
        false
    }
}

#[derive(Debug)]
pub(crate) struct Memory<F> {
    far: F,
    tally: LinkTally,
}

impl<F: Far> Memory<F> {
    pub(crate) fn to(far: F) -> Memory<F> {
        Memory { far, tally: LinkTally::new("memory") }
    }
}

impl<F: Far> Link for Memory<F> {
    fn properties(&self) -> LinkProperties {
        let (cuts, offload, checksums) = (self.far.cuts(), self.far.offload(), self.far.checksums());
        LinkProperties { cuts, offload, checksums, ..LinkProperties::plain(1500) }
    }

    fn tally(&self) -> &LinkTally {
        &self.tally
    }

    fn gathers(&mut self) -> Option<&mut dyn Gather> {
        if self.far.gathers() { Some(self) } else { None }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.far.descriptor()
    }

    fn receive(&mut self, _now: Instant, into: &mut [u8]) -> Received {
        let Some(packet) = self.far.says() else { return Received::Nothing };
        into[..packet.len()].copy_from_slice(&packet);
        self.tally.received.count(packet.len());
        Received::Packet(Arrived::new(packet.len()))
    }

    fn transmit(&mut self, _now: Instant, _transmit: &Transmit, packet: &[u8]) -> Sent {
        let sent = self.far.hears(packet);
        if sent == Sent::Taken {
            self.tally.sent.count(packet.len());
        }
        sent
    }
}

impl<F: Far> Gather for Memory<F> {
    fn transmit_pieces(&mut self, transmit: &Transmit, pieces: [&[u8]; 3]) -> Sent {
        self.transmit(Instant::ZERO, transmit, &pieces.concat())
    }
}

/// Returns each packet to its sender.
#[derive(Debug)]
pub(crate) struct Loop {
    /// Packets that it takes before it is full.
    pub(crate) room: usize,
    pub(crate) packets: VecDeque<Vec<u8>>,
}

impl Default for Loop {
    fn default() -> Loop {
        Loop { room: usize::MAX, packets: VecDeque::new() }
    }
}

impl Far for Loop {
    fn says(&mut self) -> Option<Vec<u8>> {
        self.packets.pop_front()
    }

    fn hears(&mut self, packet: &[u8]) -> Sent {
        if self.packets.len() >= self.room {
            return Sent::Full;
        }
        self.packets.push_back(packet.to_vec());
        Sent::Taken
    }
}

/// Packets of 100 bytes that can be told apart.
pub(crate) mod numbered {
    use hopwise_core::{NextHop, QueueClass, Transmit};

    pub(crate) fn packet(number: u32) -> Vec<u8> {
        let mut packet = vec![0x45; 100];
        packet[..4].copy_from_slice(&number.to_be_bytes());
        packet
    }

    pub(crate) fn number(packet: &[u8]) -> u32 {
        u32::from_be_bytes([packet[0], packet[1], packet[2], packet[3]])
    }

    pub(crate) fn transmit(number: u32) -> Transmit {
        Transmit { to: NextHop::Link, class: QueueClass::Data, segment_bytes: None, id: u64::from(number) }
    }
}
