mod agreed;
mod host;
mod mask;
mod matrix;
mod movement;
mod numbers;
mod queue;
mod recipe;
mod replaced;
mod routing;
mod schema;
mod traffic;

use std::cell::Cell;
use std::rc::Rc;

use hopwise_air::dcf::EVERYONE;
use hopwise_air::frames::FrameEffect;

use super::*;

const CHAIN: &str = include_str!("../../../configs/calibration/ns2-chain.yaml");

/// The scenario of a text, with what is set over it.
pub(crate) fn read(text: &str, sets: &[&str]) -> Scenario {
    Scenario::parse("a.yaml", text, &owned(sets)).expect("it is read")
}

/// The plan of a text's only arm, with what is set over it, for the first seed.
pub(crate) fn plan_of(text: &str, sets: &[&str]) -> Plan {
    read(text, sets).plan(None, 1).expect("a plan").plan
}

fn owned(sets: &[&str]) -> Vec<String> {
    sets.iter().map(|set| (*set).to_owned()).collect()
}

fn planned(text: &str, sets: &[&str]) -> Result<Prepared, NoPlan> {
    Scenario::parse("a.yaml", text, &owned(sets)).map_err(NoPlan::Refused).and_then(|s| s.plan(None, 1))
}

/// The calibration's text under other keys of routing.
fn routed(routing: &str) -> String {
    let lines = CHAIN.lines().map(|line| match line.strip_prefix("routing:") {
        Some(_) => format!("routing: {routing}\n"),
        None => format!("{line}\n"),
    });
    lines.collect()
}

fn refused(sets: &[&str]) -> String {
    match planned(CHAIN, sets) {
        Err(NoPlan::Refused(refusal)) => shown(&refusal),
        other => panic!("{sets:?}: {other:?}"),
    }
}

/// The problem and the accepted values of a refusal.
fn shown(refusal: &Refusal) -> String {
    let help = miette::Diagnostic::help(refusal).map_or(String::new(), |help| help.to_string());
    format!("{refusal}; {help}")
}

#[test]
fn calibration_file_gives_any_cell_by_what_is_set() {
    let sets = ["topology.hops=8", "radio.profile=dsss-11mbps", "arms.x.sender=[newreno, \"limit:4\"]"];
    let Prepared { plan, names, .. } = read(CHAIN, &sets).plan(None, 3).expect("it is a plan");
    assert_eq!((plan.positions.len(), names.len(), plan.phy.name), (9, 9, "dsss-11mbps"));
    assert_eq!((plan.arm.senders.as_str(), plan.seed), ("[newreno, limit:4]", 3));
    assert_eq!((plan.duration.as_secs(), plan.warmup.as_secs()), (300, 50));
}

#[test]
fn constants_of_another_protocol_are_refused_where_the_file_has_them() {
    for (routing, problem) in [
        ("{ protocol: dymo, ttl_start: 3 }", "`ttl_start` changes nothing under protocol: dymo"),
        ("{ protocol: aodv, dymo: {} }", "`dymo` changes nothing under protocol: aodv"),
    ] {
        let planned = planned(&routed(routing), &[]);
        let Err(NoPlan::Refused(refusal)) = planned else { panic!("{routing}: {planned:?}") };
        assert!(shown(&refusal).contains(problem), "{}", shown(&refusal));
    }
}

/// Each of them is AODV's, and ns-2's AODV does not use it.
#[test]
fn constants_that_the_rules_in_force_do_not_know_are_refused() {
    let planned = |key: &str, value: &str, rules: &str, sets: &[&str]| {
        planned(&routed(&format!("{{ protocol: aodv, rules: {rules}, {key}: {value} }}")), sets)
    };
    for (key, value) in [
        ("rreq_ratelimit", "5"),
        ("rerr_ratelimit", "5"),
        ("timeout_buffer", "3"),
        ("max_repair_ttl", "3"),
        ("hello", "true"),
        ("hello_interval", "2s"),
        ("allowed_hello_loss", "3"),
        ("rrep_ack", "true"),
        ("most_routes", "64"),
    ] {
        let Err(NoPlan::Refused(refusal)) = planned(key, value, "ns2", &[]) else { panic!("{key} is taken") };
        let said = shown(&refusal);
        assert!(
            said.contains(&format!("`{key}` changes nothing under rules: ns2; rules: rfc3561")),
            "{said}"
        );
        assert!(planned(key, value, "rfc3561", &[]).is_ok(), "{key}");
        let other = planned(key, value, "rfc3561", &["routing.rules=ns2"]);
        assert!(other.is_ok(), "{key} stands where other rules are set");
    }
}

