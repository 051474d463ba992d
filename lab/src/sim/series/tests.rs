use super::*;
use crate::scenario::Prepared;

const CHAIN: &str = "
topology: { kind: chain, hops: 4, spacing_m: 200 }
traffic: [{ from: first, to: last, kind: bulk, flows: 2, start: 1s }]
arms: { x: { receiver: delayed, sender: [newreno] } }
run: { duration: 20s, warmup: 5s }
";

fn prepared(sets: &[&str]) -> Prepared {
    crate::scenario::tests::read(CHAIN, sets).plan(None, 1).expect("a plan")
}

fn series(prepared: &Prepared, frames: FrameStretches) -> (String, super::super::Results) {
    let mut simulation = Simulation::new(&prepared.plan).expect("a world");
    let text = run(&mut simulation, &prepared.names, frames);
    (text, simulation.results())
}

/// The values of one row over time.
fn values(text: &str, what: &str, who: &str) -> Vec<(f64, f64)> {
    let fields = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let wanted = fields.filter(|fields| fields[0] == what && fields[1] == who);
    wanted.map(|fields| (fields[2].parse().expect("a time"), fields[3].parse().unwrap_or(f64::NAN))).collect()
}

#[test]
fn a_run_with_a_series_is_the_run_without_it() {
    let prepared = prepared(&[]);
    let plain = super::super::run(&prepared.plan).expect("a world");
    let (with_frames, results) = series(&prepared, FrameStretches::Keep);
    let airtimes = |mut results: super::super::Results| {
        results.nodes.iter_mut().for_each(|node| node.airtime = None);
        results
    };
    assert_eq!(airtimes(results), plain);
    let (without, _) = series(&prepared, FrameStretches::Leave);
    let of_frames = |line: &&str| line.contains(':') || line.starts_with("stretch,");
    let sampled: Vec<_> = with_frames.lines().filter(|line| !of_frames(line)).collect();
    let left: Vec<_> = without.lines().filter(|line| !of_frames(line)).collect();
    assert_eq!(sampled, left);
}

#[test]
fn windows_and_sequence_numbers_tell_what_the_flow_came_to() {
    let prepared = prepared(&[]);
    let (text, results) = series(&prepared, FrameStretches::Keep);
    for (flow, who) in results.flows.iter().zip(["f0", "f1"]) {
        let acked = values(&text, "acked_bytes", who);
        let last = acked.last().expect("something was acknowledged");
        assert_eq!(Some(last.1 as u64), flow.sender.bytes_acked);
        // A flow may wait for its timer when the run ends.
        assert!(last.0 > 15.0 && acked.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
        let cwnd = values(&text, "cwnd_segments", who);
        assert!(cwnd.len() > 20 && cwnd.iter().any(|(_, segments)| *segments > 2.0), "{cwnd:?}");
        let timeouts = values(&text, "timeouts", who).last().map_or(0.0, |(_, count)| *count);
        assert_eq!(Some(timeouts as u32), flow.sender.timeouts);
    }
    let queue = values(&text, "queue_packets", "n0");
    for (direction, names) in [("back", ["f0", "f1"]), ("both", ["f0", "f0-back"])] {
        let prepared = self::prepared(&[
            &format!("traffic.0.direction={direction}"),
            "run.duration=2s",
            "run.warmup=0s",
        ]);
        let (text, _) = series(&prepared, FrameStretches::Leave);
        let is_there = |who: &&str| !values(&text, "acked_bytes", who).is_empty();
        assert!(names.iter().all(is_there), "{direction}: lines are called as rows of results are");
    }
    assert!(
        queue.iter().any(|(_, packets)| *packets > 0.0) && queue.iter().all(|(_, packets)| *packets <= 50.0)
    );
}

#[test]
fn frames_of_stretches_all_over_the_run_are_kept_and_all_counts() {
    let prepared = prepared(&[]);
    let (text, results) = series(&prepared, FrameStretches::Keep);
    let stretches = values(&text, "stretch", "all");
    assert_eq!(stretches.len(), 8);
    let ends = |stretch: &(f64, f64)| (stretch.0, stretch.0 + stretch.1 / 1e6);
    assert_eq!(stretches[0].0, 0.0);
    assert!((ends(&stretches[7]).1 - 20.0).abs() < 1e-5, "to the very end: {stretches:?}");
    let frames: Vec<_> = text.lines().filter(|line| line.starts_with("frame:")).collect();
    assert!(frames.len() > 50 && frames.len() <= 8 * MOST_FRAMES, "{}", frames.len());
    let at = |line: &&str| line.split(',').nth(2).and_then(|at| at.parse::<f64>().ok()).expect("a time");
    let within = |at: f64| stretches.iter().map(ends).position(|(from, to)| from - 1e-5 <= at && at <= to);
    let mut of_stretch = [0; 8];
    frames.iter().for_each(|line| of_stretch[within(at(line)).expect("a stretch")] += 1);
    assert!(of_stretch.iter().all(|count| *count > 5), "{of_stretch:?}");
    assert!(text.lines().any(|line| line.starts_with("frame:data,n0>n1,")), "the first hop is on the air");
    for (node, name) in results.nodes.iter().zip(["n0", "n1", "n2", "n3", "n4"]) {
        let last = |what: &str| values(&text, what, name).last().map_or(0.0, |(_, count)| *count) as u64;
        assert_eq!(last("frames_sent"), node.stats.frames_sent.total());
        assert_eq!(last("frames_lost"), node.stats.collisions);
    }
    let sent: f64 = ["data", "tcp-ack", "rts", "cts", "ack"]
        .iter()
        .flat_map(|kind| (0..5).map(move |node| (format!("airtime:sends-{kind}"), format!("n{node}"))))
        .flat_map(|(what, who)| values(&text, &what, &who))
        .map(|(_, seconds)| seconds)
        .sum();
    assert!((sent - results.air.airtime_s).abs() < 0.05, "{sent} s of {}", results.air.airtime_s);
}

#[test]
fn places_are_told_where_nodes_walk_as_where_they_stand() {
    let still = prepared(&[]);
    let (text, _) = series(&still, FrameStretches::Leave);
    assert_eq!(values(&text, "x_m", "n3"), [(0.0, 600.0)], "a value that stays is written once");
    let walking =
        prepared(&["mobility={ speed_mps: [1, 5], width_m: 800, height_m: 10 }", "run.duration=10s"]);
    let (text, _) = series(&walking, FrameStretches::Leave);
    assert!(values(&text, "x_m", "n3").len() > 10);
}

#[test]
fn a_series_is_bounded_whatever_the_length_of_a_run() {
    let (short, _) = series(&prepared(&["run.duration=20s"]), FrameStretches::Leave);
    let (long, _) = series(&prepared(&["run.duration=120s"]), FrameStretches::Leave);
    assert!(long.lines().count() < 2 * short.lines().count() && long.lines().count() < 10_000);
}
