//! The MANET packet format (RFC 5444), bit by bit. Packets hold messages, messages hold blocks of addresses, and TLVs
//! add values to each of these. This module knows no protocol.
//!
//! Reading yields the meaning of a packet, not its encoding: an address block becomes a list of addresses with
//! prefixes, without heads and tails. Writing takes the shortest encoding, so that a packet never grows when it is read
//! and written again. Reserved bits are ignored. A packet that the RFC forbids is malformed.

use hopwise_core::narrow::as_u8;

pub(crate) mod icv;
mod read;
mod write;

use std::net::Ipv4Addr;

/// The UDP port of MANET protocols, and the link-local address of all MANET routers (RFC 5498).
pub const PORT: u16 = 269;
/// The link-local multicast address of all MANET routers (RFC 5498).
pub const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 109);

/// The largest number of addresses read from one packet; a few bytes can stand for many.
pub(crate) const MOST_ADDRESSES: usize = 4_096;
/// The largest number of addresses in one block.
pub(crate) const MOST_IN_BLOCK: usize = 255;
const LONGEST_ADDRESS: usize = 16;

/// The bytes are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedPacket;

/// A message, a block of TLVs or a value has 64 KiB or more, which no length field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// A packet: messages behind one header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// The packet's sequence number, if it has one.
    pub seq: Option<u16>,
    /// The TLVs of the packet itself.
    pub tlvs: Vec<Tlv>,
    /// The messages in their order.
    pub messages: Vec<Rfc5444Message>,
}

/// A message of one protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rfc5444Message {
    /// The type, which the protocol assigns.
    pub kind: u8,
    /// Length of every address in the message, from 1 to 16.
    pub address_bytes: u8,
    /// The node that made the message, if it says so.
    pub originator: Option<Address>,
    /// The hops that it may still take, if it is limited.
    pub hop_limit: Option<u8>,
    /// The hops that it has taken, if it counts them.
    pub hop_count: Option<u8>,
    /// The message's sequence number, if it has one.
    pub seq: Option<u16>,
    /// The TLVs of the message itself.
    pub tlvs: Vec<Tlv>,
    /// The addresses that it is about.
    pub blocks: Vec<AddressBlock>,
}

/// An address of 1 to 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    bytes: [u8; LONGEST_ADDRESS],
    len: u8,
}

/// 1 to 255 addresses of one length, with their TLVs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressBlock {
    /// Each address with its prefix length in bits.
    pub addresses: Vec<(Address, u8)>,
    /// The TLVs of these addresses.
    pub tlvs: Vec<AddressTlv>,
}

/// A TLV of a packet or of a message. An empty value is no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tlv {
    /// The type, which the protocol assigns.
    pub kind: u8,
    /// The type extension; 0 where the bytes have none.
    pub extension: u8,
    /// The bytes of the value.
    pub value: Vec<u8>,
}

/// A TLV of the addresses from `first` to `last` of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressTlv {
    /// The type, which the protocol assigns.
    pub kind: u8,
    /// The type extension; 0 where the bytes have none.
    pub extension: u8,
    /// The index of the first address in the block that the TLV is about.
    pub first: u8,
    /// The index of the last one.
    pub last: u8,
    /// The value or the values.
    pub value: TlvValue,
}

/// The values of an address TLV.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlvValue {
    /// The TLV is a mark without a value.
    None,
    /// The same value for all addresses.
    Shared(Vec<u8>),
    /// One value for each address, all of one length, one after the other.
    Each(Vec<u8>),
}

impl Packet {
    /// Reads a whole packet.
    pub fn parse(bytes: &[u8]) -> Result<Packet, MalformedPacket> {
        read::packet(bytes)
    }

    /// After an error `out` holds a part of the packet.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        write::packet(self, out)
    }

    /// A packet of one message and nothing else.
    pub fn of(message: Rfc5444Message) -> Packet {
        Packet { seq: None, tlvs: Vec::new(), messages: vec![message] }
    }

    /// The packet in its shortest form.
    pub fn bytes(&self) -> Result<Vec<u8>, TooLong> {
        let mut out = Vec::new();
        self.emit(&mut out)?;
        Ok(out)
    }
}

impl Rfc5444Message {
    /// A message of that type about addresses of that length.
    pub fn new(kind: u8, address_bytes: u8) -> Rfc5444Message {
        Rfc5444Message { kind, address_bytes, ..Rfc5444Message::default() }
    }

