use proptest::prelude::*;

use super::*;

fn v4(last: u8) -> Address {
    Ipv4Addr::new(10, 0, 0, last).into()
}

fn block(addresses: &[[u8; 4]]) -> AddressBlock {
    let whole = |octets: &[u8; 4]| (Ipv4Addr::from(*octets).into(), 32);
    AddressBlock { addresses: addresses.iter().map(whole).collect(), tlvs: Vec::new() }
}

fn message(blocks: Vec<AddressBlock>) -> Rfc5444Message {
    Rfc5444Message { blocks, ..Rfc5444Message::new(10, 4) }
}

/// The bytes of a packet with one such block, from the block on.
fn written(block: &AddressBlock) -> Vec<u8> {
    Packet::of(message(vec![block.clone()])).bytes().expect("short enough")[7..].to_vec()
}

#[test]
fn a_packet_begins_with_its_version_and_what_it_has() {
    let nothing = Packet::default();
    assert_eq!(nothing.bytes().expect("short enough"), [0]);
    let tlvs = vec![Tlv { kind: 5, extension: 0, value: vec![] }];
    let numbered = Packet { seq: Some(0x0102), tlvs, messages: Vec::new() };
    assert_eq!(numbered.bytes().expect("short enough"), [0x0c, 1, 2, 0, 2, 5, 0]);
    assert_eq!(Packet::parse(&numbered.bytes().expect("short enough")), Ok(numbered));
    assert_eq!(Packet::parse(&[0x10]), Err(MalformedPacket), "another version");
    assert_eq!(Packet::parse(&[0x03]), Ok(nothing), "reserved bits are ignored");
}

#[test]
fn a_message_has_its_fields_in_the_order_of_the_rfc_and_counts_itself() {
    let whole = Rfc5444Message {
        originator: Some(v4(1)),
        hop_limit: Some(20),
        hop_count: Some(3),
        seq: Some(0xfffe),
        tlvs: vec![
            Tlv { kind: 224, extension: 7, value: vec![1, 2, 3] },
            Tlv { kind: 1, extension: 0, value: vec![9; 256] },
        ],
        ..Rfc5444Message::new(10, 4)
    };
    let bytes = Packet::of(whole.clone()).bytes().expect("short enough");
    let head = [0, 10, 0xf3, 1, 0x19, 10, 0, 0, 1, 20, 3, 0xff, 0xfe, 1, 0x0b];
    assert_eq!(bytes[..15], head);
    assert_eq!(bytes[15..21], [224, 0x90, 7, 3, 1, 2]);
    assert_eq!(bytes[22..27], [1, 0x18, 1, 0, 9], "a value beyond 255 bytes has a long length");
    assert_eq!(bytes.len(), 1 + 0x119);
    assert_eq!(Packet::parse(&bytes), Ok(Packet::of(whole)));
}

#[test]
fn addresses_are_written_with_what_they_share_taken_out() {
    let none = block(&[[10, 0, 0, 1]]);
    assert_eq!(written(&none), [1, 0, 10, 0, 0, 1, 0, 0], "one shares nothing");
    let head = block(&[[10, 0, 0, 1], [10, 0, 0, 5], [10, 0, 0, 9]]);
    assert_eq!(written(&head), [3, 0x80, 3, 10, 0, 0, 1, 5, 9, 0, 0]);
    let tail = block(&[[1, 0, 0, 7], [2, 0, 0, 7]]);
    assert_eq!(written(&tail), [2, 0x40, 3, 0, 0, 7, 1, 2, 0, 0]);
    let zero = block(&[[1, 2, 0, 0], [3, 4, 0, 0]]);
    assert_eq!(written(&zero), [2, 0x20, 2, 1, 2, 3, 4, 0, 0]);
    let both = block(&[[10, 1, 0, 0], [10, 2, 0, 0], [10, 3, 0, 0], [10, 4, 0, 0]]);
    assert_eq!(written(&both), [4, 0xa0, 1, 10, 2, 1, 2, 3, 4, 0, 0]);
    let same = block(&[[10, 0, 0, 0]; 3]);
    assert_eq!(written(&same), [3, 0xa0, 1, 10, 3, 0, 0], "all of it, and no middle");
    for each in [none, head, tail, zero, both, same] {
        let packet = Packet::of(message(vec![each]));
        assert_eq!(Packet::parse(&packet.bytes().expect("short enough")), Ok(packet));
    }
}