#[test]
fn an_arm_of_the_kernel_has_in_its_settings_what_the_kernel_takes() {
    let sets = ["arms.k={ receiver: kernel, sender: kernel:cubic }", "tcp.sack=true", "world=netns"];
    let scenario = read(CHAIN, &sets);
    let settings = |arm: &str| scenario.under(arm).expect("an arm").settings();
    let (ours, kernels) = (settings("x"), settings("k"));
    assert_eq!(ours["tcp"]["in_force"]["sack"], true);
    assert_eq!(
        kernels["tcp"],
        serde_json::json!({ "in_force": { "nagle": ours["tcp"]["in_force"]["nagle"] } })
    );
    assert_eq!(kernels["traffic"], ours["traffic"], "segments have the same size");
    assert_eq!(kernels["radio"]["arp"], true, "kernels ask for addresses");
}

#[test]
fn an_arm_whose_acks_a_daemon_thins_says_its_agent_and_is_refused_where_no_kernel_acknowledges() {
    let arm = |keys: &str| format!("arms={{ k: {{ sender: kernel:cubic, {keys} }} }}");
    let thinned = arm("receiver: kernel, thin: aad");
    let scenario = read(CHAIN, &["world=netns", &thinned]);
    let settings = scenario.under("k").expect("an arm").settings();
    assert_eq!(settings["arm"]["thin"], "aad");
    assert!(settings["arm"]["parameters"]["thin"].is_object(), "{settings}");
    for (sets, said) in [
        (&[&*thinned][..], "no kernel whose ACKs `thin` could hold; world: netns, hwsim or mesh"),
        (
            &["world=netns", "arms={ k: { thin: aad } }"],
            "`thin` holds ACKs of the kernel's TCP, and this arm has ours; receiver: kernel with",
        ),
        (&["world=netns", &arm("receiver: kernel, thin: delayd")], "did you mean `delayed`"),
        (
            &["world=netns", &thinned, "traffic=[{ from: first, to: last, kind: cbr, every: 50ms }]"],
            "no flow is over TCP; a flow over TCP",
        ),
    ] {
        let refused = refused(sets);
        assert!(refused.contains(said), "{sets:?}: {refused}");
    }
}

#[test]
fn segments_that_the_kernel_does_not_cut_are_refused_and_short_datagrams_are_not() {
    let kernel = "arms={ k: { receiver: kernel, sender: kernel:cubic } }";
    let flow = |kind: &str| format!("traffic=[{{ from: first, to: last, kind: bulk }}, {kind}]");
    let short = flow("{ from: first, to: last, kind: bulk, segment_bytes: 75 }");
    let said = refused(&["world=netns", kernel, &short]);
    assert!(said.contains("segments as short as this") && said.contains("76 or more"), "{said}");
    for datagrams in ["kind: probe, every: 200ms", "kind: cbr, every: 50ms, segment_bytes: 40"] {
        let flow = flow(&format!("{{ from: first, to: last, background: true, {datagrams} }}"));
        let planned = planned(CHAIN, &["world=netns", kernel, &flow]);
        assert!(planned.is_ok(), "{datagrams}: {planned:?}");
    }
}

