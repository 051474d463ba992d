//! Routing on demand through the radio world: the packets on the air, and the connections' knowledge of them. No route
//! ever leads in a circle while nodes move.

mod below_ip;
mod dymo;
mod wrapped;

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use hopwise_air::frames::FrameEffect;
use hopwise_core::trace::{DropReason, TraceKind};
use hopwise_core::wire::{Ecn, IpHeader, IpView, protocol, udp};
use hopwise_core::{Cast, Instant, LinkId, Machine, Rx, Seq};
use hopwise_lab::scenario::{NoPlan, Scenario};
use hopwise_lab::sim::{Plan, Results, Simulation, address_of};
use hopwise_mesh::aodv::messages::{AodvMessage, Extension, Rrep};

const CHAIN: &str = "
topology: { kind: chain, hops: 4, spacing_m: 200 }
routing: { protocol: aodv }
traffic: [{ from: first, to: last, kind: bulk }]
arms: { x: { receiver: delayed, sender: [newreno] } }
run: { duration: 20s }
";

const CUT: &str = "channel={ links: [link n1-n2 down from 5 s to 8 s] }";

fn plan(text: &str, sets: &[&str], seed: u64) -> Plan {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let scenario = Scenario::parse("routing", text, &sets).expect("a scenario");
    scenario.plan(None, seed).expect("a plan").plan
}

fn run(plan: &Plan) -> Results {
    hopwise_lab::sim::run(plan).expect("a plan that can be built")
}

#[test]
fn both_rules_carry_a_flow_and_count_what_they_look_for() {
    for rules in ["rfc3561", "ns2"] {
        let results = run(&plan(CHAIN, &[&format!("routing.rules={rules}")], 1));
        assert_eq!(results.flows[0].hops.as_ref().map(|hops| hops.count), Some(4), "{rules}");
        assert!(results.total_kbps() > 150.0, "{rules}: {}", results.total_kbps());
        assert!(results.discoveries >= 1, "{rules}");
    }
    let fixed = run(&plan(CHAIN, &["routing.protocol=static"], 1));
    assert_eq!((fixed.discoveries, fixed.route_failures), (0, 0));
}

#[test]
fn signed_messages_find_ways_and_carry_a_flow() {
    for routing in ["{ protocol: aodv, signed: true }", "{ protocol: dymo, dymo: { signed: true } }"] {
        let results = run(&plan(CHAIN, &[&format!("routing={routing}")], 1));
        assert_eq!(results.flows[0].hops.as_ref().map(|hops| hops.count), Some(4), "{routing}");
        assert!(results.total_kbps() > 100.0, "{routing}: {}", results.total_kbps());
    }
    let ns2 = ["routing={ protocol: aodv, rules: ns2, signed: true }".to_owned()];
    let refused = match Scenario::parse("routing", CHAIN, &ns2) {
        Ok(scenario) => format!("{:?}", scenario.plan(None, 1).err()),
        Err(refusal) => refusal.to_string(),
    };
    assert!(refused.contains("the rules of ns-2 have no signatures"), "{refused}");
}

#[test]
fn the_same_seed_finds_the_same_ways() {
    let plan = plan(CHAIN, &["topology.hops=6"], 7);
    assert_eq!(run(&plan), run(&plan));
}

/// ns-2's repair stops where the RFC's goes on. The RFC waits .6 s for an answer from five hops away, ns-2 as long as
/// earlier answers took. With ns-2's patience the RFC's rules carry more.
#[test]
fn a_repair_as_the_rfc_means_it_carries_more_than_ns2s() {
    let mean = |rules: &str| {
        let routing = format!("routing={rules}");
        let sets = [&routing, "topology.hops=10", "run.duration=120s", "mac.rules=ns2", "tcp.profile=ns2"];
        (1..=4).map(|seed| run(&plan(CHAIN, &sets, seed)).total_kbps()).sum::<f64>() / 4.0
    };
    let rfc3561 = mean("{ protocol: aodv, node_traversal_time: 5ms }");
    let ns2 = mean("{ protocol: aodv, rules: ns2 }");
    assert!(rfc3561 > 1.1 * ns2, "{rfc3561:.0} and {ns2:.0} kbit/s");
}

