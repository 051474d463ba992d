//! DSR and GPSR through the radio world: headers of their own in every packet, and their bounds on hops, salvage and
//! places.

use super::*;
use hopwise_mesh::dsr::options::{DsrOption, OptionsHeader};
use hopwise_mesh::{dsr, gpsr};

const PROTOCOLS: [(&str, u8); 2] = [("dsr", dsr::PROTOCOL), ("gpsr", gpsr::PROTOCOL)];

/// Every packet with such a header, as often as it goes on the air.
fn on_the_air(plan: &Plan, header: u8) -> Vec<Vec<u8>> {
    let mut simulation = Simulation::new(plan).expect("a plan that can be built");
    let packets = Rc::new(RefCell::new(Vec::new()));
    let into = Rc::clone(&packets);
    simulation.world().set_frames(Box::new(move |event, packet| {
        let is_ours = IpView::parse(packet).is_ok_and(|view| view.protocol == header);
        if event.sees == FrameEffect::Sends && is_ours {
            into.borrow_mut().push(packet.to_vec());
        }
    }));
    simulation.run_until(plan.end());
    packets.take()
}

#[test]
fn both_carry_a_flow_over_a_chain_as_fixed_routes_do_and_the_same_for_the_same_seed() {
    let with = |protocol: &str, seed| plan(CHAIN, &[&format!("routing.protocol={protocol}")], seed);
    let mean = |protocol| (1..=6).map(|seed| run(&with(protocol, seed)).total_kbps()).sum::<f64>() / 6.0;
    let fixed = mean("static");
    for (protocol, hops) in [("dsr", Some(4)), ("gpsr", None)] {
        let carried = mean(protocol);
        assert!(carried > 0.8 * fixed, "{protocol}: {carried} of {fixed}");
        let results = run(&with(protocol, 1));
        assert_eq!(results.flows[0].hops.as_ref().map(|hops| hops.count), hops, "{protocol}");
        assert_eq!(run(&with(protocol, 1)), results, "{protocol}");
    }
}

#[test]
fn nodes_that_move_are_reached_and_no_packet_goes_on_for_ever() {
    for (protocol, header) in PROTOCOLS {
        let plan = plan(MOVING, &[&format!("routing.protocol={protocol}"), "run.duration=20s"], 2);
        let mut simulation = Simulation::new(&plan).expect("a plan that can be built");
        simulation.run_until(plan.end());
        let results = simulation.results();
        assert!(results.total_kbps() > 20.0, "{protocol}: {:.0} kbit/s", results.total_kbps());
        let packets = on_the_air(&plan, header);
        assert!(packets.len() > 1_000, "{protocol}");
        for packet in &packets {
            let view = IpView::parse(packet).expect("a packet of ours");
            // DSR's requests may cross any network; other packets start with the hops of the settings.
            let most = if packet[16..20] == [255; 4] { 255 } else { 64 };
            assert!((1..=most).contains(&view.hop_limit), "{protocol}");
            if protocol == "dsr" {
                assert_no_circle(&view);
            }
        }
    }
}

fn assert_no_circle(view: &IpView<'_>) {
    let read = OptionsHeader::parse(view.payload).expect("a header of ours");
    for option in &read.header.options {
        let DsrOption::Route(route) = option else { continue };
        let whole = route.salvage == 0;
        let ends = [view.src, view.dst].into_iter().skip(usize::from(!whole));
        let mut nodes: Vec<_> = ends.chain(route.addresses.iter().map(|node| IpAddr::V4(*node))).collect();
        let count = nodes.len();
        nodes.sort_unstable();
        nodes.dedup();
        assert_eq!(nodes.len(), count, "{route:?}");
    }
}