#[test]
fn queues_that_no_device_of_a_kernel_can_have_are_refused() {
    let wire = "topology.wired={ rate: 1mbit, delay: 1ms, queue_packets: 2 }";
    for (set, place) in [("radio.queue_packets=2", "--set:1:21"), (wire, "--set:1:")] {
        let said = refused(&["world=netns", set]);
        assert!(said.contains("longer queues in the world netns") && said.contains("3 or more"), "{said}");
        assert!(said.contains(place), "{said}");
        assert!(Scenario::parse("a", CHAIN, &[set.to_owned()]).is_ok(), "{set}");
    }
}

/// Settings, each refused with its problem.
fn are_refused(settings: &[(&str, &str)]) {
    for (set, problem) in settings {
        let refused = refused(&[set]);
        assert!(refused.contains(problem), "{set}: {refused}");
    }
}

/// A setting, and its problem.
const REFUSED: &[(&str, &str)] = &[
    ("topology.hops=0", "--set:1:15: hops: 0"),
    ("topology.hops=10000", "hops: 10000 is out of range; 1 to 9999 hops"),
    ("topology.hops=-1", "hops: -1 is out of range; 1 to 9999 hops"),
    ("topology.spacing_m=0", "spacing_m: 0"),
    ("topology.kind=grid", "--set:1:15: with this, `topology.hops` does not hold: `hops` belongs"),
    ("radio.profile=dsss-3mbps", "no profile is called `dsss-3mbps`"),
    ("radio={ profile: ht20-mcs16 }", "no profile is called `ht20-mcs16`"),
    (
        "radio.guard_interval=short",
        "`guard_interval` changes nothing under `dsss-2mbps`; a profile of 802.11n",
    ),
    ("radio={ profile: ofdm-54mbps, band: 5ghz }", "`band` changes nothing under `ofdm-54mbps`"),
    ("radio={ profile: ht20-mcs7, band: 6ghz }", "`6ghz`"),
    ("radio={ profile: ht20-mcs7, ampdu: many }", "expected a whole number of packets, 2 to 64, or off"),
    ("radio={ profile: ht20-mcs7, ampdu: 65 }", "ampdu: 65 is out of range; 2 to 64 packets"),
    ("radio.amsdu=3839", "`amsdu` changes nothing under `dsss-2mbps`"),
    ("radio.ampdu=8", "`ampdu` changes nothing under `dsss-2mbps`"),
    ("radio.profile=ht20-mcs7", "ns-2 has no 802.11n"),
    ("radio={ profile: dsss-11mbps, rate: arf, mcs: [1] }", "`mcs` changes nothing under `dsss-11mbps`"),
    ("radio.rates=[1mbit]", "`rates` changes nothing at a fixed rate; rate: arf or rate: minstrel"),
    ("radio={ rate: arf, rates: [] }", "there is no rate; 1mbit, 2mbit"),
    ("radio={ profile: dsss-11mbps, rate: arf, rates: [2mbit, 6mbit] }", "1mbit, 2mbit, 5.5mbit, 11mbit"),
    (
        "radio={ cts_to_self: true, rts_threshold: off }",
        "ns-2 has no CTS to the sender itself; rules: standard",
    ),
    ("radio.rts_threshold=-4", "rts_threshold: -4 is out of range; 0 to 65536 bytes"),
    ("run.duration=-3s", "`-3s`"),
    ("run.duration=10s", "--set:1:14: with this, `run.warmup` does not hold: the warm-up of "),
    ("world=mash", "`mash` does not fit here"),
    ("claims=[{ says: a, arm: x, ratio: 2, over: tcp }]", "the other arm stands under `against`"),
    ("routing.protocol=olsr", "`olsr` does not fit here"),
    ("routing={ protocol: aodv, net_diameter: 0 }", "net_diameter: 0 is out of range; 1 to 250 hops"),
    ("routing={ protocol: aodv, active_route_timeout: 2h }", "active_route_timeout: 2h is out of range"),
    ("routing={ protocol: aodv, hops: 3 }", "unknown field `hops`"),
    (
        "routing={ protocol: aodv, net_diameters: 3 }",
        "unknown field `net_diameters`; did you mean `net_diameter`? expected one of `protocol`",
    ),
    (
        "routing={ protocol: aodv, ttl_start: 300 }",
        "--set:1:38: ttl_start: 300 is out of range; 1 to 250 hops",
    ),
    ("routing={ protocol: aodv, ttl_start: x }", "`x` does not fit here; expected a whole number of hops"),
    ("routing={ protocol: aodv, jitter: 5 }", "`5` has no unit; expected a time with its unit"),
    ("routing={ protocol: gpsr, gpsr: { planar: gs } }", "`gs` does not fit here; did you mean `gg`?"),
    ("routing={ protocol: aodv, key: '', ack_seq: true }", "--set:1:32: the key is empty"),
    ("routing={ protocol: dymo, dymo: { key: a } }", "`key` changes nothing here; ack_seq: true beside it"),
    ("routing={ protocol: aodv, rules: ns2, signed: true }", "the rules of ns-2 have no signatures"),
    ("routing.rules=rfc3561", "--set:1:9: `rules` changes nothing under protocol: static"),
    ("routing.net_diameter=9", "--set:1:9: `net_diameter` changes nothing under protocol: static"),
    ("routing={ protocol: aodv, rules: ns2, hello: true }", "`hello` changes nothing under rules: ns2"),
    ("routing={ protocol: dymo, dymo: { max_hopcount: 0 } }", "max_hopcount: 0 is out of range"),
    ("routing={ protocol: dymo, dymo: { jitter: 2h } }", "jitter: 2h is out of range"),
    ("arms.x.set={ routing.rules: rfc3561 }", "--set:1:14: `rules` changes nothing"),
    ("traffic.0.background=true", "--set:1:11: all flows are in the background"),
    ("traffic.0.to=n9", "no node is called `n9`"),
    ("traffic.0.to=first", "are the same node"),
    ("arms.x.receiver=imediate", "imediate"),
    ("arms.x.sender=[\"limit:4\"]", "sender"),
    ("arms={}", "no arm"),
    ("mac.rule=ns2", "--set:1:5: unknown field `rule`"),
    ("topology.hopps=3", "--set:1:10: unknown field `hopps`"),
    ("run.seeds=0", "--set:1:11: seeds: 0 is out of range"),
    ("run.margin=100%", "margin: 100% is out of range"),
    ("run.baseline=y", "no arm is called `y`"),
    ("run.stop=sometimes", "`sometimes` does not fit here"),
    ("arms.x.set={ arms.x.receiver: dca }", "an arm cannot change the arms"),
    ("arms.x.set={ run.seeds: 3 }", "the whole trial"),
    ("arms.x.set={ topology.hops: 0 }", "hops: 0"),
    ("rules=[{ match: { from: n9 }, receiver: dca }]", "`n9` is no peer"),
    ("rules=[{ receiver: dcaa }]", "dcaa"),
];

