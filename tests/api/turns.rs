//! Flows of one host to one peer that send their trains in turn.

use std::collections::BTreeMap;
use std::time::Duration;

use hopwise_core::agent::{Path, PathEvent, Turn};
use hopwise_core::endpoint::{ConnId, PathSeam};
use hopwise_core::tcp::{BufferLimits, TcpConfig};
use hopwise_core::wire::Flags;
use hopwise_core::{Endpoint, Machine, Rx, Seq};
use hopwise_testing::memory::{End, LINK};
use proptest::prelude::*;

use super::flows::{Flows, LITTLE};
use super::net::{B, B2, Sent, ms, pattern, secs, segment, segment_with_window};

/// The number of segments that left while two other flows had unacknowledged data. One train may arrive while another
/// leaves.
fn overlaps(sent: &[Sent]) -> usize {
    let (mut in_flight, mut overlaps) = (BTreeMap::<u16, (Seq, Seq)>::new(), 0);
    for sent in sent {
        let segment = sent.tcp();
        if sent.from == End::A && !segment.payload.is_empty() {
            let end = segment.seq + segment.payload.len() as u32;
            let is_other = |port: u16, una: Seq, nxt: Seq| port != segment.src_port && una < nxt;
            let others = in_flight.iter().filter(|(port, (una, nxt))| is_other(**port, *una, *nxt));
            overlaps += usize::from(others.count() > 1);
            let (_, nxt) = in_flight.entry(segment.src_port).or_insert((segment.seq, end));
            *nxt = (*nxt).max(end);
        } else if let Some((una, _)) = in_flight.get_mut(&segment.dst_port) {
            *una = (*una).max(segment.ack);
        }
    }
    overlaps
}

#[test]
fn one_flow_at_a_time_has_a_train_under_way_and_all_carry_as_much() {
    let mut flows = Flows::of_trains(4);
    flows.run(secs(20));
    flows.net.sent();
    flows.got.clear();
    for _ in 0..100 {
        flows.run(ms(400));
        let (holding, waiting) = flows.holding_and_waiting();
        // A flow that has filled its peer's window wants no turn until there is room.
        assert!(holding == 1 && waiting >= 2, "{:?}", flows.turns());
    }
    assert_eq!(overlaps(&flows.net.sent()), 0);
    let (least, most) = (flows.got.values().min(), flows.got.values().max());
    assert_eq!(flows.got.len(), 4);
    assert!(10 * least.expect("flows") > 8 * most.expect("flows"), "{:?}", flows.got);
}

#[test]
fn flows_that_take_no_turns_send_all_the_time() {
    let mut flows = Flows::new(&TcpConfig::modern());
    (0..3).for_each(|_| {
        flows.open("[train:turns=off]", B);
    });
    flows.run(secs(20));
    flows.net.sent();
    flows.run(secs(5));
    assert_eq!(flows.turns(), [Turn::Free; 3]);
    assert!(overlaps(&flows.net.sent()) > 100);
}

#[test]
fn flows_to_other_peers_and_of_other_agents_hold_nobody_up() {
    let mut flows = Flows::new(&TcpConfig::modern());
    for (senders, to) in [("[train]", B), ("[train]", B2), ("[newreno]", B)] {
        flows.open(senders, to);
    }
    flows.run(secs(10));
    assert_eq!(flows.turns()[..2], [Turn::Alone; 2]);
    assert_eq!(flows.turns()[2], Turn::Free);
}

#[test]
fn a_flow_that_is_left_alone_waits_no_more() {
    let mut flows = Flows::of_trains(3);
    flows.run(secs(10));
    let now = flows.net.now();
    let (holder, mut others) = (flows.holder(), flows.clients.clone());
    others.retain(|id| *id != holder);
    flows.net.hosts.a.abort(now, holder).expect("open");
    flows.clients.clone_from(&others);
    let next = flows.holder();
    others.retain(|id| *id != next);
    assert_eq!(flows.turn(others[0]), Turn::Waiting);
    flows.net.hosts.a.abort(now, next).expect("open");
    assert_eq!(flows.turn(others[0]), Turn::Alone);
    flows.clients = others;
    let before = flows.got.clone();
    flows.run(secs(2));
    let port = flows.port(flows.clients[0]);
    assert!(flows.got[&port] > before[&port] + 100_000, "{before:?} {:?}", flows.got);
}