#[test]
fn prefixes_are_written_once_where_they_are_one() {
    let mut nets = block(&[[10, 1, 0, 0], [10, 2, 0, 0]]);
    nets.addresses.iter_mut().for_each(|(_, bits)| *bits = 16);
    assert_eq!(written(&nets), [2, 0x30, 2, 10, 1, 10, 2, 16, 0, 0]);
    nets.addresses[1].1 = 24;
    assert_eq!(written(&nets), [2, 0x28, 2, 10, 1, 10, 2, 16, 24, 0, 0]);
    let packet = Packet::of(message(vec![nets]));
    assert_eq!(Packet::parse(&packet.bytes().expect("short enough")), Ok(packet));
}

#[test]
fn a_tlv_speaks_of_all_of_one_or_of_some_with_one_value_or_with_many() {
    let mut some = block(&[[10, 0, 0, 1], [10, 0, 0, 2], [10, 0, 0, 3]]);
    some.tlvs = vec![
        AddressTlv {
            kind: 1,
            extension: 0,
            first: 0,
            last: 2,
            value: TlvValue::Each(vec![1, 2, 3, 4, 5, 6]),
        },
        AddressTlv { kind: 2, extension: 9, first: 1, last: 1, value: TlvValue::Shared(vec![7]) },
        AddressTlv { kind: 3, extension: 0, first: 1, last: 2, value: TlvValue::None },
    ];
    let bytes = written(&some);
    assert_eq!(bytes[10..], [19, 1, 0x14, 6, 1, 2, 3, 4, 5, 6, 2, 0xd0, 9, 1, 1, 7, 3, 0x20, 1, 2]);
    let read = Packet::parse(&Packet::of(message(vec![some.clone()])).bytes().expect("short enough"))
        .expect("a packet");
    let read = &read.messages[0].blocks[0];
    assert_eq!(*read, some);
    let said = |index| read.said(1, 0, index).map(<[u8]>::to_vec);
    assert_eq!([0, 1, 2].map(said), [[1, 2], [3, 4], [5, 6]].map(|value| Some(value.to_vec())));
    assert_eq!([0, 1, 2].map(|index| read.said(2, 9, index).is_some()), [false, true, false]);
    assert_eq!(read.said(3, 0, 2), Some(&[][..]), "it is there and says no more");
    assert_eq!(read.said_of_any(2, 1), Some((9, &[7][..])));
    assert_eq!(read.said(2, 0, 1), None, "another extension is another type");
}

/// A packet of one message of 8 bytes without addresses, with this block of TLVs.
fn tlvs(bytes: &[u8]) -> Result<Packet, MalformedPacket> {
    let size = 6 + bytes.len() as u8;
    Packet::parse(&[&[0, 10, 3, 0, size, 0, bytes.len() as u8], bytes].concat())
}

fn blocks(bytes: &[u8]) -> Result<Packet, MalformedPacket> {
    let size = 6 + bytes.len() as u8;
    Packet::parse(&[&[0, 10, 3, 0, size, 0, 0], bytes].concat())
}

#[test]
fn what_the_rfc_forbids_is_no_packet() {
    assert!(tlvs(&[1, 0]).is_ok() && blocks(&[1, 0, 10, 0, 0, 1, 0, 0]).is_ok());
    for (what, bytes) in [
        ("an index where there are no addresses", &[1, 0x40, 0][..]),
        ("a range where there are no addresses", &[1, 0x20, 0, 0]),
        ("many values where there are no addresses", &[1, 0x14, 1, 0]),
        ("a value longer than its block", &[1, 0x10, 2, 0]),
        ("a long length without a value", &[1, 0x08]),
        ("half a long length", &[1, 0x18, 0]),
        ("half a TLV", &[1]),
    ] {
        assert_eq!(tlvs(bytes), Err(MalformedPacket), "{what}");
    }
    for (what, bytes) in [
        ("no address", &[0, 0, 0, 0][..]),
        ("two kinds of tail", &[1, 0x60, 1, 0, 10, 0, 0, 0, 0]),
        ("two kinds of prefix", &[1, 0x18, 10, 0, 0, 1, 32, 0, 0]),
        ("a head longer than an address", &[1, 0x80, 5, 10, 0, 0, 1, 0, 0, 0]),
        ("head and tail longer than an address", &[1, 0xa0, 3, 10, 0, 0, 2, 0, 0]),
        ("a prefix longer than an address", &[1, 0x10, 10, 0, 0, 1, 33, 0, 0]),
        ("fewer addresses than were counted", &[2, 0, 10, 0, 0, 1, 0, 0]),
        ("no block of TLVs behind it", &[1, 0, 10, 0, 0, 1]),
        ("an index beyond the addresses", &[1, 0, 10, 0, 0, 1, 0, 3, 1, 0x40, 1]),
        ("a range that goes backwards", &[2, 0x80, 3, 10, 0, 0, 1, 2, 0, 4, 1, 0x20, 1, 0]),
        ("both kinds of index", &[1, 0, 10, 0, 0, 1, 0, 4, 1, 0x60, 0, 0]),
        ("values of unequal length", &[2, 0x80, 3, 10, 0, 0, 1, 2, 0, 6, 1, 0x14, 3, 1, 2, 3]),
        ("a TLV that is longer than its block", &[1, 0, 10, 0, 0, 1, 0, 3, 1, 0x10, 1, 9]),
    ] {
        assert_eq!(blocks(bytes), Err(MalformedPacket), "{what}");
    }
    for (what, bytes) in [
        ("a message smaller than its header", &[0, 10, 3, 0, 3, 0, 0][..]),
        ("a message without a block of TLVs", &[0, 10, 3, 0, 4]),
        ("a message longer than the packet", &[0, 10, 3, 0, 7, 0, 0]),
        ("what follows the last message", &[0, 10, 3, 0, 6, 0, 0, 1]),
        ("nothing", &[]),
    ] {
        assert_eq!(Packet::parse(bytes), Err(MalformedPacket), "{what}");
    }
}

