//! The figures that decide a trial's verdicts: their names, and whether its runs can have them.

use super::Campaign;
use crate::located::{Checked, one_of};
use crate::metric;
use crate::scenario::{Prepared, Scenario};
use crate::sim::{FlowPlan, Talk, TrafficPlan};
use crate::statistics::GOODPUT;
use crate::world::World;

/// Words for figures outside this house.
const SYNONYMS: [(&str, &str); 5] = [
    ("delay", "rtt_p95_ms"),
    ("latency", "rtt_p95_ms"),
    ("throughput", "goodput_kbps"),
    ("fairness", "jain"),
    ("jitter", "datagram_jitter_ms"),
];

/// The names of the figures that a scenario means.
pub(super) fn read(scenario: &Scenario, figures: &[String]) -> Checked<Vec<String>> {
    let all: Vec<&str> = metric::names_of_figures().collect();
    let mut names: Vec<String> = Vec::new();
    if figures.is_empty() {
        return Err(scenario.refuse_figure(0, "no figure, and hence no verdict", "at least one"));
    }
    for (nth, text) in figures.iter().enumerate() {
        let refuse = |problem: &str, accepted: &str| Err(scenario.refuse_figure(nth, problem, accepted));
        let Some(metric) = metric::meant(text) else {
            let called = SYNONYMS.iter().find(|(word, _)| word == text).map_or(&**text, |(_, name)| name);
            return refuse(&format!("no figure is called `{text}`"), &one_of(called, &all));
        };
        if metric.better.is_none() {
            let problem = format!("neither more nor less of `{}` is better", metric.name);
            return refuse(&problem, &format!("one of {}", all.join(", ")));
        }
        if names.iter().any(|known| known == metric.name) {
            return refuse(&format!("`{}` is there already", metric.name), "each figure once");
        }
        names.push(metric.name.to_owned());
    }
    Ok(names)
}

/// Refuses a figure that some arm's runs surely lack, before the first of them.
pub(super) fn check(scenario: &Scenario, campaign: &Campaign) -> Checked {
    let trial = &campaign.trial;
    // Every run has a goodput.
    for (nth, name) in trial.figures.iter().enumerate().filter(|(_, name)| *name != GOODPUT.name) {
        for arm in campaign.arms.iter().flatten() {
            let prepared = arm.prepare(trial.seeds[0])?;
            if let Some((problem, accepted)) = lacking(name, &prepared, campaign.world) {
                let problem = format!("no run of `{}` has {name}: {problem}", prepared.plan.arm.name);
                return Err(scenario.refuse_figure(nth, &problem, accepted));
            }
        }
    }
    Ok(())
}

/// The reason why runs of this plan have no such figure, and what would be accepted.
fn lacking(figure: &str, prepared: &Prepared, world: World) -> Option<(&'static str, &'static str)> {
    let plan = &prepared.plan;
    let flows = || plan.flows.iter().filter(|flow| !flow.is_background);
    let is_tcp = |flow: &FlowPlan| matches!(flow.traffic, TrafficPlan::Tcp(_));
    let (group, _) = figure.split_once('_').unwrap_or((figure, ""));
    match group {
        "completion" if !flows().any(has_end) => Some((
            "no flow has transfers or requests",
            "traffic with `bytes` or `kind: request`, or another figure",
        )),
        "rtt" if !flows().any(is_tcp) => Some(("no flow is over TCP", "a flow over TCP, or another figure")),
        "rtt" if plan.arm.transparent => {
            Some(("programs see the round trips to their node alone", "goodput or completion"))
        }
        "rtt" if figure == "rtt_ms" => (!world.is_live()).then_some((
            "the world sim does not look at smoothed round trips",
            "rtt-median, or a live world",
        )),
        "rtt" if plan.arm.algorithm().is_some() => {
            Some(("the kernel's TCP does not tell each of its round trips", "rtt, which it tells"))
        }
        "probe" if !plan.flows.iter().any(|flow| matches!(flow.traffic, TrafficPlan::Probe { .. })) => {
            Some(("no flow is a probe", "a flow with `kind: probe` beside the load, or another figure"))
        }
        "datagram" if plan.flows.iter().all(|flow| matches!(flow.traffic, TrafficPlan::Tcp(_))) => {
            Some(("no flow has datagrams", "a flow with `kind: voice` or `cbr`, or another figure"))
        }
        "jain" if flows().count() < 2 => {
            Some(("one flow shares with no other", "several flows, or another figure"))
        }
        _ => None,
    }
}

