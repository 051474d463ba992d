use proptest::prelude::*;

use super::*;
use crate::wire::testing::{self, v4, v6};

const CHECKSUM: std::ops::Range<usize> = 16..18;

fn header(options: &TcpOptions) -> TcpHeader<'_> {
    TcpHeader {
        src_port: 1025,
        dst_port: 80,
        seq: Seq(0x0102_0304),
        ack: Seq(0x0506_0708),
        flags: Flags::ACK | Flags::PSH,
        window: 0x1234,
        urgent: 0,
        options,
    }
}

fn segment(header: &TcpHeader<'_>, (src, dst): (IpAddr, IpAddr), payload: (&[u8], &[u8])) -> Vec<u8> {
    let mut out = Vec::new();
    header.emit(src, dst, payload, Checksums::Verify, &mut out);
    out
}

fn parse(bytes: &[u8]) -> Result<TcpView<'_>, DropReason> {
    TcpView::parse(v4(1), v4(2), bytes, Checksums::Trust)
}

#[test]
fn header_is_laid_out_as_in_rfc_9293() {
    let options = TcpOptions::default();
    let bytes = segment(&header(&options), (v4(1), v4(2)), (b"a", b"b"));
    assert_eq!(bytes[..16], [4, 1, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x18, 0x12, 0x34]);
    assert_eq!(bytes[18..], *b"\0\0ab");
}

#[test]
fn segment_is_appended_to_what_is_there() {
    let options = TcpOptions::default();
    let alone = segment(&header(&options), (v4(1), v4(2)), (b"abc", b"de"));
    let mut out = b"odd".to_vec();
    header(&options).emit(v4(1), v4(2), (b"abc", b"de"), Checksums::Verify, &mut out);
    assert_eq!(out[..3], *b"odd");
    assert_eq!(out[3..], alone);
}

// shows: MUST-3
#[test]
fn wrong_checksum_is_found_unless_it_is_trusted() {
    let options = TcpOptions::default();
    let mut bytes = segment(&header(&options), (v4(1), v4(2)), (b"abc", b""));
    bytes[22] ^= 1;
    let verified = TcpView::parse(v4(1), v4(2), &bytes, Checksums::Verify);
    assert_eq!(verified, Err(DropReason::TcpChecksum));
    assert_eq!(parse(&bytes).map(|view| view.payload), Ok(b"abb".as_slice()));
}

#[test]
fn checksum_covers_addresses() {
    let options = TcpOptions::default();
    let bytes = segment(&header(&options), (v4(1), v4(2)), (b"", b""));
    assert!(TcpView::parse(v4(1), v4(2), &bytes, Checksums::Verify).is_ok());
    for (src, dst) in [(v4(1), v4(3)), (v4(3), v4(2)), (v6(1), v6(2))] {
        assert_eq!(TcpView::parse(src, dst, &bytes, Checksums::Verify), Err(DropReason::TcpChecksum));
    }
}