#[test]
fn dsr_tells_connections_when_their_way_is_gone_and_back() {
    let sets = [
        "routing.protocol=dsr",
        "channel={ links: [link n1-n2 down from 5 s to 8 s] }",
        "arms.x.sender=[newreno, elfn]",
    ];
    let mut plan = plan(CHAIN, &sets, 1);
    plan.trace_events = 1_024;
    let mut simulation = Simulation::new(&plan).expect("a plan that can be built");
    let seen = Rc::new(RefCell::new(Vec::new()));
    let into = Rc::clone(&seen);
    simulation.world().trace = Some(Box::new(move |node, event| {
        if node == 0 && matches!(event.kind, TraceKind::Frozen | TraceKind::Thawed) {
            into.borrow_mut().push((event.now, event.kind));
        }
    }));
    simulation.run_until(plan.end());
    let seen = seen.borrow();
    let after = |kind: TraceKind, s: u64| {
        seen.iter().find(|(at, seen)| *seen == kind && *at >= Instant::from_secs(s)).map(|(at, _)| *at)
    };
    assert!(after(TraceKind::Frozen, 5).is_some_and(|at| at < Instant::from_secs(7)), "{seen:?}");
    assert!(after(TraceKind::Thawed, 8).is_some(), "{seen:?}");
}

#[test]
fn dsr_leads_over_a_wire_too_and_gpsr_says_that_it_cannot() {
    let sets =
        ["topology={ kind: chain, hops: 2, wired: { rate: 10mbit, delay: 5ms } }", "traffic.0.from=w0"];
    let results = run(&plan(CHAIN, &[&sets[..], &["routing.protocol=dsr"]].concat(), 1));
    assert_eq!(results.flows[0].hops.as_ref().map(|hops| hops.count), Some(3));
    assert!(results.total_kbps() > 300.0, "{}", results.total_kbps());
    let all: Vec<String> =
        sets.iter().chain(&["routing.protocol=gpsr"]).map(|set| (*set).to_owned()).collect();
    let scenario = Scenario::parse("wrapped", CHAIN, &all).expect("a scenario");
    let refused = format!("{:?}", scenario.plan(None, 1).expect_err("no plan"));
    assert!(refused.contains("stands nowhere"), "{refused}");
}

/// The section's text, and the refusal of it.
fn refusal(routing: &str) -> String {
    let text = CHAIN.replace("{ protocol: aodv }", routing);
    let planned =
        Scenario::parse("wrapped", &text, &[]).map_err(NoPlan::Refused).and_then(|there| there.plan(None, 1));
    format!("{:?}", planned.expect_err("no plan"))
}

#[test]
fn constants_are_checked_and_those_of_another_protocol_refused() {
    for (routing, words) in [
        ("{ protocol: dsr, dsr: { request_period: 0s } }", "request_period: 0s is out of range"),
        ("{ protocol: dsr, dsr: { max_salvage_count: 16 } }", "max_salvage_count: 16 is out of range"),
        ("{ protocol: gpsr, gpsr: { beacon_interval: 2h } }", "beacon_interval: 2h is out of range"),
        ("{ protocol: dsr, hello: true }", "`hello` changes nothing under protocol: dsr"),
        ("{ protocol: gpsr, dsr: { promiscuous: false } }", "`dsr` changes nothing under protocol: gpsr"),
        ("{ protocol: aodv, gpsr: { planar: rng } }", "`gpsr` changes nothing under protocol: aodv"),
        ("{ protocol: batman, batman: { hop_penalty: 256 } }", "hop_penalty: 256 is out of range"),
        ("{ protocol: batman, dsr: { promiscuous: false } }", "`dsr` changes nothing under protocol: batman"),
        ("{ protocol: hwmp, hwmp: { element_ttl: 1 } }", "element_ttl: 1 is out of range"),
        ("{ protocol: hwmp, batman: { ttl: 9 } }", "`batman` changes nothing under protocol: hwmp"),
        ("{ protocol: aodv, batman: { ttl: 9 } }", "`batman` changes nothing under protocol: aodv"),
    ] {
        let said = refusal(routing);
        assert!(said.contains(words), "{routing}: {said}");
    }
}

