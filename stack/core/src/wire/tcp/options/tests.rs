use proptest::prelude::*;

use super::*;
use crate::wire::testing;
use crate::wire::{Notes, OfferFlags};

const LATER: Flags = Flags::ACK;

fn written(options: &TcpOptions) -> Vec<u8> {
    let mut out = [0; MAX_OPTIONS_LEN];
    let len = options.write(&mut out);
    assert_eq!(len, options.emitted_len());
    assert!(out[len..].iter().all(|byte| *byte == 0), "nothing is written behind the end");
    out[..len].to_vec()
}

fn block(left: u32) -> SackBlock {
    SackBlock { left: Seq(left), right: Seq(left + 100) }
}

fn blocks(count: u32) -> ArrayVec<SackBlock, MAX_SACK_BLOCKS> {
    (0..count).map(|index| block(index * 1000)).collect()
}

const TIMESTAMPS_1_2: Timestamps = Timestamps { value: 1, echo: 2 };
const ALL_NOTES: HopwiseOption =
    HopwiseOption::Notes(Notes { cwnd: Some(0x1234), dup_count: Some(5), ack_after: Some(6) });

#[test]
fn syn_options_stand_in_the_usual_order() {
    let options = TcpOptions {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 0x0102_0304, echo: 0x0506_0708 }),
        hopwise: Some(HopwiseOption::Offer(OfferFlags::TELL_CWND | OfferFlags::USE_DUP_COUNT)),
        rate_request: Some(RateRequest::Offer),
        ..TcpOptions::default()
    };
    #[rustfmt::skip]
    assert_eq!(written(&options), [
        2, 4, 0x05, 0xb4,
        4, 2, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8,
        1, 3, 3, 7,
        0xfd, 5, 0x48, 0x57, 0b1001,
        0xfe, 4, 0x00, 0xac,
        0, 0, 0,
    ]);
    assert_eq!(TcpOptions::parse(&written(&options), Flags::SYN), options);
}

#[test]
fn sack_permitted_without_timestamps_is_aligned_by_nops() {
    let options = TcpOptions { sack_permitted: true, ..TcpOptions::default() };
    assert_eq!(written(&options), [1, 1, 4, 2]);
}

