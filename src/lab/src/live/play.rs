//! One run of a plan on a field, from the start of its processes to its result.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_host::Namespace;
use hopwise_lab::folder;
use hopwise_lab::live::air::stations;
use hopwise_lab::live::guest::KeptFiles;
use hopwise_lab::live::part::{NodePart, NodeResults, PartMessage, ProxiedPackets, RoutingCounts};
use hopwise_lab::machine;
use hopwise_lab::result::{Live, RunResult};
use hopwise_lab::scenario::Prepared;
use hopwise_lab::sim::{FlowPlan, Results};
use hopwise_lab::world::World;

use super::busy::Busy;
use super::carriers;
use super::children::{Children, Does};
use super::field::LiveField;
use super::routes;
use hopwise_daemon::failure::Failure;
use hopwise_daemon::own_files::OwnFolder;
use hopwise_part::{is_end, lost};

/// The time that processes have to open their sockets, and to tell their results.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// A run as a trial directs it.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    /// The message to every node; its number is filled in.
    pub(crate) part: NodePart,
    pub(crate) world: World,
    pub(crate) prepared: &'a Prepared,
    /// Tries of an earlier command that do not count.
    pub(crate) repeated: u32,
    /// The folder for what is kept of it.
    pub(crate) folder: &'a Path,
    pub(crate) wanted: KeptFiles,
}

impl Run<'_> {
    pub(super) fn captures(&self) -> Option<&Path> {
        self.wanted.capture.then_some(self.folder)
    }
}

/// Plays the run once, on a new field. `out` is the folder for results.
pub(super) fn play(
    field: &impl LiveField,
    run: &Run<'_>,
    (out, ends): (&Path, &OwnedFd),
) -> Result<RunResult, Failure> {
    let plan = &run.prepared.plan;
    let mut nodes = end_nodes(&plan.flows);
    if !run.prepared.host.is_empty() {
        // Settings are those of all nodes.
        let all = (0..).zip(&run.prepared.names).map(|(node, _)| node);
        nodes.extend(all.filter(|node| !is_end(plan, *node)));
    }
    let namespaces: Vec<_> = (0..).zip(&run.prepared.names).map(|(node, _)| field.namespace(node)).collect();
    let has_sockets = has_endpoints(run) && run.prepared.routing.given().is_on("ack_seq");
    let sockets = has_sockets.then(|| OwnFolder::make("hopwise-trial-")).transpose();
    let sockets = sockets.map_err(Failure::during("make a folder for sockets"))?;
    let prepare = || {
        let children = started((&namespaces, sockets.as_ref()), run, (&nodes, out, ends))?;
        Ok((children, Busy::start(), lost::by_processors()))
    };
    let work =
        |(mut children, busy, before)| Ok((to_the_end(run, &mut children, ends)?, children, busy, before));
    let (((ended, proxied, routed), children, busy, before), heard) =
        field.on_the_air((run.captures(), ends), prepare, work)?;
    if let Some(folder) = run.captures() {
        children.keep_logs(folder)?;
    }
    let ended: Vec<_> = nodes.iter().copied().zip(ended).collect();
    drop(children);
    let by_programs: Option<u64> = ended.iter().map(|(_, ended)| ended.lost).sum();
    let by_processors = before.and_then(|before| Some(lost::by_processors()?.saturating_sub(before)));
    let lost = [Some(heard.lost), by_programs, by_processors].into_iter().sum();
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
        // Without daemons nothing is searched for, and no route breaks.
        discoveries: routed.iter().map(|routed| routed.discoveries).sum(),
        route_failures: routed.iter().map(|routed| routed.route_failures).sum(),
    };
    let late = ended.iter().map(|(_, ended)| ended.late_us).chain(routed.iter().map(|routed| routed.late_us));
    let live = Live {
        air_late_ms: heard.lateness.worst.as_secs_f64() * 1e3,
        programs_late_ms: Duration::from_micros(late.max().unwrap_or(0)).as_secs_f64() * 1e3,
        busy_elsewhere: elsewhere,
        lost,
        repeated: 0,
        deaf: heard.deaf,
        kernel: machine::kernel(),
        proxied: plan
            .gateway
            .iter()
            .map(|at| run.prepared.name_of(at.node).to_owned())
            .zip(proxied)
            .collect(),
        ..by_node(run.prepared, ended.iter().map(|(node, ended)| (*node, ended)))
    };
    let result = RunResult::new(&run.part.scenario, run.world.name(), run.prepared, &results);
    Ok(RunResult { live: Some(live), ..result })
}

