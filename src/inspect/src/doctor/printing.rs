//! Prints findings, as lines for people or as one JSON object.

use hopwise_lab::plain;
use serde::Serialize;

use super::finding::{CheckVerdict, Finding};
use super::fleet::{CheckedHost, FleetReport, worst};
use hopwise_daemon::failure::{self, Failure};
use hopwise_daemon::table;

/// The lines of findings.
pub(super) fn lines(findings: &[Finding]) -> String {
    findings.iter().map(line).collect()
}

/// A file's name is chosen by any user: control characters in it are made harmless, so that it cannot start a line or
/// reverse the text.
pub(super) fn line(finding: &Finding) -> String {
    let Finding { check, verdict, fault, found, fix } = finding;
    let fault = fault.as_ref().map_or(String::new(), |fault| format!(" [{}]", plain::line(fault)));
    let fix = fix.as_ref().map_or(String::new(), |fix| format!("\n{:22}fix: {}", "", plain::line(fix)));
    format!("{:8} {:12} {}{fault}{fix}\n", verdict.name(), plain::line(check), plain::line(found))
}

pub(super) fn json(report: &impl Serialize) -> Result<String, Failure> {
    Ok(failure::json(report)? + "\n")
}

const COLUMNS: [&str; 6] = ["host", "verdict", "failures", "warnings", "skipped", "faults"];
const TOGETHER: &str = "together";
/// The faults of a host that are told, and the longest line of each, in letters: a host may tell any number of any
/// length.
const MOST_TOLD: usize = 32;
const LONGEST: usize = 1024;

/// A table of hosts, and below it each fault with its remedy.
pub(super) fn fleet(report: &FleetReport) -> String {
    let mut rows: Vec<_> = report.hosts.iter().map(of_host).collect();
    rows.push(row(TOGETHER, &report.together));
    let mut text = table::lines(&COLUMNS, &rows).join("\n") + "\n";
    let each = report.hosts.iter().map(|host| (host.host.as_str(), &host.report.findings));
    for (host, findings) in each.chain([(TOGETHER, &report.together)]) {
        let faults: Vec<_> = findings.iter().filter(|finding| finding.fault.is_some()).collect();
        for finding in faults.iter().take(MOST_TOLD) {
            let told = line(finding);
            let told: Vec<_> = told.lines().map(|line| plain::cut(line, LONGEST)).collect();
            text += &format!("\n{}: {}", plain::line(host), told.join("\n"));
        }
        let more = faults.len().saturating_sub(MOST_TOLD);
        if more > 0 {
            text += &format!("\n{}: and {more} more faults: --json has them", plain::line(host));
        }
    }
    text + "\n"
}

fn of_host(host: &CheckedHost) -> Vec<String> {
    match &host.problem {
        Some(problem) => [&host.host, "no answer", "-", "-", "-", problem].map(str::to_owned).into(),
        None => row(&host.host, &host.report.findings),
    }
}

fn row(name: &str, findings: &[Finding]) -> Vec<String> {
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count().to_string();
    let mut faults: Vec<_> = findings.iter().filter_map(|finding| finding.fault.as_deref()).collect();
    faults.dedup();
    vec![
        name.to_owned(),
        worst(findings).name().to_owned(),
        count(CheckVerdict::Failure),
        count(CheckVerdict::Warning),
        count(CheckVerdict::Skipped),
        if faults.is_empty() { "-".to_owned() } else { faults.join(", ") },
    ]
}
