//! The MANET packet format (RFC 5444), bit by bit: packets hold messages, messages hold blocks of addresses, and TLVs
//! say something of each of them. It knows no protocol.
//!
//! What is read is what it means, not how it was written: an address block is a list of addresses with their prefixes,
//! whatever heads and tails were taken out of it. What is written is the shortest way to say it, so that what was read
//! and written again is never longer. Reserved bits are ignored; what the RFC forbids makes a packet malformed.

pub(crate) mod icv;
mod read;
mod write;

use std::net::Ipv4Addr;

/// UDP's port for MANET protocols, and the link-local address of all MANET routers (RFC 5498).
pub const PORT: u16 = 269;
pub const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 109);

/// Addresses of one packet that are read at most; a few bytes can stand for many.
pub const MOST_ADDRESSES: usize = 4_096;
/// Addresses that one block has room for.
pub const MOST_IN_BLOCK: usize = 255;
const LONGEST_ADDRESS: usize = 16;

/// Why bytes are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// A message, a block of TLVs or a value has 64 KiB or more, so that no length field holds its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    pub seq: Option<u16>,
    pub tlvs: Vec<Tlv>,
    pub messages: Vec<Message>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub kind: u8,
    /// Of every address in it, from 1 to 16.
    pub address_bytes: u8,
    pub originator: Option<Address>,
    pub hop_limit: Option<u8>,
    pub hop_count: Option<u8>,
    pub seq: Option<u16>,
    pub tlvs: Vec<Tlv>,
    pub blocks: Vec<AddressBlock>,
}

/// Of 1 to 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    bytes: [u8; LONGEST_ADDRESS],
    len: u8,
}

/// Addresses of one length with what is said of them; at least one, at most 255.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressBlock {
    /// With the length of each one's prefix in bits.
    pub addresses: Vec<(Address, u8)>,
    pub tlvs: Vec<AddressTlv>,
}

/// Says something of a packet or of a message. An empty value is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tlv {
    pub kind: u8,
    pub extension: u8,
    pub value: Vec<u8>,
}

/// Says something of the addresses from `first` to `last` of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressTlv {
    pub kind: u8,
    pub extension: u8,
    pub first: u8,
    pub last: u8,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    None,
    /// The same for all of them.
    Shared(Vec<u8>),
    /// One after the other, as long as each other.
    Each(Vec<u8>),
}

impl Packet {
    pub fn parse(bytes: &[u8]) -> Result<Packet, Malformed> {
        read::packet(bytes)
    }

    /// After an error `out` holds a part of the packet.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        write::packet(self, out)
    }

    /// A packet of one message and nothing else.
    pub fn of(message: Message) -> Packet {
        Packet { seq: None, tlvs: Vec::new(), messages: vec![message] }
    }

    pub fn bytes(&self) -> Result<Vec<u8>, TooLong> {
        let mut out = Vec::new();
        self.emit(&mut out)?;
        Ok(out)
    }
}

impl Message {
    /// A message of that type about addresses of that length.
    pub fn new(kind: u8, address_bytes: u8) -> Message {
        Message {
            kind,
            address_bytes,
            originator: None,
            hop_limit: None,
            hop_count: None,
            seq: None,
            tlvs: Vec::new(),
            blocks: Vec::new(),
        }
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
        (!octets.is_empty()).then_some(Address { bytes, len: octets.len() as u8 })
    }

    pub fn octets(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// All its bits.
    pub fn bits(&self) -> u8 {
        self.len * 8
    }

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
    /// What the first TLV of that type says of the address at `index`; it may be there and say no more.
    pub fn said(&self, kind: u8, extension: u8, index: usize) -> Option<&[u8]> {
        let covers = |tlv: &&AddressTlv| {
            (tlv.kind, tlv.extension) == (kind, extension)
                && (usize::from(tlv.first)..=usize::from(tlv.last)).contains(&index)
        };
        self.tlvs.iter().find(covers).map(|tlv| tlv.said(index))
    }

    /// What the first TLV of that kind says of the address, whatever its extension, which goes with it.
    pub fn said_of_any(&self, kind: u8, index: usize) -> Option<(u8, &[u8])> {
        let covers = |tlv: &&AddressTlv| {
            tlv.kind == kind && (usize::from(tlv.first)..=usize::from(tlv.last)).contains(&index)
        };
        self.tlvs.iter().find(covers).map(|tlv| (tlv.extension, tlv.said(index)))
    }
}

impl AddressTlv {
    /// Of one address.
    pub fn of(kind: u8, extension: u8, index: u8, value: &[u8]) -> AddressTlv {
        let value = if value.is_empty() { Value::None } else { Value::Shared(value.to_vec()) };
        AddressTlv { kind, extension, first: index, last: index, value }
    }

    fn said(&self, index: usize) -> &[u8] {
        match &self.value {
            Value::None => &[],
            Value::Shared(value) => value,
            Value::Each(values) => {
                let len = values.len() / self.count();
                let nth = index - usize::from(self.first);
                &values[nth * len..(nth + 1) * len]
            }
        }
    }

    /// Addresses of which it speaks.
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
