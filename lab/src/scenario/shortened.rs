//! A run in a part of its time: `hopwise claims --radio --shorter`. Fast radios carry as many segments in it as the
//! file's own in the whole.

use std::time::Duration;

use super::Scenario;
use super::check::keys;
use super::schema::{ScenarioFile, Shape};

/// Routes are found, and queues fill, in some seconds over any radio.
const LEAST: Duration = Duration::from_secs(15);

impl Scenario {
    /// The values that make a run last one of that many parts of its time, at least 15 s, and its warm-up as well.
    /// A scenario in which something happens at an instant has none: with less time, less of it would happen.
    pub fn shortened(&self, parts: u32) -> Vec<String> {
        let file = &self.read.file;
        let (duration, warmup) = (file.run.duration.0, file.run.warmup.0);
        let shorter = (duration / parts).max(LEAST);
        if shorter >= duration || self.has_instants() {
            return Vec::new();
        }
        let share = shorter.as_secs_f64() / duration.as_secs_f64();
        let set = |path: &str, time: Duration| format!("{path}={}ms", time.as_millis());
        let warmup = (!warmup.is_zero()).then(|| set("run.warmup", warmup.mul_f64(share)));
        [set("run.duration", shorter)].into_iter().chain(warmup).collect()
    }

    /// True if nodes move, if links go down, or if flows stop before the end, at any point and in any reading.
    fn has_instants(&self) -> bool {
        let ScenarioFile { topology, mobility, channel, .. } = &self.read.file;
        let is_still = mobility.is_none() && topology.kind != Shape::Movements;
        let is_steady = channel.outages.is_empty() && channel.links.is_empty() && channel.trace.is_none();
        let values = ["traffic", "arms", "matrix", "sweep"].map(|path| self.read.document.value_at(path));
        let timed = ["stop", "mobility", "outages", "links", "trace"];
        let sets = |path: &String| path.split('.').any(|key| timed.contains(&key));
        !is_still || !is_steady || values.into_iter().flatten().flat_map(keys).any(|path| sets(&path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STILL: &str = "topology: { kind: chain, hops: 1 }\n\
        traffic: [{ from: first, to: last, kind: bulk }]\narms: { one: { receiver: delayed } }\n\
        run: { duration: 300s, warmup: 50s }\n";

    fn shortened(text: &str, sets: &[&str]) -> Vec<String> {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        Scenario::parse("it", text, &sets).expect("it is read").shortened(20)
    }

    #[test]
    fn a_run_and_its_warm_up_become_shorter_by_the_same() {
        let sets = shortened(STILL, &[]);
        assert_eq!(sets, ["run.duration=15000ms", "run.warmup=2500ms"]);
        assert_eq!(shortened(STILL, &["run.warmup=0s"]), ["run.duration=15000ms"]);
        assert_eq!(shortened(STILL, &["run.duration=1000s"])[0], "run.duration=50000ms");
        assert_eq!(shortened(STILL, &["run.duration=100s"]), ["run.duration=15000ms", "run.warmup=7500ms"]);
        assert!(shortened(STILL, &["run.duration=12s", "run.warmup=2s"]).is_empty(), "it is short already");
        let file = Scenario::parse("it", STILL, &sets).expect("it is read");
        let plan = file.plan(None, 1).expect("a plan").plan;
        assert_eq!((plan.duration, plan.warmup), (Duration::from_secs(15), Duration::from_millis(2500)));
    }

    #[test]
    fn a_run_in_which_something_happens_at_an_instant_keeps_its_time() {
        for set in [
            "channel.outages=[{ from: n0, to: n1, begins: 2s, ends: 12s }]",
            "channel.links=['link n0-n1 down from 2 s to 12 s']",
            "traffic.0.stop=200s",
            "arms.one.set={ mobility.speed_mps: [1, 1] }",
            "matrix={ mobility.speed_mps: [[1, 1], [5, 5]] }",
            "matrix={ traffic: [[{ from: first, to: last, kind: bulk, stop: 200s }]] }",
            "sweep={ channel.links: [['link n0-n1 down from 2 s to 12 s']] }",
        ] {
            let sets = shortened(STILL, &[set]);
            assert!(sets.is_empty(), "{set}: {sets:?}");
        }
    }
}
