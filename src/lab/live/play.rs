//! One run of a plan on a field, from the start of its processes to its result.

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
use super::field::Field;
use crate::failure::Failure;

/// The time that processes have to open their sockets, and to tell their results.
const PATIENCE: Duration = Duration::from_secs(30);

/// A run as a trial directs it.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    /// The message to every node; its number is filled in.
    pub(crate) part: Part,
    pub(crate) world: World,
    pub(crate) prepared: &'a Prepared,
    /// The folder for captures.
    pub(crate) capture: Option<&'a Path>,
}

/// Plays the run once, on a new field.
pub(super) fn play(field: &impl Field, run: &Run<'_>, ends: &OwnedFd) -> Result<RunResult, Failure> {
    let plan = &run.prepared.plan;
    let nodes = end_nodes(&plan.flows);
    let mut children = started(field, run, (&nodes, ends))?;
    let busy = Busy::start();
    let work = || to_the_end(run, &mut children, ends);
    let (ended, heard) = field.on_the_air(run.capture, ends, work)?;
    let ended: Vec<_> = nodes.into_iter().zip(ended).collect();
    drop(children);
    let elsewhere = busy.elsewhere();
    let end_of = |node: u32, flow: u16| {
        let (_, ended) = ended.iter().find(|(of, _)| *of == node)?;
        ended.ends.iter().find(|end| end.flow == flow).cloned()
    };
    let results = Results {
        counted_s: plan.counted_s(),
        flows: plan.flow_results(&end_of),
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
fn started(
    field: &impl Field,
    run: &Run<'_>,
    (nodes, ends): (&[u32], &OwnedFd),
) -> Result<Children, Failure> {
    let mut children = Children::new();
    for node in nodes {
        let part = Part { node: *node, ..run.part.clone() };
        children.start(field.namespace(*node), run.prepared.name_of(*node), &part)?;
    }
    children.wait_until_ready(PATIENCE, ends)?;
    Ok(children)
}

/// Lets the programs run. Returns the results of each node.
fn to_the_end(run: &Run<'_>, children: &mut Children, ends: &OwnedFd) -> Result<Vec<Ended>, Failure> {
    children.tell_all(BEGIN)?;
    let lasts = run.prepared.plan.end().since(Instant::ZERO);
    children.wait_for_results(lasts + PATIENCE, ends)
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
    fn each_end_of_a_flow_has_one_process() {
        let flow = |from, to| {
            let traffic = hopwise_lab::sim::TrafficPlan::bulk(hopwise_core::tcp::TcpConfig::modern().into());
            FlowPlan::new(from, to, Duration::ZERO, traffic)
        };
        assert_eq!(end_nodes(&[flow(4, 0), flow(0, 2), flow(4, 2)]), [0, 2, 4]);
    }
}
