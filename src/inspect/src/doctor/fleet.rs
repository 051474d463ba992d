//! `hopwise doctor --fleet`: the findings of all hosts of an inventory, each alone and compared with each other.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Arguments;
use super::finding::{CheckVerdict, Finding};
use super::interfaces::{InterfaceFacts, InterfacePlace, duplicates, hidden, same_mtu, uncovered};
use super::{MachineReport, ended, faults, forwarding, print, printing};
use hopwise_daemon::failure::Failure;
use hopwise_daemon::signals;
use hopwise_node::fleet::ask::{Asking, HostWords};
use hopwise_node::fleet::inventory::ChosenHosts;
use hopwise_node::fleet::inventory::Host;
use hopwise_node::fleet::report::ClockReport;
use hopwise_node::fleet::ssh::Unreached;

/// Clocks that differ by more, beyond what an exchange cannot tell, spoil a comparison of times.
const SKEW_MS: f64 = 20.0;
/// The port of a host that answers for its ACKs.
const ACKS_PORT: u16 = 4715;
/// The exchanges of the time of day; the quickest one counts.
const EXCHANGES: usize = 3;

/// A host's time of day, in seconds since 1970.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct HostTime {
    pub(super) told_at_s: f64,
}

/// A host, with its report or the reason why there is none.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CheckedHost {
    pub host: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The difference between the host's clock and ours.
    pub clock: Option<ClockReport>,
    /// Its place, as the inventory has it.
    #[serde(skip)]
    pub(super) place_m: Option<[i32; 2]>,
    #[serde(flatten)]
    pub report: MachineReport,
}

/// All hosts.
#[derive(Clone, Debug, Serialize)]
pub struct FleetReport {
    pub hosts: Vec<CheckedHost>,
    /// Findings that only several hosts show.
    pub together: Vec<Finding>,
}

pub(super) fn run(arguments: &Arguments, inventory: &Path) -> Result<(), Failure> {
    let hosts = ChosenHosts::of(inventory, &arguments.limit).hosts()?.unwrap_or_default();
    let (runtime, mut ending) = signals::runtime()?;
    let asking = Asking::new(hosts.clone(), arguments.within.0)?;
    let examined = async |asking: &Asking| examine(asking, &hosts, arguments).await;
    let report = runtime.block_on(asking.answers(examined, &mut ending))?;
    print(&if arguments.json { printing::json(&report)? } else { printing::fleet(&report) })?;
    let silent = report.hosts.iter().filter(|host| host.problem.is_some()).count();
    if silent > 0 && !arguments.exit_zero {
        return Err(Failure::failed("doctor", format_args!("{silent} of the hosts gave no answer")));
    }
    ended(arguments, report.hosts.iter().flat_map(|host| &host.report.findings).chain(&report.together))
}

async fn examine(asking: &Asking, hosts: &[Host], arguments: &Arguments) -> FleetReport {
    let words = words(arguments);
    let mut report = of_fleet(asking, hosts, &|_| words.clone()).await;
    if arguments.acks {
        report.together.extend(acks(asking, hosts, &report.hosts).await);
    }
    report
}

/// Asks the doctors of all hosts at once, each by its own words, and compares the hosts.
pub async fn of_fleet(asking: &Asking, hosts: &[Host], words: &dyn Fn(&Host) -> Vec<String>) -> FleetReport {
    let hosts = ask(asking, hosts, words).await;
    let together = together(&hosts);
    FleetReport { hosts, together }
}

/// Each host hears the ACKs of the next one. One pair after the other, since they share a channel.
async fn acks(asking: &Asking, of: &[Host], hosts: &[CheckedHost]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let reached: Vec<_> = (0..hosts.len()).filter(|nth| hosts[*nth].problem.is_none()).collect();
    let address = |nth: usize| {
        // A host may also have interfaces outside the mesh.
        let named = of[nth].address.map(IpAddr::from);
        named.or_else(|| hosts[nth].report.interfaces.iter().find_map(InterfaceFacts::address))
    };
    for (at, hearing) in reached.iter().enumerate().filter(|_| reached.len() > 1) {
        let sending = reached[(at + 1) % reached.len()];
        let way = format!("{} hears {}", hosts[*hearing].host, hosts[sending].host);
        let Some(address) = address(sending) else {
            findings.push(faults::ACKS_MISSING.skipped(format!("{way}: it has no address")));
            continue;
        };
        let to = SocketAddr::new(address, ACKS_PORT).to_string();
        let words = |what: &str| {
            ["doctor", what, to.as_str(), "--within", "30s", "--json", "--exit-zero"].map(str::to_owned)
        };
        let (answer, ask) = (words("--answer-acks"), words("--acks-to"));
        let (answered, asked) = tokio::join!(asking.one(sending, &answer), asking.one(*hearing, &ask));
        findings.push(heard(&way, answered.map(drop).and(asked)));
    }
    findings
}

/// The finding of the host that heard the ACKs, under the names of both.
fn heard(way: &str, said: Result<HostWords, Unreached>) -> Finding {
    let report = said.and_then(|said| {
        serde_json::from_slice::<MachineReport>(&said.text).map_err(|error| Unreached(error.to_string()))
    });
    let found = report.and_then(|report| {
        report.findings.into_iter().next().ok_or_else(|| Unreached("it found nothing".to_owned()))
    });
    match found {
        Ok(finding) => Finding { found: format!("{way}: {}", finding.found), ..finding },
        Err(Unreached(problem)) => faults::ACKS_MISSING.skipped(format!("{way}: {problem}")),
    }
}