#[test]
fn timestamps_alone_are_the_block_of_rfc_7323_appendix_a() {
    let options = TcpOptions { timestamps: Some(TIMESTAMPS_1_2), ..TcpOptions::default() };
    assert_eq!(written(&options), [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    assert_eq!(options.only_timestamps(), Some(TIMESTAMPS_1_2));
    let more = TcpOptions { sack: blocks(1), ..options.clone() };
    assert_eq!(more.only_timestamps(), None);
    assert_eq!(TcpOptions::default().only_timestamps(), None);
}

#[test]
fn notes_and_a_rate_request_follow_timestamps_and_sack_is_aligned_behind_them() {
    let options = TcpOptions {
        timestamps: Some(TIMESTAMPS_1_2),
        hopwise: Some(HopwiseOption::Notes(Notes { cwnd: Some(0x0102), ..Notes::default() })),
        sack: blocks(1),
        ..TcpOptions::default()
    };
    #[rustfmt::skip]
    assert_eq!(written(&options), [
        1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2,
        0xfd, 7, 0x48, 0x57, 1, 1, 2,
        1, 1, 1, 5, 10, 0, 0, 0, 0, 0, 0, 0, 100,
    ]);
    let ask = TcpOptions { rate_request: Some(RateRequest::Ask(127)), ..TcpOptions::default() };
    assert_eq!(written(&ask), [0xfe, 5, 0x00, 0xac, 254, 0, 0, 0]);
}

#[test]
fn each_note_stands_alone_and_all_stand_in_the_order_of_their_bits() {
    let of =
        |notes| written(&TcpOptions { hopwise: Some(HopwiseOption::Notes(notes)), ..TcpOptions::default() });
    assert_eq!(of(Notes { dup_count: Some(9), ..Notes::default() }), [0xfd, 6, 0x48, 0x57, 2, 9, 0, 0]);
    assert_eq!(of(Notes { ack_after: Some(8), ..Notes::default() }), [0xfd, 6, 0x48, 0x57, 4, 8, 0, 0]);
    let all = TcpOptions { hopwise: Some(ALL_NOTES), ..TcpOptions::default() };
    assert_eq!(written(&all), [0xfd, 9, 0x48, 0x57, 7, 0x12, 0x34, 5, 6, 0, 0, 0]);
}

#[test]
fn sack_blocks_give_way_and_nothing_else_does() {
    let fitting = |options: TcpOptions| {
        let options = TcpOptions { sack: blocks(4), ..options };
        let read = TcpOptions::parse(&written(&options), LATER);
        assert_eq!(read.sack[..], options.sack[..read.sack.len()], "the first blocks are kept");
        assert_eq!(TcpOptions { sack: options.sack.clone(), ..read.clone() }, options);
        read.sack.len()
    };
    let timestamps = Some(TIMESTAMPS_1_2);
    let (hopwise, rate_request) = (Some(ALL_NOTES), Some(RateRequest::Ask(4)));
    assert_eq!(fitting(TcpOptions::default()), 4);
    assert_eq!(fitting(TcpOptions { timestamps, ..TcpOptions::default() }), 3);
    assert_eq!(fitting(TcpOptions { timestamps, rate_request, ..TcpOptions::default() }), 2);
    assert_eq!(fitting(TcpOptions { timestamps, hopwise, ..TcpOptions::default() }), 2);
    assert_eq!(fitting(TcpOptions { timestamps, hopwise, rate_request, ..TcpOptions::default() }), 1);
    assert_eq!(fitting(TcpOptions { hopwise, rate_request, ..TcpOptions::default() }), 3);
}

#[test]
fn forty_bytes_are_enough_with_everything_on() {
    let options = TcpOptions {
        mss: Some(1460),
        window_scale: Some(14),
        sack_permitted: true,
        timestamps: Some(TIMESTAMPS_1_2),
        sack: blocks(4),
        hopwise: Some(ALL_NOTES),
        rate_request: Some(RateRequest::Ask(1)),
    };
    assert_eq!(options.emitted_len(), 36);
    let bytes = written(&options);
    assert_eq!(bytes[20..], [0xfd, 9, 0x48, 0x57, 7, 0x12, 0x34, 5, 6, 0xfe, 5, 0, 0xac, 2, 0, 0]);
}

// shows: MUST-69
#[test]
fn header_is_padded_with_zeros_to_a_multiple_of_four() {
    for len in 1..=3 {
        let notes =
            [Notes { ack_after: Some(1), ..Notes::default() }, Notes { cwnd: Some(1), ..Notes::default() }];
        let options = match len {
            1 => TcpOptions { hopwise: Some(HopwiseOption::Notes(notes[1])), ..TcpOptions::default() },
            2 => TcpOptions { hopwise: Some(HopwiseOption::Notes(notes[0])), ..TcpOptions::default() },
            _ => TcpOptions { rate_request: Some(RateRequest::Ask(9)), ..TcpOptions::default() },
        };
        let bytes = written(&options);
        assert_eq!(bytes.len(), 8);
        assert!(bytes[8 - len..].iter().all(|byte| *byte == 0), "{bytes:?}");
        assert!(bytes[8 - len - 1] != 0);
    }
}

// shows: MUST-4, MUST-5, MUST-64
#[test]
fn options_are_read_at_any_alignment_and_on_any_segment() {
    for nops in 0..=8 {
        let lead = vec![NOP; nops];
        let timestamps = [TIMESTAMPS, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        for flags in 0..=255 {
            let options = TcpOptions::parse(&[lead.as_slice(), &timestamps].concat(), Flags(flags));
            assert_eq!(options.timestamps, Some(TIMESTAMPS_1_2), "{nops} before, flags {flags:#x}");
        }
        let mss = TcpOptions::parse(&[lead.as_slice(), &[MSS, 4, 0x05, 0xb4, END]].concat(), Flags::SYN);
        assert_eq!(mss.mss, Some(1460));
    }
}

// shows: MUST-6, MUST-68
#[test]
fn unknown_options_are_passed_over_by_their_length() {
    for kind in [6, 7, 9, 19, 27, 30, 34, 69, 128, 255] {
        for len in 2..=20 {
            let mut bytes = vec![kind, len];
            bytes.extend((2..len).map(|_| MSS));
            bytes.extend([MSS, 4, 0x05, 0xb4]);
            let options = TcpOptions::parse(&bytes, Flags::SYN);
            assert_eq!(
                options,
                TcpOptions { mss: Some(1460), ..TcpOptions::default() },
                "kind {kind} of {len}"
            );
        }
    }
}

// shows: MUST-7
#[test]
fn illegal_length_ends_the_reading_and_keeps_what_was_read() {
    let good = [MSS, 4, 0x05, 0xb4];
    let expected = TcpOptions { mss: Some(1460), ..TcpOptions::default() };
    for kind in (2..=255).filter(|kind| *kind != MSS) {
        for bad in [[kind, 0].as_slice(), &[kind, 1], &[kind, 13, 0, 0, 0, 0, 0, 0], &[kind, 255], &[kind]] {
            let mut bytes = [&good, bad].concat();
            if bad.get(1).is_some_and(|len| *len < 2) {
                // Would be read if the walk continued.
                bytes.extend([SACK_PERMITTED, 2]);
            }
            assert_eq!(TcpOptions::parse(&bytes, Flags::SYN), expected, "{bytes:?}");
        }
    }
}

#[test]
fn end_stops_the_reading() {
    let options = TcpOptions::parse(&[SACK_PERMITTED, 2, END, MSS, 4, 0x05, 0xb4], Flags::SYN);
    assert_eq!(options, TcpOptions { sack_permitted: true, ..TcpOptions::default() });
}

#[test]
fn known_option_of_a_wrong_length_is_passed_over() {
    for (kind, right) in [(MSS, 4), (WINDOW_SCALE, 3), (SACK_PERMITTED, 2), (TIMESTAMPS, 10)] {
        for len in (2..=20u8).filter(|len| *len != right) {
            let mut bytes = vec![kind, len];
            bytes.resize(usize::from(len), 7);
            bytes.extend([KIND_RATE_REQUEST, 4, 0x00, 0xac]);
            let expected = TcpOptions { rate_request: Some(RateRequest::Offer), ..TcpOptions::default() };
            assert_eq!(TcpOptions::parse(&bytes, Flags::SYN), expected, "kind {kind} of {len}");
        }
    }
}

#[test]
fn wrong_length_does_not_take_back_a_right_one() {
    let bytes = [TIMESTAMPS, 10, 0, 0, 0, 1, 0, 0, 0, 2, TIMESTAMPS, 3, 0];
    assert_eq!(TcpOptions::parse(&bytes, LATER).timestamps, Some(TIMESTAMPS_1_2));
}

#[test]
fn option_that_comes_twice_counts_as_it_came_last() {
    let options = TcpOptions::parse(&[MSS, 4, 0x05, 0xb4, MSS, 4, 0x02, 0x18], Flags::SYN);
    assert_eq!(options.mss, Some(536));
}

#[test]
fn sack_has_one_to_four_whole_blocks() {
    for len in 2..=40u8 {
        let mut bytes = vec![SACK, len];
        bytes.resize(usize::from(len), 1);
        let expected = match len {
            10 | 18 | 26 | 34 => usize::from(len - 2) / 8,
            _ => 0,
        };
        assert_eq!(TcpOptions::parse(&bytes, LATER).sack.len(), expected, "length {len}");
    }
}

#[test]
fn window_scale_above_14_is_taken_as_14() {
    for (shift, taken) in [(0, 0), (13, 13), (14, 14), (15, 14), (255, 14)] {
        let options = TcpOptions::parse(&[WINDOW_SCALE, 3, shift], Flags::SYN);
        assert_eq!(options.window_scale, Some(taken));
    }
}

#[test]
fn options_mean_nothing_on_the_wrong_segment() {
    let of_syn = [MSS, 4, 5, 0xb4, WINDOW_SCALE, 3, 7, SACK_PERMITTED, 2, KIND_RATE_REQUEST, 4, 0x00, 0xac];
    assert_eq!(TcpOptions::parse(&of_syn, LATER), TcpOptions::default());
    let of_later = [SACK, 10, 0, 0, 0, 1, 0, 0, 0, 2, KIND_RATE_REQUEST, 5, 0x00, 0xac, 3];
    assert_eq!(TcpOptions::parse(&of_later, Flags::SYN), TcpOptions::default());
}

#[test]
fn syn_decides_whether_the_hopwise_option_offers_or_tells() {
    let bytes = [KIND_HOPWISE, 5, 0x48, 0x57, 0];
    let offer = HopwiseOption::Offer(OfferFlags(0));
    assert_eq!(TcpOptions::parse(&bytes, Flags::SYN | Flags::ACK).hopwise, Some(offer));
    let nothing_told = HopwiseOption::Notes(Notes::default());
    assert_eq!(TcpOptions::parse(&bytes, LATER).hopwise, Some(nothing_told));
}

#[test]
fn experimental_options_of_others_or_of_a_wrong_length_are_passed_over() {
    let read = |bytes: &[u8], flags| {
        let options = TcpOptions::parse(bytes, flags);
        (options.hopwise, options.rate_request)
    };
    for bytes in [
        [KIND_HOPWISE, 5, 0x48, 0x58, 1].as_slice(),
        &[KIND_HOPWISE, 5, 0x00, 0xac, 1],
        &[KIND_HOPWISE, 2],
        &[KIND_HOPWISE, 4, 0x48, 0x57],
        &[KIND_HOPWISE, 6, 0x48, 0x57, 1, 1],
        &[KIND_RATE_REQUEST, 4, 0x48, 0x57],
        &[KIND_RATE_REQUEST, 3, 0x00],
        &[KIND_RATE_REQUEST, 5, 0x00, 0xac, 1],
    ] {
        assert_eq!(read(bytes, Flags::SYN), (None, None), "{bytes:?}");
    }
    for bytes in [
        // One byte short of the announced length, one too many, and an unknown bit, alone or not.
        [KIND_HOPWISE, 5, 0x48, 0x57, 8].as_slice(),
        &[KIND_HOPWISE, 6, 0x48, 0x57, 1, 1],
        &[KIND_HOPWISE, 7, 0x48, 0x57, 2, 1, 1],
        &[KIND_HOPWISE, 8, 0x48, 0x57, 7, 1, 1, 1],
        &[KIND_HOPWISE, 6, 0x48, 0x57, 8, 1],
        &[KIND_RATE_REQUEST, 4, 0x00, 0xac],
        &[KIND_RATE_REQUEST, 6, 0x00, 0xac, 1, 1],
    ] {
        assert_eq!(read(bytes, LATER), (None, None), "{bytes:?}");
    }
}

#[test]
fn rate_is_the_high_seven_bits() {
    let options = TcpOptions::parse(&[KIND_RATE_REQUEST, 5, 0x00, 0xac, 0x07], LATER);
    assert_eq!(options.rate_request, Some(RateRequest::Ask(3)));
    let options = TcpOptions { rate_request: Some(RateRequest::Ask(0xff)), ..TcpOptions::default() };
    assert_eq!(written(&options)[4], 0xfe);
}

fn kind() -> impl Strategy<Value = u8> {
    prop::sample::select(vec![END, NOP, MSS, WINDOW_SCALE, SACK_PERMITTED, SACK, TIMESTAMPS, 30, 253, 254])
}

proptest! {
    #![proptest_config(testing::cases(256))]

    #[test]
    fn syn_options_come_back(options in testing::options_of_syn()) {
        prop_assert_eq!(TcpOptions::parse(&written(&options), Flags::SYN), options);
    }

    #[test]
    fn later_options_come_back_but_for_sack_blocks_without_room(
        options in testing::options_of_later_segment(),
    ) {
        let bytes = written(&options);
        let read = TcpOptions::parse(&bytes, LATER);
        prop_assert_eq!(&read.sack[..], &options.sack[..read.sack.len()]);
        if read.sack.len() < options.sack.len() {
            prop_assert!(bytes.len() + SACK_BLOCK_LEN > MAX_OPTIONS_LEN, "one more would have fitted");
        }
        prop_assert_eq!(TcpOptions { sack: options.sack.clone(), ..read }, options);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in testing::bytes(MAX_OPTIONS_LEN), flags: u8) {
        let options = TcpOptions::parse(&bytes, Flags(flags));
        // The options that were read can be written, and are then read the same.
        let mut out = [0; MAX_OPTIONS_LEN];
        let len = options.write(&mut out);
        let again = TcpOptions::parse(&out[..len], Flags(flags));
        prop_assert_eq!(TcpOptions { sack: options.sack.clone(), ..again }, options);
    }

    #[test]
    fn any_option_list_is_read_without_a_panic(
        list in prop::collection::vec((kind(), 0u8..12), 0..12),
        flags: u8,
    ) {
        let mut bytes = Vec::new();
        for (kind, len) in list {
            bytes.extend([kind, len]);
            bytes.extend((2..len).map(|index| [0x48, 0x57, 7, 1][usize::from(index - 2) % 4]));
        }
        bytes.truncate(MAX_OPTIONS_LEN);
        TcpOptions::parse(&bytes, Flags(flags));
    }
}
