//! The output of `scripts/trial-kernel-fade`: every arm run by run, in columns, and the totals of the runs.

use std::fs;
use std::time::Duration;

use super::Network;
use super::fade::{Came, Foretold, Plan, Traffic, run};

const CONTROLS: [&str; 3] = ["cubic", "reno", "bbr"];
const FADES_MS: [u64; 4] = [200, 1_000, 10_000, 60_000];
const ARMS: [(&str, &str); 10] = [
    ("none", "none"),
    ("kick", "ack-hold:mode=kick"),
    ("paper", "ack-hold:mode=paper"),
    ("corrected", "ack-hold:mode=corrected"),
    ("cumulative", "ack-hold:mode=cumulative"),
    ("hopwise", "ack-hold"),
    ("snoop", "snoop"),
    ("freeze", "freeze"),
    ("m-tcp", "m-tcp"),
    ("split", "split"),
];
const FORETOLD: [(&str, Foretold); 3] =
    [("well", Foretold::Well), ("badly", Foretold::Badly), ("not", Foretold::Not)];
const TRAFFIC: [(&str, Traffic); 2] = [("bulk", Traffic::Bulk), ("interactive", Traffic::Interactive)];
/// The mechanisms that a sender's kernel can do without.
const SWITCHES: [(&str, &str); 3] =
    [("tlp", "ipv4/tcp_early_retrans"), ("rack", "ipv4/tcp_recovery"), ("frto", "ipv4/tcp_frto")];
/// Each arm is compared with these.
const BASELINES: [&str; 2] = ["none", "kick"];

/// A mean, and its 95 % interval to either side, if runs scatter normally.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    pub(super) mean: f64,
    pub(super) half: Option<f64>,
}

/// Student's t at 97.5 %, from one degree of freedom on; beyond the last it changes little.
const T975: [f64; 20] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086,
];

impl Estimate {
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Estimate {
        let values: Vec<f64> = values.collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let freedom = values.len().saturating_sub(1);
        let spread = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let half = |t: &f64| t * (spread / freedom as f64 / count).sqrt();
        Estimate { mean, half: freedom.checked_sub(1).map(|at| half(&T975[at.min(T975.len() - 1)])) }
    }

    pub(super) fn low(&self) -> f64 {
        self.mean - self.half.unwrap_or(f64::INFINITY)
    }

    pub(super) fn high(&self) -> f64 {
        self.mean + self.half.unwrap_or(f64::INFINITY)
    }

    fn shown(&self, scale: f64, digits: usize) -> String {
        let mean = self.mean / scale;
        self.half
            .map_or(format!("{mean:.digits$}"), |half| format!("{mean:.digits$}±{:.digits$}", half / scale))
    }
}

/// A list in the environment, such as `ARMS=kick,none`; `default` stands where there is none.
fn chosen(list: &str, default: &str, name: &str) -> bool {
    std::env::var(list).as_deref().unwrap_or(default).split(',').any(|one| one == name)
}

fn count(name: &str) -> u32 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// The part of a plan that all arms share.
#[derive(Clone, Debug)]
struct Group {
    name: String,
    /// The plan of the first of its arms.
    plan: Plan,
}

/// Every chosen combination, without the arms.
fn groups() -> Vec<Group> {
    let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    let (times, after) = (count("TIMES"), Duration::from_secs(5));
    let mut groups = Vec::new();
    for control in CONTROLS.into_iter().filter(|name| chosen("CONTROLS", "cubic", name)) {
        if !known.contains(control) {
            println!("skipped: {control}: not in this kernel");
            continue;
        }
        for ms in FADES_MS.into_iter().filter(|ms| chosen("FADES_MS", "200,1000,10000", &ms.to_string())) {
            let told = FORETOLD.into_iter().filter(|(name, _)| chosen("FORETOLD", "well,not", name));
            for (said, foretold) in told {
                for (what, traffic) in TRAFFIC.into_iter().filter(|(name, _)| chosen("TRAFFIC", "bulk", name))
                {
                    let fade = Duration::from_millis(ms);
                    let name = format!("{control} {what} {:.1} {times} {said}", fade.as_secs_f64());
                    let plan = Plan { agent: "none", control, traffic, fade, times, foretold, after };
                    groups.push(Group { name, plan });
                }
            }
        }
    }
    groups
}

/// A network whose sender's kernel lacks the mechanisms that `WITHOUT` names.
fn network() -> Network {
    let is_v6 = std::env::var("FAMILY").is_ok_and(|family| family == "6");
    let network = if is_v6 { Network::v6("fade-table") } else { Network::new("fade-table") };
    for (_, key) in SWITCHES.into_iter().filter(|(name, _)| chosen("WITHOUT", "", name)) {
        network.fixed.sysctl(key, "0");
    }
    network
}

