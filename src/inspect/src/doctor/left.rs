//! What killed programs of ours left on a machine: a check for each kind, and its repair.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use hopwise_daemon::privileges::Privileges;
use hopwise_host::bringup::{Record, left_bringups};
use hopwise_host::netlink::{
    Repaired, device_of_loan, left_rules, loans_left, remove_left_rules, repair_loan,
};
use hopwise_host::routing::{forget_gone, left_in, left_routes, remove_left_routes, repair};
use hopwise_host::transparent::{self as host, LeftRulesAndRoutes, TransparentError};
use hopwise_host::{left_queues, remove_left_queues};
use hopwise_router::bringup::STATE;

use super::faults;
use super::finding::{CheckFault, Finding};

/// All kinds, with this folder of the daemons' state files. With `is_repair` what was left is restored or removed.
pub(super) fn examine(state: &Path, is_repair: bool) -> Vec<Finding> {
    let mut findings = switches(state, is_repair);
    findings.extend(loans(state, is_repair));
    findings.extend(bringups([state, Path::new(STATE)], is_repair));
    findings.extend(rules(is_repair));
    findings.extend([routes(is_repair), queues(is_repair), transparent(is_repair)]);
    findings
}

/// A finding for each file of old values: what `found` says of it or, with `is_repair`, how its repair ended.
fn of_files(
    left: impl IntoIterator<Item = PathBuf>,
    (fault, none): (&CheckFault, &str),
    found: impl Fn(&Path) -> String,
    (is_repair, repaired): (bool, fn(&Path) -> Finding),
) -> Vec<Finding> {
    let finding = |path: PathBuf| if is_repair { repaired(&path) } else { fault.found(found(&path)) };
    let findings: Vec<_> = left.into_iter().map(finding).collect();
    if findings.is_empty() { vec![fault.ok(none)] } else { findings }
}

/// The finding about things without a file, in words: nothing was left, what was left or, with `is_repair`, how its
/// removal ended.
fn of_things<T, E: Display>(
    left: Result<T, E>,
    (fault, none): (&CheckFault, &str),
    (is_none, found): (impl Fn(&T) -> bool, impl Fn(&T) -> String),
    (is_repair, removed): (bool, impl Fn(&T) -> Finding),
) -> Finding {
    match left {
        Ok(left) if is_none(&left) => fault.ok(none),
        Ok(left) if is_repair => removed(&left),
        Ok(left) => fault.found(found(&left)),
        Err(error) => fault.skipped(error.to_string()),
    }
}

/// Interfaces that a killed `hopwise mesh up` left changed.
fn bringups(folders: [&Path; 2], is_repair: bool) -> Vec<Finding> {
    if is_repair {
        folders.into_iter().for_each(|folder| {
            forget_gone(folder);
        });
    }
    let left: BTreeSet<_> = folders.into_iter().flat_map(left_bringups).collect();
    let none = "no killed `hopwise mesh up` or trial left an interface changed";
    let found = |path: &Path| {
        format!("{}: a killed `hopwise mesh up` or trial left interfaces changed", path.display())
    };
    of_files(left, (&faults::MESH_UP_LEFT, none), found, (is_repair, bringup_repaired))
}

pub(super) fn bringup_repaired(path: &Path) -> Finding {
    let shown = path.display();
    let undone = Record::open(path).map(|mut record| record.undo());
    let problem = match undone {
        Ok(undone) if undone.problems.is_empty() => {
            return faults::MESH_UP_LEFT.ok(format!("{shown}: {} changes undone", undone.changes));
        }
        Ok(undone) => undone.problems.join("; "),
        Err(error) => error.to_string(),
    };
    faults::MESH_UP_STAYS.found(format!("{shown}: not all is undone: {problem}"))
}

/// Devices that a killed daemon had on loan, and left changed.
pub(super) fn loans(folder: &Path, is_repair: bool) -> Vec<Finding> {
    let found = |path: &Path| {
        let device = device_of_loan(path).unwrap_or_else(|| "a device that is not here".to_owned());
        format!("{device}: a killed daemon left it changed ({})", path.display())
    };
    let none = "no killed daemon left a device changed that was there before it";
    of_files(loans_left(folder), (&faults::LENT_LEFT, none), found, (is_repair, loan_repaired))
}

pub(super) fn loan_repaired(path: &Path) -> Finding {
    let shown = path.display();
    faults::LENT_LEFT.ok(match repair_loan(path, &Privileges::of_daemons()) {
        Ok(Repaired::Device(device)) => format!("{device}: as it was before a killed daemon changed it"),
        Ok(Repaired::NoDevice) => format!("{shown}: removed, since its device is gone"),
        Ok(Repaired::Junk) => format!("{shown}: removed, since it names no device"),
        Err(error) => return faults::LENT_STAYS.found(format!("{shown}: not put back: {error}")),
    })
}

/// The kernel's switches that a killed routing daemon left changed.
fn switches(folder: &Path, is_repair: bool) -> Vec<Finding> {
    let forgotten = if is_repair { forget_gone(folder) } else { 0 };
    let mut findings = Vec::new();
    if forgotten > 0 {
        let files = if forgotten == 1 { "file" } else { "files" };
        let said = format!("{forgotten} {files} removed: their network namespaces are gone");
        findings.push(faults::SWITCHES_LEFT.ok(said));
    }
    let found = |path: &Path| {
        format!("{}: a killed `hopwise route` left switches of the kernel changed", path.display())
    };
    let none = "no killed daemon left any switch of the kernel changed";
    let kind = (&faults::SWITCHES_LEFT, none);
    findings.extend(of_files(left_in(folder), kind, found, (is_repair, switches_repaired)));
    findings
}

