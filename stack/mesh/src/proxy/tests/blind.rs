//! Segments of a host that does not see the flow: addresses and ports are right, and numbers are guessed.

use std::collections::{BTreeSet, VecDeque};

use super::*;

/// Numbers spread over the whole space, by an odd multiplier.
fn guesses() -> impl Iterator<Item = u32> + Clone {
    (1_u32..40)
        .map(|nth| nth.wrapping_mul(0x9e37_79b9))
        .filter(|guess| (1 << 20..u32::MAX - (1 << 20)).contains(guess))
}

/// The ACKs that the base station sends in the mobile's name when its link fades.
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
    // An ACK of it does not count, either.
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

/// A proxy that restarts, or a full queue of the kernel, lets packets pass by.
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
        // `split` cuts no flow whose beginning it did not see.
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

/// RFC 5961 §3.2: a number within the window is not enough.
#[test]
fn a_blind_rst_ends_no_flow_unless_its_number_is_the_next() {
    for (from, next) in [(Side::Fixed, 3_000), (Side::Mobile, 1)] {
        let mut path = Path::new("m-tcp");
        path.syns(ms(0));
        for packet in [path.data(1), path.data(2)] {
            path.carry(ms(1), Side::Fixed, &packet);
        }
        let ack = path.ack(3);
        path.carry(ms(2), Side::Mobile, &ack);
        let key = FlowKey { mobile: path.mobile, fixed: path.fixed };
        let has_ended = |path: &mut Path, seq| {
            let reset = path.segment(from, seq, 0, Flags::RST, 0);
            path.carry(ms(3), from, &reset);
            path.proxy.flows.get(&key).is_some_and(ProxyFlow::has_ended)
        };
        for seq in (1..50).map(|nth| next + nth * 1_000).chain([next + 1]) {
            assert!(!has_ended(&mut path, seq), "{from:?} {seq}");
        }
        assert_eq!(path.proxy.counts().unfit, 0);
        assert!(has_ended(&mut path, next), "{from:?}");
    }
}

#[test]
fn one_made_up_segment_without_timestamps_takes_the_agent_from_no_flow() {
    for (from, guess) in ENDS.into_iter().flat_map(|from| guesses().map(move |guess| (from, guess))) {
        let mut path = Path::new("ack-hold:mode=kick");
        path.has_timestamps = false;
        let packet = path.segment(from, guess, guess.rotate_left(9), Flags::ACK, 0);
        path.carry(ms(0), from, &packet);
        assert_eq!(path.proxy.counts().unserved, 1);
        path.has_timestamps = true;
        Bulk::new(Side::Fixed).run(&mut path, 300);
        assert_eq!(path.proxy.counts().unserved, 0, "{guess:#x} of {from:?}");
    }
}

/// Each end's first number. The mobile's numbers wrap in most tests.
const FIRST: [u32; 2] = [999, u32::MAX - 2_500];

fn first(side: Side) -> u32 {
    FIRST[side as usize]
}

/// A segment by offsets from each end's first number: 1 is the first byte of data.
fn at(path: &mut Path, from: Side, (seq, ack): (u32, u32), flags: Flags, len: usize) -> Vec<u8> {
    let ack = if flags.contains(Flags::ACK) { first(from.other()).wrapping_add(ack) } else { 0 };
    path.segment(from, first(from).wrapping_add(seq), ack, flags, len)
}

fn carry_at(path: &mut Path, from: Side, place: (u32, u32), flags: Flags, len: usize) {
    let packet = at(path, from, place, flags, len);
    assert_eq!(path.carry(ms(1), from, &packet), [(from.other(), packet)]);
}

const ENDS: [Side; 2] = [Side::Fixed, Side::Mobile];
const ANSWER: Flags = Flags(Flags::SYN.0 | Flags::ACK.0);

/// Sends segments of guessed numbers in one end's name, for all kinds and guesses. All pass.
fn guess_in_the_name_of(path: &mut Path, from: Side) -> u64 {
    let kinds = [Flags::ACK, Flags::PSH, Flags::SYN, ANSWER, Flags::RST, Flags::RST | Flags::ACK, Flags::FIN];
    for (guess, flags) in guesses().flat_map(|guess| kinds.map(|flags| (guess, flags))) {
        for len in [0, SEGMENT] {
            let packet = path.segment(from, guess, guess.rotate_left(9), flags, len);
            assert_eq!(path.carry(ms(1), from, &packet), [(from.other(), packet)]);
        }
    }
    2 * (kinds.len() * guesses().count()) as u64
}