#[test]
fn the_files_that_compare_protocols_make_a_run_of_every_arm_at_every_point() {
    for (name, arms) in [("chain", 8), ("walkers", 8), ("signed", 4)] {
        let file = PathBuf::from("configs/routing").join(name).with_extension("yaml");
        let scenario = Scenario::load(&file, &[]).expect("it is read");
        let asked = scenario.asked().expect("a trial");
        assert_eq!((asked.arms.len(), asked.cells.is_empty()), (arms, false));
        for cell in &asked.cells {
            let there = scenario.at(cell).expect("a point");
            for arm in &asked.arms {
                there.under(arm).and_then(|arm| arm.prepare(1)).expect("a run");
            }
        }
    }
}

const MOVING: &str = "
topology: { kind: random, nodes: 25, width_m: 900, height_m: 600 }
mobility: { speed_mps: [1, 20] }
routing: { protocol: aodv }
channel: { loss: 2% }
traffic: [{ from: n0, to: n9, kind: cbr, every: 50ms, flows: 4 }, { from: n3, to: n7, kind: bulk }]
arms: { x: { receiver: delayed, sender: [newreno, elfn] } }
run: { duration: 60s }
";

fn assert_free_of_loops(simulation: &mut Simulation) {
    let world = simulation.world();
    let (now, nodes) = (world.now(), world.machines());
    for dst in (0..nodes.len() as u32).map(address_of) {
        for from in 0..nodes.len() {
            let (mut at, mut steps) = (from, 0);
            while address_of(at as u32) != dst
                && let Some((_, via)) = nodes[at].node().routing().next_hop(now, dst)
            {
                let IpAddr::V4(via) = via else { panic!("an IPv4 network") };
                at = (via.to_bits() - 0x0a00_0001) as usize;
                steps += 1;
                assert!(steps <= nodes.len(), "a loop from {from} to {dst} at {now}");
            }
        }
    }
}

/// Checks the routes while nodes move.
fn move_about(protocol: &str) {
    for seed in 1..=3 {
        let plan = plan(MOVING, &[protocol], seed);
        let mut simulation = Simulation::new(&plan).expect("a plan that can be built");
        while simulation.world().now() < plan.end() {
            let until = simulation.world().now() + Duration::from_millis(20);
            simulation.run_until(until);
            assert_free_of_loops(&mut simulation);
        }
        let results = simulation.results();
        assert!(results.discoveries > 4, "seed {seed}: {} discoveries", results.discoveries);
        assert!(results.total_kbps() > 20.0, "seed {seed}: {:.0} kbit/s", results.total_kbps());
    }
}

#[test]
fn no_way_leads_in_a_circle_while_nodes_move() {
    move_about("routing.protocol=aodv");
}

#[test]
fn who_freezes_without_a_route_hears_that_it_is_gone_and_that_it_is_back() {
    let seen = freezes_and_thaws("routing.protocol=aodv");
    let frozen = seen.iter().find(|(at, kind)| *kind == TraceKind::Frozen && *at >= Instant::from_secs(5));
    assert!(frozen.is_some_and(|(at, _)| *at < Instant::from_secs(6)), "{seen:?}");
    let thawed = seen.iter().find(|(at, kind)| *kind == TraceKind::Thawed && *at >= Instant::from_secs(8));
    assert!(thawed.is_some(), "{seen:?}");
}

/// The times when the source froze and thawed while the path was cut from the fifth second to the eighth.
fn freezes_and_thaws(routing: &str) -> Vec<(Instant, TraceKind)> {
    let sets = [CUT, "arms.x.sender=[newreno, elfn]", routing];
    seen_at(0, plan(CHAIN, &sets, 1), |kind| matches!(kind, TraceKind::Frozen | TraceKind::Thawed))
}