#[test]
fn what_makes_no_sense_is_refused_where_it_stands() {
    are_refused(REFUSED);
}

/// The same for channels, places and movements.
const REFUSED_OF_THE_AIR: &[(&str, &str)] = &[
    ("channel={ shadowing_db: -1 }", "shadowing_db: -1"),
    ("channel={ fading: rayleigh }", "`doppler_hz` is missing"),
    ("channel={ exponent: 3 }", "`exponent` changes nothing here; path_loss: log-distance beside it"),
    ("channel.doppler_hz=3", "`doppler_hz` changes nothing here"),
    ("channel={ fading: rayleigh, doppler_hz: 3, k: 4 }", "`k` changes nothing here; fading: rician"),
    ("channel={ asymmetric: true }", "`asymmetric` changes nothing here; shadowing_db: 4"),
    ("channel={ outages: [{ from: n0, to: n9, begins: 1s, ends: 2s }] }", "no node is called `n9`"),
    ("channel={ outages: [{ from: n0, to: n1, begins: 2s, ends: 1s }] }", "the end is before the beginning"),
    ("channel={ outages: [{ from: n0, to: n1, begins: -2s, ends: 1s }] }", "`-2s`"),
    ("channel={ links: [link n0-n9 loses 1%] }", "no node is called `n9`"),
    ("channel={ links: [link n0-n1 breaks] }", "not understood"),
    ("channel={ links: [link n0-n1 down from 2 s to 1 s] }", "the end is before the beginning"),
    ("channel={ noise_dbm: -94 }", "no curves for `dsss-2mbps`"),
    (
        "topology.spacing_m=300",
        "does not hold: no route leads from `first` to `last`: 300.0 m lie between n3 and n4",
    ),
    (
        "topology.hops=65",
        "the route from `first` to `last` has 65 hops, and packets set out with a hop limit of 64",
    ),
    ("topology={ kind: grid, rows: 100, columns: 100, spacing_m: 1 }", "pairs of nodes would hear"),
    ("topology={ kind: grid, rows: 1000, columns: 1000 }", "that makes 1000000 nodes"),
    ("topology={ kind: random, nodes: 1000000, width_m: 9, height_m: 9 }", "nodes: 1000000"),
    ("topology={ kind: random, nodes: 5, width_m: 90000, height_m: 9 }", "none is connected"),
    ("topology={ kind: movements, file: nowhere.tcl }", "No such file"),
    ("topology={ kind: movements, file: src }", "expected a regular file"),
    ("mobility={ speed_mps: [0, 5], width_m: 500, height_m: 500 }", "speed_mps: 0 is out of range"),
    ("mobility={ speed_mps: [5, 1], width_m: 500, height_m: 500 }", "speeds from 5 to 1 m/s"),
    ("mobility={ speed_mps: [1, 5], width_m: 500 }", "`height_m` is missing"),
    ("mobility={ speed_mps: [1, 5], width_m: -1, height_m: 5 }", "width_m: -1"),
    ("mobility={ speed_mps: [1, 5], pause: -1s, width_m: 5, height_m: 5 }", "`-1s`"),
];

