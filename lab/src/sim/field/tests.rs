//! A field that is recorded and played again carries what it carried.

use std::time::Duration;

use super::record;
use crate::scenario::{Prepared, Scenario};
use crate::sim::{Results, Simulation};

/// Links that fade, fail, lose frames and differ by direction, among them one that is out for five seconds.
const SCENE: &str = "
topology: { kind: chain, hops: 3, spacing_m: 180 }
radio: { profile: ofdm-6mbps, rts_threshold: off }
channel:
  fading: rician
  k: 6
  doppler_hz: 1
  links:
    - link n0-n1 down from 12 s to 17 s
    - link n1->n2 loses 3%
    - link n3->n2 gains -2 dB
traffic: [{ from: first, to: last, kind: bulk, segment_bytes: 1000 }]
arms: { x: { receiver: delayed, sender: [newreno] } }
run: { duration: 40s, warmup: 4s }
";

const EVERY: Duration = Duration::from_millis(20);

fn prepared(sets: &[String], seed: u64) -> Prepared {
    planned(SCENE, sets, seed)
}

fn planned(scene: &str, sets: &[String], seed: u64) -> Prepared {
    let scenario = Scenario::parse("scene", scene, sets).expect("a scenario");
    scenario.plan(None, seed).unwrap_or_else(|no_plan| panic!("{no_plan:?}"))
}

fn recorded(prepared: &Prepared, every: Duration) -> (String, Results) {
    let mut simulation = Simulation::new(&prepared.plan).expect("a world");
    let mut text = Vec::new();
    record(&mut simulation, &prepared.names, every, &mut text).expect("it is written");
    (String::from_utf8(text).expect("a text"), simulation.results())
}

/// Plays a recording over the scene that made it: its models stay in the file and have no effect.
fn played<T>(text: &str, more: &[&str], seed: u64, then: impl FnOnce(&Prepared) -> T) -> T {
    played_over(SCENE, text, more, seed, then)
}

fn played_over<T>(scene: &str, text: &str, more: &[&str], seed: u64, then: impl FnOnce(&Prepared) -> T) -> T {
    static NTH: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let nth = NTH.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("hopwise-field-{}-{nth}.csv", std::process::id()));
    std::fs::write(&path, text).expect("it is written");
    let mut sets = vec![format!("channel.trace={}", path.display())];
    sets.extend(more.iter().map(|set| (*set).to_owned()));
    let prepared = planned(scene, &sets, seed);
    std::fs::remove_file(&path).expect("it is removed");
    then(&prepared)
}

fn goodput(prepared: &Prepared) -> f64 {
    crate::sim::run(&prepared.plan).expect("it runs").flows[0].goodput_kbps
}

#[test]
fn a_recording_changes_nothing_in_the_run_that_it_is_of() {
    let prepared = prepared(&[], 1);
    let alone = crate::sim::run(&prepared.plan).expect("it runs");
    assert_eq!(recorded(&prepared, EVERY).1, alone);
}

/// The smallest difference of the channel makes another run of TCP: single runs of one field differ by a fifth.
#[test]
fn a_field_that_is_played_again_gives_the_goodput_that_was_measured() {
    let (mut measured, mut again) = (Vec::new(), Vec::new());
    for seed in 1..=4 {
        let prepared = prepared(&[], seed);
        let (text, results) = recorded(&prepared, EVERY);
        measured.push(results.flows[0].goodput_kbps);
        again.push(played(&text, &[], seed, goodput));
    }
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let ratio = mean(&again) / mean(&measured);
    assert!((0.9..=1.1).contains(&ratio), "{ratio}: {measured:?} {again:?}");
}

/// A chain of 802.11n whose second neighbours sense each other.
const TODAY: &str = "
topology: { kind: chain, hops: 4, spacing_m: 200 }
radio: { profile: ht20-mcs7, rts_threshold: off, queue_packets: 100 }
traffic: [{ from: first, to: last, kind: bulk, segment_bytes: 1448 }]
arms: { x: { receiver: delayed, sender: [cubic] } }
run: { duration: 15s, warmup: 3s }
";

/// The rows of neighbours, since recorders hear them alone.
fn of_neighbours(text: &str) -> String {
    let number = |name: &str| name.trim_start_matches('n').parse::<i32>().ok();
    let is_kept = |line: &&str| {
        let names: Vec<_> = line.split(',').skip(1).take(2).map(number).collect();
        !matches!(names[..], [Some(from), Some(to)] if (from - to).abs() != 1)
    };
    text.lines().filter(is_kept).map(|line| format!("{line}\n")).collect()
}

#[test]
fn those_who_do_not_hear_each_other_are_sensed_if_path_loss_says_so() {
    let [mut measured, mut all, mut neighbours, mut with_path_loss] = [0.0; 4];
    for seed in 1..=3 {
        let (text, results) = recorded(&planned(TODAY, &[], seed), Duration::from_millis(500));
        measured += results.flows[0].goodput_kbps;
        let heard = of_neighbours(&text);
        let again = |text: &str, more: &[&str]| played_over(TODAY, text, more, seed, goodput);
        all += again(&text, &[]);
        neighbours += again(&heard, &[]);
        with_path_loss += again(&heard, &["channel.unheard=path-loss"]);
    }
    let of_measured = [all, neighbours, with_path_loss].map(|sum| sum / measured);
    println!("of what was measured: all rows, neighbours, neighbours and path loss: {of_measured:.2?}");
    assert!((0.95..=1.05).contains(&of_measured[0]), "{of_measured:?}");
    assert!(of_measured[1] > 1.2, "hidden stations are missing: {of_measured:?}");
    assert!((0.95..=1.05).contains(&of_measured[2]), "{of_measured:?}");
}

