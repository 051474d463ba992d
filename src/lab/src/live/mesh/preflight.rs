//! The state of the hosts before the first run: the report of each, and the findings of `hopwise doctor` there.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use hopwise_lab::folder;
use serde::Serialize;

use hopwise_daemon::failure::Failure;
use hopwise_inspect::doctor::{self, CheckVerdict, Finding};
use hopwise_node::fleet::ask::Asking;
use hopwise_node::fleet::inventory::Host;
use hopwise_node::fleet::ssh::SshConnections;

/// The folder of a host in which a run keeps its capture until the end.
const CAPTURES: &str = "/tmp";
/// The file of a trial with what was found on its hosts before the first run.
const FILE: &str = "preflight.json";

/// The parts of a trial that make more checks count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PreflightNeeds {
    /// Some arm has endpoints of ours.
    pub(crate) endpoints: bool,
    /// Their packets are kept.
    pub(crate) captures: bool,
}

/// All hosts before the first run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Preflight {
    pub hosts: Vec<Examined>,
    /// Findings that only several hosts show.
    together: Vec<Finding>,
}

/// A host before the first run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Examined {
    host: String,
    /// Why it gave no report.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    version: Option<String>,
    /// Its address in the mesh, by the inventory or by its routing daemon.
    pub address: Option<Ipv4Addr>,
    findings: Vec<Finding>,
}

/// Examines the hosts, all at once. Those that give no report are asked nothing else.
pub(super) async fn examine(
    hosts: &[Host],
    connections: &Arc<SshConnections>,
    needs: PreflightNeeds,
) -> Preflight {
    let reports = Asking::over(hosts.to_vec(), Arc::clone(connections)).round().await.hosts;
    let mut examined: Vec<_> = hosts
        .iter()
        .zip(reports)
        .map(|(host, report)| Examined {
            host: host.name.clone(),
            problem: report.problem,
            version: report.version,
            address: host.address.or(report.address),
            findings: Vec::new(),
        })
        .collect();
    let is_there = |(_, host): &(&Host, &Examined)| host.problem.is_none();
    let there: Vec<_> = hosts.iter().zip(&examined).filter(is_there).map(|(host, _)| host.clone()).collect();
    let addresses: BTreeMap<String, Ipv4Addr> =
        examined.iter().filter_map(|host| Some((host.host.clone(), host.address?))).collect();
    let words = |host: &Host| words(addresses.get(&host.name).copied(), needs);
    let asking = Asking::over(there.clone(), Arc::clone(connections));
    let found = doctor::of_fleet(&asking, &there, &words).await;
    for of_host in found.hosts {
        let Some(host) = examined.iter_mut().find(|host| host.host == of_host.host) else { continue };
        host.problem = of_host.problem;
        host.findings = of_host.report.findings;
        host.findings.retain(|finding| counts(finding, needs));
    }
    Preflight { hosts: examined, together: found.together }
}

/// The interface of a mesh is the one with the host's address there, be it a radio or a wire.
fn words(address: Option<Ipv4Addr>, needs: PreflightNeeds) -> Vec<String> {
    let mut words: Vec<_> = ["doctor", "--json", "--exit-zero"].map(str::to_owned).into();
    words.extend(address.iter().flat_map(|address| ["--interface".to_owned(), address.to_string()]));
    if needs.captures {
        words.extend(["--captures", CAPTURES].map(str::to_owned));
    }
    words
}

/// The kernel's TCP needs no device of ours, and no trial opens packet sockets.
fn counts(finding: &Finding, needs: PreflightNeeds) -> bool {
    let is_about = |check: fn(&str) -> bool| check(&finding.check);
    !is_about(doctor::is_about_packet_sockets) && (needs.endpoints || !is_about(doctor::is_about_devices))
}

/// Returns whether a host has its address in the mesh, on an interface that is up.
pub(super) async fn is_in_mesh(host: &Host, address: Ipv4Addr, connections: &Arc<SshConnections>) -> bool {
    let asking = Asking::over(vec![host.clone()], Arc::clone(connections));
    let words = words(Some(address), PreflightNeeds { endpoints: false, captures: false });
    let found = doctor::of_one(&asking, (0, host), &words).await;
    let is_apart = |finding: &Finding| {
        finding.verdict == CheckVerdict::Failure && doctor::is_about_interfaces(&finding.check)
    };
    found.problem.is_none() && !found.report.findings.iter().any(is_apart)
}