/// The results of one arm in each repeat.
#[derive(Debug)]
struct Runs {
    arm: &'static str,
    came: Vec<Came>,
}

/// Runs all arms in each repeat, each time with another arm first: other load of the machine meets all alike.
fn runs(group: &Group, repeats: u32) -> Vec<Runs> {
    let all = ARMS.map(|(arm, _)| arm).join(",");
    let arms: Vec<_> = ARMS.into_iter().filter(|(arm, _)| chosen("ARMS", &all, arm)).collect();
    let mut runs: Vec<_> = arms.iter().map(|(arm, _)| Runs { arm, came: Vec::new() }).collect();
    for repeat in 0..repeats as usize {
        for nth in (0..arms.len()).map(|nth| (nth + repeat) % arms.len()) {
            let (arm, agent) = arms[nth];
            let came = run(&network(), &Plan { agent, ..group.plan });
            let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
            let load = load.split(' ').next().unwrap_or_default();
            let Came { bytes, stalled, timeouts, undone, retransmitted, needless, reordered } = came;
            let (kb, stalled) = (bytes as f64 / 1e3, stalled.as_millis());
            println!(
                "{} {arm} {} {load} {kb:.0} {stalled} {timeouts} {undone} {retransmitted} {needless} {reordered}",
                group.name,
                repeat + 1
            );
            runs[nth].came.push(came);
        }
    }
    runs
}

/// The means of an arm's figures.
fn mean(group: &Group, runs: &Runs) -> String {
    let of = |figure: fn(&Came) -> f64| Estimate::of(runs.came.iter().map(figure));
    let figures = [
        of(|came| came.bytes as f64).shown(1e6, 2),
        of(|came| came.stalled.as_millis() as f64).shown(1.0, 0),
        of(|came| came.timeouts as f64).shown(1.0, 1),
        of(|came| came.undone as f64).shown(1.0, 1),
        of(|came| came.retransmitted as f64).shown(1.0, 1),
        of(|came| came.needless as f64).shown(1.0, 1),
        of(|came| came.reordered as f64).shown(1.0, 1),
    ];
    format!("mean {} {} {} {}", group.name, runs.arm, runs.came.len(), figures.join(" "))
}

/// The difference of an arm from another, repeat by repeat.
fn more(group: &Group, runs: &Runs, baseline: &Runs) -> String {
    let of = |figure: fn(&Came) -> f64| {
        Estimate::of(runs.came.iter().zip(&baseline.came).map(|(one, other)| figure(one) - figure(other)))
    };
    let (bytes, timeouts) = (of(|came| came.bytes as f64), of(|came| came.timeouts as f64));
    let (bytes, timeouts) = (bytes.shown(1e6, 2), timeouts.shown(1.0, 1));
    format!("more {} {} {} {bytes} {timeouts}", group.name, runs.arm, baseline.arm)
}

#[test]
fn every_arm_over_every_fade_and_every_sender() {
    const NAME: &str = "every_arm_over_every_fade_and_every_sender";
    needs!["nft", "ethtool"];
    if std::env::var_os("HOPWISE_FADE_TABLE").is_none() {
        println!("skipped: {NAME}: takes half an hour; scripts/trial-kernel-fade runs it");
        return;
    }
    const OF_GROUP: &str = "control traffic fade_s times foretold arm";
    println!("{OF_GROUP} repeat load kB_after stall_ms timeouts undone resent needless reordered");
    let done: Vec<_> = groups().into_iter().map(|group| (runs(&group, count("REPEATS")), group)).collect();
    println!("mean {OF_GROUP} runs MB_after stall_ms timeouts undone resent needless reordered");
    for (runs, group) in &done {
        runs.iter().for_each(|runs| println!("{}", mean(group, runs)));
    }
    println!("more {OF_GROUP} than MB_after timeouts");
    for (runs, group) in &done {
        for baseline in runs.iter().filter(|runs| BASELINES.contains(&runs.arm)) {
            let others = runs.iter().filter(|runs| runs.arm != baseline.arm);
            others.for_each(|runs| println!("{}", more(group, runs, baseline)));
        }
    }
}

#[test]
fn an_estimate_knows_how_far_it_can_be_off() {
    let estimate = Estimate::of([1.0, 2.0, 3.0, 4.0, 5.0].into_iter());
    // The deviation is √2.5, over √5, times 2.776.
    assert!((estimate.mean - 3.0).abs() < 1e-12);
    assert!((estimate.high() - 3.0 - 1.9629).abs() < 1e-3 && (3.0 - estimate.low() - 1.9629).abs() < 1e-3);
    assert_eq!(estimate.shown(1.0, 1), "3.0±2.0");
    let one = Estimate::of([7.0].into_iter());
    assert_eq!((one.shown(1.0, 0), one.high()), ("7".to_owned(), f64::INFINITY));
}
