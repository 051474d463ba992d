//! One run on the hosts of a mesh, from the start of their processes to its result.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_host::wait_to_read;
use hopwise_lab::live::mesh::{ClockRow, HostNames, HostObservations, HostRow, MeshRun, OnMesh};
use hopwise_lab::live::part::{NodePart, NodeResults};
use hopwise_lab::programs::EndResult;
use hopwise_lab::result::{Air, Live, RoutingResult, RunResult};
use hopwise_lab::scenario::Prepared;
use hopwise_lab::sim::Results;

use super::fleet::{Fleet, LostHost, Reached};
use crate::live::children::{Children, Exchanged, Far};
use crate::live::play::{PATIENCE, Run, by_node, ends_folder};
use hopwise_daemon::failure::Failure;

/// The time in which hosts look at the channel before a run.
const QUIET: Duration = Duration::from_secs(1);
/// Captures come over the network of ssh once the run is over.
const PATIENCE_WITH_CAPTURES: Duration = Duration::from_secs(600);

/// The clocks of all hosts before a run, and after it.
type Clocks = (Vec<Exchanged>, Vec<Exchanged>);

/// Plays the run once. A host that falls silent is told to the fleet.
pub(in crate::live) fn play(
    fleet: &Fleet,
    run: &Run<'_>,
    (out, ends): (&Path, &OwnedFd),
) -> Result<RunResult, Failure> {
    let nodes = fleet.nodes(run.prepared)?;
    let mut children = Children::new(out);
    let played = on_hosts(fleet, run, &nodes, (&mut children, ends));
    let (ended, clocks) = match played {
        Ok(played) => played,
        Err(failure) => {
            if let Some(nth) = children.silent() {
                let node = run.prepared.names[nth].clone();
                fleet.lose(LostHost { node, host: nodes[nth].host.clone(), why: failure.to_string() });
            }
            return Err(failure);
        }
    };
    drop(children);
    let hosts = rows(fleet, (run.prepared, &nodes), &ended, &clocks);
    Ok(result(run, &ended, hosts))
}

/// Starts a process on each host, and lets all of them run.
fn on_hosts(
    fleet: &Fleet,
    run: &Run<'_>,
    nodes: &[&Reached],
    (children, ends): (&mut Children, &OwnedFd),
) -> Result<(Vec<NodeResults>, Clocks), Failure> {
    let addresses: Vec<Ipv4Addr> = nodes.iter().map(|reached| reached.address).collect();
    let captures = ends_folder(run)?;
    for (node, reached) in (0..).zip(nodes) {
        let name = run.prepared.name_of(node);
        let capture = captures.as_ref().map(|folder| folder.join(format!("{name}.pcapng")));
        let (host, addresses) = (reached.host.name.clone(), addresses.clone());
        let mesh = OnMesh { name: host, addresses, capture: capture.is_some() };
        let part = NodePart { node, mesh: Some(mesh), ..run.part.clone() };
        children.start_far(fleet.command(&reached.host, &["part"]), Far { name, capture }, &part)?;
    }
    children.wait_until_ready(PATIENCE + run.prepared.host.settle, ends)?;
    let before = children.clocks(PATIENCE, ends)?;
    pause(ends)?;
    children.begin()?;
    let lasts = run.prepared.plan.end().since(Instant::ZERO);
    let patience = if captures.is_some() { PATIENCE_WITH_CAPTURES } else { PATIENCE };
    let ended = children.wait_for_results(lasts + patience, ends)?;
    let after = children.clocks(PATIENCE, ends)?;
    Ok((ended, (before, after)))
}

/// Leaves the channel alone for a while, unless the user wants no more.
fn pause(ends: &OwnedFd) -> Result<(), Failure> {
    match wait_to_read(ends.as_fd(), QUIET) {
        Ok(()) => Err(Failure::failed("run in real time", "interrupted")),
        Err(_) => Ok(()),
    }
}

fn result(run: &Run<'_>, ended: &[NodeResults], hosts: Vec<HostRow>) -> RunResult {
    let plan = &run.prepared.plan;
    let end_of = |node: u32, flow: u16| {
        let (ended, host) = (ended.get(node as usize)?, hosts.get(node as usize)?);
        let end = ended.ends.iter().find(|end| end.flow == flow)?.clone();
        let (ahead_ms, within_ms) = host.clock.as_ref().map_or((0.0, 0.0), ClockRow::during);
        Some(EndResult { began_ms: (end.began_ms.0 - ahead_ms, within_ms), ..end })
    };
    let results =
        Results { counted_s: plan.counted_s(), flows: plan.flow_results(&end_of), ..Results::default() };
    let late_us = ended.iter().map(|ended| ended.late_us).max().unwrap_or(0);
    let live = Live {
        programs_late_ms: Duration::from_micros(late_us).as_secs_f64() * 1e3,
        lost: ended.iter().map(|ended| ended.lost).sum(),
        mesh: Some(MeshRun { hosts, again: Vec::new() }),
        ..by_node(run.prepared, (0..).zip(ended))
    };
    let result = RunResult::new(&run.part.scenario, run.world.name(), run.prepared, &results);
    // Real radios and the hosts' own routing do not tell these counts.
    RunResult { air: Air::default(), routing: RoutingResult::default(), live: Some(live), ..result }
}

fn rows(
    fleet: &Fleet,
    (prepared, nodes): (&Prepared, &[&Reached]),
    ended: &[NodeResults],
    clocks: &Clocks,
) -> Vec<HostRow> {
    let seen: Vec<HostObservations> =
        ended.iter().map(|ended| ended.seen.clone().unwrap_or_default()).collect();
    let addresses: Vec<_> = nodes.iter().map(|reached| reached.address).collect();
    let names = HostNames::new(&prepared.names, &addresses, &seen);
    let before = std::mem::replace(&mut *fleet.last.lock(), (addresses.clone(), seen.clone()));
    let before = Some(before).filter(|(of, _)| *of == addresses).map(|(_, seen)| seen).unwrap_or_default();
    let row = |(nth, reached): (usize, &&Reached)| {
        let place = prepared.plan.positions.get(nth).copied().flatten();
        // The trial's own machine has its clock.
        let clock = clocks.0.get(nth).zip(clocks.1.get(nth)).filter(|_| reached.host.ssh.is_some());
        let mut row = HostRow {
            node: prepared.names[nth].clone(),
            host: reached.host.name.clone(),
            address: reached.address.to_string(),
            at_m: place.map(|place| [place.x, place.y]),
            clock: clock.map(|(before, after)| {
                let of = |exchanged: &Exchanged| (exchanged.clock.ahead_ms, exchanged.clock.within_ms);
                ClockRow::of(of(before), of(after), after.at_s - before.at_s)
            }),
            ..HostRow::default()
        };
        seen[nth].add_to(&mut row, nth, &names, before.get(nth).and_then(|seen| seen.looks.last()));
        row
    };
    nodes.iter().enumerate().map(row).collect()
}