/// Both ends send data and acknowledge it. The base station believes all of it, and knows the mobile's numbers.
fn check_that_it_is_followed(path: &mut Path, opener: Side) {
    let unfit = path.proxy.counts().unfit;
    carry_at(path, opener, (1, 1), Flags::ACK, 0);
    for nth in 0..3 {
        let place = 1 + nth * SEGMENT as u32;
        carry_at(path, Side::Fixed, (place, place), Flags::ACK, SEGMENT);
        let ack = at(path, Side::Mobile, (place, place + SEGMENT as u32), Flags::ACK, SEGMENT);
        assert_eq!(path.carry(ms(1), Side::Mobile, &ack), [(Side::Fixed, ack)]);
    }
    let ack = at(path, Side::Mobile, (3_001, 3_001), Flags::ACK, 0);
    path.carry(ms(1), Side::Mobile, &ack);
    let counts = path.proxy.counts();
    assert_eq!((counts.unfit, counts.flows, counts.unserved), (unfit, 1, 0), "{opener:?}");
    let said = path.gone(ms(2));
    let [(Side::Fixed, said)] = &said[..] else { panic!("{said:?}") };
    let newest = first(Side::Mobile).wrapping_add(3_001);
    assert_eq!((age(said).0, said_in(said).0), (newest, first(Side::Fixed) + 3_001), "{opener:?}");
}

/// RFC 9293 §3.10.7.3.
#[test]
fn before_a_syn_is_answered_only_what_acknowledges_it_is_believed() {
    for (opener, blind) in ENDS.into_iter().flat_map(|opener| ENDS.map(|blind| (opener, blind))) {
        let mut path = Path::new("m-tcp");
        carry_at(&mut path, opener, (0, 0), Flags::SYN, 0);
        let guesses = guess_in_the_name_of(&mut path, blind);
        assert_eq!(path.proxy.counts().unfit, guesses, "{opener:?} opened, {blind:?}");
        carry_at(&mut path, opener, (0, 0), Flags::SYN, 0);
        carry_at(&mut path, opener.other(), (0, 1), ANSWER, 0);
        // Until the opener has answered.
        let guesses = guesses + guess_in_the_name_of(&mut path, blind);
        let unfit = path.proxy.counts().unfit;
        assert_eq!(unfit, guesses, "{opener:?} opened, {blind:?}");
        check_that_it_is_followed(&mut path, opener);
    }
}

/// An attacker can come first, too: the answer shows which SYN was real.
#[test]
fn what_was_made_up_before_a_syn_is_forgotten_when_it_is_answered() {
    for (opener, blind) in ENDS.into_iter().flat_map(|opener| ENDS.map(|blind| (opener, blind))) {
        for flags in [Flags::SYN, ANSWER, Flags::ACK] {
            let mut path = Path::new("m-tcp");
            path.has_timestamps = false;
            let packet = path.segment(blind, 1 << 29, 1 << 28, flags, SEGMENT);
            path.carry(ms(0), blind, &packet);
            path.has_timestamps = true;
            carry_at(&mut path, opener, (0, 0), Flags::SYN, 0);
            carry_at(&mut path, opener.other(), (0, 1), ANSWER, 0);
            check_that_it_is_followed(&mut path, opener);
        }
    }
}

/// Any of them can be the one that the other end answers.
#[test]
fn made_up_syns_beside_that_of_a_flow_do_not_hide_its_beginning() {
    for (opener, many) in ENDS.into_iter().flat_map(|opener| [2, 3, 4_000].map(|many| (opener, many))) {
        for (data, ack) in [(0, 1), (SEGMENT, 1), (SEGMENT, 500), (SEGMENT, SEGMENT as u32 + 1)] {
            let mut path = Path::new("m-tcp");
            carry_at(&mut path, opener, (1 << 30, 0), Flags::SYN, 0);
            carry_at(&mut path, opener, (0, 0), Flags::SYN, data);
            for nth in 1..many {
                carry_at(&mut path, opener, ((1 << 30) + nth, 0), Flags::SYN, 0);
            }
            carry_at(&mut path, opener.other(), (0, ack), ANSWER, 0);
            let is_whole = path.proxy.flows.values().all(|flow| flow.facts.is_whole());
            assert!(is_whole, "{opener:?} opened, {many} SYNs, {data} bytes, {ack} acknowledged");
            check_that_it_is_followed(&mut path, opener);
        }
    }
}

