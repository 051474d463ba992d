//! Unexpected input of a base station: news out of order, a clock that jumps either way, and ECN marks. Further: ACKs
//! with lower numbers, other blocks or a smaller window.

use hopwise_core::wire::Ecn;

use super::*;

/// A flow whose ACKs are held: its link is going down.
fn holding() -> Path {
    holding_by("ack-hold:mode=cumulative")
}

fn holding_by(agent: &str) -> Path {
    let mut path = Path::new(agent);
    path.syns(ms(0));
    for nth in 1..=4 {
        let data = path.data(nth);
        path.carry(ms(10), Side::Fixed, &data);
    }
    let ack = path.ack(2);
    path.carry(ms(20), Side::Mobile, &ack);
    path.going_down(ms(30), SECONDS_10);
    path
}

fn to_fixed(left: Vec<(Side, Vec<u8>)>) -> Vec<Vec<u8>> {
    left.into_iter().filter(|(to, _)| *to == Side::Fixed).map(|(_, packet)| packet).collect()
}

/// An ACK with a window of its own.
fn ack_with(path: &mut Path, nth: u32, window: u16) -> Vec<u8> {
    path.clock += 1;
    let timestamps = Some(Timestamps { value: path.clock, echo: path.clock - 1 });
    let options = TcpOptions { timestamps, ..TcpOptions::default() };
    let (seq, ack) = (Seq(1), Seq(nth * SEGMENT as u32));
    Segment { seq, ack, window, options, ..Segment::between(path.mobile, path.fixed) }.packet()
}

#[test]
fn a_window_that_shrinks_and_blocks_that_change_wait_in_the_order_in_which_they_were_said() {
    let mut path = holding();
    let said = [
        ack_with(&mut path, 3, 900),
        ack_with(&mut path, 3, 200),
        with_blocks(&mut path, 3, 1),
        with_blocks(&mut path, 3, 2),
        ack_with(&mut path, 4, 0),
    ];
    for (later, ack) in (40..).zip(&said) {
        assert_eq!(path.carry(ms(later), Side::Mobile, ack), []);
    }
    path.gone(ms(50));
    assert_eq!(to_fixed(path.up(ms(60))), said);
}

#[test]
fn an_ack_that_says_less_passes_at_once_and_takes_nothing_along() {
    let mut path = holding();
    let newest = path.ack(3);
    assert_eq!(path.carry(ms(40), Side::Mobile, &newest), []);
    let old = path.ack(1);
    assert_eq!(path.carry(ms(41), Side::Mobile, &old), [(Side::Fixed, old.clone())]);
    path.gone(ms(50));
    assert_eq!(to_fixed(path.up(ms(60))), [newest]);
}

#[test]
fn marks_of_congestion_survive_the_cache_and_are_never_held() {
    let mut path = holding();
    path.gone(ms(50));
    let mut marked = path.data(5);
    // The byte that the network changes, and the header's checksum with it.
    marked[1] = (marked[1] & !3) | Ecn::Ce as u8;
    marked[10..12].fill(0);
    let sum = Sum::default().add(&marked[..20]).finish();
    marked[10..12].copy_from_slice(&sum.to_be_bytes());
    path.carry(ms(60), Side::Fixed, &marked);
    let echo = path.segment(Side::Mobile, 1, 4_000, Flags::ACK | Flags::ECE, 0);
    assert!(to_fixed(path.carry(ms(61), Side::Mobile, &echo)).contains(&echo));
    let left = path.up(ms(70));
    assert!(left.contains(&(Side::Mobile, marked)), "it goes on as it came");
}

#[test]
fn a_clock_that_jumps_ahead_in_the_middle_of_a_hold_lets_all_go_that_was_due() {
    let mut path = holding();
    let held: Vec<_> = (3..=4).map(|nth| path.ack(nth)).collect();
    for ack in &held {
        path.carry(ms(40), Side::Mobile, ack);
    }
    path.gone(ms(50));
    let day = ms(24 * 3_600_000);
    path.proxy.handle_timeout(day);
    assert_eq!(to_fixed(path.take_out(day)), held);
    assert_eq!(path.proxy.poll_timeout(), None, "nothing is due any more");
    // A timeout that comes early, or twice, has no effect.
    path.proxy.handle_timeout(day);
    assert_eq!(path.take_out(day), []);
}

#[test]
fn a_clock_that_goes_back_in_the_middle_of_a_hold_loses_and_invents_nothing() {
    for agent in ["ack-hold:mode=cumulative", "ack-hold:mode=corrected", "ack-hold:mode=paper"] {
        let mut path = holding_by(agent);
        let held: Vec<_> = (3..=5).map(|nth| path.ack(nth)).collect();
        assert_eq!(path.carry(ms(40), Side::Mobile, &held[0]), []);
        path.gone(ms(50));
        let data = path.data(6);
        for (at, from, packet) in
            [(1, Side::Mobile, &held[1]), (0, Side::Fixed, &data), (2, Side::Mobile, &held[2])]
        {
            assert_eq!(path.carry(ms(at), from, packet), [], "{agent}");
        }
        // No packet is due on a clock that shows less than at the time of planning.
        path.proxy.handle_timeout(ms(2));
        assert_eq!(path.take_out(ms(2)), [], "{agent}");
        let left = path.up(ms(3));
        assert_eq!(to_fixed(left.clone()), held, "{agent}");
        assert!(left.contains(&(Side::Mobile, data)), "{agent}");
        assert_eq!(path.proxy.counts().kept_bytes, 0, "{agent}");
    }
}

#[test]
fn news_out_of_order_twice_and_of_nobody_lose_nothing() {
    let mut path = holding();
    let ack = path.ack(3);
    path.carry(ms(40), Side::Mobile, &ack);
    let stranger = IpAddr::from([10, 0, 0, 77]);
    for event in [LinkEvent::Gone { peer: stranger }, LinkEvent::Up { peer: stranger }] {
        assert_eq!(path.tell(ms(41), &event), []);
    }
    path.gone(ms(50));
    assert_eq!(path.gone(ms(51)), []);
    assert_eq!(to_fixed(path.going_down(ms(52), Duration::MAX)), Vec::<Vec<u8>>::new());
    assert_eq!(to_fixed(path.up(ms(60))), [ack]);
    assert_eq!(path.up(ms(61)), []);
    assert_eq!(path.going_down(ms(62), Duration::ZERO), []);
    assert_eq!(to_fixed(path.up(ms(63))), Vec::<Vec<u8>>::new());
    let next = path.ack(4);
    assert_eq!(path.carry(ms(70), Side::Mobile, &next), [(Side::Fixed, next.clone())]);
}