/// The time that a new flow takes for a page of 60 kB.
fn time_of_page(flows: &mut Flows) -> Duration {
    let (began, page) = (flows.net.now(), 60_000);
    let id = flows.open("[train]", B);
    flows.run(ms(100));
    let (port, now) = (flows.port(id), flows.net.now());
    assert_eq!(flows.net.hosts.a.send(now, id, &pattern(page, 1)), Ok(page));
    while flows.got.get(&port) != Some(&page) {
        flows.run(ms(10));
        assert!(flows.net.now() < began + secs(60), "{:?}", flows.got);
    }
    flows.net.now().since(began)
}

/// A page takes less than half again as long as over an idle path, and the transfers go on meanwhile.
#[test]
fn a_short_flow_comes_before_long_ones_that_are_not_starved() {
    for transfers in [1, 4] {
        let mut idle = Flows::of_trains(0);
        idle.is_bulk = false;
        idle.run(secs(20));
        let mut full = Flows::of_trains(transfers);
        full.run(secs(20));
        // Each has data for seconds.
        full.is_bulk = false;
        let before = full.got.clone();
        let (alone, beside) = (time_of_page(&mut idle), time_of_page(&mut full));
        assert!(2 * beside < 3 * alone, "{transfers} transfers: {beside:?} in place of {alone:?}");
        let carried: usize = before.keys().map(|port| full.got[port] - before[port]).sum();
        assert!(carried > 15_000, "{transfers} transfers: {carried}");
    }
}

/// An exchange of single segments does not stand behind another flow's train.
#[test]
fn whoever_has_little_to_send_waits_for_nobody() {
    let mut flows = Flows::of_trains(2);
    flows.run(secs(10));
    flows.is_bulk = false;
    let id = flows.open("[train]", B);
    flows.run(ms(500));
    let (now, port) = (flows.net.now(), flows.port(id));
    flows.net.hosts.a.send(now, id, &pattern(LITTLE, 1)).expect("open");
    assert_eq!(flows.turn(id), Turn::Free);
    // The queue of one train is before it, and no more.
    flows.run(ms(150));
    assert_eq!(flows.got.get(&port), Some(&LITTLE));
}

/// Bytes acknowledged one by one keep the retransmission timer from running out: the turn ends all the same.
#[test]
fn a_holder_whose_peer_keeps_it_busy_loses_its_turn() {
    let mut flows = Flows::new(&TcpConfig { timestamps: false, ..TcpConfig::modern() });
    (0..2).for_each(|_| {
        flows.open("[train]", B);
    });
    flows.run(secs(10));
    flows.net.hosts.path_from(End::B).is_down = true;
    flows.run(ms(50));
    let holder = flows.holder();
    for _ in 0..45 {
        if flows.turn(holder) == Turn::Waiting {
            return;
        }
        let info = flows.info(holder);
        let (peer, us) = (info.flow.remote, info.flow.local);
        let ack = segment(peer, us, Flags::ACK, info.rcv_nxt, info.snd_una + 1);
        flows.net.hosts.a.handle_packet(flows.net.now(), &Rx::new(LINK, &ack));
        flows.run(ms(100));
    }
    panic!("4 s are over, and it is still the holder's turn: {:?}", flows.turns());
}

/// Without timestamps a sender checks a timeout with two new segments (RFC 5682 §2.1). Lost segments go again only
/// after the new ones are out, and the two do not wait for a turn.
#[test]
fn what_weighs_a_timeout_leaves_out_of_turn() {
    let mut flows = Flows::new(&TcpConfig { timestamps: false, ..TcpConfig::modern() });
    (0..2).for_each(|_| {
        flows.open("[train]", B);
    });
    flows.run(secs(10));
    flows.net.hosts.path_from(End::B).is_down = true;
    let id = flows.holder();
    let step = (0..500).find(|_| {
        flows.run(ms(10));
        flows.info(id).stats.timeouts > 0
    });
    assert!(step.is_some(), "it runs into no timeout");
    let info = flows.info(id);
    let ack = segment(info.flow.remote, info.flow.local, Flags::ACK, info.rcv_nxt, info.snd_una + 1_000);
    flows.net.sent();
    flows.net.hosts.a.handle_packet(flows.net.now(), &Rx::new(LINK, &ack));
    assert_eq!(flows.turn(id), Turn::Waiting);
    flows.run(ms(500));
    let port = info.flow.local.port();
    let new = flows.net.sent().into_iter().filter(|sent| {
        let segment = sent.tcp();
        sent.from == End::A && segment.src_port == port && segment.seq >= info.snd_nxt
    });
    assert_eq!((new.count(), flows.turn(id)), (2, Turn::Waiting));
}