/// Starts the daemons of all nodes and the programs of end nodes, and waits until they have opened their sockets.
fn started(
    (namespaces, sockets): (&[&Namespace], Option<&OwnFolder>),
    run: &Run<'_>,
    (nodes, out, ends): (&[u32], &Path, &OwnedFd),
) -> Result<Children, Failure> {
    let (plan, mut children) = (&run.prepared.plan, Children::new(out));
    let socket = |node: u32| Some(sockets?.path().join(format!("{node}.sock")));
    if routes::are_found(plan) {
        for (node, station) in (0..).zip(stations(plan)) {
            let config =
                routes::config_of(run.prepared, node, &station, socket(node).filter(|_| is_end(plan, node)))?;
            children.start_daemon(
                Does::Routing,
                (namespaces[node as usize], run.prepared.name_of(node)),
                (&config, None),
            )?;
        }
    }
    if let Some((node, config)) = routes::proxy_of(plan) {
        let place = (namespaces[node as usize], run.prepared.name_of(node));
        children.start_daemon(Does::Proxying, place, (&config, Some(&run.part)))?;
    }
    let captures = ends_folder(run)?;
    for node in nodes {
        let (name, namespace) = (run.prepared.name_of(*node), namespaces[*node as usize]);
        let is_end = is_end(plan, *node);
        let host = (plan.arm.transparent && is_end).then(|| carriers::host_of(*node)).transpose()?;
        let captures = captures.as_ref().filter(|_| is_end);
        let capture = captures.map(|folder| folder.join(format!("{name}.pcapng")));
        let has_trace = run.wanted.trace && has_endpoints(run) && is_end;
        let trace = has_trace.then(|| run.folder.join(format!("{name}.trace.txt")));
        let part = NodePart { node: *node, capture, trace, control: socket(*node), ..run.part.clone() };
        children.start((namespace, host.as_ref()), name, &part)?;
        if host.is_some() {
            let config = carriers::config_of(plan, (*node, name), &end_nodes(&plan.flows));
            let config = config.map_err(Failure::during("configure a transparent node"))?;
            children.start_daemon(Does::Carrying, (namespace, name), (&config, None))?;
        }
    }
    children.wait_until_ready(PATIENCE + run.prepared.host.settle, ends)?;
    Ok(children)
}

/// The kernel's TCP has no endpoint that could be watched.
fn has_endpoints(run: &Run<'_>) -> bool {
    run.prepared.plan.arm.has_endpoints()
}

/// The folder for captures of endpoints.
pub(super) fn ends_folder(run: &Run<'_>) -> Result<Option<PathBuf>, Failure> {
    let folder = run.captures().filter(|_| has_endpoints(run));
    let made = folder.map_or(Ok(()), |folder| folder::make(folder, "ends"));
    made.map_err(Failure::during("make a folder for captures"))?;
    Ok(folder.map(|folder| folder.join("ends")))
}

/// The results of programs, of the proxy and of routing.
type Ended = (Vec<NodeResults>, Vec<ProxiedPackets>, Vec<RoutingCounts>);

/// Lets the programs run. Returns the results of each node, and the counts of the proxy and of each node's routing.
fn to_the_end(run: &Run<'_>, children: &mut Children, ends: &OwnedFd) -> Result<Ended, Failure> {
    children.begin()?;
    let lasts = run.prepared.plan.end().since(Instant::ZERO);
    let ended = children.wait_for_results(lasts + PATIENCE, ends)?;
    carriers::check(&children.end((PATIENCE, ends), Does::Carrying, |says| match says {
        PartMessage::Carried(carried) => Some(carried),
        _ => None,
    })?)?;
    let proxied = children.end((PATIENCE, ends), Does::Proxying, |says| match says {
        PartMessage::Proxied(proxied) => Some(proxied),
        _ => None,
    })?;
    let routed = children.end((PATIENCE, ends), Does::Routing, |says| match says {
        PartMessage::Routed(routed) => Some(routed),
        _ => None,
    })?;
    Ok((ended, proxied, routed))
}

/// What a record has of nodes by their names: their settings and offloads, and the counts of the daemons that thinned
/// ACKs.
pub(super) fn by_node<'a>(
    prepared: &Prepared,
    ended: impl Iterator<Item = (u32, &'a NodeResults)> + Clone,
) -> Live {
    let name = |node| prepared.name_of(node).to_owned();
    let changed = ended.clone().filter(|(_, ended)| !ended.host.is_empty());
    Live {
        host: changed.map(|(node, ended)| (name(node), ended.host.clone())).collect(),
        offloads: ended.clone().map(|(node, ended)| (name(node), ended.offloads.clone())).collect(),
        thinned: ended.filter_map(|(node, ended)| Some((name(node), ended.thinned?))).collect(),
        ..Live::default()
    }
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
