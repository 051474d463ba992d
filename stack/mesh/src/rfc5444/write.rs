//! Packets to bytes, in the shortest encoding.

use super::{
    Address, AddressBlock, AddressTlv, MOST_IN_BLOCK, Packet, Rfc5444Message, Tlv, TlvValue, TooLong,
    block_flags, message_flags, packet_flags, tlv_flags,
};
use hopwise_core::narrow::as_u8;

type WriteResult = Result<(), TooLong>;

fn flag(is_set: bool, flag: u8) -> u8 {
    if is_set { flag } else { 0 }
}

pub(super) fn packet(packet: &Packet, out: &mut Vec<u8>) -> WriteResult {
    let has_tlvs = !packet.tlvs.is_empty();
    out.push(flag(packet.seq.is_some(), packet_flags::SEQ) | flag(has_tlvs, packet_flags::TLVS));
    out.extend(packet.seq.into_iter().flat_map(u16::to_be_bytes));
    if has_tlvs {
        tlv_block(&packet.tlvs, out)?;
    }
    packet.messages.iter().try_for_each(|each| message(each, out))
}

/// Writes bytes behind their 16-bit length. `before` are the bytes before them that the length counts too.
fn with_length(
    out: &mut Vec<u8>,
    before: usize,
    write: impl FnOnce(&mut Vec<u8>) -> WriteResult,
) -> WriteResult {
    let at = out.len();
    out.extend([0, 0]);
    write(out)?;
    let len = u16::try_from(out.len() - at - 2 + before).map_err(|_| TooLong)?;
    out[at..at + 2].copy_from_slice(&len.to_be_bytes());
    Ok(())
}

fn message(message: &Rfc5444Message, out: &mut Vec<u8>) -> WriteResult {
    let address_bytes = message.address_bytes;
    assert!((1..=16).contains(&address_bytes), "RFC 5444 §5.2: four bits hold the length less one");
    let flags = flag(message.originator.is_some(), message_flags::ORIGINATOR)
        | flag(message.hop_limit.is_some(), message_flags::HOP_LIMIT)
        | flag(message.hop_count.is_some(), message_flags::HOP_COUNT)
        | flag(message.seq.is_some(), message_flags::SEQ);
    out.extend([message.kind, flags | (address_bytes - 1)]);
    // The size counts the four bytes that end with it.
    with_length(out, 4, |out| {
        if let Some(originator) = &message.originator {
            assert_eq!(originator.len, address_bytes, "all addresses of a message are of one length");
            out.extend(originator.octets());
        }
        out.extend(message.hop_limit);
        out.extend(message.hop_count);
        out.extend(message.seq.into_iter().flat_map(u16::to_be_bytes));
        tlv_block(&message.tlvs, out)?;
        message.blocks.iter().try_for_each(|block| address_block(block, usize::from(address_bytes), out))
    })
}

fn tlv_block(tlvs: &[Tlv], out: &mut Vec<u8>) -> WriteResult {
    with_length(out, 0, |out| {
        tlvs.iter().try_for_each(|tlv| tlv_start((tlv.kind, tlv.extension), None, (&tlv.value, false), out))
    })
}

/// A whole TLV: its type, its addresses unless it is about all, and its value.
fn tlv_start(
    (kind, extension): (u8, u8),
    range: Option<(u8, u8)>,
    (value, has_each): (&[u8], bool),
    out: &mut Vec<u8>,
) -> WriteResult {
    let is_single = range.is_some_and(|(first, last)| first == last);
    let flags = flag(extension != 0, tlv_flags::EXTENSION)
        | flag(is_single, tlv_flags::SINGLE_INDEX)
        | flag(range.is_some() && !is_single, tlv_flags::MULTI_INDEX)
        | flag(!value.is_empty(), tlv_flags::VALUE)
        | flag(value.len() > 255, tlv_flags::LONG)
        | flag(has_each, tlv_flags::MULTI_VALUE);
    out.extend([kind, flags]);
    if extension != 0 {
        out.push(extension);
    }
    if let Some((first, last)) = range {
        out.push(first);
        out.extend((!is_single).then_some(last));
    }
    match value.len() {
        0 => {}
        len @ 1..=255 => out.push(as_u8(len)),
        len => {
            let len = u16::try_from(len).map_err(|_| TooLong)?;
            out.extend(len.to_be_bytes());
        }
    }
    out.extend(value);
    Ok(())
}

/// The common parts of addresses.
#[derive(Clone, Copy, Debug, Default)]
struct CommonParts {
    head: usize,
    tail: usize,
    /// The tail is all zeros, which are not written.
    is_zero: bool,
}

