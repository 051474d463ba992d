//! The hosts of a trial: the way to each, and the node that it is.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use hopwise_host::wait_to_read;
use hopwise_lab::live::mesh::HostObservations;
use hopwise_lab::scenario::Prepared;
use hopwise_lab::units::Time;
use hopwise_lab::world::World;
use parking_lot::Mutex;
use tokio::runtime::Runtime;

use super::preflight::{self, Examined, PreflightNeeds};
use hopwise_daemon::failure::{Failure, remark};
use hopwise_node::fleet::ask::ask;
use hopwise_node::fleet::inventory::ChosenHosts;
use hopwise_node::fleet::inventory::Host;
use hopwise_node::fleet::ssh::SshConnections;

/// The bound of a question to a host.
const WITHIN: Duration = Duration::from_secs(20);
/// The pause between two questions to a host that does not answer.
const ASK_EVERY: Duration = Duration::from_secs(2);

/// A host that was reached.
#[derive(Clone, Debug)]
pub(crate) struct Reached {
    pub host: Host,
    pub address: Ipv4Addr,
}

/// A host that fell silent in a run.
#[derive(Clone, Debug)]
pub(in crate::live) struct LostHost {
    /// The scenario's name for it.
    pub(super) node: String,
    pub(in crate::live) host: Host,
    pub(super) why: String,
}

impl fmt::Display for LostHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the host {} ({}) was lost: {}", self.host.name, self.node, self.why)
    }
}

/// The hosts of a trial, over connections that stay open.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub hosts: Vec<Reached>,
    connections: Arc<SshConnections>,
    runtime: Runtime,
    wait: Duration,
    lost: Mutex<Option<LostHost>>,
    /// The addresses of the hosts of the last run, and what they saw.
    pub(super) last: Mutex<(Vec<Ipv4Addr>, Vec<HostObservations>)>,
}

impl Fleet {
    /// Reaches all hosts that some node is, and examines them. The findings are kept in the folder of the trial.
    pub(crate) fn open(
        of: &OfMesh,
        hosts: Vec<Host>,
        needs: PreflightNeeds,
        out: &Path,
    ) -> Result<Fleet, Failure> {
        let connections = Arc::new(SshConnections::new(WITHIN)?);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(Failure::during("start a runtime"))?;
        let found = runtime.block_on(preflight::examine(&hosts, &connections, needs));
        found.keep(out)?;
        for line in found.warnings() {
            remark(&line);
        }
        found.judge(of.despite_doctor)?;
        let reached = hosts.into_iter().zip(&found.hosts).map(reached).collect::<Result<Vec<_>, _>>()?;
        let mut by_address: BTreeMap<Ipv4Addr, &str> = BTreeMap::new();
        for Reached { host, address } in &reached {
            if let Some(other) = by_address.insert(*address, &host.name) {
                let problem = format_args!(
                    "{other} and {} have one address in the mesh, {address}: expected one of its own for each",
                    host.name
                );
                return Err(Failure::refused("--inventory", problem));
            }
        }
        let (lost, last) = (Mutex::default(), Mutex::default());
        Ok(Fleet { hosts: reached, connections, runtime, wait: of.wait.0, lost, last })
    }

    /// The hosts that are the nodes of a plan, in the order of nodes.
    pub(super) fn nodes(&self, prepared: &Prepared) -> Result<Vec<&Reached>, Failure> {
        let names: Vec<_> = self.hosts.iter().map(|reached| reached.host.name.as_str()).collect();
        Ok(places(&prepared.names, &names)?.into_iter().map(|nth| &self.hosts[nth]).collect())
    }

    /// `hopwise` with these arguments on a host.
    pub(super) fn command(&self, host: &Host, arguments: &[&str]) -> Command {
        let arguments: Vec<_> = arguments.iter().map(|word| (*word).to_owned()).collect();
        self.connections.command(host, &arguments)
    }

    pub(super) fn lose(&self, lost: LostHost) {
        *self.lost.lock() = Some(lost);
    }

    /// The host that fell silent in the last run, if one did.
    pub(in crate::live) fn take_lost(&self) -> Option<LostHost> {
        self.lost.lock().take()
    }

    /// Waits until a lost host answers and is in the mesh again. False if it is not in time, or `ends` is readable.
    pub(in crate::live) fn is_back(&self, lost: &LostHost, ends: &OwnedFd) -> bool {
        let mut waited = Duration::ZERO;
        loop {
            let report = self.runtime.block_on(ask(&lost.host, &self.connections));
            if report.problem.is_none() && self.is_in_mesh(&lost.host) {
                return true;
            }
            if waited >= self.wait || wait_to_read(ends.as_fd(), ASK_EVERY).is_ok() {
                return false;
            }
            waited += ASK_EVERY;
        }
    }

