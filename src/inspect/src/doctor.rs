//! `hopwise doctor`: the faults of a machine or of a fleet, and their remedies.
//!
//! `faults` lists all of them; the other files find them. A check reads files below a root, so that tests give it
//! recorded ones, or asks the kernel. Its judgement is a function of what was read.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hopwise_host::bringup::interface_with;
use hopwise_host::firewall::Ruleset;
use hopwise_host::{Clock, clock_is_synchronised};
use hopwise_lab::units::{Rate, Time};
use hopwise_lab::{plain, version};
use serde::{Deserialize, Serialize};

use hopwise_daemon::failure::{self, Failure};
use hopwise_node::config::{self, NodeConfig};
pub use hopwise_router::bringup::STATE;

mod acks;
mod captures;
mod faults;
mod finding;
mod fleet;
mod forwarding;
mod interfaces;
mod left;
mod links;
mod machine;
mod power;
mod printing;
mod radio;
mod sizes;
mod stations;

pub use finding::{CheckVerdict, Finding};
pub use fleet::{of_fleet, of_one};
use forwarding::ForwardingFacts;
pub use interfaces::WITHOUT_LINK_LAYER;
use interfaces::{InterfaceFacts, InterfacePlace};
use machine::System;

/// The report of a machine, as `--json` prints it and as it goes over ssh.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineReport {
    pub findings: Vec<Finding>,
    /// The interfaces of the mesh.
    #[serde(default)]
    interfaces: Vec<InterfaceFacts>,
    #[serde(default)]
    forwarding: ForwardingFacts,
    #[serde(default)]
    version: String,
    /// The release of its kernel, and the model of a board.
    #[serde(default)]
    kernel: Option<String>,
    #[serde(default)]
    model: Option<String>,
}

/// Returns whether a check is about devices of a node, and the right to make them.
pub fn is_about_devices(check: &str) -> bool {
    [faults::TUN_MISSING.check, faults::NO_NET_ADMIN.check].contains(&check)
}

/// Returns whether a check is about the right to open packet sockets.
pub fn is_about_packet_sockets(check: &str) -> bool {
    check == faults::NO_NET_RAW.check
}

/// Returns whether a check is about an interface of the mesh that is there and up.
pub fn is_about_interfaces(check: &str) -> bool {
    [faults::INTERFACE_MISSING.check, faults::INTERFACE_DOWN.check].contains(&check)
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.faults {
        return print(&faults::page::page());
    }
    if arguments.tell_time {
        return print(&printing::json(&fleet::HostTime { told_at_s: Clock::wall().as_secs_f64() })?);
    }
    if let Some(inventory) = &arguments.fleet {
        return fleet::run(arguments, inventory);
    }
    if let Some(at) = arguments.answer_acks {
        let answered = acks::answer(at, arguments.within.0);
        return answered.map_err(|error| Failure::failed("answer --acks-to", format_args!("{at}: {error}")));
    }
    if let Some(to) = arguments.acks_to {
        let counted = acks::ask(to, arguments.within.0);
        let report = MachineReport {
            findings: vec![acks::finding(&format!("to {to}"), counted)],
            ..MachineReport::default()
        };
        return tell(arguments, &report);
    }
    let config = arguments.config.as_deref().map(config::load).transpose().map_err(Failure::from)?;
    tell(arguments, &examine(arguments, config.as_ref()))
}

fn tell(arguments: &Arguments, report: &MachineReport) -> Result<(), Failure> {
    print(&if arguments.json { printing::json(report)? } else { printing::lines(&report.findings) })?;
    ended(arguments, &report.findings)
}

fn print(text: &str) -> Result<(), Failure> {
    failure::printed(plain::out().write_all(text.as_bytes()))
}

/// Failures are one of the command, unless its status does not count.
fn ended<'a>(arguments: &Arguments, findings: impl IntoIterator<Item = &'a Finding>) -> Result<(), Failure> {
    let failures = findings.into_iter().filter(|finding| finding.verdict == CheckVerdict::Failure).count();
    match failures {
        0 => Ok(()),
        _ if arguments.exit_zero => Ok(()),
        several => {
            Err(Failure::failed("doctor", format_args!("{several} of the findings keep a node from working")))
        }
    }
}