/// The wanted events at a node.
fn seen_at(at: u32, mut plan: Plan, is_wanted: fn(&TraceKind) -> bool) -> Vec<(Instant, TraceKind)> {
    plan.trace_events = 1_024;
    let mut simulation = Simulation::new(&plan).expect("a plan that can be built");
    let seen = Rc::new(RefCell::new(Vec::new()));
    let into = Rc::clone(&seen);
    simulation.world().trace = Some(Box::new(move |node, event| {
        if node == at && is_wanted(&event.kind) {
            into.borrow_mut().push((event.now, event.kind));
        }
    }));
    simulation.run_until(plan.end());
    seen.take()
}

/// The control packets on the air, each as often as it is sent.
fn controls(plan: &Plan) -> Vec<Vec<u8>> {
    let mut simulation = Simulation::new(plan).expect("a plan that can be built");
    let packets = Rc::new(RefCell::new(Vec::new()));
    let into = Rc::clone(&packets);
    simulation.world().set_frames(Box::new(move |event, packet| {
        let is_control = IpView::parse(packet).is_ok_and(|view| view.protocol == protocol::UDP);
        if event.sees == FrameEffect::Sends && is_control {
            into.borrow_mut().push(packet.to_vec());
        }
    }));
    simulation.run_until(plan.end());
    packets.take()
}

/// Captures whose link layer is IP itself.
fn capture(packets: &[Vec<u8>]) -> Vec<u8> {
    const LINKTYPE_RAW: u32 = 101;
    let mut file = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, LINKTYPE_RAW].map(u32::to_le_bytes).concat();
    for (packet, second) in packets.iter().zip(0_u32..) {
        let len = packet.len() as u32;
        file.extend([second, 0, len, len].map(u32::to_le_bytes).concat());
        file.extend_from_slice(packet);
    }
    file
}

#[test]
fn wireshark_reads_every_routing_message_that_we_send() {
    let test = "wireshark_reads_every_routing_message_that_we_send";
    let mut packets = Vec::new();
    for (rules, more) in [
        ("rfc3561", "hello: true, rrep_ack: true, gratuitous: true, ack_seq: true"),
        ("rfc3561", "ack_seq: true, key: shared"),
        ("ns2", "ack_seq: true"),
    ] {
        let routing = format!("routing={{ protocol: aodv, rules: {rules}, {more} }}");
        let cut = "channel={ links: [link n1-n2 down from 5 s to 8 s] }";
        let plan = plan(CHAIN, &[&routing, cut, "run.duration=12s", "traffic.0.from=n1"], 1);
        packets.extend(controls(&plan));
    }
    for kind in 1..=4 {
        assert!(packets.iter().any(|packet| packet[28] == kind), "no message of type {kind} was sent");
    }
    assert_dissected(test, "Ad hoc On-demand Distance Vector", &packets);
}

/// Checks that Wireshark finds that protocol in each of the packets and reports no fault.
fn assert_dissected(test: &str, protocol: &str, packets: &[Vec<u8>]) {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.pcap"));
    std::fs::write(&file, capture(packets)).expect("the build folder takes files");
    let Ok(done) = Command::new("tshark").args(["-V", "-r"]).arg(&file).output() else {
        println!("skipped: {test}: tshark is not installed");
        return;
    };
    let text = String::from_utf8_lossy(&done.stdout);
    let messages = text.lines().filter(|line| line.starts_with(protocol)).count();
    assert_eq!(messages, packets.len());
    // A small TTL makes a note only, and is intended.
    for complaint in ["Malformed", "Expert Info (Warning", "Expert Info (Error", "incorrect"] {
        let found: Vec<_> = text.lines().filter(|line| line.contains(complaint)).take(3).collect();
        assert!(found.is_empty(), "{complaint}: {found:?}");
    }
}