/// The first flow that wants the turn gets it, whatever its name. A flow that has had its turn comes after the waiting
/// flows.
#[test]
fn whoever_asked_first_comes_first() {
    let mut flows = Flows::of_trains(4);
    flows.is_bulk = false;
    flows.run(secs(1));
    let mut order = Vec::new();
    for nth in [2, 3, 0, 1] {
        let (now, id) = (flows.net.now(), flows.clients[nth]);
        flows.net.hosts.a.send(now, id, &pattern(40_000, nth)).expect("open");
        flows.run(ms(1));
        order.push(id);
        assert_eq!(flows.holding_and_waiting().1, order.len() - 1, "one has the turn, the others wait");
    }
    flows.is_bulk = true;
    let mut held = vec![flows.holder()];
    for _ in 0..1_000 {
        flows.run(ms(5));
        let holder = flows.holder();
        if held.last() != Some(&holder) {
            held.push(holder);
        }
    }
    // Later one flow takes the path for a wire for a while, and loses its place.
    assert!(held.len() >= 12, "{held:?}");
    held.truncate(12);
    assert!(held.chunks_exact(4).all(|round| round == order), "{held:?} is not {order:?} again and again");
}

#[test]
fn a_holder_whose_peer_stops_reading_gives_its_turn_back() {
    let buffer = BufferLimits { initial: 32 << 10, max: 32 << 10 };
    let mut flows = Flows::new(&TcpConfig { recv_buffer: buffer, ..TcpConfig::modern() });
    (0..3).for_each(|_| {
        flows.open("[train]", B);
    });
    flows.run(secs(10));
    let stopped = flows.holder();
    flows.unread = Some(flows.server_of(stopped));
    let step = (0..2_000).find(|_| {
        flows.run(ms(1));
        // A window that is only full opens with the next ACK.
        flows.info(stopped).snd_wnd == 0 && flows.turn(stopped) == Turn::Free
    });
    assert!(step.is_some(), "its window closes: {:?}", flows.info(stopped));
    let before = flows.got.clone();
    for _ in 0..100 {
        assert_eq!((flows.turn(stopped), flows.holding_and_waiting()), (Turn::Free, (1, 1)));
        flows.run(ms(50));
    }
    let port = flows.port(stopped);
    let more = flows.got.iter().filter(|(of, _)| **of != port).map(|(of, got)| got - before[of]);
    assert!(more.sum::<usize>() > 700_000, "the others have the path: {before:?} {:?}", flows.got);
    flows.unread = None;
    flows.run(secs(2));
    assert_eq!(flows.holding_and_waiting(), (1, 2), "it asks again once its window is open");
}

/// Without a pause several trains are under way, and the flow with the next turn waits for the first one. The first
/// train may be another flow's; only the other's ACK then ends the wait.
#[test]
fn a_holder_that_waits_for_the_trains_of_others_is_told_when_they_arrive() {
    let mut flows = Flows::of_trains(3);
    for end in [End::A, End::B] {
        flows.net.hosts.path_from(end).impairment.delay = ms(20);
    }
    let (now, ids) = (flows.net.now(), flows.clients.clone());
    let look = |a: &Endpoint| ids.iter().map(|id| a.info(now, *id).expect("open")).collect::<Vec<_>>();
    let (mut before, mut turns, mut told) = (look(&flows.net.hosts.a), 0, 0);
    flows.run_seen(secs(20), |a| {
        let after = look(a);
        let pairs = || before.iter().zip(&after);
        let heard = pairs().position(|(before, after)| before.snd_una < after.snd_una);
        let ended = pairs().position(|(before, after)| {
            before.turn == Turn::Holding && matches!(after.turn, Turn::Waiting | Turn::Free)
        });
        turns += u32::from(ended.is_some());
        told += u32::from(ended.is_some() && heard.is_some() && heard != ended);
        before = after;
    });
    assert!(
        turns > 50 && 2 * told > turns,
        "{told} of {turns} turns were passed on when another's train arrived"
    );
}

