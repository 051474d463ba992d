//! `hopwise doctor`: the faults of a machine or of a fleet, and their remedies.
//!
//! `faults` lists all of them; the other files find them. A check reads files below a root, so that tests give it
//! recorded ones, or asks the kernel. Its judgement is a function of what was read.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use hopwise_host::bringup::interface_with;
use hopwise_host::{Clock, clock_is_synchronised, firewall::Ruleset};
use hopwise_lab::{plain, version};
use serde::{Deserialize, Serialize};

use crate::failure::{self, Failure};
use crate::mesh::bringup::STATE;
use crate::node::config::{self, NodeConfig};

mod acks;
mod arguments;
mod bringup;
mod captures;
mod faults;
mod finding;
mod firewall;
mod fleet;
mod forwarding;
mod hops;
mod interfaces;
mod lent;
mod links;
mod machine;
mod power;
mod printing;
mod queues;
mod radio;
mod routes;
mod rules;
mod stations;
mod switches;
mod system;
mod transparent;

pub(crate) use arguments::Arguments;
pub(crate) use finding::{Finding, Verdict};
pub(crate) use fleet::{of_fleet, of_one};
use forwarding::Forwarding;
pub(crate) use interfaces::WITHOUT_LINK_LAYER;
use interfaces::{InterfaceFacts, Place};
use system::System;

/// The report of a machine, as `--json` prints it and as it goes over ssh.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) findings: Vec<Finding>,
    /// The interfaces of the mesh.
    #[serde(default)]
    interfaces: Vec<InterfaceFacts>,
    #[serde(default)]
    forwarding: Forwarding,
    #[serde(default)]
    version: String,
}

/// Returns whether a check is about devices of a node, and the right to make them.
pub(crate) fn is_about_devices(check: &str) -> bool {
    [faults::TUN_MISSING.check, faults::NO_NET_ADMIN.check].contains(&check)
}

/// Returns whether a check is about the right to open packet sockets.
pub(crate) fn is_about_packet_sockets(check: &str) -> bool {
    check == faults::NO_NET_RAW.check
}

/// Returns whether a check is about an interface of the mesh that is there and up.
pub(crate) fn is_about_interfaces(check: &str) -> bool {
    [faults::INTERFACE_MISSING.check, faults::INTERFACE_DOWN.check].contains(&check)
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.faults {
        return print(&faults::page::page());
    }
    if arguments.tell_time {
        return print(&printing::json(&fleet::Told { told_at_s: Clock::wall().as_secs_f64() })?);
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
        let report =
            Report { findings: vec![acks::finding(&format!("to {to}"), counted)], ..Report::default() };
        return tell(arguments, &report);
    }
    let config = arguments.config.as_deref().map(config::load).transpose().map_err(Failure::from)?;
    tell(arguments, &examine(arguments, config.as_ref()))
}

fn tell(arguments: &Arguments, report: &Report) -> Result<(), Failure> {
    print(&if arguments.json { printing::json(report)? } else { printing::lines(&report.findings) })?;
    ended(arguments, &report.findings)
}

fn print(text: &str) -> Result<(), Failure> {
    failure::printed(plain::out().write_all(text.as_bytes()))
}

/// Failures are one of the command, unless its status does not count.
fn ended<'a>(arguments: &Arguments, findings: impl IntoIterator<Item = &'a Finding>) -> Result<(), Failure> {
    let failures = findings.into_iter().filter(|finding| finding.verdict == Verdict::Failure).count();
    match failures {
        0 => Ok(()),
        _ if arguments.exit_zero => Ok(()),
        several => {
            Err(Failure::failed("doctor", format_args!("{several} of the findings keep a node from working")))
        }
    }
}

