//! `hopwise doctor`: the obstacles for a node on this machine, and their remedies.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use hopwise_lab::plain;
use serde::Serialize;

use crate::failure::{self, Failure};
use crate::node::config::{self, NodeConfig};

mod bringup;
mod firewall;
mod lent;
mod links;
mod machine;
mod queues;
mod routes;
mod rules;
mod stations;
mod switches;

/// Find problems of this machine that keep a node from working, each with its remedy
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise doctor
  hopwise doctor --config configs/node.yaml     # also checks its links
  hopwise doctor --repair                       # restores what a killed daemon left changed
  hopwise doctor --json | jq '.findings[] | select(.verdict != \"ok\")'

Without --repair it changes nothing. Exit status 1 means that a problem would keep a node from working.")]
pub(crate) struct Arguments {
    /// Configuration of a node, whose links are checked too
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Undo changes of killed daemons: restore kernel settings and TUN devices that were there before, and remove
    /// routes to hosts (`hopwise route`), rules of routing and rules of netfilter queues (`hopwise proxy`). Restore
    /// interfaces that a killed `hopwise mesh up` left
    #[arg(long)]
    repair: bool,
    /// Folder of the daemons' state files
    #[arg(long, value_name = "FOLDER", default_value = "/run/hopwise")]
    state: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Ok,
    /// It works, but worse or otherwise than expected.
    Warning,
    /// A node cannot work like this.
    Failure,
    /// It could not be examined.
    Skipped,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Warning => "warning",
            Verdict::Failure => "FAILURE",
            Verdict::Skipped => "skipped",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    check: &'static str,
    verdict: Verdict,
    found: String,
    /// Remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, found: impl Into<String>) -> Finding {
        Finding { check, verdict: Verdict::Ok, found: found.into(), fix: None }
    }

    fn skipped(check: &'static str, why: impl Into<String>) -> Finding {
        Finding { verdict: Verdict::Skipped, ..Finding::ok(check, why) }
    }

    fn warning(check: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { verdict: Verdict::Warning, fix: Some(fix.into()), ..Finding::ok(check, found) }
    }

    fn failure(check: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { verdict: Verdict::Failure, fix: Some(fix.into()), ..Finding::ok(check, found) }
    }
}

/// The kernel's file systems; another folder in tests.
#[derive(Debug)]
struct System {
    root: PathBuf,
}

impl System {
    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// A file's text without its newline. Names in it may be any bytes that a user of the machine chooses.
    fn read(&self, path: &str) -> Option<String> {
        let bytes = std::fs::read(self.path(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let config = arguments.config.as_deref().map(config::load).transpose().map_err(Failure::from)?;
    let system = System { root: Path::new("/").to_owned() };
    let mut findings = examine(&system, config.as_ref());
    findings.extend(switches::examine(&arguments.state, arguments.repair));
    findings.extend(lent::examine(&arguments.state, arguments.repair));
    findings.extend(bringup::examine(&arguments.state, arguments.repair));
    findings.extend(rules::examine(arguments.repair));
    findings.push(routes::examine(arguments.repair));
    findings.push(queues::examine(arguments.repair));
    findings.extend(firewall::examine());
    findings.extend(stations::examine(&system));
    let text = if arguments.json {
        serde_json::json!({ "findings": findings }).to_string() + "\n"
    } else {
        findings.iter().map(line).collect()
    };
    failure::printed(plain::out().write_all(text.as_bytes()))?;
    let failures = findings.iter().filter(|finding| finding.verdict == Verdict::Failure).count();
    match failures {
        0 => Ok(()),
        several => {
            Err(Failure::failed("doctor", format_args!("{several} of the findings keep a node from working")))
        }
    }
}

fn examine(system: &System, config: Option<&NodeConfig>) -> Vec<Finding> {
    let mut findings = vec![
        machine::tun(system),
        machine::capability(
            "net-admin",
            caps::Capability::CAP_NET_ADMIN,
            "TUN devices, addresses and routes",
        ),
        machine::rp_filter(system),
        machine::forwarding(system),
        machine::clock_source(system),
    ];
    if config.is_none_or(NodeConfig::has_packet_sockets) {
        let needs = "raw links and live captures";
        findings.push(machine::capability("net-raw", caps::Capability::CAP_NET_RAW, needs));
    }
    if config.is_none_or(NodeConfig::has_ipv6) {
        findings.push(machine::forwarding_v6(system));
    }
    match config {
        Some(config) => findings.extend(links::examine(system, config)),
        None => findings.push(Finding::skipped("links", "no --config names any")),
    }
    findings
}

/// Names of files are others' to choose: one begins no line of its own, and turns no text around.
fn line(finding: &Finding) -> String {
    let Finding { check, verdict, found, fix } = finding;
    let fix = fix.as_ref().map_or(String::new(), |fix| format!("\n{:22}fix: {}", "", plain::line(fix)));
    format!("{:8} {check:12} {}{fix}\n", verdict.name(), plain::line(found))
}

#[cfg(test)]
mod tests;