/// Segments on the way when the window closes may never be acknowledged (a base station's `freeze`). After a timeout
/// the sender probes, and probes need no turn.
#[test]
fn a_holder_whose_window_closes_before_what_is_on_the_way_gives_its_turn_back() {
    let mut flows = Flows::new(&TcpConfig { timestamps: false, ..TcpConfig::modern() });
    (0..3).for_each(|_| {
        flows.open("[train]", B);
    });
    flows.run(secs(10));
    flows.net.cut();
    flows.run(ms(50));
    let holder = flows.holder();
    let info = flows.info(holder);
    assert!(info.flight.bytes > 0, "{info:?}");
    let between = (info.flow.remote, info.flow.local);
    let closed = segment_with_window(between, Flags::ACK, (info.rcv_nxt, info.snd_una), 0);
    flows.net.hosts.a.handle_packet(flows.net.now(), &Rx::new(LINK, &closed));
    assert_eq!(flows.info(holder).snd_wnd, 0);
    let step = (0..200).find(|_| {
        flows.run(ms(10));
        flows.turn(holder) == Turn::Free
    });
    assert!(step.is_some(), "{:?}", flows.info(holder));
    assert_eq!(flows.holding_and_waiting(), (1, 1));
}

/// ELFN stands still while there is no route.
#[test]
fn a_holder_that_is_frozen_gives_its_turn_back() {
    let mut flows = Flows::new(&TcpConfig::modern());
    for senders in ["[train, elfn]", "[train]", "[train]"] {
        flows.open(senders, B);
    }
    flows.run(secs(10));
    let frozen = flows.clients[0];
    let step = (0..5_000).find(|_| {
        flows.run(ms(1));
        flows.turn(frozen) == Turn::Holding && flows.info(frozen).flight.bytes > 0
    });
    assert!(step.is_some(), "its turn comes");
    // No packet comes back to thaw it.
    flows.net.cut();
    flows.net.sent();
    let now = flows.net.now();
    flows.net.hosts.a.handle_path(now, B, None, &PathEvent::RouteFailed, &Path::default());
    assert!(flows.info(frozen).is_frozen);
    assert_eq!((flows.turn(frozen), flows.holding_and_waiting()), (Turn::Free, (1, 1)));
    let next = flows.holder();
    flows.run(ms(200));
    assert!(!flows.data_sent(next).is_empty(), "the next one sends");
}

/// A flow that waits for its turn, and a lost segment that it sent before, which is little.
fn a_flow_that_waits_with_something_lost() -> (Flows, ConnId) {
    let mut flows = Flows::of_trains(4);
    // The other flows are still short, too: it comes last.
    flows.run(secs(1));
    let id = flows.open("[train]", B);
    flows.clients.pop();
    flows.run(ms(500));
    flows.net.hosts.path_from(End::A).is_down = true;
    let now = flows.net.now();
    flows.net.hosts.a.send(now, id, &pattern(1_000, 1)).expect("open");
    flows.run(ms(1));
    assert_eq!((flows.turn(id), flows.info(id).flight.segments), (Turn::Free, 1));
    flows.heal();
    flows.net.hosts.a.send(flows.net.now(), id, &pattern(40_000, 1)).expect("open");
    assert_eq!(flows.turn(id), Turn::Waiting);
    flows.net.sent();
    (flows, id)
}