    /// A host that has started again may answer before its mesh is up.
    fn is_in_mesh(&self, host: &Host) -> bool {
        let known = self.hosts.iter().find(|reached| reached.host.name == host.name);
        known.is_none_or(|reached| {
            self.runtime.block_on(preflight::is_in_mesh(host, reached.address, &self.connections))
        })
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let hosts: Vec<_> = self.hosts.iter().map(|reached| reached.host.clone()).collect();
        self.runtime.block_on(self.connections.end(&hosts));
    }
}

fn reached((host, examined): (Host, &Examined)) -> Result<Reached, Failure> {
    match examined.address {
        Some(address) => Ok(Reached { host, address }),
        None => {
            let problem = format_args!(
                "no routing daemon answers on {}, and the file does not say its address in the mesh: expected \
                 `address:` there, or `hopwise_address` in an inventory of Ansible",
                host.name
            );
            Err(Failure::refused("--inventory", problem))
        }
    }
}

/// Refuses a plan that these hosts cannot play.
pub(in crate::live) fn check(prepared: &Prepared, hosts: &[Host]) -> Result<(), Failure> {
    let names: Vec<_> = hosts.iter().map(|host| host.name.as_str()).collect();
    places(&prepared.names, &names).map(drop)
}

/// The place of each node among the hosts, by its name. If no host has the name of a node, hosts are nodes in their
/// order.
fn places(nodes: &[String], hosts: &[&str]) -> Result<Vec<usize>, Failure> {
    let named: Vec<_> = nodes.iter().map(|node| hosts.iter().position(|host| host == node)).collect();
    if named.iter().all(Option::is_none) && hosts.len() >= nodes.len() {
        return Ok((0..nodes.len()).collect());
    }
    let missing: Vec<_> = nodes
        .iter()
        .zip(&named)
        .filter(|(_, place)| place.is_none())
        .map(|(node, _)| node.as_str())
        .collect();
    if missing.is_empty() {
        return Ok(named.into_iter().flatten().collect());
    }
    let problem = if missing.len() == nodes.len() {
        format!("{} hosts for {} nodes: expected a host for each node", hosts.len(), nodes.len())
    } else {
        format!(
            "it has no host {}, and others have the names of nodes: expected all of {}, or none of these names",
            missing.join(", "),
            nodes.join(", ")
        )
    };
    Err(Failure::refused("--inventory", problem))
}

/// The hosts of the world `mesh`, and the trial's patience with them.
#[derive(Args, Clone, Debug)]
pub(crate) struct OfMesh {
    #[command(flatten)]
    chosen: ChosenHosts,
    /// Longest time to wait for a lost host before the trial ends with the runs that it has, in the world mesh
    #[arg(long, value_name = "TIME", default_value = "2m")]
    pub(super) wait: Time,
    /// Begin although `hopwise doctor` finds a failure on a host, in the world mesh
    #[arg(long)]
    pub(super) despite_doctor: bool,
}

impl OfMesh {
    pub(crate) fn names_hosts(&self) -> bool {
        self.chosen.inventory.is_some()
    }

    /// The hosts of the inventory, which the world mesh needs and no other one takes.
    pub(crate) fn hosts(&self, worlds: &[World]) -> Result<Option<Vec<Host>>, Failure> {
        let is_mesh = worlds.contains(&World::Mesh);
        match (self.chosen.hosts()?, is_mesh) {
            (None, true) => {
                let problem = "the world mesh needs hosts, expected --inventory FILE; `hopwise keys schema inventory` \
                               shows what it may say";
                Err(Failure::refused("--world", problem))
            }
            (Some(_), false) => Err(Failure::refused(
                "--inventory",
                "no other world has hosts, expected it with --world mesh",
            )),
            (hosts, _) => Ok(hosts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(nodes: &[&str], hosts: &[&str]) -> Result<Vec<usize>, String> {
        let nodes: Vec<_> = nodes.iter().map(|node| (*node).to_owned()).collect();
        places(&nodes, hosts).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_node_is_the_host_of_its_name_and_without_such_names_hosts_are_nodes_in_their_order() {
        assert_eq!(of(&["n0", "n1"], &["n1", "admin", "n0"]), Ok(vec![2, 0]));
        assert_eq!(of(&["n0", "n1"], &["roof", "cellar", "attic"]), Ok(vec![0, 1]));
        let some = of(&["n0", "n1"], &["n1", "roof"]).expect_err("n0 is missing");
        assert!(some.contains("no host n0") && some.contains("expected all of n0, n1"), "{some}");
        let few = of(&["n0", "n1"], &["roof"]).expect_err("one is missing");
        assert!(few.contains("1 hosts for 2 nodes"), "{few}");
    }
}
