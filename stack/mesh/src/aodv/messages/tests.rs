use proptest::prelude::*;

use super::*;

fn bytes_of(message: &AodvMessage) -> Vec<u8> {
    let mut out = Vec::new();
    message.emit(&mut out);
    out
}

fn rreq() -> Rreq {
    Rreq {
        is_join: false,
        is_repair: false,
        is_gratuitous: true,
        is_destination_only: false,
        hop_count: 3,
        id: 0x0102_0304,
        dst: Ipv4Addr::new(10, 0, 0, 9),
        dst_seq: Some(0xfffe_fdfc),
        origin: Ipv4Addr::new(10, 0, 0, 1),
        origin_seq: 7,
    }
}

#[test]
fn a_rreq_has_24_bytes_in_the_order_of_the_rfc() {
    let bytes = bytes_of(&AodvMessage::Rreq(rreq()));
    assert_eq!(
        bytes,
        [1, 0x20, 0, 3, 1, 2, 3, 4, 10, 0, 0, 9, 0xff, 0xfe, 0xfd, 0xfc, 10, 0, 0, 1, 0, 0, 0, 7]
    );
    let unknown = Rreq { dst_seq: None, is_destination_only: true, is_gratuitous: false, ..rreq() };
    assert_eq!(
        bytes_of(&AodvMessage::Rreq(unknown))[..16],
        [1, 0x18, 0, 3, 1, 2, 3, 4, 10, 0, 0, 9, 0, 0, 0, 0]
    );
}

#[test]
fn a_rrep_has_20_bytes_and_its_prefix_in_five_bits() {
    let rrep = Rrep {
        is_repair: false,
        wants_ack: true,
        prefix_size: 24,
        hop_count: 2,
        dst: Ipv4Addr::new(10, 0, 0, 9),
        dst_seq: 8,
        origin: Ipv4Addr::new(10, 0, 0, 1),
        lifetime_ms: 6_000,
    };
    let bytes = bytes_of(&AodvMessage::Rrep(rrep));
    assert_eq!(bytes, [2, 0x40, 24, 2, 10, 0, 0, 9, 0, 0, 0, 8, 10, 0, 0, 1, 0, 0, 0x17, 0x70]);
}

#[test]
fn a_rerr_lists_its_destinations_and_a_rrep_ack_has_two_bytes() {
    let unreachable = vec![(Ipv4Addr::new(10, 0, 0, 9), 5), (Ipv4Addr::new(10, 0, 0, 8), 6)];
    let bytes = bytes_of(&AodvMessage::Rerr(Rerr { is_no_delete: true, unreachable }));
    assert_eq!(bytes, [3, 0x80, 0, 2, 10, 0, 0, 9, 0, 0, 0, 5, 10, 0, 0, 8, 0, 0, 0, 6]);
    assert_eq!(bytes_of(&AodvMessage::RrepAck), [4, 0]);
}

/// Recorded bytes of the crate `aodv` 0.2.2. It brings a daemon with it, so that it is no dependency.
#[test]
fn what_the_crate_aodv_writes_is_read_and_written_the_same() {
    let (destination, origin) = (Ipv4Addr::new(10, 0, 0, 9), Ipv4Addr::new(10, 0, 0, 1));
    let unknown = Rreq {
        is_join: true,
        is_repair: true,
        is_gratuitous: false,
        is_destination_only: true,
        hop_count: 0,
        id: 8,
        dst_seq: None,
        origin_seq: 0x8000_0000,
        ..rreq()
    };
    let rrep = Rrep {
        is_repair: false,
        wants_ack: true,
        prefix_size: 24,
        hop_count: 2,
        dst: destination,
        dst_seq: 8,
        origin,
        lifetime_ms: 6_000,
    };
    let neighbour = Ipv4Addr::new(10, 0, 0, 2);
    let (dst, lifetime_ms) = (neighbour, 2_000);
    let hello =
        Rrep { wants_ack: false, prefix_size: 0, hop_count: 0, dst, origin: neighbour, lifetime_ms, ..rrep };
    let unreachable = vec![(destination, 5), (Ipv4Addr::new(10, 0, 0, 8), 6)];
    for (hex, message, extension) in [
        ("01200003010203040a000009fffefdfc0a00000100000007", AodvMessage::Rreq(rreq()), ""),
        ("01d80000000000080a000009000000000a00000180000000", AodvMessage::Rreq(unknown), ""),
        ("024018020a000009000000080a00000100001770", AodvMessage::Rrep(rrep), ""),
        ("020000000a000002000000080a000002000007d0", AodvMessage::Rrep(hello), "0104000003e8"),
        (
            "038000020a000009000000050a00000800000006",
            AodvMessage::Rerr(Rerr { is_no_delete: true, unreachable }),
            "",
        ),
        ("0400", AodvMessage::RrepAck, ""),
    ] {
        let bytes = [bytes_of_hex(hex), bytes_of_hex(extension)].concat();
        let (read, extensions) = AodvMessage::parse(&bytes).expect(hex);
        assert_eq!((&read, extensions.bytes()), (&message, &bytes_of_hex(extension)[..]));
        assert_eq!(bytes_of(&message), bytes_of_hex(hex));
    }
}