/// RFC 9293 §3.10.7.3: the opener ignores such data, and gets it again.
#[test]
fn an_answer_that_data_of_its_side_overtakes_is_one_all_the_same() {
    for opener in ENDS {
        let mut path = Path::new("m-tcp");
        carry_at(&mut path, opener, (0, 0), Flags::SYN, 0);
        carry_at(&mut path, opener.other(), (1, 1), Flags::ACK, SEGMENT);
        carry_at(&mut path, opener.other(), (0, 1), ANSWER, 0);
        assert!(path.proxy.flows.values().all(|flow| flow.facts.is_whole()), "{opener:?} opened");
        check_that_it_is_followed(&mut path, opener);
    }
}

#[test]
fn a_flow_whose_answer_passed_by_is_followed_once_its_opener_has_gone_on() {
    for opener in ENDS {
        let mut path = Path::new("m-tcp");
        carry_at(&mut path, opener, (0, 0), Flags::SYN, 0);
        carry_at(&mut path, opener.other(), (1, 1), Flags::ACK, SEGMENT);
        check_that_it_is_followed(&mut path, opener);
    }
}

/// RFC 7413 §4: some of the data of a SYN can be acknowledged with it.
#[test]
fn an_answer_may_acknowledge_the_data_of_a_syn_or_leave_it_out() {
    for opener in ENDS {
        for (ack, unfit) in [(0, 1), (1, 0), (500, 0), (SEGMENT as u32 + 1, 0), (SEGMENT as u32 + 2, 1)] {
            let mut path = Path::new("m-tcp");
            carry_at(&mut path, opener, (0, 0), Flags::SYN, SEGMENT);
            carry_at(&mut path, opener.other(), (0, ack), ANSWER, 0);
            assert_eq!(path.proxy.counts().unfit, unfit, "{opener:?} opened, {ack}");
            if unfit == 0 {
                check_that_it_is_followed(&mut path, opener);
            }
        }
    }
}

/// A listener with cookies answers each SYN with another number. The opener takes the first answer.
#[test]
fn an_answer_replaces_another_until_an_end_has_gone_on_from_one() {
    for (opener, goes_on) in ENDS.into_iter().flat_map(|opener| ENDS.map(|goes_on| (opener, goes_on))) {
        let mut path = Path::new("m-tcp");
        let answer = |path: &mut Path, seq| {
            let ack = first(opener).wrapping_add(1);
            let packet = path.segment(opener.other(), seq, ack, ANSWER, 0);
            path.carry(ms(1), opener.other(), &packet);
        };
        for other in guesses() {
            carry_at(&mut path, opener, (0, 0), Flags::SYN, 0);
            answer(&mut path, other);
        }
        answer(&mut path, first(opener.other()));
        assert_eq!(path.proxy.counts().unfit, 0, "{opener:?} opened");
        carry_at(&mut path, goes_on, (1, 1), Flags::ACK, 0);
        // RFC 5961 §4.
        guesses().for_each(|other| answer(&mut path, other));
        assert_eq!(path.proxy.counts().unfit, guesses().count() as u64, "{opener:?} opened, {goes_on:?}");
        check_that_it_is_followed(&mut path, opener);
    }
}

/// RFC 9293 §3.5, figure 8.
#[test]
fn two_ends_that_open_at_once_are_followed() {
    for (opener, answers) in ENDS.into_iter().flat_map(|opener| ENDS.map(|answers| (opener, answers))) {
        let mut path = Path::new("m-tcp");
        for from in [opener, opener.other()] {
            carry_at(&mut path, from, (0, 0), Flags::SYN, 0);
        }
        for from in [answers, answers.other()] {
            carry_at(&mut path, from, (0, 1), ANSWER, 0);
        }
        check_that_it_is_followed(&mut path, opener);
    }
}