pub(super) fn switches_repaired(path: &Path) -> Finding {
    match repair(path, &Privileges::of_daemons()) {
        Ok(count) => faults::SWITCHES_LEFT.ok(format!("{}: {count} switches put back", path.display())),
        Err(error) => faults::SWITCHES_STAY.found(format!("{}: not put back: {error}", path.display())),
    }
}

/// Rules of nft and iptables that a killed proxy left: they lead into netfilter queues that nobody has.
fn queues(is_repair: bool) -> Finding {
    let found = |left: &BTreeSet<u16>| {
        format!(
            "a killed `hopwise proxy` left rules into netfilter queue {} (nft, or iptables): packets go on there",
            listed(left)
        )
    };
    let none = "no killed proxy left any rule into a netfilter queue";
    let left = left_queues().map_err(|error| format!("nft does not list its tables: {error}"));
    let removed = |left: &BTreeSet<u16>| queues_removed(left, remove_left_queues());
    of_things(left, (&faults::QUEUES_LEFT, none), (BTreeSet::is_empty, found), (is_repair, removed))
}

fn listed(queues: &BTreeSet<u16>) -> String {
    queues.iter().map(u16::to_string).collect::<Vec<_>>().join(", ")
}

pub(super) fn queues_removed(left: &BTreeSet<u16>, done: io::Result<BTreeSet<u16>>) -> Finding {
    match done {
        Ok(done) if done == *left => {
            faults::QUEUES_LEFT.ok(format!("rules into netfilter queue {} removed", listed(left)))
        }
        Ok(done) => {
            let rest = left.difference(&done).copied().collect();
            faults::QUEUES_STAY.found(format!("rules into netfilter queue {} stay", listed(&rest)))
        }
        Err(error) => faults::QUEUES_STAY.found(format!("not removed: {error}")),
    }
}

/// Routes to hosts that a killed routing daemon left.
fn routes(is_repair: bool) -> Finding {
    fn named(count: usize) -> String {
        if count == 1 { "1 route to a host".to_owned() } else { format!("{count} routes to hosts") }
    }
    let found =
        |left: &usize| format!("a killed `hopwise route` left {} (`ip route show proto 87`)", named(*left));
    let removed = |_: &usize| match remove_left_routes() {
        Ok(count) => faults::ROUTES_LEFT.ok(format!("{} removed", named(count))),
        Err(error) => faults::ROUTES_STAY.found(format!("not removed: {error}")),
    };
    let none = "no killed daemon left any route to a host";
    of_things(
        left_routes(),
        (&faults::ROUTES_LEFT, none),
        (|left: &usize| *left == 0, found),
        (is_repair, removed),
    )
}

/// Routing rules that a killed proxy left, or that a running proxy has without their routes.
fn rules(is_repair: bool) -> Vec<Finding> {
    let named = |count: usize| if count == 1 { "1 rule".to_owned() } else { format!("{count} rules") };
    let left = match left_rules() {
        Ok(left) => left,
        Err(error) => return vec![faults::RULES_LEFT.skipped(error.to_string())],
    };
    let mut findings: Vec<_> = left.of_devices.iter().map(|device| without_routes(device)).collect();
    match left.count() {
        0 if !findings.is_empty() => {}
        0 => findings.push(faults::RULES_LEFT.ok("no killed proxy left any rule of routing")),
        _ if is_repair => findings.push(match remove_left_rules() {
            Ok(count) => faults::RULES_LEFT.ok(format!("{} of routing removed", named(count))),
            Err(error) => faults::RULES_STAY.found(format!("not removed: {error}")),
        }),
        count => {
            let found = format!("a killed `hopwise proxy` left {} of routing (`ip rule`)", named(count));
            findings.push(faults::RULES_LEFT.found(found));
        }
    }
    findings
}

/// The kernel forgets a device's routes when it goes down, and does not restore them.
fn without_routes(device: &str) -> Finding {
    let found = format!(
        "a `hopwise proxy` runs, but its device {device} is down, or was: packets go on without it; its rules stay"
    );
    faults::PROXY_PASSED.found(found).with("IF", device)
}

/// Rules and routes that a killed transparent node left.
fn transparent(is_repair: bool) -> Finding {
    let found =
        |left: &LeftRulesAndRoutes| format!("a killed transparent node left {}", rules_and_routes(left));
    let none = "no killed transparent node left any rule or route";
    let removed = |left: &LeftRulesAndRoutes| transparent_removed(left, host::remove_left());
    let kind = (&faults::TRANSPARENT_LEFT, none);
    of_things(host::left(), kind, (LeftRulesAndRoutes::is_empty, found), (is_repair, removed))
}

pub(super) fn transparent_removed(
    left: &LeftRulesAndRoutes,
    rest: Result<LeftRulesAndRoutes, TransparentError>,
) -> Finding {
    match rest {
        Ok(rest) if rest.is_empty() => {
            faults::TRANSPARENT_LEFT.ok(format!("{} removed", rules_and_routes(left)))
        }
        Ok(rest) => faults::TRANSPARENT_STAYS.found(format!("{} not removed", rules_and_routes(&rest))),
        Err(error) => faults::TRANSPARENT_STAYS.found(format!("not removed: {error}")),
    }
}

pub(super) fn rules_and_routes(left: &LeftRulesAndRoutes) -> String {
    let tables = left.tables.iter().map(|table| format!("the rule and the route of table {table}"));
    let queues = left.queues.iter().map(|queue| format!("the rule of iptables into queue {queue}"));
    tables.chain(queues).collect::<Vec<_>>().join(", ")
}