fn examine(arguments: &Arguments, config: Option<&NodeConfig>) -> MachineReport {
    let system = System::at(&arguments.root);
    let (names, others) = interfaces_of(&system, &arguments.interfaces, config);
    let mut interfaces: Vec<_> = names.iter().map(|name| InterfaceFacts::of(&system, name)).collect();
    let mut findings = of_machine(&system, config);
    findings.extend(others);
    let is_named = !arguments.interfaces.is_empty();
    findings.extend(forwarding::examine(&system, config, if is_named { &names } else { &[] }));
    findings.extend(machine::hop_limits(&system, &names, Ruleset::read()));
    if let Some(folder) = &arguments.captures {
        findings.extend(captures::examine(folder, arguments.capture_rate.0));
    }
    let of_mesh = of_interfaces(&system, &mut interfaces, arguments.look.0);
    let may_be_unused =
        !is_named && config.is_none() && names.iter().all(|name| stations::is_down(&system, name));
    if may_be_unused {
        findings.extend(of_mesh.into_iter().map(of_unused));
    } else {
        findings.extend(of_mesh);
    }
    findings.extend(left::examine(&arguments.state, arguments.repair));
    findings.extend(forwarding::firewall());
    let forwarding = ForwardingFacts::of(&system, &names);
    MachineReport {
        findings,
        interfaces,
        forwarding,
        version: version::with_commit().to_owned(),
        kernel: system.read("proc/sys/kernel/osrelease"),
        model: system.read("sys/firmware/devicetree/base/model").map(|model| model.replace('\0', "")),
    }
}

/// The finding about a radio that is down and that nothing names: it keeps no node from working.
fn of_unused(finding: Finding) -> Finding {
    match finding.fault.as_deref() {
        Some(fault) if fault == faults::INTERFACE_DOWN.name => faults::RADIO_DOWN.found(finding.found),
        _ => Finding { verdict: finding.verdict.min(CheckVerdict::Warning), ..finding },
    }
}

/// The names of the mesh's interfaces, and findings about interfaces that are left out.
fn interfaces_of(
    system: &System,
    wanted: &[String],
    config: Option<&NodeConfig>,
) -> (Vec<String>, Vec<Finding>) {
    match config {
        _ if !wanted.is_empty() => {}
        Some(config) => {
            let radios = links::interfaces(config).filter(|name| stations::is_radio(system, name));
            return (radios.cloned().collect(), Vec::new());
        }
        None => return stations::radios_in_use(system),
    }
    let (mut names, mut findings) = (Vec::new(), Vec::new());
    for word in wanted {
        let Ok(address) = word.parse() else {
            names.push(word.clone());
            continue;
        };
        match interface_with(address) {
            Ok(Some(name)) => {
                // The TUN device of a routing daemon has its host's address: the radios are other interfaces.
                let kind = system.read(&format!("sys/class/net/{name}/type"));
                if kind.as_deref() == Some(WITHOUT_LINK_LAYER) {
                    let (radios, left_out) = stations::radios_in_use(system);
                    names.extend(radios);
                    findings.extend(left_out);
                }
                names.push(name);
            }
            Ok(None) => findings
                .push(faults::INTERFACE_MISSING.found(format!("no interface has the address {address}"))),
            Err(error) => findings.push(faults::INTERFACE_MISSING.skipped(format!("{address}: {error}"))),
        }
    }
    (names, findings)
}

/// The machine itself, and the links of a node.
fn of_machine(system: &System, config: Option<&NodeConfig>) -> Vec<Finding> {
    let mut findings = vec![
        machine::tun(system),
        machine::capability(&faults::NO_NET_ADMIN, caps::Capability::CAP_NET_ADMIN),
        machine::rp_filter(system),
        machine::clock_source(system),
        machine::clock_is_kept(clock_is_synchronised()),
        machine::governor(system),
    ];
    findings.extend(power::examine(system));
    if config.is_none_or(NodeConfig::has_packet_sockets) {
        findings.push(machine::capability(&faults::NO_NET_RAW, caps::Capability::CAP_NET_RAW));
    }
    match config {
        Some(config) => findings.extend(links::examine(system, config)),
        None => findings.push(Finding::skipped("links", "no --config names any")),
    }
    findings
}

/// Checks each interface of the mesh and its radio, and compares all interfaces.
fn of_interfaces(system: &System, all: &mut [InterfaceFacts], look: Duration) -> Vec<Finding> {
    let mut findings: Vec<_> = all.iter().flat_map(|facts| interfaces::examine(system, facts)).collect();
    let places: Vec<_> = all.iter().map(|facts| InterfacePlace { host: "", place_m: None, facts }).collect();
    findings.extend(interfaces::same_mtu(&places));
    let mut radios = 0;
    for facts in all {
        if stations::is_radio(system, &facts.name) {
            radios += 1;
            findings.extend(of_radio(system, facts, look));
            findings.extend(sizes::examine(system, facts));
        }
    }
    if radios == 0 {
        findings.push(faults::DRIVER_ODD.skipped("no interface is Wi-Fi or of hopwise air"));
    }
    findings
}