#[test]
fn channels_places_and_movements_that_make_no_sense_are_refused() {
    are_refused(REFUSED_OF_THE_AIR);
}

#[test]
fn routings_constants_stand_where_a_protocol_may_use_them() {
    for sets in [
        &["routing.protocol=static"][..],
        &["routing.protocol=aodv", "routing.rules=rfc3561"],
        &["arms.y={ set: { routing.protocol: aodv } }", "routing.net_diameter=9"],
        &["matrix.routing.protocol=[static, aodv]", "routing.rules=rfc3561"],
    ] {
        let scenario = read(CHAIN, sets);
        let cell = scenario.asked().expect("it can be asked").cells[0].clone();
        scenario
            .at(&cell)
            .expect("a point")
            .under("x")
            .and_then(|arm| arm.prepare(1))
            .unwrap_or_else(|refusal| panic!("{sets:?}: {refusal}"));
    }
    let alone = CHAIN.replace("protocol: static, rules: ns2", "rules: ns2");
    let Err(NoPlan::Refused(refusal)) = planned(&alone, &[]) else { panic!("no protocol is named") };
    assert!(
        shown(&refusal).contains("`rules` changes nothing") && shown(&refusal).contains("protocol: aodv")
    );
}

#[test]
fn an_arm_must_be_named_where_there_are_several_and_changes_what_it_sets() {
    let scenario = read(include_str!("../../../configs/chain.yaml"), &[]);
    let Err(NoPlan::WhichArm { arms }) = scenario.plan(None, 1) else { panic!("several arms") };
    assert_eq!(arms, ["every", "delayed", "shallow"]);
    let queue = |arm| scenario.plan(Some(arm), 1).expect("a plan").plan.queue_packets;
    assert_eq!((queue("every"), queue("shallow")), (50, 5));
}

