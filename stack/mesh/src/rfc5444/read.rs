//! Bytes to packets. Every length is checked against the bytes that are there.

use super::{
    Address, AddressBlock, AddressTlv, LONGEST_ADDRESS, MOST_ADDRESSES, MalformedPacket, Packet,
    Rfc5444Message, Tlv, TlvValue, block_flags, message_flags, packet_flags, tlv_flags,
};
use hopwise_core::narrow::as_u8;

type ReadResult<T> = Result<T, MalformedPacket>;

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> ReadResult<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(MalformedPacket)?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> ReadResult<u8> {
        let (first, rest) = self.rest.split_first().ok_or(MalformedPacket)?;
        self.rest = rest;
        Ok(*first)
    }

    fn short(&mut self) -> ReadResult<u16> {
        Ok(u16::from_be_bytes([self.byte()?, self.byte()?]))
    }

    fn part(&mut self, len: usize) -> ReadResult<Reader<'a>> {
        Ok(Reader { rest: self.take(len)? })
    }

    fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

/// Reads a field if its flag is set.
fn where_set<T>(flags: u8, flag: u8, take: impl FnOnce() -> ReadResult<T>) -> ReadResult<Option<T>> {
    if flags & flag == 0 { Ok(None) } else { take().map(Some) }
}

pub(super) fn packet(bytes: &[u8]) -> ReadResult<Packet> {
    let mut reader = Reader { rest: bytes };
    let first = reader.byte()?;
    if first >> 4 != 0 {
        return Err(MalformedPacket); // Another version.
    }
    let seq = where_set(first, packet_flags::SEQ, || reader.short())?;
    let tlvs = where_set(first, packet_flags::TLVS, || tlv_block(&mut reader))?.unwrap_or_default();
    let (mut messages, mut room) = (Vec::new(), MOST_ADDRESSES);
    while !reader.is_empty() {
        messages.push(message(&mut reader, &mut room)?);
    }
    Ok(Packet { seq, tlvs, messages })
}

/// The bytes of type, flags, address length and message size.
const MESSAGE_START: usize = 4;

fn message(reader: &mut Reader<'_>, room: &mut usize) -> ReadResult<Rfc5444Message> {
    let kind = reader.byte()?;
    let flags = reader.byte()?;
    let address_bytes = (flags & 0x0f) + 1;
    let size = usize::from(reader.short()?).checked_sub(MESSAGE_START).ok_or(MalformedPacket)?;
    let mut reader = reader.part(size)?;
    let originator = where_set(flags, message_flags::ORIGINATOR, || {
        Address::new(reader.take(usize::from(address_bytes))?).ok_or(MalformedPacket)
    })?;
    let hop_limit = where_set(flags, message_flags::HOP_LIMIT, || reader.byte())?;
    let hop_count = where_set(flags, message_flags::HOP_COUNT, || reader.byte())?;
    let seq = where_set(flags, message_flags::SEQ, || reader.short())?;
    let tlvs = tlv_block(&mut reader)?;
    let mut blocks = Vec::new();
    while !reader.is_empty() {
        blocks.push(address_block(&mut reader, usize::from(address_bytes), room)?);
    }
    Ok(Rfc5444Message { kind, address_bytes, originator, hop_limit, hop_count, seq, tlvs, blocks })
}

fn tlv_block(reader: &mut Reader<'_>) -> ReadResult<Vec<Tlv>> {
    let len = usize::from(reader.short()?);
    let mut reader = reader.part(len)?;
    let mut tlvs = Vec::new();
    while !reader.is_empty() {
        let kind = reader.byte()?;
        let flags = reader.byte()?;
        if flags & (tlv_flags::SINGLE_INDEX | tlv_flags::MULTI_INDEX | tlv_flags::MULTI_VALUE) != 0 {
            return Err(MalformedPacket); // There are no addresses to choose from.
        }
        let extension = where_set(flags, tlv_flags::EXTENSION, || reader.byte())?.unwrap_or(0);
        tlvs.push(Tlv { kind, extension, value: value(&mut reader, flags)?.to_vec() });
    }
    Ok(tlvs)
}

fn value<'a>(reader: &mut Reader<'a>, flags: u8) -> ReadResult<&'a [u8]> {
    let is_long = flags & tlv_flags::LONG != 0;
    if flags & tlv_flags::VALUE == 0 {
        return if is_long { Err(MalformedPacket) } else { Ok(&[]) };
    }
    let len = if is_long { usize::from(reader.short()?) } else { usize::from(reader.byte()?) };
    reader.take(len)
}

