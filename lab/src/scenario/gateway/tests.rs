use hopwise_core::LinkEvent;
use hopwise_mesh::LinkSource;

use crate::scenario::tests::read;
use crate::scenario::{NoPlan, Scenario};
use crate::sim::{Results, Simulation, live_news};

const TEXT: &str = include_str!("../../../../configs/base-station.yaml");
const PACED: &str = include_str!("../../../../configs/base-station-paced.yaml");
const PAPERS: [(&str, &str); 2] = [
    ("one-outage", include_str!("../../../../configs/papers/ack_holding/one-outage.yaml")),
    ("two-outages", include_str!("../../../../configs/papers/ack_holding/two-outages.yaml")),
];

fn run(text: &str, arm: &str, sets: &[&str]) -> Results {
    let plan = read(text, sets).plan(Some(arm), 1).expect("a plan").plan;
    let mut simulation = Simulation::new(&plan).expect("it is built");
    simulation.run_until(simulation.plan.end());
    simulation.results()
}

/// A fade of 2 s in a run of 8 s.
const SHORT: [&str; 2] =
    ["channel.outages=[{ from: n0, to: n1, begins: 3s, ends: 5s }]", "run={ duration: 8s }"];

#[test]
fn every_arm_of_every_file_has_a_plan() {
    for (name, text) in PAPERS.into_iter().chain([("base-station", TEXT), ("base-station-paced", PACED)]) {
        let scenario = read(text, &[]);
        let Err(NoPlan::WhichArm { arms }) = scenario.plan(None, 1) else { panic!("several arms") };
        for arm in arms {
            let cell = scenario.asked().expect("a trial").cells.remove(0);
            let there = scenario.at(&cell).and_then(|there| there.under(&arm)).expect("an arm");
            let plan = there.prepare(1).expect("a plan").plan;
            assert_eq!(plan.gateway.map(|gateway| gateway.node), Some(1), "{name}: {arm}");
            assert!(there.settings()["gateway"]["lead"].is_string());
        }
    }
}

/// Where a kernel's TCP may have one, and where it may not.
#[test]
fn an_arm_of_the_kernel_has_a_base_station_in_namespaces() {
    let arm = "arms.kick={ receiver: kernel, sender: kernel:cubic, base_station: \"ack-hold:mode=kick\" }";
    let scenario = read(TEXT, &["world=netns", arm]);
    let plan = scenario.plan(Some("kick"), 1).expect("a plan").plan;
    assert_eq!((plan.arm.algorithm(), plan.arm.base_station.is_some()), (Some("cubic"), true));
    let settings = scenario.under("kick").expect("an arm").settings();
    assert_eq!(settings["arm"]["parameters"]["base_station"]["ack-hold.mode"], "kick");
    for (world, said) in
        [("hwsim", "radios have no wires beside them"), ("sim", "the simulation has no kernel")]
    {
        let refused = Scenario::parse("fade", TEXT, &[format!("world={world}"), arm.to_owned()])
            .map_err(NoPlan::Refused)
            .and_then(|scenario| scenario.plan(Some("kick"), 1).map(drop));
        let Err(NoPlan::Refused(refusal)) = refused else { panic!("{world}: {refused:?}") };
        assert!(refusal.to_string().contains(said), "{world}: {refusal}");
    }
}

/// The addresses by which a live proxy knows its mobiles.
#[test]
fn news_for_a_live_proxy_are_of_the_addresses_of_the_arm_s_tcp() {
    let kernel = "arms.none={ receiver: kernel, sender: kernel:cubic }";
    let peers = |arm: &str| {
        let plan = read(TEXT, &["world=netns", kernel]).plan(Some(arm), 1).expect("a plan").plan;
        let mut news = live_news(&plan);
        let told =
            std::iter::from_fn(|| news.poll_news(plan.end())).map(|news| (news.at.as_millis(), news.event));
        told.map(|(at, event)| match event {
            LinkEvent::GoingDown { peer, .. } | LinkEvent::Gone { peer } | LinkEvent::Up { peer } => {
                (at, peer)
            }
            other => panic!("{other:?}"),
        })
        .collect::<Vec<_>>()
    };
    let all = |address: [u8; 4]| [9_800, 10_000, 20_000].map(|at| (at, address.into()));
    assert_eq!((peers("none"), peers("kick")), (all([10, 0, 0, 3]).to_vec(), all([10, 64, 0, 3]).to_vec()));
}