fn bytes_of_hex(hex: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
    (0..hex.len()).step_by(2).map(byte).collect()
}

#[test]
fn lengths_that_lie_make_no_message() {
    let whole = bytes_of(&AodvMessage::Rreq(rreq()));
    for len in 0..whole.len() {
        assert_eq!(AodvMessage::parse(&whole[..len]), Err(MalformedMessage), "{len} bytes");
    }
    for (what, tail) in [("cut type", vec![1]), ("cut data", vec![1, 4, 0, 0, 0]), ("unknown", vec![200, 0])]
    {
        let bytes = [whole.clone(), tail].concat();
        assert_eq!(AodvMessage::parse(&bytes), Err(MalformedMessage), "{what}");
    }
    assert_eq!(AodvMessage::parse(&[3, 0, 0, 0]), Err(MalformedMessage), "an error about nothing");
    assert_eq!(
        AodvMessage::parse(&[3, 0, 0, 2, 10, 0, 0, 9, 0, 0, 0, 5]),
        Err(MalformedMessage),
        "one of two"
    );
    assert_eq!(AodvMessage::parse(&[5, 0]), Err(MalformedMessage));
}

#[test]
fn extensions_that_are_not_known_are_stepped_over() {
    let mut bytes = bytes_of(&AodvMessage::Rreq(rreq()));
    bytes.extend([99, 2, 7, 7]);
    Extension { kind: HELLO_INTERVAL, data: &1_000_u32.to_be_bytes() }.emit(&mut bytes);
    let (message, extensions) = AodvMessage::parse(&bytes).expect("a message");
    assert_eq!(message, AodvMessage::Rreq(rreq()));
    assert_eq!(extensions.find(HELLO_INTERVAL), Some(&[0, 0, 3, 0xe8][..]));
    assert_eq!(extensions.bytes().len(), 10);
}

fn messages() -> impl Strategy<Value = AodvMessage> {
    let address = || any::<u32>().prop_map(Ipv4Addr::from_bits);
    let rreq = (any::<[bool; 4]>(), any::<(u8, u32, u32)>(), address(), any::<Option<u32>>(), address())
        .prop_map(|(flags, (hop_count, id, origin_seq), dst, dst_seq, origin)| {
            let [is_join, is_repair, is_gratuitous, is_destination_only] = flags;
            AodvMessage::Rreq(Rreq {
                is_join,
                is_repair,
                is_gratuitous,
                is_destination_only,
                hop_count,
                id,
                dst,
                dst_seq,
                origin,
                origin_seq,
            })
        });
    let rrep = (any::<[bool; 2]>(), 0..32_u8, any::<(u8, u32, u32)>(), address(), address()).prop_map(
        |([is_repair, wants_ack], prefix_size, (hop_count, dst_seq, lifetime_ms), dst, origin)| {
            AodvMessage::Rrep(Rrep {
                is_repair,
                wants_ack,
                prefix_size,
                hop_count,
                dst,
                dst_seq,
                origin,
                lifetime_ms,
            })
        },
    );
    let rerr = (any::<bool>(), prop::collection::vec((address(), any::<u32>()), 1..9))
        .prop_map(|(is_no_delete, unreachable)| AodvMessage::Rerr(Rerr { is_no_delete, unreachable }));
    prop_oneof![rreq, rrep, rerr, Just(AodvMessage::RrepAck)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(message in messages(), extra in prop::collection::vec(any::<u8>(), 0..20)) {
        let mut bytes = bytes_of(&message);
        Extension { kind: 77, data: &extra }.emit(&mut bytes);
        let (read, extensions) = AodvMessage::parse(&bytes).expect("a message");
        prop_assert_eq!(read, message);
        prop_assert_eq!(extensions.find(77), Some(&extra[..]));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok((message, extensions)) = AodvMessage::parse(&bytes) {
            let mut again = bytes_of(&message);
            again.extend(extensions.bytes());
            prop_assert_eq!(again.len(), bytes.len());
        }
    }
}