impl Preflight {
    pub(super) fn keep(&self, folder: &Path) -> Result<(), Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::failed(
                "keep what was found on the hosts",
                format_args!("{}: {error}", folder.join(FILE).display()),
            )
        };
        let text = serde_json::to_string_pretty(self).map_err(|error| failed(&error))?;
        folder::write(folder, FILE, text + "\n").map_err(|error| failed(&error))
    }

    /// A line for each warning.
    pub(super) fn warnings(&self) -> Vec<String> {
        self.lines(CheckVerdict::Warning)
    }

    fn lines(&self, verdict: CheckVerdict) -> Vec<String> {
        let line = |who: &str, Finding { check, found, fix, .. }: &Finding| {
            let fix = fix.as_ref().map_or(String::new(), |fix| format!(" (fix: {fix})"));
            format!("{who}{check}: {found}{fix}")
        };
        let is_such = |finding: &&Finding| finding.verdict == verdict;
        let of_hosts = self.hosts.iter().flat_map(|host| {
            let who = format!("{}: ", host.host);
            host.findings.iter().filter(is_such).map(move |finding| line(&who, finding))
        });
        let of_all = self.together.iter().filter(is_such).map(|finding| line("", finding));
        of_hosts.chain(of_all).collect()
    }

    /// Refuses hosts that do not answer, and hosts on which a doctor found a failure.
    pub(super) fn judge(&self, despite_doctor: bool) -> Result<(), Failure> {
        let silent: Vec<_> = self
            .hosts
            .iter()
            .filter_map(|host| Some(format!("{}: {}", host.host, host.problem.as_ref()?)))
            .collect();
        if !silent.is_empty() {
            return Err(Failure::failed("reach the hosts", silent.join("; ")));
        }
        let failures = self.lines(CheckVerdict::Failure);
        if failures.is_empty() || despite_doctor {
            return Ok(());
        }
        let problem = format_args!("{}; --despite-doctor begins all the same", failures.join("; "));
        Err(Failure::failed("begin on hosts with failures", problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(check: &str, verdict: &str) -> Finding {
        let said = format!(
            r#"{{"check": "{check}", "verdict": "{verdict}", "found": "none", "fix": "modprobe tun"}}"#
        );
        serde_json::from_str(&said).expect("a doctor's words")
    }

    fn host(name: &str, verdict: &str) -> Examined {
        Examined { host: name.to_owned(), findings: vec![finding("tun", verdict)], ..Examined::default() }
    }

    fn all<const N: usize>(hosts: [Examined; N]) -> Preflight {
        Preflight { hosts: hosts.into(), together: Vec::new() }
    }

    #[test]
    fn a_failure_keeps_a_trial_from_its_first_run_unless_its_user_wants_it_and_a_warning_is_told() {
        let found = all([host("n0", "ok"), host("n1", "warning")]);
        assert!(found.judge(false).is_ok());
        assert_eq!(found.warnings(), ["n1: tun: none (fix: modprobe tun)"]);
        let found = all([host("n0", "ok"), host("n2", "failure")]);
        let refused = found.judge(false).expect_err("a failure").to_string();
        assert!(refused.contains("n2: tun: none (fix: modprobe tun); --despite-doctor"), "{refused}");
        assert!(found.judge(true).is_ok());
    }

    #[test]
    fn findings_that_only_several_hosts_show_count_as_well() {
        let mut found = all([host("n0", "ok"), host("n1", "ok")]);
        found.together = vec![finding("address", "failure"), finding("clock-sync", "warning")];
        assert_eq!(found.warnings(), ["clock-sync: none (fix: modprobe tun)"]);
        let refused = found.judge(false).expect_err("a failure").to_string();
        assert!(refused.contains("address: none"), "{refused}");
    }

    #[test]
    fn rights_that_a_trial_does_not_use_do_not_count() {
        let of = |check: &str, endpoints| {
            counts(&finding(check, "failure"), PreflightNeeds { endpoints, captures: false })
        };
        for check in ["tun", "net-admin"] {
            assert_eq!([of(check, true), of(check, false)], [true, false], "{check}");
        }
        assert_eq!([of("net-raw", true), of("net-raw", false)], [false, false]);
        assert_eq!([of("interface", true), of("interface", false)], [true, true]);
    }

    #[test]
    fn a_doctor_looks_at_the_interface_with_the_hosts_address_and_at_the_disk_if_captures_are_kept() {
        let address = Some(Ipv4Addr::new(10, 66, 0, 1));
        let needs = |captures| PreflightNeeds { endpoints: true, captures };
        let all = words(address, needs(true)).join(" ");
        assert_eq!(all, "doctor --json --exit-zero --interface 10.66.0.1 --captures /tmp");
        assert_eq!(words(None, needs(false)).join(" "), "doctor --json --exit-zero");
    }

    #[test]
    fn all_hosts_that_do_not_answer_are_named_at_once() {
        let silent = |name: &str| Examined {
            host: name.to_owned(),
            problem: Some("no route".to_owned()),
            ..Examined::default()
        };
        let found = all([silent("n1"), host("n0", "ok"), silent("n3")]);
        let refused = found.judge(true).expect_err("they are silent").to_string();
        assert!(refused.contains("n1: no route; n3: no route"), "{refused}");
    }
}