/// As the schema tells it.
#[test]
fn a_gateway_without_a_name_is_n0() {
    let node = |set: &str| {
        read(TEXT, &[set]).plan(Some("kick"), 1).expect("a plan").plan.gateway.map(|gateway| gateway.node)
    };
    assert!(node("gateway={}").is_some());
    assert_eq!(node("gateway={}"), node("gateway={ node: n0 }"));
}

#[test]
fn a_gateway_that_cannot_be_is_refused_at_its_place() {
    for (set, said) in [
        ("gateway.node=n1", "`n1` is no node with a wire and a radio"),
        ("gateway.node=w0", "`w0` is no node with a wire and a radio"),
        ("gateway.node=x9", "`x9` is no node with a wire and a radio"),
        ("topology={ kind: chain, hops: 2 }", "`n0` is no node with a wire and a radio"),
        ("gateway=null", "no node runs it"),
        ("gateway.missing=120%", "120%"),
        ("gateway={ node: n0, source: predictor, slope_db_s: 0 }", "slope_db_s: 0 is out of range"),
        ("gateway={ node: n0, source: predictor, noise_db: .nan }", "noise_db: NaN is out of range"),
        ("gateway={ node: n0, source: predictor, shadow_db: -1 }", "shadow_db: -1 is out of range"),
        ("gateway.slope_db_s=10", "`slope_db_s` changes nothing under source: truth"),
        ("gateway={ source: predictor, late: 1s }", "`late` changes nothing under source: predictor"),
        ("gateway.false_alarms=99999", "false_alarms: 99999 is out of range"),
        ("arms.kick.base_station=ack-hold:mode=kock", "cannot be `kock`"),
        ("arms.kick.base_station=delayed", "a base-station agent is wanted"),
    ] {
        let scenario = Scenario::parse("fade", TEXT, &[set.to_owned()]).map_err(NoPlan::Refused);
        let Err(NoPlan::Refused(refusal)) = scenario.and_then(|there| there.plan(Some("kick"), 1)) else {
            panic!("{set} was accepted")
        };
        assert!(refusal.to_string().contains(said), "{set}: {refusal}");
    }
}

#[test]
fn holding_and_kicking_carry_no_less_through_a_fade_than_a_router() {
    let bytes = |arm| run(TEXT, arm, &SHORT).flows[0].bytes_delivered;
    let router = bytes("none");
    for arm in ["kick", "corrected", "cumulative", "hopwise"] {
        assert!(bytes(arm) * 100 >= router * 99, "{arm}: {} of {router}", bytes(arm));
    }
}

#[test]
fn a_sender_whose_acks_are_paced_does_not_time_out_and_one_that_is_kicked_does() {
    let timeouts = |arm| run(TEXT, arm, &SHORT).flows[0].sender.timeouts;
    assert_eq!(timeouts("cumulative"), Some(0));
    assert!(timeouts("kick") > Some(0));
}

#[test]
fn a_large_window_is_paced_through_a_long_fade_where_no_timeout_is_taken_back() {
    let sets = ["channel.outages=[{ from: n0, to: n1, begins: 15s, ends: 25s }]", "run={ duration: 45s }"];
    let [kick, hopwise] = ["kick", "hopwise"].map(|arm| run(PACED, arm, &sets).flows[0].clone());
    assert!(kick.sender.timeouts > Some(0) && hopwise.sender.timeouts == Some(0), "{hopwise:?}");
    assert!(hopwise.bytes_delivered * 10 > kick.bytes_delivered * 11, "{hopwise:?} {kick:?}");
    // If too few ACKs come in the lead to cover the fade, it is a kick.
    let late = [&sets[..], &["gateway.lead=5ms"]].concat();
    let [kick, hopwise] = ["kick", "hopwise"].map(|arm| run(PACED, arm, &late).flows[0].bytes_delivered);
    assert!(hopwise * 100 >= kick * 99, "{hopwise} {kick}");
}

