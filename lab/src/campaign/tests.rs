use std::cell::Cell;
use std::collections::BTreeSet;

use super::*;
use crate::located::READS;
use crate::report::tests::record;
use crate::scenario::tests::read;

const TEXT: &str = "topology: { kind: chain, hops: 2 }\n\
    traffic: [{ from: first, to: last, kind: bulk }]\n\
    arms:\n  every: { receiver: immediate }\n  plain:\n  dca: { receiver: dca, sender: [newreno, tell-cwnd] }\n\
    run: { duration: 10s, seeds: 4, baseline: plain }\n\
    matrix: { topology.hops: [1, 2], radio.rts_threshold: [0, off] }\n";

fn campaign(sets: &[&str], shard: Option<Shard>) -> Campaign {
    Campaign::new(&read(TEXT, sets), None, shard).expect("a campaign")
}

fn ids(campaign: &Campaign) -> BTreeSet<String> {
    campaign.runs.iter().map(|run| run.id.clone()).collect()
}

#[test]
fn every_arm_runs_at_every_point_with_every_seed_and_the_baseline_is_first() {
    let campaign = campaign(&[], None);
    assert_eq!(campaign.trial.arms, ["plain", "every", "dca"]);
    assert_eq!((campaign.runs.len(), ids(&campaign).len()), (4 * 4 * 3, 4 * 4 * 3));
    let order = campaign.order();
    let blocks: Vec<u32> = order.iter().map(|nth| campaign.runs[*nth].block).collect();
    assert!(blocks.is_sorted());
    // The arms of a block stand together, in changing order.
    let arms: BTreeSet<Vec<usize>> = order
        .chunks(3)
        .map(|chunk| {
            let points: BTreeSet<_> = chunk.iter().map(|nth| campaign.runs[*nth].point).collect();
            assert_eq!(points.len(), 1);
            chunk.iter().map(|nth| campaign.runs[*nth].arm).collect()
        })
        .collect();
    assert!(arms.len() > 2, "{arms:?}");
}

#[test]
fn more_runs_than_a_folder_holds_are_refused() {
    let refused = Campaign::new(&read(TEXT, &[]), Some(100_000), None).expect_err("1.2 million runs");
    assert_eq!(refused.to_string(), "a.yaml:7:30: that makes 1200000 runs");
}

#[test]
fn a_run_is_named_by_what_determines_it_and_by_nothing_else() {
    let plain = ids(&campaign(&[], None));
    for same in [
        "run.margin=5%",
        "run.figure=rtt-p95",
        "run.stop=when-sure",
        "run.baseline=dca",
        "title=another",
        "traffic.0.flows=1",
    ] {
        assert_eq!(ids(&campaign(&[same], None)), plain, "{same}");
    }
    let more = ids(&campaign(&["run.seeds=5"], None));
    assert!(more.is_superset(&plain) && more.len() > plain.len());
    for other in
        ["run.duration=11s", "tcp.nagle=false", "radio.queue_packets=40", "traffic.0.segment_bytes=900"]
    {
        assert!(ids(&campaign(&[other], None)).is_disjoint(&plain), "{other}");
    }
    // An arm's own change renames its own runs.
    let one = ids(&campaign(&["arms.every.receiver=delayed:3"], None));
    assert_eq!(one.intersection(&plain).count(), plain.len() * 2 / 3);
}

#[test]
fn shards_are_parts_of_whole_blocks_and_make_up_the_whole() {
    let whole = ids(&campaign(&[], None));
    let mut joined = BTreeSet::new();
    for index in 1..=3 {
        let part = campaign(&[], Some(Shard { index, count: 3 }));
        let blocks: BTreeSet<_> = part.runs.iter().map(|run| (run.point, run.block)).collect();
        assert_eq!(part.runs.len(), blocks.len() * 3);
        assert!((5..=6).contains(&blocks.len()));
        for id in ids(&part) {
            assert!(joined.insert(id), "no run is in two parts");
        }
    }
    assert_eq!(joined, whole);
}

#[test]
fn arms_are_equal_that_have_the_same_settings_at_every_point() {
    assert!(campaign(&[], None).equal_arms().is_empty());
    let twice = "arms.every={ receiver: dca, sender: [newreno, tell-cwnd] }";
    assert_eq!(campaign(&[twice], None).equal_arms(), [("every", "dca")]);
    // Written defaults change no settings.
    let written = "arms.every={ receiver: \"dca:far-limit=3\", sender: [newreno, tell-cwnd] }";
    assert_eq!(campaign(&[written], Some(Shard { index: 2, count: 3 })).equal_arms(), [("every", "dca")]);
    let of_other_queues =
        "arms.every={ receiver: dca, sender: [newreno, tell-cwnd], set: { radio.queue_packets: 5 } }";
    assert!(campaign(&[of_other_queues], None).equal_arms().is_empty());
}