/// A proxy that starts in the middle of a flow knows nothing of it.
#[test]
fn one_made_up_segment_does_not_spoil_a_flow_whose_beginning_was_not_seen() {
    let kinds = [Flags::ACK, Flags::SYN, ANSWER];
    let blind = ENDS.into_iter().flat_map(|from| kinds.map(|flags| (from, flags)));
    for ((from, flags), sender) in blind.flat_map(|blind| ENDS.map(|sender| (blind, sender))) {
        for guess in guesses() {
            let mut path = Path::new("ack-hold:mode=kick");
            let packet = path.segment(from, guess, guess.rotate_left(9), flags, SEGMENT);
            path.carry(ms(0), from, &packet);
            let mut bulk = Bulk::new(sender);
            bulk.run(&mut path, 300);
            let unfit = path.proxy.counts().unfit;
            bulk.run(&mut path, 100);
            assert_eq!(path.proxy.counts().unfit, unfit, "{guess:#x} {flags} of {from:?}, {sender:?} sends");
        }
    }
}

/// One end sends as fast as it can. A step is the time of a segment.
struct Bulk {
    sender: Side,
    now: u32,
    next: u32,
    /// The arrival times of segments, and the numbers that leave the receiver, in order.
    on_the_way: VecDeque<(u32, u32)>,
    acks: VecDeque<(u32, u32)>,
    again: VecDeque<(u32, u32)>,
    arrived: BTreeSet<u32>,
    acked: u32,
    waits: bool,
}

impl Bulk {
    fn new(sender: Side) -> Bulk {
        let (on_the_way, acks, again, arrived) = Default::default();
        Bulk { sender, now: 0, next: 0, on_the_way, acks, again, arrived, acked: 0, waits: false }
    }

    /// Some are lost before the base station, and some after it.
    fn run(&mut self, path: &mut Path, steps: u32) {
        for _ in 0..steps {
            self.step(|from, packet, is_ack| {
                let packet = at(path, from, packet, Flags::ACK, if is_ack { 0 } else { SEGMENT });
                path.carry(ms(1), from, &packet);
            });
        }
    }

    /// Beside each step another host sends a segment in the sender's name.
    fn run_beside_a_blind_host(&mut self, path: &mut Path, steps: usize) {
        for guess in guesses().cycle().take(steps) {
            let packet = path.segment(self.sender, guess, guess.rotate_left(9), Flags::ACK, SEGMENT);
            path.carry(ms(1), self.sender, &packet);
            self.run(path, 1);
        }
    }

    fn pass_by(&mut self, steps: u32) {
        (0..steps).for_each(|_| self.step(|_, _, _| {}));
    }

    fn step(&mut self, mut carry: impl FnMut(Side, (u32, u32), bool)) {
        self.now += 1;
        let due = |waiting: &mut VecDeque<(u32, u32)>, now| {
            waiting.pop_front_if(|(at, _)| *at <= now).map(|(_, nth)| nth)
        };
        let place = |nth: u32| 1 + nth * SEGMENT as u32;
        let again = due(&mut self.again, self.now);
        let nth = again.unwrap_or(self.next);
        if again.is_none() {
            self.next += 1;
        }
        let (is_lost_before, is_lost_after) = (nth % 97 == 13, nth % 71 == 5);
        let is_lost = again.is_none() && (is_lost_before || is_lost_after);
        if is_lost {
            self.again.push_back((self.now + 40, nth));
        } else {
            self.on_the_way.push_back((self.now + 12, nth));
        }
        if again.is_some() || !is_lost_before {
            carry(self.sender, (place(nth), 1), false);
        }
        if let Some(nth) = due(&mut self.on_the_way, self.now) {
            self.arrive(nth);
        }
        while let Some(nth) = due(&mut self.acks, self.now) {
            carry(self.sender.other(), (1, place(nth)), true);
        }
    }

    /// The mobile's next numbers.
    fn of_the_mobile(&self) -> (u32, u32) {
        let (sent, arrived) = (1 + self.next * SEGMENT as u32, 1 + self.acked * SEGMENT as u32);
        if self.sender == Side::Mobile { (sent, 1) } else { (1, arrived) }
    }