#[test]
fn a_forecast_that_never_comes_leaves_every_mode_a_kick() {
    let sets = [&SHORT[..], &["gateway.missing=100%"]].concat();
    let bytes = |arm| run(TEXT, arm, &sets).flows[0].bytes_delivered;
    assert_eq!(bytes("cumulative"), bytes("kick"));
}

#[test]
fn four_false_alarms_in_eight_seconds_cost_less_than_a_tenth() {
    let quiet = ["channel.outages=[{ from: n0, to: n1, begins: 9s, ends: 10s }]", "run={ duration: 8s }"];
    let sets = [&quiet[..], &["gateway.false_alarms=4"]].concat();
    let (alarmed, router) = (run(TEXT, "cumulative", &sets), run(TEXT, "none", &quiet));
    let (alarmed, router) = (alarmed.flows[0].bytes_delivered, router.flows[0].bytes_delivered);
    assert!(alarmed * 10 > router * 9, "{alarmed} of {router}");
}

#[test]
fn a_predictor_may_be_asked_instead_of_the_truth() {
    let sets = [&SHORT[..], &["gateway.source=predictor"]].concat();
    let [router, kick, paced] =
        ["none", "kick", "cumulative"].map(|arm| run(TEXT, arm, &sets).flows[0].clone());
    assert!(kick.bytes_delivered * 100 >= router.bytes_delivered * 98, "{kick:?} {router:?}");
    // ACKs held by a forecast cost more if it is half a second late and gives one second for two.
    assert!(paced.bytes_delivered * 10 >= router.bytes_delivered * 9, "{paced:?} {router:?}");
    // It predicts this fade: paced ACKs differ from kicked ones.
    assert_ne!(kick.sender, paced.sender);
    let sudden = [&sets[..], &["gateway.slope_db_s=1000000"]].concat();
    let bytes = |arm| run(TEXT, arm, &sudden).flows[0].bytes_delivered;
    assert_eq!(bytes("cumulative"), bytes("kick"), "and a sudden one it does not");
}

#[test]
fn the_same_seed_fades_the_same_way() {
    assert_eq!(run(TEXT, "hopwise", &SHORT), run(TEXT, "hopwise", &SHORT));
}

#[test]
fn timeouts_that_were_needless_are_taken_back_once_and_start_no_recovery() {
    let sender = &run(TEXT, "kick", &SHORT).flows[0].sender;
    assert!(
        sender.timeouts > Some(0) && sender.fast_retransmits.is_some_and(|count| count <= 5),
        "{sender:?}"
    );
    // Packets are not smaller either: three times their number would find the queues full.
    assert!(sender.segments_retransmitted.is_some_and(|count| count < 400), "{sender:?}");
}

#[test]
fn an_outage_with_a_shift_begins_at_another_time_for_each_seed() {
    let shifted = "channel.outages=[{ from: n0, to: n1, begins: 3s, ends: 5s, shift: 20s }]";
    let scenario = read(TEXT, &[shifted]);
    let outage = |seed| scenario.plan(Some("kick"), seed).expect("a plan").plan.channel.outages[0];
    let begins: Vec<u64> = (1..=20).map(|seed| outage(seed).begins_ns / 1_000_000_000).collect();
    assert!(begins.iter().all(|second| (3..23).contains(second)), "{begins:?}");
    assert!(
        begins.iter().any(|second| *second < 10) && begins.iter().any(|second| *second > 16),
        "{begins:?}"
    );
    assert!((1..=20).all(|seed| outage(seed).ends_ns - outage(seed).begins_ns == 2_000_000_000));
    assert_eq!(outage(1).begins_ns, outage(1).begins_ns, "the same for all arms of a block");
}