#[test]
fn shapes_put_nodes_where_they_belong() {
    let places = |topology: &str| plan_of(CHAIN, &[&format!("topology={topology}")]);
    let cross = places("{ kind: cross, arm: 2 }").positions;
    assert_eq!((cross.len(), cross[2].map(|p| (p.x, p.y))), (9, Some((0.0, 0.0))));
    let grid = places("{ kind: grid, rows: 2, columns: 3, spacing_m: 100 }").positions;
    assert_eq!(grid[5].map(|p| (p.x, p.y)), Some((200.0, 100.0)));
    let random = places("{ kind: random, nodes: 50, width_m: 1500, height_m: 300 }").positions;
    assert!(random.iter().flatten().all(|p| (0.0..1500.0).contains(&p.x) && (0.0..300.0).contains(&p.y)));
    let hybrid = places("{ kind: chain, hops: 2, wired: { rate: 10mbit, delay: 50ms } }");
    assert_eq!((hybrid.positions.len(), hybrid.positions[0], hybrid.wires.len()), (4, None, 1));
}

#[test]
fn neighbours_ask_for_addresses_on_the_air_where_that_is_wanted() {
    let questions = |arp: &str| {
        let plan = plan_of(CHAIN, &["topology.hops=3", "run={ duration: 5s }", arp]);
        let mut simulation = crate::sim::Simulation::new(&plan).expect("it is built");
        let count = Rc::new(Cell::new(0));
        let counted = Rc::clone(&count);
        simulation.world().set_frames(Box::new(move |event, _| {
            let is_arp = event.sees == FrameEffect::Sends && event.frame.bytes == 28;
            counted.set(counted.get() + u32::from(is_arp && event.frame.to == EVERYONE));
        }));
        simulation.run_until(plan.end());
        (count.get(), simulation.results().flows[0].bytes_delivered > 100_000)
    };
    assert_eq!(questions("radio.arp=true"), (3, true), "one for each hop: whoever is asked knows who asks");
    assert_eq!(questions("radio.arp=false"), (0, true));
}

#[test]
fn a_wire_has_a_queue_of_its_own_where_one_is_said() {
    let wired = |more: &str| format!("topology.wired={{ rate: 1mbit, delay: 20ms{more} }}");
    let drops = |more: &str| {
        let plan = plan_of(CHAIN, &["run={ duration: 20s }", "topology.hops=1", &wired(more)]);
        crate::sim::run(&plan).expect("it runs").nodes[0].queue_drops
    };
    assert_ne!(drops(", queue_packets: 5"), drops(", queue_packets: 100"));
    assert_eq!(drops(""), drops(", queue_packets: 50"), "the radio's, where nothing is said");
    assert!(refused(&[&wired(", queue_packets: 0")]).contains("queue_packets: 0 is out of range"));
}

#[test]
fn random_fields_hold_together() {
    let scenario = read(CHAIN, &["topology={ kind: random, nodes: 30, width_m: 1000, height_m: 700 }"]);
    for seed in 1..20 {
        let plan = scenario.plan(None, seed).expect("a plan").plan;
        assert!(crate::sim::Reach::of(&plan).is_connected(), "{seed}");
    }
}

#[test]
fn what_is_wrong_in_a_list_of_specs_is_shown_at_its_item() {
    let lists = "rules:\n  - sender:\n      - newreno\n      - limitt:4\n\
                 arms:\n  x:\n    sender: [newreno, \"limit:4\"]\n";
    let without_arms = CHAIN.lines().filter(|line| !line.starts_with("arms:") && !line.starts_with("  x:"));
    let text = without_arms.collect::<Vec<_>>().join("\n");
    let refused = |lists: &str| match planned(&format!("{text}\n{lists}"), &[]) {
        Err(NoPlan::Refused(refusal)) => (refusal.line - text.lines().count(), refusal.column),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(lists), (4, 9));
    assert_eq!(refused(&lists.replace("limitt", "limit").replace("\"limit:4\"", "\"limit:none\"")), (7, 30));
    let shadows = "arms:\n  x: { shadows: [delayed, \"delayed:d=1\", immediate] }\n";
    assert_eq!(refused(shadows), (2, 38));
    let set = self::refused(&["arms.x.sender=[newreno, cubicc]"]);
    assert!(set.starts_with("--set:1:25: no sender agent is called `cubicc`"), "{set}");
}