#[test]
fn every_parameter_in_force_stands_in_the_settings() {
    let campaign = campaign(&[], None);
    let dca = campaign.runs.iter().find(|run| run.arm == 2).expect("a run");
    let settings = &dca.settings;
    assert_eq!(settings["arm"]["receiver"], "dca");
    assert_eq!(settings["arm"]["parameters"]["receiver"]["dca.far-limit"], "3");
    assert_eq!(settings["tcp"]["in_force"]["sack"], true);
    assert_eq!(settings["topology"]["spacing_m"], 200.0);
    assert_eq!(settings["radio"]["profile"], "dsss-2mbps");
    assert_eq!(settings["run"]["duration"], "10s");
}

#[test]
fn a_path_that_an_arm_sets_is_a_column_with_the_value_in_force() {
    let set = "arms.dca.set={ radio.queue_packets: 5, tcp: { nagle: false }, run.warmup: 2s }";
    let campaign = campaign(&[set, "arms.every.set={ topology.spacing_m: 100 }"], None);
    let paths = campaign.trial.paths();
    let own = ["topology.spacing_m", "radio.queue_packets", "run.warmup", "tcp.nagle"];
    assert_eq!(paths, [&["radio.rts_threshold", "topology.hops"], &own[..]].concat());
    let cells = |arm: &str| {
        let nth = campaign.trial.arms.iter().position(|name| name == arm).expect("an arm");
        let run = campaign.runs.iter().find(|run| run.arm == nth).expect("a run");
        let record = campaign.record(run, record(2, "a", 1, 1.0).result, None);
        crate::record::csv_row(&record, &own).split(',').skip(2).take(own.len()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(cells("dca"), "200.0 5 2s false");
    assert_eq!(cells("plain"), "200.0 50 0s true");
    assert_eq!(cells("every"), "100.0 50 0s true");
    let run = &campaign.runs[0];
    let record = campaign.record(run, record(2, "a", 1, 1.0).result, None);
    assert_eq!(record.varied("topology.rows"), None, "a chain has none");
}

#[test]
fn a_trial_is_sure_when_all_its_blocks_say_so() {
    let campaign = campaign(&["run.stop=when-sure", "run.seeds=40"], None);
    let goodput = |gain: f64| {
        let runs = &campaign.runs;
        move |nth: usize, _: usize| {
            let run = &runs[nth];
            let scatter = (run.seed * 7 % 5) as f64 + 0.3 * ((run.seed * 3 + run.arm as u64) % 4) as f64;
            Some((100.0 + scatter) * if run.arm == 0 { 1.0 } else { gain })
        }
    };
    let sure = |gain: f64| (2..=40).find(|block| campaign.is_sure(*block, &goodput(gain)));
    assert!(sure(1.3).is_some_and(|block| block < 10), "{:?}", sure(1.3));
    assert!(campaign.is_complete(40, &|nth| goodput(1.0)(nth, 0)));
    let without_one = |nth: usize| goodput(1.0)(nth, 0).filter(|_| nth != 5);
    assert!(!campaign.is_complete(40, &without_one));
}

#[test]
fn a_file_is_read_once_and_again_only_where_a_point_or_an_arm_changes_it() {
    let reads = |text: &str| {
        let before = READS.with(Cell::get);
        let scenario = read(text, &["tcp.nagle=false"]);
        let campaign = Campaign::new(&scenario, None, None).expect("a campaign");
        for run in &campaign.runs {
            campaign.prepare(run).expect("a plan");
        }
        READS.with(Cell::get) - before
    };
    let plain: String = TEXT.split_inclusive('\n').filter(|line| !line.starts_with("matrix")).collect();
    assert_eq!(reads(&plain), 1);
    assert_eq!(reads(TEXT), 1 + 4, "once more at each of four points");
    let sets = TEXT.replace("plain:\n", "plain: { set: { tcp.sack: false } }\n");
    assert_eq!(reads(&sets), 1 + 4 + 4, "and for the arm that sets something there");
}

#[test]
fn a_trial_is_sure_when_every_figure_is() {
    let campaign = campaign(&["run.stop=when-sure", "run.seeds=40", "run.figure=[goodput, rtt-p95]"], None);
    let runs = &campaign.runs;
    let known = |nth: usize, figure: usize| {
        let (run, scatter) = (&runs[nth], [0.01, 0.4][figure]);
        let chance = f64::from((run.block * 7 + run.arm as u32 * 3) % 5) - 2.0;
        (figure == 0 || run.block > 3)
            .then(|| (100.0 + 30.0 * run.arm as f64) * (1.0 + scatter * chance / 2.0))
    };
    let sure =
        |known: &dyn Fn(usize, usize) -> Option<f64>| (2..=40).find(|block| campaign.is_sure(*block, known));
    let goodput_twice = sure(&|nth, _| known(nth, 0)).expect("it is plain");
    assert!(
        goodput_twice < 10 && sure(&known).is_none_or(|block| block > goodput_twice + 2),
        "{:?}",
        sure(&known)
    );
}