impl CommonParts {
    fn cost(self, address_bytes: usize, count: usize) -> usize {
        let head = if self.head > 0 { 1 + self.head } else { 0 };
        let tail = match (self.tail, self.is_zero) {
            (0, _) => 0,
            (_, true) => 1,
            (tail, false) => 1 + tail,
        };
        head + tail + count * (address_bytes - self.head - self.tail)
    }

    /// The cheapest combination of no tail, a zero tail or a full one, with a head or none.
    fn of(addresses: &[(Address, u8)], address_bytes: usize) -> CommonParts {
        let first = addresses[0].0;
        let at = |address: &Address, from_end: usize| address.octets()[address_bytes - 1 - from_end];
        let is_same = |n: &usize| addresses.iter().all(|(a, _)| a.octets()[*n] == first.octets()[*n]);
        let ends_same = |n: &usize| addresses.iter().all(|(a, _)| at(a, *n) == at(&first, *n));
        let ends_zero = |n: &usize| addresses.iter().all(|(a, _)| at(a, *n) == 0);
        let longest_head = (0..address_bytes).take_while(is_same).count();
        let full = (0..address_bytes).take_while(ends_same).count();
        let zero = (0..address_bytes).take_while(ends_zero).count();
        let with_head = |(tail, is_zero): (usize, bool)| {
            [0, longest_head.min(address_bytes - tail)].map(|head| CommonParts { head, tail, is_zero })
        };
        let ways = [(0, false), (zero, true), (full, false)].into_iter().flat_map(with_head);
        ways.min_by_key(|way| way.cost(address_bytes, addresses.len())).unwrap_or_default()
    }
}

fn address_block(block: &AddressBlock, address_bytes: usize, out: &mut Vec<u8>) -> WriteResult {
    let addresses = &block.addresses;
    assert!((1..=MOST_IN_BLOCK).contains(&addresses.len()), "RFC 5444 §5.3: one byte counts them");
    let is_right = |(address, bits): &(Address, u8)| {
        usize::from(address.len) == address_bytes && *bits <= address.bits()
    };
    assert!(addresses.iter().all(is_right), "all addresses of a message are of one length");
    let CommonParts { head, tail, is_zero } = CommonParts::of(addresses, address_bytes);
    let (first, bits) = addresses[0];
    let has_prefix = addresses.iter().any(|(address, bits)| *bits != address.bits());
    let is_one_prefix = addresses.iter().all(|(_, other)| *other == bits);
    let flags = flag(head > 0, block_flags::HEAD)
        | flag(tail > 0 && !is_zero, block_flags::FULL_TAIL)
        | flag(tail > 0 && is_zero, block_flags::ZERO_TAIL)
        | flag(has_prefix && is_one_prefix, block_flags::SINGLE_PREFIX)
        | flag(has_prefix && !is_one_prefix, block_flags::MULTI_PREFIX);
    out.extend([as_u8(addresses.len()), flags]);
    if head > 0 {
        out.push(as_u8(head));
        out.extend(&first.octets()[..head]);
    }
    if tail > 0 {
        out.push(as_u8(tail));
        if !is_zero {
            out.extend(&first.octets()[address_bytes - tail..]);
        }
    }
    addresses.iter().for_each(|(address, _)| out.extend(&address.octets()[head..address_bytes - tail]));
    match (has_prefix, is_one_prefix) {
        (false, _) => {}
        (true, true) => out.push(bits),
        (true, false) => out.extend(addresses.iter().map(|(_, bits)| *bits)),
    }
    with_length(out, 0, |out| block.tlvs.iter().try_for_each(|tlv| address_tlv(tlv, addresses.len(), out)))
}

fn address_tlv(tlv: &AddressTlv, addresses: usize, out: &mut Vec<u8>) -> WriteResult {
    let AddressTlv { kind, extension, first, last, value } = tlv;
    assert!(first <= last && usize::from(*last) < addresses, "RFC 5444 §5.4.1: of addresses in the block");
    let is_all = *first == 0 && usize::from(*last) + 1 == addresses;
    let range = (!is_all).then_some((*first, *last));
    let (value, has_each) = match value {
        TlvValue::None => (&[][..], false),
        TlvValue::Shared(value) => (&value[..], false),
        TlvValue::Each(values) => {
            assert!(values.len() % tlv.count() == 0, "all values are of one length");
            (&values[..], tlv.count() > 1)
        }
    };
    tlv_start((*kind, *extension), range, (value, has_each), out)
}