#[test]
fn a_few_bytes_do_not_become_a_million_addresses() {
    // Each block of nine bytes stands for one address 255 times.
    let block = [255, 0x80, 4, 10, 0, 0, 1, 0, 0];
    let packet = |count: usize| {
        let size = 6 + 9 * count;
        [&[0, 10, 3, (size >> 8) as u8, size as u8, 0, 0][..], &block.repeat(count)].concat()
    };
    assert!(Packet::parse(&packet(MOST_ADDRESSES / 255)).is_ok());
    assert_eq!(Packet::parse(&packet(MOST_ADDRESSES / 255 + 1)), Err(MalformedPacket));
}

fn tlv() -> impl Strategy<Value = Tlv> {
    let value =
        prop_oneof![prop::collection::vec(any::<u8>(), 0..9), prop::collection::vec(any::<u8>(), 250..260)];
    (any::<u8>(), prop_oneof![Just(0), any::<u8>()], value).prop_map(|(kind, extension, value)| Tlv {
        kind,
        extension,
        value,
    })
}

fn address_tlv(addresses: usize) -> impl Strategy<Value = AddressTlv> {
    let ends = (0..addresses, 0..addresses);
    (any::<u8>(), prop_oneof![Just(0), any::<u8>()], ends, 0..3, prop::collection::vec(any::<u8>(), 1..4))
        .prop_map(|(kind, extension, (a, b), what, bytes)| {
            let (first, last) = (a.min(b), a.max(b));
            let value = match (what, last - first) {
                (0, _) => TlvValue::None,
                (1, 1..) => TlvValue::Each(bytes.repeat(last - first + 1)),
                _ => TlvValue::Shared(bytes),
            };
            AddressTlv { kind, extension, first: first as u8, last: last as u8, value }
        })
}

/// Addresses that share bytes now and then.
fn address_block(len: usize) -> impl Strategy<Value = AddressBlock> {
    let octet = prop_oneof![Just(0_u8), Just(10), any::<u8>()];
    let address =
        prop::collection::vec(octet, len).prop_map(|octets| Address::new(&octets).expect("1 to 16 bytes"));
    let bits = prop_oneof![Just(8 * len as u8), 0..=8 * len as u8];
    prop::collection::vec((address, bits), 1..6).prop_flat_map(|addresses| {
        let tlvs = prop::collection::vec(address_tlv(addresses.len()), 0..4);
        tlvs.prop_map(move |tlvs| AddressBlock { addresses: addresses.clone(), tlvs })
    })
}

fn any_message() -> impl Strategy<Value = Rfc5444Message> {
    (1..=16_usize).prop_flat_map(|len| {
        let fields = any::<(u8, bool, Option<u8>, Option<u8>, Option<u16>)>();
        let originator = prop::collection::vec(any::<u8>(), len);
        let tlvs = prop::collection::vec(tlv(), 0..3);
        let blocks = prop::collection::vec(address_block(len), 0..3);
        (fields, originator, tlvs, blocks).prop_map(
            move |((kind, has_originator, hop_limit, hop_count, seq), originator, tlvs, blocks)| {
                Rfc5444Message {
                    originator: Address::new(&originator).filter(|_| has_originator),
                    hop_limit,
                    hop_count,
                    seq,
                    tlvs,
                    blocks,
                    ..Rfc5444Message::new(kind, len as u8)
                }
            },
        )
    })
}