/// Checks a radio, and adds what it hears to the facts of its interface.
fn of_radio(system: &System, facts: &mut InterfaceFacts, look: Duration) -> Vec<Finding> {
    let name = &facts.name.clone();
    let before = radio::channel_use(name);
    let looked = stations::look(name, look);
    let mut findings = stations::examine(name, &looked);
    let heard = looked.map(|looked| looked.facts).unwrap_or_default();
    facts.hears = heard.iter().map(|facts| facts.station.to_string()).collect();
    facts.rts = radio::setting_of(name, "rts_threshold");
    if !stations::is_wifi(system, name) {
        return findings;
    }
    findings.push(radio::switch(system, name));
    findings.push(radio::busy(name, before, radio::channel_use(name)));
    match radio::RadioFacts::of(name) {
        Ok(radio) => {
            facts.coverage_class = radio.coverage_class;
            findings.extend(radio::examine(name, &radio, heard.len()));
        }
        Err(error) => findings.push(faults::NO_AD_HOC.skipped(format!("{name}: {error}"))),
    }
    findings
}

#[cfg(test)]
mod tests;

/// Find faults of a host or fleet that stop a node or spoil a trial, with remedies
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise doctor
  hopwise doctor --interface 10.66.0.1                            # the one with that address
  hopwise doctor --interface eth1 --captures /var/lib/hopwise    # before a trial
  hopwise doctor --config configs/node.yaml     # also checks its links
  hopwise doctor --repair                       # restores what a killed daemon left changed
  hopwise doctor --json | jq '.findings[] | select(.verdict != \"ok\")'
  hopwise doctor --answer-acks 10.0.0.2:4715                      # on one host, and on the other:
  hopwise doctor --acks-to 10.0.0.2:4715
  hopwise doctor --fleet configs/inventory.yaml --limit roof --acks

docs/doctor.md lists all faults. Without --repair it changes nothing; --captures writes a file and removes it. Exit
status 1 means that a fault would keep a node or a trial from working, or that a host gave no answer.")]
pub struct Arguments {
    /// Configuration of a node, whose links are checked too
    #[arg(long, value_name = "FILE", conflicts_with = "fleet")]
    config: Option<PathBuf>,
    /// Interface of the mesh, by its name or its address (default: all radios that are up, or all if none is up);
    /// repeatable
    #[arg(long = "interface", value_name = "IF")]
    pub interfaces: Vec<String>,
    /// Folder for captures, whose disk is tried out: some MiB are written there, and removed
    #[arg(long, value_name = "FOLDER")]
    captures: Option<PathBuf>,
    /// Rate at which the captures of all links together grow
    #[arg(long, value_name = "RATE", default_value = "50mbit")]
    capture_rate: Rate,
    /// Time to look at each radio; with traffic on it, a longer look finds rates that change
    #[arg(long, value_name = "TIME", default_value = "150ms")]
    look: Time,
    /// Undo changes of killed daemons: restore kernel settings and TUN devices that were there before, and remove
    /// routes to hosts (`hopwise route`), rules of routing and rules of netfilter queues (`hopwise proxy`). Restore
    /// interfaces that a killed `hopwise mesh up` left
    #[arg(long, conflicts_with = "fleet")]
    repair: bool,
    /// Folder of the daemons' state files
    #[arg(long, value_name = "FOLDER", default_value = "/run/hopwise")]
    state: PathBuf,
    /// Inventory: examine all its hosts by ssh, and compare them
    #[arg(long, value_name = "FILE")]
    fleet: Option<PathBuf>,
    /// Name of a host or a group of the inventory to take alone; repeatable
    #[arg(long, value_name = "NAME", requires = "fleet")]
    limit: Vec<String>,
    /// Count ACKs from each host of the inventory to the one before it, too
    #[arg(long, requires = "fleet")]
    acks: bool,
    /// Only count ACKs: send data there, and compare the ACKs that arrive with the ACKs sent
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["fleet", "answer_acks"], value_parser = address)]
    acks_to: Option<SocketAddr>,
    /// Answer one `--acks-to` at this address and port, and end
    #[arg(long, value_name = "ADDRESS", conflicts_with = "fleet", value_parser = address)]
    answer_acks: Option<SocketAddr>,
    /// Longest time to wait for a host
    #[arg(long, value_name = "TIME", default_value = "60s")]
    within: Time,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// End with status 0 whatever is found
    #[arg(long)]
    exit_zero: bool,
    /// List all faults that it knows, as a page of Markdown
    #[arg(long)]
    faults: bool,
    /// Tell the time of day alone
    #[arg(long, hide = true)]
    tell_time: bool,
    /// Folder with the files of a machine in place of `/`, as they were recorded
    #[arg(long, value_name = "FOLDER", default_value = "/", hide = true)]
    root: PathBuf,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected an address and a port, such as 10.0.0.2:4715".to_owned())
}