fn v4(address: IpAddr) -> Ipv4Addr {
    match address {
        IpAddr::V4(v4) => v4,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
}

/// A flow, the claimed number, the sender and the receiver.
type Claim = ((u16, u16), Seq, IpAddr, IpAddr);

/// A RREP to the source with a claim about arrivals at the destination.
fn forged((flow, seq, from, to): Claim) -> Vec<u8> {
    let rrep = AodvMessage::Rrep(Rrep {
        is_repair: false,
        wants_ack: false,
        prefix_size: 0,
        hop_count: 3,
        dst: v4(from),
        dst_seq: 0,
        origin: v4(to),
        lifetime_ms: 1,
    });
    let mut message = Vec::new();
    rrep.emit(&mut message);
    Extension { kind: 0x57, data: &claimed(flow, seq) }.emit(&mut message);
    said_by_a_neighbour(to, 654, 255, &message)
}

fn claimed(flow: (u16, u16), seq: Seq) -> Vec<u8> {
    [&flow.0.to_be_bytes()[..], &flow.1.to_be_bytes(), &seq.0.to_be_bytes()].concat()
}

fn said_by_a_neighbour(to: IpAddr, port: u16, hop_limit: u8, message: &[u8]) -> Vec<u8> {
    let neighbour = address_of(1);
    let header = IpHeader {
        src: neighbour,
        dst: to,
        protocol: protocol::UDP,
        hop_limit,
        ecn: Ecn::NotEct,
        dscp: 0,
        dont_fragment: false,
        id: 0,
        source_route: None,
    };
    let mut packet = Vec::new();
    header.emit(8 + message.len(), &mut packet);
    udp::emit(neighbour, to, (port, port), message, &mut packet);
    packet
}

/// Every tenth of a second routing messages claim numbers from everywhere around the circle. Returns the
/// results, and the number of claims that were believed.
fn under_attack(sets: &[&str], forged: fn(Claim) -> Vec<u8>) -> (Results, u64) {
    let mut plan = plan(CHAIN, sets, 3);
    plan.trace_events = 1_024;
    let mut simulation = Simulation::new(&plan).expect("a plan that can be built");
    let raised = Rc::new(RefCell::new(0));
    let into = Rc::clone(&raised);
    simulation.world().trace = Some(Box::new(move |_, event| {
        *into.borrow_mut() += u64::from(matches!(event.kind, TraceKind::HighestAckRaised { .. }));
    }));
    let (src, dst) = (address_of(0), address_of(4));
    let mut claim = Seq(0x0123_4567);
    let mut believed = 0;
    while simulation.world().now() < plan.end() {
        let until = simulation.world().now() + Duration::from_millis(100);
        simulation.run_until(until);
        let before = *raised.borrow();
        simulation.world().with(0, |now, host| {
            let Some(conn) = host.flows()[0].conn() else { return };
            let Ok(before) = host.node().endpoint().info(now, conn) else { return };
            let ports = (before.flow.local.port(), before.flow.remote.port());
            for _ in 0..16 {
                claim = Seq(claim.0.wrapping_add(0x1000_0000 + 17));
                let packet = forged((ports, claim, dst, src));
                let from = Some(address_of(1));
                let link = LinkId(0);
                host.handle_packet(
                    now,
                    &Rx { link, from, cast: Cast::ToUs, segment_bytes: None, packet: &packet },
                );
            }
            let after = host.node().endpoint().info(now, conn).expect("it is still there");
            assert_eq!(before.stats.bytes_acked, after.stats.bytes_acked);
        });
        believed += *raised.borrow() - before;
    }
    (simulation.results(), believed)
}

#[test]
fn forged_numbers_of_what_arrived_move_nothing() {
    assert_forgery_moves_nothing(
        "protocol: aodv, ack_seq: true",
        "protocol: aodv, ack_seq: true, key: shared",
        forged,
    );
}

fn assert_forgery_moves_nothing(open: &str, keyed: &str, forged: fn(Claim) -> Vec<u8>) {
    // New data waits for an ACK above a number that is believed.
    for (routing, least_kbps) in [(open, 100.0), (keyed, 150.0)] {
        let sets = ["arms.x.sender=[newreno, pgy]", &format!("routing={{ {routing} }}")];
        let (results, believed) = under_attack(&sets, forged);
        assert!(results.total_kbps() > least_kbps, "{routing}: {:.0} kbit/s", results.total_kbps());
        assert!(routing == open || believed == 0, "nobody without the key is believed: {believed}");
    }
}

#[test]
fn what_a_request_says_of_arrivals_reaches_a_sender_that_listens() {
    assert_heard_of_arrivals("routing={ protocol: aodv, ack_seq: true, key: shared }");
}

/// All data has arrived, and its last ACK finds a link down for a tenth of a second. Both ends are silent then: the
/// receiver has nothing to send, and the sender waits for its timeout.
#[test]
fn a_receiver_with_nothing_to_send_asks_at_once_and_the_sender_hears_before_its_timeout() {
    // ns-2's rules repair a link that is as near to the sender as the first one.
    for (rules, link) in [("rfc3561, local_repair: false", "n0-n1"), ("ns2", "n2-n3")] {
        for search_at_once in [true, false] {
            let routing = format!(
                "routing={{ protocol: aodv, rules: {rules}, node_traversal_time: 10ms, ack_seq: true, \
                 ack_seq_in_replies: false, rerr_to_source: true, search_at_once: {search_at_once} }}"
            );
            let mut sets = vec![
                &*routing,
                "traffic=[{ from: first, to: last, kind: bulk, bytes: 4kB, start: 1s }]",
                "arms={ x: { receiver: immediate, sender: [newreno, pgy] } }",
                "tcp={ profile: ns2, rto_min: 1s }",
                "run.duration=10s",
            ];
            let acks = seen_at(4, plan(CHAIN, &sets, 1), |kind| matches!(kind, TraceKind::AckSent { .. }));
            let last_ms = acks.last().expect("data came").0.as_millis();
            let cut =
                format!("channel={{ links: [link {link} down from {last_ms} ms to {} ms] }}", last_ms + 100);
            sets.push(&cut);
            let seen = seen_at(0, plan(CHAIN, &sets, 1), |kind| {
                matches!(kind, TraceKind::HighestAckRaised { .. } | TraceKind::Timeout { .. })
            });
            let first = seen.first().map(|(_, kind)| matches!(kind, TraceKind::HighestAckRaised { .. }));
            assert_eq!(first, Some(search_at_once), "{rules}: {seen:?}");
        }
    }
}

#[test]
fn an_error_discards_what_nodes_pass_on_and_spares_what_they_send_themselves() {
    for (rerr_discards, expected) in [(true, [false, true]), (false, [false, false])] {
        let routing = format!(
            "routing={{ protocol: aodv, local_repair: false, rerr_to_source: true, rerr_discards: {rerr_discards} }}"
        );
        // Twice what a chain carries fills the queues before the break.
        let traffic = "traffic=[{ from: first, to: last, kind: cbr, segment_bytes: 1000, rate: 800kbit }]";
        let sets =
            [&*routing, traffic, "topology.hops=6", "channel={ links: [link n3-n4 down from 5 s to 8 s] }"];
        let purged = [0, 1].map(|node| {
            let is_purge = |kind: &TraceKind| matches!(kind, TraceKind::Dropped(DropReason::Purged));
            !seen_at(node, plan(CHAIN, &sets, 1), is_purge).is_empty()
        });
        assert_eq!(purged, expected, "the source, and a node on the way");
    }
}

fn assert_heard_of_arrivals(routing: &str) {
    // Only the reverse path breaks: the receiver then has to search for it.
    let sets = ["arms.x.sender=[newreno, pgy]", routing, "topology.hops=6", "run.duration=60s"];
    let heard = seen_at(0, plan(CHAIN, &sets, 1), |kind| matches!(kind, TraceKind::HighestAckRaised { .. }));
    assert!(!heard.is_empty(), "in a minute of broken routes nothing was heard");
}