fn any_packet() -> impl Strategy<Value = Packet> {
    let parts = (
        any::<Option<u16>>(),
        prop::collection::vec(tlv(), 0..3),
        prop::collection::vec(any_message(), 0..3),
    );
    parts.prop_map(|(seq, tlvs, messages)| Packet { seq, tlvs, messages })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(packet in any_packet()) {
        prop_assert_eq!(Packet::parse(&packet.bytes().expect("short enough")), Ok(packet));
    }

    #[test]
    fn what_is_read_is_written_in_no_more_bytes(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(packet) = Packet::parse(&bytes) {
            let again = packet.bytes().expect("short enough");
            prop_assert!(again.len() <= bytes.len());
            prop_assert_eq!(Packet::parse(&again), Ok(packet));
        }
    }

    #[test]
    fn a_byte_changed_or_a_tail_cut_does_no_harm(packet in any_packet(), at in any::<prop::sample::Index>(), byte: u8) {
        let mut bytes = packet.bytes().expect("short enough");
        let at = at.index(bytes.len());
        bytes[at] = byte;
        for bytes in [&bytes[..], &bytes[..at]] {
            if let Ok(packet) = Packet::parse(bytes) {
                let again = packet.bytes().expect("short enough");
                prop_assert!(again.len() <= bytes.len());
                prop_assert_eq!(Packet::parse(&again), Ok(packet));
            }
        }
    }
}

/// The crate `rfc5444` reads the packets that we write. It knows no messages, takes a block of TLVs to end with its
/// input, and blocks of addresses to have one middle. The tests stay within these limits.
mod oracle {
    use ::rfc5444::parser;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn reads_the_tlvs_of_a_message(tlvs in prop::collection::vec(tlv(), 0..4)) {
            let message = Rfc5444Message { tlvs: tlvs.clone(), ..Rfc5444Message::new(10, 4) };
            let bytes = Packet::of(message).bytes().expect("short enough");
            let Ok((&[], read)) = parser::tlv_block(&bytes[5..]) else { panic!("{bytes:?}") };
            let read: Vec<_> = read.map(|tlv| tlv.unwrap_or_else(|error| panic!("{error:?}"))).collect();
            prop_assert_eq!(read.len(), tlvs.len());
            for (read, tlv) in read.iter().zip(&tlvs) {
                prop_assert_eq!((read.r#type, read.type_ext.unwrap_or(0)), (tlv.kind, tlv.extension));
                prop_assert_eq!(read.value.unwrap_or_default(), &tlv.value[..]);
                prop_assert_eq!((read.start_index, read.stop_index), (None, None));
            }
        }

        #[test]
        fn reads_the_tlvs_of_addresses(tlv in address_tlv(4)) {
            let mut block = block(&[[10, 0, 0, 1], [10, 0, 0, 2], [10, 0, 0, 3], [10, 0, 0, 4]]);
            block.tlvs.push(tlv.clone());
            let bytes = written(&block);
            let (_, read) = parser::tlv(&bytes[12..]).map_err(|error| format!("{error:?}")).expect("a TLV");
            let (first, last) = (read.start_index.unwrap_or(0), read.stop_index.or(read.start_index).unwrap_or(3));
            prop_assert_eq!((first, last), (tlv.first, tlv.last));
            let value = match &tlv.value {
                TlvValue::None => &[][..],
                TlvValue::Shared(value) | TlvValue::Each(value) => value,
            };
            prop_assert_eq!(read.value.unwrap_or_default(), value);
        }

        #[test]
        fn reads_one_address_with_its_prefix(octets: [u8; 4], bits in 0..=32_u8) {
            let block = AddressBlock { addresses: vec![(Ipv4Addr::from(octets).into(), bits)], tlvs: Vec::new() };
            let bytes = written(&block);
            let Ok((&[0, 0], read)) = parser::address_block(&bytes, 4) else { panic!("{bytes:?}") };
            let zeros = octets.iter().rev().take_while(|octet| **octet == 0).count();
            let parts = [read.head, read.mid, read.tail].into_iter().flatten().flatten().copied();
            prop_assert_eq!(read.num_addr, 1);
            let is_short = bytes[1] & 0x20 != 0;
            prop_assert_eq!(parts.collect::<Vec<_>>(), &octets[..4 - if is_short { zeros } else { 0 }]);
            prop_assert_eq!(read.prefix_lengths.map_or(32, |lengths| lengths[0]), bits);
        }
    }
}