#[test]
fn trusted_segment_leaves_with_the_sum_of_its_pseudo_header() {
    let options = TcpOptions { timestamps: Some(Timestamps { value: 1, echo: 2 }), ..TcpOptions::default() };
    for (src, dst) in [(v4(1), v4(2)), (v6(1), v6(2))] {
        let payload = (b"some".as_slice(), b"thing".as_slice());
        let verified = segment(&header(&options), (src, dst), payload);
        let mut trusted = Vec::new();
        header(&options).emit(src, dst, payload, Checksums::Trust, &mut trusted);
        // The task of an offloading link: sum everything, the field included, and store the complement there.
        let sum = Sum::default().add(&trusted).finish();
        trusted[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(trusted, verified);
    }
}

#[test]
fn length_contradictions_are_told_apart() {
    let options = TcpOptions { mss: Some(1), ..TcpOptions::default() };
    let bytes = segment(&header(&options), (v4(1), v4(2)), (b"", b""));
    for len in 0..bytes.len() {
        assert_eq!(parse(&bytes[..len]), Err(DropReason::Truncated), "{len}");
    }
    for words in 0..5 {
        let mut bytes = bytes.clone();
        bytes[12] = words << 4;
        assert_eq!(parse(&bytes), Err(DropReason::TcpMalformed), "{words} words");
    }
    for words in 7..16 {
        let mut bytes = bytes.clone();
        bytes[12] = words << 4;
        assert_eq!(parse(&bytes), Err(DropReason::Truncated), "{words} words");
    }
}

#[test]
fn syn_and_fin_take_a_sequence_number_each() {
    let options = TcpOptions::default();
    for (flags, expected) in [
        (Flags::ACK, 3),
        (Flags::SYN, 4),
        (Flags::FIN | Flags::ACK, 4),
        (Flags::SYN | Flags::FIN, 5),
        (Flags::RST, 3),
    ] {
        let bytes = segment(&TcpHeader { flags, ..header(&options) }, (v4(1), v4(2)), (b"abc", b""));
        assert_eq!(parse(&bytes).map(|view| view.sequence_len()), Ok(expected), "{flags}");
    }
}

/// An odd first piece makes the second begin in the middle of a word.
#[test]
fn split_of_the_payload_changes_nothing() {
    let options = TcpOptions { timestamps: Some(Timestamps { value: 1, echo: 2 }), ..TcpOptions::default() };
    let payload: Vec<u8> = (0..300).map(|index| (index * 37) as u8).collect();
    let whole = segment(&header(&options), (v4(1), v4(2)), (&payload, &[]));
    for cut in 0..=payload.len() {
        assert_eq!(segment(&header(&options), (v4(1), v4(2)), payload.split_at(cut)), whole, "cut at {cut}");
    }
}

#[test]
fn length_with_options_is_what_is_written() {
    let options = TcpOptions { mss: Some(1460), window_scale: Some(2), ..TcpOptions::default() };
    let header = TcpHeader { flags: Flags::SYN, ..header(&options) };
    assert_eq!(header.len(), 28);
    assert_eq!(segment(&header, (v4(1), v4(2)), (&[], &[])).len(), 28);
}

proptest! {
    #![proptest_config(testing::cases(256))]

    // shows: MUST-2
    #[test]
    fn segment_comes_back_as_it_was_sent(
        (src, dst) in testing::addresses(),
        (flags, options) in testing::flags_and_options(),
        (src_port, dst_port, seq, ack) in any::<(u16, u16, u32, u32)>(),
        (window, urgent) in any::<(u16, u16)>(),
        payload in testing::bytes(300),
        cut: prop::sample::Index,
    ) {
        let (seq, ack) = (Seq(seq), Seq(ack));
        let header = TcpHeader { src_port, dst_port, seq, ack, flags, window, urgent, options: &options };
        let bytes = segment(&header, (src, dst), payload.split_at(cut.index(payload.len() + 1)));
        prop_assert_eq!(bytes.len(), header.len() + payload.len());
        let view = TcpView::parse(src, dst, &bytes, Checksums::Verify).expect("what we write we can read");
        let mut expected = options.clone();
        expected.sack.truncate(view.options.sack.len());
        let options = expected;
        let payload = payload.as_slice();
        prop_assert_eq!(
            view,
            TcpView { src_port, dst_port, seq, ack, flags, window, urgent, options, payload }
        );
    }

    // shows: MUST-3
    #[test]
    fn any_flipped_bit_is_found(
        (src, dst) in testing::addresses(),
        (flags, options) in testing::flags_and_options(),
        payload in testing::bytes(64),
    ) {
        let header = TcpHeader { flags, ..header(&options) };
        let mut bytes = segment(&header, (src, dst), (&payload, &[]));
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let result = TcpView::parse(src, dst, &bytes, Checksums::Verify);
            prop_assert!(result.is_err(), "bit {} of byte {}", bit % 8, bit / 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn any_bytes_are_parsed_without_a_panic(
        (src, dst) in testing::addresses(),
        bytes in testing::bytes(120),
        words in 0..16u8,
    ) {
        let mut bytes = bytes;
        if let Some(offset) = bytes.get_mut(12) {
            *offset = words << 4;
        }
        for checksums in [Checksums::Verify, Checksums::Trust] {
            if let Ok(view) = TcpView::parse(src, dst, &bytes, checksums) {
                prop_assert!(view.payload.len() + HEADER_LEN <= bytes.len());
            }
        }
    }
}