    /// Every second segment in order is acknowledged, and each one out of order.
    fn arrive(&mut self, nth: u32) {
        let is_in_order = nth == self.acked;
        self.arrived.insert(nth);
        while self.arrived.remove(&self.acked) {
            self.acked += 1;
        }
        self.waits = is_in_order && self.arrived.is_empty() && !self.waits;
        if !self.waits {
            self.acks.push_back((self.now + 12, self.acked));
        }
    }
}

/// With dozens of segments in flight the ACKs lag behind the newest data.
#[test]
fn where_packets_of_a_bulk_flow_have_passed_by_both_ends_are_believed_again() {
    for (opener, sender) in ENDS.into_iter().flat_map(|opener| ENDS.map(|sender| (opener, sender))) {
        // At all phases of the losses.
        for passed_by in (400..500).step_by(7) {
            let mut path = Path::new("m-tcp");
            carry_at(&mut path, opener, (0, 0), Flags::SYN, 0);
            carry_at(&mut path, opener.other(), (0, 1), ANSWER, 0);
            // The windows of SYNs are small.
            for from in [opener, opener.other()] {
                carry_at(&mut path, from, (1, 1), Flags::ACK, 0);
            }
            let mut bulk = Bulk::new(sender);
            bulk.run(&mut path, 100);
            assert_eq!(path.proxy.counts().unfit, 0, "{opener:?} opened, {sender:?} sends");
            bulk.pass_by(passed_by);
            bulk.run(&mut path, 200);
            let unfit = path.proxy.counts().unfit;
            assert!(unfit > 0, "{passed_by} passed by");
            bulk.run(&mut path, 200);
            let label = format!("{passed_by} passed by, {opener:?} opened, {sender:?} sends");
            assert_eq!(path.proxy.counts().unfit, unfit, "{label}");
            let place = bulk.of_the_mobile();
            let ack = at(&mut path, Side::Mobile, place, Flags::ACK, 0);
            path.carry(ms(2), Side::Mobile, &ack);
            assert_eq!(fade(&mut path), [(said_in(&ack).0, 0)], "{label}");
        }
    }
}

#[test]
fn made_up_data_beside_that_of_a_bulk_flow_does_not_hide_what_both_ends_say() {
    for (opener, sender) in ENDS.into_iter().flat_map(|opener| ENDS.map(|sender| (opener, sender))) {
        let mut path = Path::new("m-tcp");
        carry_at(&mut path, opener, (0, 0), Flags::SYN, 0);
        carry_at(&mut path, opener.other(), (0, 1), ANSWER, 0);
        for from in [opener, opener.other()] {
            carry_at(&mut path, from, (1, 1), Flags::ACK, 0);
        }
        let mut bulk = Bulk::new(sender);
        bulk.run(&mut path, 100);
        bulk.pass_by(400);
        bulk.run_beside_a_blind_host(&mut path, 200);
        let unfit = path.proxy.counts().unfit;
        bulk.run_beside_a_blind_host(&mut path, 100);
        let more = path.proxy.counts().unfit - unfit;
        assert_eq!(more, 100, "made-up ones alone: {opener:?} opened, {sender:?} sends");
    }
}

/// The other end does not agree, however much gapless data the stream claims.
#[test]
fn a_stream_in_one_end_s_name_alone_is_not_believed() {
    for (blind, guess) in ENDS.into_iter().flat_map(|blind| guesses().map(move |guess| (blind, guess))) {
        let mut path = Path::new("m-tcp");
        carry_at(&mut path, Side::Fixed, (0, 0), Flags::SYN, 0);
        carry_at(&mut path, Side::Mobile, (0, 1), ANSWER, 0);
        carry_at(&mut path, Side::Fixed, (1, 1), Flags::ACK, 0);
        for nth in 0..100 {
            let seq = guess.wrapping_add(nth * SEGMENT as u32);
            let packet = path.segment(blind, seq, guess.rotate_left(9), Flags::ACK, SEGMENT);
            path.carry(ms(1), blind, &packet);
        }
        assert_eq!(path.proxy.counts().unfit, 100, "{guess:#x} of {blind:?}");
        check_that_it_is_followed(&mut path, Side::Fixed);
    }
}
