//! `hopwise mesh status`: the hosts of a mesh in one table. `hopwise mesh hosts`: how each host is reached.

use std::path::PathBuf;

use clap::Args;
use hopwise_lab::units::Time;

use hopwise_daemon::failure::{Failure, json, print, say};
use hopwise_daemon::signals;
use hopwise_daemon::table::{self, known};
use hopwise_node::fleet::ask::Asking;
use hopwise_node::fleet::here;
use hopwise_node::fleet::inventory::ChosenHosts;
use hopwise_node::fleet::inventory::{Destination, Host};
use hopwise_node::fleet::report::Reports;
use hopwise_node::fleet::view;

/// Show the hosts of a mesh: neighbours and their links, routes, queues, airtime, agents in use
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise mesh status                                    # this machine, by the sockets in /run/hopwise
  hopwise mesh status --inventory configs/inventory.yaml
  hopwise mesh status --inventory inventory.json --limit roof --json | jq '.hosts[].neighbours'
  hopwise mesh status --inventory inventory.json --metrics --exit-zero > /var/lib/node_exporter/hopwise.prom

Hosts are reached by ssh, with the user's own configuration and without a password; `hopwise` has to be installed there.
A fact that is not known is `-`, and --json has the reason. A host that gives no answer is a row, with its reason below
the table, and the exit status is 1. The table has a host's first 16 neighbours, and --json has all.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    chosen: ChosenHosts,
    /// Control socket of a daemon here (default: all in /run/hopwise); repeatable
    #[arg(long, value_name = "SOCKET", conflicts_with = "inventory")]
    control: Vec<PathBuf>,
    /// Longest time to wait for a host
    #[arg(long, value_name = "TIME", default_value = "10s")]
    within: Time,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Print metrics in Prometheus' text format
    #[arg(long, conflicts_with = "json")]
    metrics: bool,
    /// Exit status 0 also if hosts gave no answer
    #[arg(long, requires = "inventory")]
    exit_zero: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (runtime, mut ending) = signals::runtime()?;
    let Some(hosts) = arguments.chosen.hosts()? else {
        let reports = Reports { hosts: vec![here::report(&arguments.control)] };
        return runtime.block_on(show(arguments, &reports));
    };
    let asking = Asking::new(hosts, arguments.within.0)?;
    runtime.block_on(async {
        let reports = asking.answers(Asking::round, &mut ending).await?;
        show(arguments, &reports).await?;
        reports.ended("mesh status", arguments.exit_zero)
    })
}

async fn show(arguments: &Arguments, reports: &Reports) -> Result<(), Failure> {
    if arguments.json {
        return print(json(reports)? + "\n").await;
    }
    if arguments.metrics { print(view::metrics(reports)).await } else { print(view::page(reports)).await }
}

/// List the hosts of an inventory, and how each is reached; no host is asked
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise mesh hosts --inventory configs/inventory.yaml
  hopwise mesh hosts --inventory inventory.json --limit roof --json")]
pub(crate) struct HostsArguments {
    #[command(flatten)]
    chosen: ChosenHosts,
    /// Print a JSON list
    #[arg(long)]
    json: bool,
}

pub(crate) fn hosts(arguments: &HostsArguments) -> Result<(), Failure> {
    let Some(hosts) = arguments.chosen.hosts()? else {
        return Err(Failure::refused("--inventory", "expected the file that names the hosts"));
    };
    if arguments.json {
        return say(&json(&hosts)?);
    }
    let columns = ["host", "ssh", "user", "port", "identity", "control", "command", "groups", "address"];
    say(&table::lines(&columns, &hosts.iter().map(cells).collect::<Vec<_>>()).join("\n"))
}

fn cells(host: &Host) -> Vec<String> {
    let here = Destination::at("this machine");
    let Destination { host: destination, user, port, identity, .. } = host.ssh.as_ref().unwrap_or(&here);
    let paths = |paths: &[PathBuf]| {
        let all: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        known((!all.is_empty()).then(|| all.join(", ")))
    };
    vec![
        host.name.clone(),
        destination.clone(),
        known(user.as_ref()),
        known(*port),
        known(identity.as_ref().map(|path| path.display())),
        paths(&host.control),
        host.command.clone(),
        known((!host.groups.is_empty()).then(|| host.groups.join(", "))),
        known(host.address),
    ]
}