/// True if a flow's transfers or requests end.
fn has_end(flow: &FlowPlan) -> bool {
    match &flow.traffic {
        TrafficPlan::Tcp(tcp) => !matches!(tcp.talk, Talk::Endless(_)),
        TrafficPlan::Datagrams { .. } | TrafficPlan::Probe { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::located::Refusal;

    const TEXT: &str = "topology: { kind: chain, hops: 2 }\n\
        traffic: [{ from: first, to: last, kind: bulk, bytes: 10kB }, { from: first, to: last, kind: bulk }]\n\
        arms: { every: { receiver: immediate }, dca: { receiver: dca } }\n\
        run: { duration: 10s, seeds: 2 }\n";

    fn campaign(sets: &[&str]) -> Result<Campaign, String> {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let scenario = Scenario::parse("a.yaml", TEXT, &sets).map_err(|refusal| refusal.to_string())?;
        let help = |refusal: &Refusal| {
            format!(
                "{refusal}; {}",
                miette::Diagnostic::help(refusal).map_or(String::new(), |help| help.to_string())
            )
        };
        Campaign::new(&scenario, None, None).map_err(|refusal| help(&refusal))
    }

    #[test]
    fn one_figure_or_several_decide_and_goodput_alone_where_none_is_named() {
        let figures = |sets: &[&str]| campaign(sets).expect("a campaign").trial.figures;
        assert_eq!(figures(&[]), ["goodput_kbps"]);
        assert_eq!(figures(&["run.figure=completion-p95"]), ["completion_p95_s"]);
        assert_eq!(figures(&["run.figure=[jain, rtt_median_ms]"]), ["jain", "rtt_median_ms"]);
        let plan = |sets: &[&str]| campaign(sets).expect("a campaign").trial.text();
        assert_eq!(plan(&["run.figure=goodput"]), plan(&[]), "plans of trials before there were figures");
        assert!(!plan(&[]).contains("figures") && plan(&["run.figure=jain"]).contains("figures"));
    }

    #[test]
    fn names_that_decide_nothing_are_refused_with_those_that_do() {
        for (set, parts) in [
            ("run.figure=goodpt", &["no figure is called `goodpt`", "goodput_kbps"][..]),
            (
                "run.figure=[jain, acks-sent]",
                &["--set:1:19", "neither more nor less of `acks_sent` is better", "jain"],
            ),
            ("run.figure=delay", &["no figure is called `delay`", "did you mean `rtt_p95_ms`?"]),
            ("run.figure=jitter", &["no figure is called `jitter`", "did you mean `datagram_jitter_ms`?"]),
            ("run.figure=[jain, jain]", &["--set:1:19", "`jain` is there already"]),
            ("run.figure=[]", &["no figure"]),
            ("run.figure=5", &["`5` does not fit here"]),
        ] {
            let refused = campaign(&[set]).expect_err(set);
            assert!(parts.iter().all(|part| refused.contains(part)), "{set}: {refused}");
        }
    }

    #[test]
    fn a_figure_that_no_run_can_have_is_refused_before_the_first_run() {
        let (endless, alone) =
            ("traffic=[{ from: first, to: last, kind: bulk }]", "one flow shares with no other");
        let udp = "traffic=[{ from: first, to: last, kind: cbr, rate: 10kbit }]";
        let kernel = "arms.k={ receiver: kernel, sender: kernel:cubic }";
        for (sets, wanted) in [
            (
                &[endless, "run.figure=completion"][..],
                "`every` has completion_s: no flow has transfers or requests",
            ),
            (&[endless, "run.figure=jain"], alone),
            (&[udp, "run.figure=rtt-p95"], "no flow is over TCP"),
            (&["run.figure=rtt"], "the world sim does not look"),
            (&["run.figure=datagram-jitter"], "`every` has datagram_jitter_ms: no flow has datagrams"),
            (&["run.figure=probe-p95"], "`every` has probe_p95_ms: no flow is a probe"),
            (
                &[kernel, "world=netns", "run.figure=rtt-p95"],
                "`k` has rtt_p95_ms: the kernel's TCP does not tell each",
            ),
        ] {
            let refused = campaign(sets).expect_err(wanted);
            assert!(refused.contains(wanted), "{sets:?}: {refused}");
        }
        for sets in [
            &["run.figure=[completion, jain, rtt-p95]"][..],
            &[udp, "run.figure=[datagram-loss, datagram-jitter, datagram-delay-p95]"],
            &[kernel, "world=netns", "run.figure=[completion, rtt, timeouts]"],
        ] {
            assert!(campaign(sets).is_ok(), "{sets:?}: {:?}", campaign(sets).err());
        }
    }
}