/// Retransmissions and tail probes leave without a turn; nothing else does.
#[test]
fn a_tail_probe_and_a_retransmission_leave_out_of_turn() {
    let (mut flows, id) = a_flow_that_waits_with_something_lost();
    let (una, nxt) = (flows.info(id).snd_una, flows.info(id).snd_nxt);
    let mut sent = Vec::new();
    while flows.info(id).snd_una < nxt {
        flows.run(ms(5));
        assert_eq!(flows.turn(id), Turn::Waiting, "its turn comes before what is lost went again: {sent:?}");
        sent.extend(flows.data_sent(id));
    }
    // RFC 8985 §7.3: the probe is new data. Its SACK shows the loss.
    assert_eq!(sent[0], nxt, "{sent:?}");
    assert!(sent[1..].contains(&una) && sent[1..].iter().all(|seq| *seq < nxt), "{sent:?} of {una} to {nxt}");
}

#[test]
fn a_flow_alone_sends_the_same_packets_with_turns_and_without() {
    let packets = |senders: &str| {
        let mut flows = Flows::new(&TcpConfig::modern());
        flows.open(senders, B);
        flows.run(secs(10));
        flows.net.sent().into_iter().map(|sent| (sent.at, sent.packet)).collect::<Vec<_>>()
    };
    let (with, without) = (packets("[train]"), packets("[train:turns=off]"));
    assert!(with.len() > 1_000 && with == without, "{} and {} packets", with.len(), without.len());
}

#[derive(Clone, Debug)]
enum Act {
    Waits(u64),
    Sends {
        flow: usize,
        bytes: usize,
    },
    Closes(usize),
    Aborts(usize),
    /// Cuts the path, or heals it.
    Cuts,
    Heals,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => prop_oneof![1..100u64, 1..3_000u64].prop_map(Act::Waits),
        8 => (0..6usize, prop_oneof![1..3_000usize, 1..60_000usize])
            .prop_map(|(flow, bytes)| Act::Sends { flow, bytes }),
        1 => (0..6usize).prop_map(Act::Closes),
        1 => (0..6usize).prop_map(Act::Aborts),
        1 => Just(Act::Cuts),
        2 => Just(Act::Heals),
    ]
}

/// The result of each flow: bytes taken, and true if it was aborted.
fn play(flows: &mut Flows, acts: &[Act]) -> (Vec<usize>, Vec<bool>) {
    let (mut taken, mut aborted) = (vec![0; flows.clients.len()], vec![false; flows.clients.len()]);
    for act in acts {
        let now = flows.net.now();
        let a = &mut flows.net.hosts.a;
        match *act {
            Act::Waits(time) => flows.run(ms(time)),
            Act::Sends { flow, bytes } => {
                taken[flow] += a.send(now, flows.clients[flow], &pattern(bytes, flow)).unwrap_or(0);
            }
            // A connection that ended before has no valid name any more.
            Act::Closes(flow) => {
                let _ = a.close(now, flows.clients[flow]);
            }
            Act::Aborts(flow) => aborted[flow] |= a.abort(now, flows.clients[flow]).is_ok(),
            Act::Cuts => flows.net.cut(),
            Act::Heals => flows.heal(),
        }
    }
    (taken, aborted)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// In any order of events each turn ends and everything arrives. (An assertion checks each change of a turn: one
    /// flow holds it, and all other flows wait.)
    #[test]
    fn turns_starve_nobody(
        acts in prop::collection::vec(act(), 1..60),
        loss_ppm in prop_oneof![Just(0), 0..100_000u32],
    ) {
        let mut flows = Flows::of_trains(6);
        flows.is_bulk = false;
        flows.net.hosts.path_from(End::A).impairment.loss_ppm = loss_ppm;
        flows.run(secs(2));
        let ports: Vec<_> = flows.clients.iter().map(|id| flows.port(*id)).collect();
        let (taken, aborted) = play(&mut flows, &acts);
        flows.heal();
        flows.run(secs(300));
        for ((port, taken), is_aborted) in ports.iter().zip(&taken).zip(&aborted) {
            let got = flows.got.get(port).copied().unwrap_or(0);
            prop_assert!(*is_aborted || got == *taken, "{port}: {got} of {taken}");
        }
        let now = flows.net.now();
        for id in flows.clients.clone() {
            let _ = flows.net.hosts.a.close(now, id);
        }
        for id in flows.servers.clone() {
            let _ = flows.net.hosts.b.close(now, id);
        }
        flows.run(secs(300));
        prop_assert_eq!((flows.net.hosts.a.connections(), flows.net.hosts.next_at()), (0, None));
    }
}