    /// The value of the first TLV of that type.
    pub fn tlv(&self, kind: u8, extension: u8) -> Option<&[u8]> {
        let found = self.tlvs.iter().find(|tlv| (tlv.kind, tlv.extension) == (kind, extension));
        found.map(|tlv| tlv.value.as_slice())
    }
}

impl Address {
    /// `None` unless there are 1 to 16 bytes.
    pub fn new(octets: &[u8]) -> Option<Address> {
        let mut bytes = [0; LONGEST_ADDRESS];
        bytes.get_mut(..octets.len())?.copy_from_slice(octets);
        (!octets.is_empty()).then_some(Address { bytes, len: as_u8(octets.len()) })
    }

    /// The bytes of the address, in their order.
    pub fn octets(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Length in bits.
    pub fn bits(&self) -> u8 {
        self.len * 8
    }

    /// The address, if it has the length of IPv4.
    pub fn v4(&self) -> Option<Ipv4Addr> {
        <[u8; 4]>::try_from(self.octets()).ok().map(Ipv4Addr::from)
    }
}

impl From<Ipv4Addr> for Address {
    fn from(address: Ipv4Addr) -> Address {
        let mut bytes = [0; LONGEST_ADDRESS];
        bytes[..4].copy_from_slice(&address.octets());
        Address { bytes, len: 4 }
    }
}

impl AddressBlock {
    /// The value that the first TLV of that type gives the address at `index`; empty if the TLV has none.
    pub fn said(&self, kind: u8, extension: u8, index: usize) -> Option<&[u8]> {
        let is_it = |tlv: &&AddressTlv| tlv.extension == extension && tlv.covers(kind, index);
        self.tlvs.iter().find(is_it).map(|tlv| tlv.said(index))
    }

    /// The extension and the value of the first TLV of that kind for the address, whatever its extension.
    pub(crate) fn said_of_any(&self, kind: u8, index: usize) -> Option<(u8, &[u8])> {
        let found = self.tlvs.iter().find(|tlv| tlv.covers(kind, index));
        found.map(|tlv| (tlv.extension, tlv.said(index)))
    }
}

impl AddressTlv {
    /// A TLV for one address.
    pub fn of(kind: u8, extension: u8, index: u8, value: &[u8]) -> AddressTlv {
        let value = if value.is_empty() { TlvValue::None } else { TlvValue::Shared(value.to_vec()) };
        AddressTlv { kind, extension, first: index, last: index, value }
    }

    /// Returns whether it is of that type and about the address at `index`.
    fn covers(&self, kind: u8, index: usize) -> bool {
        self.kind == kind && (usize::from(self.first)..=usize::from(self.last)).contains(&index)
    }

    fn said(&self, index: usize) -> &[u8] {
        match &self.value {
            TlvValue::None => &[],
            TlvValue::Shared(value) => value,
            TlvValue::Each(values) => {
                let len = values.len() / self.count();
                let nth = index - usize::from(self.first);
                &values[nth * len..(nth + 1) * len]
            }
        }
    }

    /// The number of addresses that it is about.
    fn count(&self) -> usize {
        usize::from(self.last - self.first) + 1
    }
}

/// Packet flags, in the low half of the first byte (§5.1).
mod packet_flags {
    pub(super) const SEQ: u8 = 0x08;
    pub(super) const TLVS: u8 = 0x04;
}

/// Message flags, in the high half of the second byte (§5.2).
mod message_flags {
    pub(super) const ORIGINATOR: u8 = 0x80;
    pub(super) const HOP_LIMIT: u8 = 0x40;
    pub(super) const HOP_COUNT: u8 = 0x20;
    pub(super) const SEQ: u8 = 0x10;
}

/// Address block flags (§5.3).
mod block_flags {
    pub(super) const HEAD: u8 = 0x80;
    pub(super) const FULL_TAIL: u8 = 0x40;
    pub(super) const ZERO_TAIL: u8 = 0x20;
    pub(super) const SINGLE_PREFIX: u8 = 0x10;
    pub(super) const MULTI_PREFIX: u8 = 0x08;
}

/// TLV flags (§5.4.1).
mod tlv_flags {
    pub(super) const EXTENSION: u8 = 0x80;
    pub(super) const SINGLE_INDEX: u8 = 0x40;
    pub(super) const MULTI_INDEX: u8 = 0x20;
    pub(super) const VALUE: u8 = 0x10;
    pub(super) const LONG: u8 = 0x08;
    pub(super) const MULTI_VALUE: u8 = 0x04;
}

#[cfg(test)]
mod tests;
