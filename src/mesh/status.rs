//! `hopwise mesh status`: the hosts of a mesh in one table.

use std::path::PathBuf;

use clap::Args;
use hopwise_lab::units::Time;

use crate::failure::{Failure, print};
use crate::fleet::ask::Asking;
use crate::fleet::here;
use crate::fleet::inventory::Chosen;
use crate::fleet::report::Reports;
use crate::fleet::view;
use crate::signals;

/// Show the hosts of a mesh: neighbours and their links, routes, queues, airtime, agents in use
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise mesh status                                    # this machine, by the sockets in /run/hopwise
  hopwise mesh status --inventory configs/inventory.yaml
  hopwise mesh status --inventory hosts.ini --limit roof --json | jq '.hosts[].neighbours'
  hopwise mesh status --inventory hosts.ini --metrics --exit-zero > /var/lib/node_exporter/hopwise.prom

Hosts are reached by ssh, with the user's own configuration and without a password; `hopwise` has to be installed there.
A fact that is not known is `-`, and --json has the reason. A host that gives no answer is a row, with its reason below
the table, and the exit status is 1. The table has a host's first 16 neighbours, and --json has all.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    chosen: Chosen,
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
        let reports = tokio::select! {
            reports = asking.round() => Some(reports),
            () = ending.next() => None,
        };
        asking.close().await;
        match reports {
            Some(reports) => {
                show(arguments, &reports).await?;
                reports.ended("mesh status", arguments.exit_zero)
            }
            None => Err(Failure::failed("ask the hosts", "a signal ended it")),
        }
    })
}

async fn show(arguments: &Arguments, reports: &Reports) -> Result<(), Failure> {
    if arguments.json {
        let text = serde_json::to_string(reports).map_err(|error| Failure::failed("write JSON", error))?;
        return print(text + "\n").await;
    }
    if arguments.metrics {
        return print(view::metrics(reports)).await;
    }
    print(view::page(reports)).await
}