#[test]
fn two_plays_of_a_recording_are_the_same_to_the_bit() {
    let (text, _) = recorded(&prepared(&[], 1), EVERY);
    played(&text, &["run={ duration: 10s }"], 1, |prepared| {
        let run = || crate::sim::run(&prepared.plan).expect("it runs");
        assert_eq!(run(), run());
    });
}

#[test]
fn a_play_that_is_recorded_has_the_powers_of_its_recording() {
    let every = Duration::from_millis(500);
    let powers = |text: &str| -> Vec<String> {
        // The time, the link, its signal, its noise and its loss.
        text.lines().skip(2).map(|line| line.split(',').take(6).collect::<Vec<_>>().join(",")).collect()
    };
    let short = "run={ duration: 10s }".to_owned();
    let (text, _) = recorded(&prepared(std::slice::from_ref(&short), 1), every);
    let twice = played(&text, &[&short], 1, |prepared| recorded(prepared, every).0);
    assert_eq!(powers(&twice), powers(&text));
    assert!(powers(&text).len() > 100);
}

#[test]
fn a_run_may_not_outlast_its_recording_nor_begin_without_a_route() {
    let (text, _) = recorded(&prepared(&["run={ duration: 10s }".to_owned()], 1), EVERY);
    let path = std::env::temp_dir().join(format!("hopwise-field-{}-short.csv", std::process::id()));
    let refused = |text: &str, more: &str| {
        std::fs::write(&path, text).expect("it is written");
        let sets = [format!("channel.trace={}", path.display()), more.to_owned()];
        let scenario = Scenario::parse("scene", SCENE, &sets).expect("a scenario");
        format!("{:?}", scenario.plan(None, 1).expect_err("it is refused"))
    };
    let long = refused(&text, "run.seeds=1");
    assert!(long.contains("after the recording's last row at 10"), "{long}");
    let parted: String =
        text.lines().filter(|line| !line.contains("n1,n2")).map(|line| format!("{line}\n")).collect();
    let parted = refused(&parted, "run={ duration: 10s }");
    assert!(
        parted.contains("no route leads") && parted.contains("strong enough in its first 10 s"),
        "{parted}"
    );
    let strange = refused(&text.replace(",n3,", ",roof,"), "run={ duration: 10s }");
    assert!(strange.contains("no node is called `roof`, expected a name of the topology"), "{strange}");
    std::fs::remove_file(&path).expect("it is removed");
}

#[test]
fn a_second_source_of_powers_beside_a_recording_is_refused_and_so_is_no_file() {
    let plain = "
topology: { kind: chain, hops: 1 }
traffic: [{ from: first, to: last, kind: bulk }]
arms: { x: { receiver: delayed } }
run: { duration: 2s }
channel: ";
    for (channel, problem) in [
        ("{ trace: nowhere.csv }", "No such file"),
        ("{ trace: src }", "expected a regular file"),
        ("{ trace: a.csv, fading: none }", "`fading` changes nothing beside a recording"),
        ("{ trace: a.csv, shadowing_db: 3 }", "`shadowing_db` changes nothing beside a recording"),
        ("{ trace: a.csv, links: [link n0-n1 gains 3 dB] }", "a gain changes nothing beside a recording"),
        ("{ trace: a.csv, path_loss: two-ray }", "`path_loss` changes nothing beside a recording"),
        ("{ trace: a.csv, unheard: path-loss, k: 3 }", "`k` changes nothing beside a recording"),
        ("{ unheard: path-loss }", "`unheard` changes nothing here"),
    ] {
        let scenario = Scenario::parse("a", &format!("{plain}{channel}\n"), &[]).expect("it is read");
        let refused = format!("{:?}", scenario.plan(None, 1).expect_err(channel));
        assert!(refused.contains(problem), "{channel}: {refused}");
    }
}

#[test]
fn the_recording_that_comes_with_hopwise_runs() {
    let text = include_str!("../../../../configs/field.yaml");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/field.csv");
    let scenario = Scenario::parse("field", text, &[format!("channel.trace={file}")]).expect("it is read");
    let prepared = scenario.plan(None, 1).expect("a plan");
    assert!(goodput(&prepared) > 1_000.0);
    let settings = format!("{:?}", scenario.only(None).expect("an arm").settings());
    assert!(settings.contains("trace_sha256"), "{settings}");
}

#[test]
fn hosts_without_a_node_s_name_are_nodes_in_their_order() {
    let short = "run={ duration: 10s }";
    let (text, _) = recorded(&prepared(&[short.to_owned()], 1), EVERY);
    let hosts = ["n0", "n1", "n2", "n3"].iter().zip(["gate", "roof", "shed", "yard"]);
    let renamed = hosts.fold(text.clone(), |text, (node, host)| text.replace(node, host));
    assert!(renamed.contains("# nodes gate,roof,shed,yard"));
    assert_eq!(played(&renamed, &[short], 1, goodput), played(&text, &[short], 1, goodput));
}

#[test]
fn nodes_that_walked_are_played_with_their_powers_and_places_of_the_beginning() {
    let walk = "mobility={ speed_mps: [1, 3], width_m: 400, height_m: 200 }";
    let sets =
        [walk, "channel={ loss: 1% }", "topology={ kind: random, nodes: 4, width_m: 400, height_m: 200 }"];
    let sets = sets.map(str::to_owned);
    let prepared = prepared(&sets, 3);
    let (text, results) = recorded(&prepared, Duration::from_millis(100));
    let measured = results.flows[0].goodput_kbps;
    let again = played(&text, &[walk, &sets[2], "channel.links=[]"], 3, goodput);
    println!("walkers: measured {measured:.1}, played {again:.1} kbit/s");
    assert!(measured > 100.0 && (again / measured - 1.0).abs() < 0.1, "{measured} {again}");
}