fn address_block(
    reader: &mut Reader<'_>,
    address_bytes: usize,
    room: &mut usize,
) -> ReadResult<AddressBlock> {
    let count = usize::from(reader.byte()?);
    let flags = reader.byte()?;
    let both = |pair: u8| flags & pair == pair;
    if count == 0
        || both(block_flags::FULL_TAIL | block_flags::ZERO_TAIL)
        || both(block_flags::SINGLE_PREFIX | block_flags::MULTI_PREFIX)
    {
        return Err(MalformedPacket);
    }
    *room = room.checked_sub(count).ok_or(MalformedPacket)?;
    let head = where_set(flags, block_flags::HEAD, || end(reader, address_bytes))?.unwrap_or_default();
    let full = where_set(flags, block_flags::FULL_TAIL, || end(reader, address_bytes))?.unwrap_or_default();
    let zeros = where_set(flags, block_flags::ZERO_TAIL, || reader.byte())?.unwrap_or(0);
    let tail_bytes = full.len() + usize::from(zeros);
    let mid_bytes = address_bytes.checked_sub(head.len() + tail_bytes).ok_or(MalformedPacket)?;
    let mut addresses = Vec::with_capacity(count);
    for _ in 0..count {
        let mut bytes = [0; LONGEST_ADDRESS];
        bytes[..head.len()].copy_from_slice(head);
        bytes[head.len()..head.len() + mid_bytes].copy_from_slice(reader.take(mid_bytes)?);
        bytes[address_bytes - full.len()..address_bytes].copy_from_slice(full);
        let address = Address { bytes, len: as_u8(address_bytes) };
        addresses.push((address, address.bits()));
    }
    prefixes(reader, flags, &mut addresses)?;
    let tlvs = address_tlvs(reader, count)?;
    Ok(AddressBlock { addresses, tlvs })
}

/// A head or a tail.
fn end<'a>(reader: &mut Reader<'a>, address_bytes: usize) -> ReadResult<&'a [u8]> {
    let len = usize::from(reader.byte()?);
    if len > address_bytes { Err(MalformedPacket) } else { reader.take(len) }
}

fn prefixes(reader: &mut Reader<'_>, flags: u8, addresses: &mut [(Address, u8)]) -> ReadResult<()> {
    let single = where_set(flags, block_flags::SINGLE_PREFIX, || reader.byte())?;
    let has_each = flags & block_flags::MULTI_PREFIX != 0;
    for (address, bits) in addresses {
        *bits = if has_each { reader.byte()? } else { single.unwrap_or(*bits) };
        if *bits > address.bits() {
            return Err(MalformedPacket);
        }
    }
    Ok(())
}

fn address_tlvs(reader: &mut Reader<'_>, count: usize) -> ReadResult<Vec<AddressTlv>> {
    let len = usize::from(reader.short()?);
    let mut reader = reader.part(len)?;
    let mut tlvs = Vec::new();
    while !reader.is_empty() {
        tlvs.push(address_tlv(&mut reader, count)?);
    }
    Ok(tlvs)
}

fn address_tlv(reader: &mut Reader<'_>, addresses: usize) -> ReadResult<AddressTlv> {
    let kind = reader.byte()?;
    let flags = reader.byte()?;
    let extension = where_set(flags, tlv_flags::EXTENSION, || reader.byte())?.unwrap_or(0);
    let is_single = flags & tlv_flags::SINGLE_INDEX != 0;
    let is_range = flags & tlv_flags::MULTI_INDEX != 0;
    let (first, last) = match (is_single, is_range) {
        (false, false) => (0, as_u8(addresses - 1)),
        (true, false) => {
            let index = reader.byte()?;
            (index, index)
        }
        (false, true) => (reader.byte()?, reader.byte()?),
        (true, true) => return Err(MalformedPacket),
    };
    if first > last || usize::from(last) >= addresses {
        return Err(MalformedPacket);
    }
    let bytes = value(reader, flags)?;
    let has_each = flags & tlv_flags::MULTI_VALUE != 0;
    let count = usize::from(last - first) + 1;
    if has_each && bytes.len() % count != 0 {
        return Err(MalformedPacket);
    }
    let value = match bytes {
        [] => TlvValue::None,
        _ if has_each && count > 1 => TlvValue::Each(bytes.to_vec()),
        _ => TlvValue::Shared(bytes.to_vec()),
    };
    Ok(AddressTlv { kind, extension, first, last, value })
}