#[test]
fn settings_in_force_name_every_constant_of_the_protocol_and_none_of_another() {
    let settings = |routing: &str| {
        let text = CHAIN.replace("{ protocol: aodv }", routing);
        let scenario = Scenario::parse("wrapped", &text, &[]).expect("a scenario");
        scenario.under("x").expect("an arm").settings()["routing"].clone()
    };
    let dsr = settings("{ protocol: dsr, dsr: { cache_asked: 7 } }");
    assert_eq!(
        (dsr["dsr"]["cache_asked"].as_u64(), dsr["dsr"]["max_salvage_count"].as_u64()),
        (Some(7), Some(15))
    );
    assert!(dsr.get("gpsr").is_none());
    let gpsr = settings("{ protocol: gpsr }");
    assert_eq!(gpsr["gpsr"]["beacon_interval"].as_str(), Some("1500ms"), "{gpsr}");
}

#[test]
fn a_dsr_node_that_listens_to_nobody_else_finds_no_shortcuts() {
    // All three nodes are in range of each other in the end: a flow that began over two hops needs one.
    let scene = |promiscuous: bool| {
        let routing = format!("routing={{ protocol: dsr, dsr: {{ promiscuous: {promiscuous} }} }}");
        let sets = [
            &routing,
            "channel={ links: [link n0-n2 down from 0 s to 5 s] }",
            "topology.hops=2",
            "topology.spacing_m=100",
        ];
        let plan = plan(CHAIN, &sets, 1);
        let packets = on_the_air(&plan, dsr::PROTOCOL);
        let direct = packets.iter().filter(|packet| {
            let view = IpView::parse(packet).expect("a packet of ours");
            let read = OptionsHeader::parse(view.payload).expect("a header of ours");
            read.header.next == protocol::TCP
                && read.header.route().is_some_and(|route| route.addresses.is_empty())
        });
        direct.count()
    };
    assert!(scene(true) > 100 && scene(false) == 0);
}

#[test]
fn wireshark_reads_every_dsr_header_that_we_send() {
    let test = "wireshark_reads_every_dsr_header_that_we_send";
    let cut = "channel={ links: [link n2-n3 down from 5 s to 8 s] }";
    let moving = plan(MOVING, &["routing.protocol=dsr", "run.duration=20s"], 3);
    let broken = plan(CHAIN, &["routing.protocol=dsr", cut, "run.duration=12s"], 1);
    let packets = [on_the_air(&broken, dsr::PROTOCOL), on_the_air(&moving, dsr::PROTOCOL)].concat();
    let has = |is_it: fn(&DsrOption) -> bool| {
        packets.iter().any(|packet| {
            let read = OptionsHeader::parse(&packet[20..]).expect("a header of ours");
            read.header.options.iter().any(is_it)
        })
    };
    assert!(has(|option| matches!(option, DsrOption::Request(_))), "requests");
    assert!(has(|option| matches!(option, DsrOption::Reply(_))), "replies");
    assert!(has(|option| matches!(option, DsrOption::Error(_))), "errors");
    assert!(has(|option| matches!(option, DsrOption::Route(route) if route.salvage > 0)), "salvaged packets");
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.pcap"));
    std::fs::write(&file, capture(&packets)).expect("the build folder takes files");
    let Ok(done) = Command::new("tshark").args(["-V", "-r"]).arg(&file).output() else {
        println!("skipped: {test}: tshark is not installed");
        return;
    };
    let text = String::from_utf8_lossy(&done.stdout);
    let headers = text.lines().filter(|line| line.starts_with("Dynamic Source Routing")).count();
    assert_eq!(headers, packets.len());
    for complaint in ["Malformed", "Expert Info (Error", "[Bad", "incorrect"] {
        let found: Vec<_> = text.lines().filter(|line| line.contains(complaint)).take(3).collect();
        assert!(found.is_empty(), "{complaint}: {found:?}");
    }
}
