//! ACKs that are said in the mobile's name.

use super::*;

#[test]
fn a_zero_window_in_the_mobile_s_name_has_its_newest_number_and_a_right_checksum() {
    for mut path in [Path::new("freeze"), Path::v6("freeze")] {
        path.syns(ms(0));
        let ack = path.ack(3);
        path.carry(ms(1), Side::Mobile, &ack);
        let left = path.going_down(ms(2), SECONDS_10);
        let [(Side::Fixed, closing)] = &left[..] else { panic!("{left:?}") };
        let read = read::read(closing, Side::Mobile, Checksums::Verify).expect("a segment that is whole");
        assert_eq!((read.tcp.ack, read.tcp.window), (Seq(3_000), 0));
        assert_eq!((read.key.mobile, read.key.fixed), (path.mobile, path.fixed));
        path.gone(ms(3));
        // The mobile's window, in an ACK that has then left twice.
        let opened = path.up(ms(4));
        let [(Side::Fixed, opening)] = &opened[..] else { panic!("{opened:?}") };
        let read = read::read(opening, Side::Mobile, Checksums::Verify).expect("a segment that is whole");
        assert_eq!((read.tcp.ack, read.tcp.window), (Seq(3_000), WINDOW));
        // No ACK could open a window again that was closed now.
        assert_eq!([path.gone(ms(5)), path.up(ms(6))], [vec![], vec![]]);
        // An ACK that left only with a window of zero has not left as it was.
        path.gone(ms(7));
        let ack = path.ack(4);
        assert_eq!(path.carry(ms(8), Side::Mobile, &ack).len(), 1);
        assert_eq!(path.up(ms(9)).len(), 2);
    }
}

#[test]
fn a_window_closed_with_a_number_that_came_with_data_is_opened_again() {
    let mut path = Path::new("m-tcp");
    path.syns(ms(0));
    let (data, ack) = (path.data(1), path.ack(2));
    path.carry(ms(1), Side::Fixed, &data);
    let numbers = |left: Vec<(Side, Vec<u8>)>| -> Vec<(u32, u16)> {
        left.iter().map(|(_, packet)| said_in(packet)).map(|(number, window, _)| (number, window)).collect()
    };
    assert_eq!(numbers(path.carry(ms(2), Side::Mobile, &ack)), [(1_999, WINDOW)]);
    let reply = path.reply(3);
    assert_eq!(path.carry(ms(3), Side::Mobile, &reply), [(Side::Fixed, reply)]);
    for at in [4, 6] {
        assert_eq!(numbers(path.gone(ms(at))), [(3_000, 0)]);
        assert_eq!(numbers(path.up(ms(at + 1))), [(3_000, WINDOW)]);
    }
    // No ACK could open a window again that was closed now.
    assert_eq!([path.gone(ms(8)), path.up(ms(9))], [vec![], vec![]]);
}

/// A segment's first number and the mobile's clock: the fixed end recognises old segments by both.
pub(super) fn age(packet: &[u8]) -> (u32, u32) {
    let read = read::read(packet, Side::Mobile, Checksums::Verify).expect("a segment that is whole");
    (read.tcp.seq.0, read.tcp.options.timestamps.expect("timestamps").value)
}

/// The highest of both that the mobile has sent by then; a RST does not count.
pub(super) fn newest(before: (u32, u32), packet: &[u8]) -> (u32, u32) {
    let read = read::read(packet, Side::Mobile, Checksums::Verify).expect("a segment that is whole");
    if read.tcp.flags.contains(Flags::RST) {
        return before;
    }
    (before.0.max((read.tcp.seq + read.tcp.sequence_len()).0), before.1.max(age(packet).1))
}

#[test]
fn what_is_said_in_the_mobile_s_name_is_no_older_than_the_data_that_it_has_sent() {
    let mut path = Path::new("freeze");
    path.syns(ms(0));
    let ack = path.ack(2);
    path.carry(ms(1), Side::Mobile, &ack);
    let late = path.ack(3);
    let mut reply = path.reply(3);
    reply[34..36].copy_from_slice(&(WINDOW / 2).to_be_bytes());
    sum_again(&mut reply);
    path.carry(ms(2), Side::Mobile, &reply);
    let newest = (1_001, age(&reply).1);
    let closed = path.gone(ms(3));
    let opened = path.up(ms(4));
    for (left, window) in [(&closed, 0), (&opened, WINDOW / 2)] {
        assert!(!left.is_empty());
        for (_, packet) in left {
            assert_eq!((age(packet), said_in(packet).0, said_in(packet).1), (newest, 3_000, window));
        }
    }
    // An ACK that was late on the radio makes no later one older, and is no new one. The ACK written with that number
    // has left twice.
    assert_eq!(opened.len(), 2);
    assert_eq!(path.carry(ms(5), Side::Mobile, &late), [(Side::Fixed, late)]);
    assert_eq!([path.gone(ms(6)), path.up(ms(7))], [vec![], vec![]]);
}

#[test]
fn an_ack_that_the_radio_brings_twice_is_said_again_once() {
    let mut path = Path::new("ack-hold:mode=kick");
    path.syns(ms(0));
    let (data, ack) = (path.data(1), path.ack(2));
    path.carry(ms(1), Side::Fixed, &data);
    for (at, again) in [(2, 1), (5, 0)] {
        path.carry(ms(at), Side::Mobile, &ack);
        path.gone(ms(at + 1));
        assert_eq!(path.up(ms(at + 2)).len(), again);
    }
}

#[test]
fn an_ack_is_not_said_again_once_data_of_the_mobile_s_has_passed_it() {
    let again = |after: fn(&mut Path) -> Vec<u8>| {
        let mut path = Path::new("ack-hold:mode=kick");
        path.syns(ms(0));
        let (data, ack) = (path.data(1), path.ack(2));
        path.carry(ms(1), Side::Fixed, &data);
        path.carry(ms(2), Side::Mobile, &ack);
        let last = after(&mut path);
        path.carry(ms(3), Side::Mobile, &last);
        path.gone(ms(4));
        (path.up(ms(5)), last)
    };
    let (left, last) = again(|path| path.ack(3));
    assert_eq!(left, [(Side::Fixed, last)]);
    // The fixed end would take it for a late one.
    assert_eq!(again(|path| path.reply(3)).0, []);
}

#[test]
fn only_an_ack_that_waits_for_room_is_replaced_by_a_newer_one() {
    let mut path = Path::new("ack-filter");
    path.syns(ms(0));
    let acks = [2, 3, 4].map(|nth| path.ack(nth));
    for ack in &acks {
        path.proxy.handle_packet(ms(1), &Rx::new(MOBILE, ack));
    }
    assert_eq!(path.take_out(ms(2)), [(Side::Fixed, acks[2].clone())]);
    assert_eq!(path.proxy.drops(DropReason::Replaced), 2);
}