fn examine(arguments: &Arguments, config: Option<&NodeConfig>) -> Report {
    let system = System::at(&arguments.root);
    let (names, others) = interfaces_of(&system, &arguments.interfaces, config);
    let interfaces: Vec<_> = names.iter().map(|name| InterfaceFacts::of(&system, name)).collect();
    let mut findings = of_machine(&system, config);
    findings.extend(others);
    let is_named = !arguments.interfaces.is_empty();
    findings.extend(forwarding::examine(&system, config, if is_named { &names } else { &[] }));
    findings.extend(hops::examine(&system, &names, Ruleset::read()));
    if let Some(folder) = &arguments.captures {
        findings.extend(captures::examine(folder, arguments.capture_rate.0));
    }
    let of_mesh = of_interfaces(&system, &interfaces, arguments.look.0);
    let may_be_unused =
        !is_named && config.is_none() && names.iter().all(|name| stations::is_down(&system, name));
    if may_be_unused {
        findings.extend(of_mesh.into_iter().map(of_unused));
    } else {
        findings.extend(of_mesh);
    }
    findings.extend(left(arguments));
    findings.extend(firewall::examine());
    let forwarding = Forwarding::of(&system, &names);
    Report { findings, interfaces, forwarding, version: version::with_commit().to_owned() }
}

/// The finding about a radio that is down and that nothing names: it keeps no node from working.
fn of_unused(finding: Finding) -> Finding {
    match finding.fault.as_deref() {
        Some(fault) if fault == faults::INTERFACE_DOWN.name => faults::RADIO_DOWN.found(finding.found),
        _ => Finding { verdict: finding.verdict.min(Verdict::Warning), ..finding },
    }
}

/// The names of the mesh's interfaces, and findings about those that are left out.
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
                // The TUN device of a routing daemon has its host's address, and radios are beside it.
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
            Err(error) => findings
                .push(Finding::skipped(faults::INTERFACE_MISSING.check, format!("{address}: {error}"))),
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

/// The interfaces of the mesh: each of them, its radio if it has one, and all beside each other.
fn of_interfaces(system: &System, all: &[InterfaceFacts], look: Duration) -> Vec<Finding> {
    let mut findings: Vec<_> = all.iter().flat_map(|facts| interfaces::examine(system, facts)).collect();
    let places: Vec<_> = all.iter().map(|facts| Place { host: "", facts }).collect();
    findings.extend(interfaces::same_mtu(&places));
    let mut radios = 0;
    for name in all.iter().map(|facts| facts.name.as_str()) {
        if stations::is_radio(system, name) {
            radios += 1;
            findings.extend(of_radio(system, name, look));
        }
    }
    if radios == 0 {
        findings.push(Finding::skipped(faults::DRIVER_ODD.check, "no interface is Wi-Fi or of hopwise air"));
    }
    findings
}

fn of_radio(system: &System, name: &str, look: Duration) -> Vec<Finding> {
    let before = radio::channel_use(name);
    let mut findings = stations::examine(name, stations::look(name, look));
    if !stations::is_wifi(system, name) {
        return findings;
    }
    findings.push(radio::switch(system, name));
    findings.push(radio::busy(name, before, radio::channel_use(name)));
    match radio::RadioFacts::of(name) {
        Ok(facts) => findings.extend(radio::examine(name, &facts)),
        Err(error) => findings.push(Finding::skipped(faults::NO_AD_HOC.check, format!("{name}: {error}"))),
    }
    findings
}

/// Things that killed daemons left.
fn left(arguments: &Arguments) -> Vec<Finding> {
    let (state, is_repair) = (&arguments.state, arguments.repair);
    let mut findings = switches::examine(state, is_repair);
    findings.extend(lent::examine(state, is_repair));
    findings.extend(bringup::examine([state, Path::new(STATE)], is_repair));
    findings.extend(rules::examine(is_repair));
    findings.push(routes::examine(is_repair));
    findings.push(queues::examine(is_repair));
    findings.push(transparent::examine(is_repair));
    findings
}

#[cfg(test)]
mod tests;
