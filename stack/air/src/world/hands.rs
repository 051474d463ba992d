//! The packets in the hands of a machine's radio, which has not reported their fate yet.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hopwise_core::queue::SpareBuffers;

/// A packet in the hands of a radio.
#[derive(Debug, Default)]
pub(super) struct RadioPacket {
    pub(super) packet: Vec<u8>,
    pub(super) to: Option<IpAddr>,
    /// The station with that address.
    pub(super) station: Option<u32>,
    pub(super) id: u64,
    /// When it came into the machine's queue, where that is known.
    pub(super) queued_at: Option<u64>,
    /// An ARP packet, which is the link's own.
    pub(super) is_arp: bool,
    /// The radio's number for it.
    pub(super) number: u32,
}

/// The packets of one radio, in the order in which it got them.
#[derive(Debug, Default)]
pub(super) struct Hands {
    held: Vec<RadioPacket>,
    /// The packet that the radio gets next. Without one its buffer waits here.
    pub(super) next: RadioPacket,
    pub(super) spare: SpareBuffers<64>,
    /// Most packets go to the neighbour of the one before.
    last: (Option<IpAddr>, Option<u32>),
}

impl RadioPacket {
    /// The packet as its receiver has it.
    pub(super) fn copy(&self) -> RadioPacket {
        RadioPacket { packet: self.packet.clone(), ..*self }
    }
}

impl Hands {
    /// The number of packets.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// The address of a station, from a packet for it.
    pub(super) fn name_of(&self, station: u32) -> Option<IpAddr> {
        self.held.iter().find(|held| held.station == Some(station))?.to
    }

    pub(super) fn hold(&mut self, held: RadioPacket) {
        self.held.push(held);
    }

    /// The radio has taken the packet that was next.
    pub(super) fn hold_next(&mut self, number: u32) {
        self.next.number = number;
        let next = self.take_next();
        self.hold(next);
    }

    /// Takes the packet that was next, and leaves a buffer in its place.
    pub(super) fn take_next(&mut self) -> RadioPacket {
        let packet = self.spare.empty();
        std::mem::replace(&mut self.next, RadioPacket { packet, ..RadioPacket::default() })
    }

    fn place(&self, number: u32) -> Option<usize> {
        self.held.iter().position(|held| held.number == number)
    }

    /// The packets of this number that the radio has: one, or the packets of an A-MSDU in their order.
    pub(super) fn all(&self, number: u32) -> impl Iterator<Item = &RadioPacket> {
        self.held.iter().filter(move |held| held.number == number)
    }

    /// The packet of this number, if the radio has it; the first of an A-MSDU.
    pub(super) fn get(&self, number: u32) -> Option<&RadioPacket> {
        self.all(number).next()
    }

    /// The packet of this number, which the radio has.
    pub(super) fn of(&self, number: u32) -> &RadioPacket {
        self.get(number).expect("a packet whose fate is open")
    }

    /// Takes the packet of this number, whose fate is known; the first of an A-MSDU.
    pub(super) fn take(&mut self, number: u32) -> RadioPacket {
        let place = self.place(number).expect("a packet whose fate was open");
        self.held.remove(place)
    }

    /// Keeps the buffer of a packet for a later one.
    pub(super) fn put_away(&mut self, held: RadioPacket) {
        self.spare.keep(held.packet);
    }

    /// A neighbour's address, and the station that has it.
    pub(super) fn resolve(
        &mut self,
        address: IpAddr,
        stations: &BTreeMap<IpAddr, u32>,
    ) -> (Option<IpAddr>, Option<u32>) {
        if self.last.0 != Some(address) {
            self.last = (Some(address), stations.get(&address).copied());
        }
        self.last
    }
}
