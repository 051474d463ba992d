//! One run of a plan in a live world, from its namespaces to its result.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_lab::live::part::{BEGIN, Ended, Part};
use hopwise_lab::result::{Live, RunResult};
use hopwise_lab::scenario::Prepared;
use hopwise_lab::sim::{FlowPlan, Results};
use hopwise_lab::world::World;

use super::busy::Busy;
use super::children::Children;
use super::field;
use crate::failure::{self, Failure};
use crate::mesh::air::stations::{self, Serves, Stations};
use crate::scenario::Bounds;

/// The time that processes have to open their sockets, and to tell their results.
const PATIENCE: Duration = Duration::from_secs(30);

/// A run as a trial directs it.
#[derive(Debug)]
pub(crate) struct Directed<'a> {
    /// The message to every node; its number is filled in.
    pub(crate) part: Part,
    pub(crate) world: World,
    pub(crate) prepared: &'a Prepared,
    /// The beginning of the namespaces' names.
    pub(crate) prefix: &'a str,
    /// The folder for captures.
    pub(crate) capture: Option<&'a Path>,
    pub(crate) bounds: Bounds,
    /// Readable once the user ends the trial.
    pub(crate) ends: &'a OwnedFd,
}

/// Runs that are tried until one keeps its time.
const MOST_TRIES: u32 = 5;

/// Makes runs until one keeps its time. Its nodes are gone when it returns.
pub(crate) fn direct(run: &Directed<'_>) -> Result<RunResult, Failure> {
    stations::check(run.prefix, run.prepared)?;
    let mut problem = String::new();
    for repeated in 0..MOST_TRIES {
        let mut result = once(run)?;
        let Some(live) = &mut result.live else { return Ok(result) };
        live.repeated = repeated;
        let Some(spoilt) = spoilt(live, run.bounds) else { return Ok(result) };
        failure::remark(&format!(
            "{}, seed {}: {spoilt}; the run does not count",
            run.part.arm, run.part.seed
        ));
        problem = spoilt;
    }
    let remedy = "end other programs, or allow more with --late and --busy";
    Err(Failure::failed("keep the time of a run", format_args!("{MOST_TRIES} times: {problem}: {remedy}")))
}

/// The reason why a run does not count, if there is one.
fn spoilt(live: &Live, bounds: Bounds) -> Option<String> {
    let most_ms = bounds.late.as_secs_f64() * 1e3;
    for (what, late_ms) in [("the radios were", live.air_late_ms), ("a program was", live.programs_late_ms)] {
        if late_ms > most_ms {
            return Some(format!("{what} {late_ms:.1} ms late, expected at most {most_ms:.1} ms"));
        }
    }
    let elsewhere = live.busy_elsewhere.filter(|elsewhere| *elsewhere > bounds.busy)?;
    let (used, most) = (elsewhere * 100.0, bounds.busy * 100.0);
    Some(format!("other programs used {used:.0} % of the processors, expected at most {most:.0} %"))
}

/// Makes the run once.
fn once(run: &Directed<'_>) -> Result<RunResult, Failure> {
    let plan = &run.prepared.plan;
    let stations = Stations::open(run.prefix, run.prepared, Serves::Programs)?;
    let nodes = end_nodes(&plan.flows);
    let mut children = started(run, &stations, &nodes)?;
    let busy = Busy::start();
    // The clocks of the radios and of the programs begin together.
    let work = || play(run, &mut children);
    let (ended, heard) = field::on_the_air(&stations, run.prepared, run.capture, work)?;
    let ended: Vec<_> = nodes.into_iter().zip(ended).collect();
    drop(children);
    let elsewhere = busy.elsewhere();
    let ends = |node: u32, flow: u16| {
        let (_, ended) = ended.iter().find(|(of, _)| *of == node)?;
        ended.ends.iter().find(|end| end.flow == flow).cloned()
    };
    let results = Results {
        counted_s: plan.counted_s(),
        flows: plan.flow_results(&ends),
        air: heard.air,
        nodes: Vec::new(),
        discoveries: 0,
        route_failures: 0,
        events: 0,
    };
    let late_us = ended.iter().map(|(_, ended)| ended.late_us).max().unwrap_or(0);
    let live = Live {
        air_late_ms: heard.lateness.worst.as_secs_f64() * 1e3,
        programs_late_ms: Duration::from_micros(late_us).as_secs_f64() * 1e3,
        busy_elsewhere: elsewhere,
        repeated: 0,
    };
    let result = RunResult::new(&run.part.scenario, run.world.name(), run.prepared, &results);
    Ok(RunResult { live: Some(live), ..result })
}

/// Starts the processes of all end nodes, and waits until they have opened their sockets.
fn started(run: &Directed<'_>, stations: &Stations, nodes: &[u32]) -> Result<Children, Failure> {
    let mut children = Children::new();
    for node in nodes {
        let part = Part { node: *node, ..run.part.clone() };
        children.start(&stations.namespaces()[*node as usize], run.prepared.name_of(*node), &part)?;
    }
    children.wait_until_ready(PATIENCE, run.ends)?;
    Ok(children)
}

/// Lets the programs run. Returns the results of each node.
fn play(run: &Directed<'_>, children: &mut Children) -> Result<Vec<Ended>, Failure> {
    children.tell_all(BEGIN)?;
    let lasts = run.prepared.plan.end().since(Instant::ZERO);
    children.wait_for_results(lasts + PATIENCE, run.ends)
}

/// The nodes at which some flow has an end, in order.
fn end_nodes(flows: &[FlowPlan]) -> Vec<u32> {
    let mut nodes: Vec<u32> = flows.iter().flat_map(|flow| [flow.from, flow.to]).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_beyond_a_bound_does_not_count_and_says_why() {
        let bounds = Bounds { late: Duration::from_millis(5), busy: 0.25 };
        let kept = Live { air_late_ms: 5.0, programs_late_ms: 0.1, busy_elsewhere: Some(0.25), repeated: 0 };
        assert_eq!(spoilt(&kept, bounds), None);
        assert_eq!(spoilt(&Live { busy_elsewhere: None, ..kept }, bounds), None);
        for (live, word) in [
            (Live { air_late_ms: 5.1, ..kept }, "the radios were 5.1 ms late"),
            (Live { programs_late_ms: 7.0, ..kept }, "a program was 7.0 ms late"),
            (Live { busy_elsewhere: Some(0.5), ..kept }, "other programs used 50 % of the processors"),
        ] {
            let said = spoilt(&live, bounds).expect("it is beyond a bound");
            assert!(said.starts_with(word), "{said}");
        }
    }

    #[test]
    fn each_end_of_a_flow_has_one_process() {
        let flow = |from, to| {
            let traffic = hopwise_lab::sim::TrafficPlan::bulk(hopwise_core::tcp::TcpConfig::modern().into());
            FlowPlan::new(from, to, Duration::ZERO, traffic)
        };
        assert_eq!(end_nodes(&[flow(4, 0), flow(0, 2), flow(4, 2)]), [0, 2, 4]);
    }
}
