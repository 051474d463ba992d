//! The state of each host before the first run: its report, and the findings of its `hopwise doctor`.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::fleet::ask::ask;
use crate::fleet::host::Host;
use crate::fleet::ssh::{Connections, Unreached};

/// The exit status of a doctor that found a failure.
const FOUND: i32 = 1;

/// A host before the first run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Examined {
    host: String,
    /// Why it gave no report.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    version: Option<String>,
    /// The address of its routing daemon.
    pub(super) address: Option<Ipv4Addr>,
    findings: Vec<Finding>,
}

/// A finding of a doctor. Those of another version may have more to say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Finding {
    check: String,
    verdict: String,
    found: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Findings {
    findings: Vec<Finding>,
}

/// Examines the hosts one after the other, over connections that stay open.
pub(super) async fn examine(hosts: &[Host], connections: &Connections) -> Vec<Examined> {
    let mut all = Vec::new();
    for host in hosts {
        let report = ask(host, connections).await;
        let mut examined = Examined {
            host: host.name.clone(),
            problem: report.problem,
            version: report.version,
            address: report.address,
            findings: Vec::new(),
        };
        if examined.problem.is_none() {
            match doctor(host, connections).await {
                Ok(findings) => examined.findings = findings,
                Err(Unreached(problem)) => examined.problem = Some(problem),
            }
        }
        all.push(examined);
    }
    all
}

async fn doctor(host: &Host, connections: &Connections) -> Result<Vec<Finding>, Unreached> {
    let words = ["doctor", "--json"].map(str::to_owned);
    let said = connections.run_with(host, &words, &[FOUND]).await?;
    let read = serde_json::from_slice::<Findings>(&said);
    let read =
        read.map_err(|error| Unreached(format!("its `hopwise doctor --json` is not understood: {error}")));
    Ok(read?.findings)
}

pub(super) fn keep(path: &Path, examined: &[Examined]) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::failed("keep what was found on the hosts", format_args!("{}: {error}", path.display()))
    };
    let text = serde_json::to_string_pretty(&serde_json::json!({ "hosts": examined }));
    fs::write(path, text.map_err(|error| failed(&error))? + "\n").map_err(|error| failed(&error))
}

/// A line for each warning of a doctor.
pub(super) fn warnings(examined: &[Examined]) -> Vec<String> {
    lines(examined, "warning")
}

fn lines(examined: &[Examined], verdict: &str) -> Vec<String> {
    let of = |host: &Examined| {
        let found = host.findings.iter().filter(|finding| finding.verdict == verdict);
        let line = |Finding { check, found, fix, .. }: &Finding| {
            let fix = fix.as_ref().map_or(String::new(), |fix| format!(" (fix: {fix})"));
            format!("{}: {check}: {found}{fix}", host.host)
        };
        found.map(line).collect::<Vec<_>>()
    };
    examined.iter().flat_map(of).collect()
}

/// Refuses hosts that do not answer, and those on which a doctor found a failure.
pub(super) fn judge(examined: &[Examined], despite_doctor: bool) -> Result<(), Failure> {
    let silent: Vec<_> = examined
        .iter()
        .filter_map(|host| Some(format!("{}: {}", host.host, host.problem.as_ref()?)))
        .collect();
    if !silent.is_empty() {
        return Err(Failure::failed("reach the hosts", silent.join("; ")));
    }
    let failures = lines(examined, "failure");
    if failures.is_empty() || despite_doctor {
        return Ok(());
    }
    let problem = format_args!("{}; --despite-doctor begins all the same", failures.join("; "));
    Err(Failure::failed("begin on hosts with failures", problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, verdict: &str) -> Examined {
        let said = format!(
            r#"{{"findings": [{{"check": "tun", "verdict": "{verdict}", "found": "none", "fix": "modprobe tun"}}]}}"#
        );
        let findings = serde_json::from_str::<Findings>(&said).expect("a doctor's words").findings;
        Examined { host: name.to_owned(), findings, ..Examined::default() }
    }

    #[test]
    fn a_failure_keeps_a_trial_from_its_first_run_unless_its_user_wants_it_and_a_warning_is_told() {
        let all = [host("n0", "ok"), host("n1", "warning")];
        assert!(judge(&all, false).is_ok());
        assert_eq!(warnings(&all), ["n1: tun: none (fix: modprobe tun)"]);
        let all = [host("n0", "ok"), host("n2", "failure")];
        let refused = judge(&all, false).expect_err("a failure").to_string();
        assert!(refused.contains("n2: tun: none (fix: modprobe tun); --despite-doctor"), "{refused}");
        assert!(judge(&all, true).is_ok());
    }

    #[test]
    fn all_hosts_that_do_not_answer_are_named_at_once() {
        let silent = |name: &str| Examined {
            host: name.to_owned(),
            problem: Some("no route".to_owned()),
            ..Examined::default()
        };
        let all = [silent("n1"), host("n0", "ok"), silent("n3")];
        let refused = judge(&all, true).expect_err("they are silent").to_string();
        assert!(refused.contains("n1: no route; n3: no route"), "{refused}");
    }
}
