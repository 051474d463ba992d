//! Segments of nobody who sees the flow: addresses and ports are right, and numbers are guessed.

use super::*;

/// Numbers all over the space, in the order of a multiplier that is odd.
fn guesses() -> impl Iterator<Item = u32> {
    (1_u32..40)
        .map(|nth| nth.wrapping_mul(0x9e37_79b9))
        .filter(|guess| (1 << 20..u32::MAX - (1 << 20)).contains(guess))
}

/// What the base station says in the mobile's name when its link fades, and what it keeps of data then.
fn fade(path: &mut Path) -> Vec<(u32, u16)> {
    let said = path.gone(ms(50));
    said.iter().map(|(_, packet)| said_in(packet)).map(|(number, window, _)| (number, window)).collect()
}

/// RFC 9293 §3.10.7.4, RFC 5961 §5.2.
#[test]
fn an_ack_of_what_was_not_sent_or_is_not_in_the_window_passes_and_is_not_believed() {
    type Blind = fn(&mut Path, u32) -> Vec<u8>;
    let of_ack: Blind = |path, guess| path.segment(Side::Mobile, path.next, guess, Flags::ACK, 0);
    let of_seq: Blind = |path, guess| path.segment(Side::Mobile, guess, 2_000, Flags::ACK, 0);
    for blind in [of_ack, of_seq] {
        let mut path = Path::new("m-tcp");
        path.syns(ms(0));
        for packet in [path.data(1), path.data(2)] {
            path.carry(ms(1), Side::Fixed, &packet);
        }
        let ack = path.ack(2);
        path.carry(ms(2), Side::Mobile, &ack);
        for guess in guesses() {
            let packet = blind(&mut path, guess);
            assert_eq!(path.carry(ms(3), Side::Mobile, &packet), [(Side::Fixed, packet)]);
        }
        assert_eq!(path.proxy.counts().unfit, guesses().count() as u64);
        let ack = path.ack(3);
        path.carry(ms(4), Side::Mobile, &ack);
        assert_eq!(fade(&mut path), [(3_000, 0)]);
    }
}

#[test]
fn data_that_the_mobile_left_no_window_for_is_not_believed() {
    let mut path = Path::new("ack-hold:mode=kick");
    path.syns(ms(0));
    let data = path.data(1);
    path.carry(ms(1), Side::Fixed, &data);
    for guess in guesses() {
        let packet = path.segment(Side::Fixed, guess, 1, Flags::ACK, SEGMENT);
        assert_eq!(path.carry(ms(2), Side::Fixed, &packet), [(Side::Mobile, packet)]);
    }
    // An ACK of it is none, either.
    for guess in guesses() {
        let packet = path.segment(Side::Mobile, 1, guess - 1, Flags::ACK, 0);
        path.carry(ms(3), Side::Mobile, &packet);
    }
    let ack = path.ack(2);
    path.carry(ms(4), Side::Mobile, &ack);
    path.gone(ms(5));
    let data = path.data(2);
    assert!(path.carry(ms(6), Side::Fixed, &data).is_empty());
    assert_eq!(path.proxy.counts().unfit, 2 * guesses().count() as u64);
}

/// A proxy that starts anew, or a queue of the kernel that was full, has packets pass by.
#[test]
fn where_packets_have_passed_by_both_ends_are_believed_together() {
    let mut path = Path::new("m-tcp");
    path.syns(ms(0));
    let data = path.data(1);
    path.carry(ms(1), Side::Fixed, &data);
    path.next = 5_000_000;
    for nth in [40_000, 40_001, 40_002] {
        let data = path.segment(Side::Fixed, nth * 1_000, path.next, Flags::ACK, SEGMENT);
        path.carry(ms(2), Side::Fixed, &data);
        let ack = path.ack(nth + 1);
        path.carry(ms(2), Side::Mobile, &ack);
    }
    assert_eq!(path.proxy.counts().unfit, 1, "the first of them alone");
    assert_eq!(fade(&mut path), [(40_003_000, 0)]);
}

/// RFC 5961 §4: a SYN ends nothing.
#[test]
fn a_blind_syn_ends_no_flow() {
    for agent in ["m-tcp", "split"] {
        let mut path = Path::new(agent);
        // Of a flow whose beginning was not seen `split` makes no other.
        if agent == "m-tcp" {
            path.syns(ms(0));
        }
        for packet in [path.data(1), path.data(2)] {
            path.carry(ms(1), Side::Fixed, &packet);
        }
        let ack = path.ack(3);
        path.carry(ms(2), Side::Mobile, &ack);
        for from in [Side::Fixed, Side::Mobile] {
            for guess in guesses() {
                let syn = path.segment(from, guess, 0, Flags::SYN, 0);
                assert_eq!(path.carry(ms(3), from, &syn), [(from.other(), syn)], "{agent}");
            }
        }
        let counts = path.proxy.counts();
        assert_eq!((counts.flows, counts.cut, counts.gave_way), (1, 0, 0), "{agent}");
        let data = path.data(3);
        assert_eq!(path.carry(ms(4), Side::Fixed, &data), [(Side::Mobile, data)]);
        if agent == "m-tcp" {
            assert_eq!(fade(&mut path), [(3_000, 0)]);
        }
    }
}