/// The report of the host with that number, without a comparison of clocks.
pub async fn of_one(asking: &Asking, (nth, host): (usize, &Host), words: &[String]) -> CheckedHost {
    of_host(host, asking.one(nth, words).await)
}

async fn ask(asking: &Asking, hosts: &[Host], words: &dyn Fn(&Host) -> Vec<String>) -> Vec<CheckedHost> {
    let said = asking.each(words).await;
    let mut reports: Vec<_> = hosts.iter().zip(said).map(|(host, said)| of_host(host, said)).collect();
    for _ in 0..EXCHANGES {
        let told = asking.each(|_| ["doctor", "--tell-time"].map(str::to_owned).into()).await;
        for ((report, host), told) in reports.iter_mut().zip(hosts).zip(told) {
            // This machine has one clock.
            let clock = told.ok().filter(|_| host.ssh.is_some()).and_then(|told| clock(&told));
            let is_better = |new: &ClockReport| report.clock.is_none_or(|old| new.within_ms < old.within_ms);
            report.clock = clock.filter(is_better).or(report.clock);
        }
    }
    reports
}

/// The same questions for each host.
fn words(arguments: &Arguments) -> Vec<String> {
    let mut words: Vec<_> = ["doctor", "--json", "--exit-zero", "--look"].map(str::to_owned).into();
    words.push(format!("{}ns", arguments.look.nanos()));
    words.extend(["--state".to_owned(), arguments.state.to_string_lossy().into_owned()]);
    if let Some(folder) = &arguments.captures {
        words.extend(["--captures".to_owned(), folder.to_string_lossy().into_owned()]);
        words.extend(["--capture-rate".to_owned(), format!("{}bit", arguments.capture_rate.0)]);
    }
    words.extend(arguments.interfaces.iter().flat_map(|name| ["--interface".to_owned(), name.clone()]));
    words
}

fn of_host(host: &Host, said: Result<HostWords, Unreached>) -> CheckedHost {
    let read = |said: HostWords| {
        serde_json::from_slice(&said.text)
            .map_err(|error| Unreached(format!("its `hopwise doctor --json` is not understood: {error}")))
    };
    let (report, problem) = match said.and_then(read) {
        Ok(report) => (report, None),
        Err(Unreached(problem)) => (MachineReport::default(), Some(problem)),
    };
    CheckedHost { host: host.name.clone(), problem, clock: None, place_m: host.place_m, report }
}

fn clock(said: &HostWords) -> Option<ClockReport> {
    let HostTime { told_at_s } = serde_json::from_slice(&said.text).ok()?;
    Some(ClockReport::between(said.asked_s, told_at_s, said.heard_s))
}

/// Findings about several hosts.
pub(super) fn together(hosts: &[CheckedHost]) -> Vec<Finding> {
    let places: Vec<_> = hosts
        .iter()
        .flat_map(|host| {
            let place = |facts| InterfacePlace { host: &host.host, place_m: host.place_m, facts };
            host.report.interfaces.iter().map(place)
        })
        .collect();
    let mut findings = duplicates(&places);
    if findings.is_empty() && !places.is_empty() {
        findings.push(faults::DUPLICATE.ok("no two hosts have one address"));
    }
    findings.extend(same_mtu(&places));
    findings.extend(hidden(&places));
    findings.extend(uncovered(&places));
    findings.extend(forwarding::together(hosts));
    findings.push(clocks(hosts));
    findings.push(versions(hosts));
    findings
}

fn clocks(hosts: &[CheckedHost]) -> Finding {
    let known: Vec<_> = hosts.iter().filter_map(|host| Some((&host.host, host.clock?))).collect();
    let is_off = |clock: &ClockReport| clock.ahead_ms.abs() > clock.within_ms + SKEW_MS;
    let shown = |(host, ClockReport { ahead_ms, within_ms }): &(&String, ClockReport)| {
        format!("{host} is ahead by {ahead_ms:.0} ms (± {within_ms:.0} ms)")
    };
    let off: Vec<_> = known.iter().filter(|(_, clock)| is_off(clock)).map(shown).collect();
    match (known.is_empty(), off.is_empty()) {
        (true, _) => faults::CLOCK_SKEW.skipped("no host was reached by ssh"),
        (false, true) => {
            faults::CLOCK_SKEW.ok("all clocks agree with this machine's, as far as an exchange shows")
        }
        (false, false) => faults::CLOCK_SKEW.found(off.join(", ")),
    }
}

fn versions(hosts: &[CheckedHost]) -> Finding {
    let known: Vec<_> = hosts.iter().filter(|host| !host.report.version.is_empty()).collect();
    let first = known.first().map(|host| &host.report.version);
    if known.iter().all(|host| Some(&host.report.version) == first) {
        return faults::VERSIONS_DIFFER.ok(first.cloned().unwrap_or_default());
    }
    let all: Vec<_> = known.iter().map(|host| format!("{} {}", host.host, host.report.version)).collect();
    faults::VERSIONS_DIFFER.found(all.join(", "))
}

/// The worst verdict of a host.
pub(super) fn worst(findings: &[Finding]) -> CheckVerdict {
    findings
        .iter()
        .map(|finding| finding.verdict)
        .filter(|verdict| *verdict != CheckVerdict::Skipped)
        .max()
        .unwrap_or(CheckVerdict::Skipped)
}
