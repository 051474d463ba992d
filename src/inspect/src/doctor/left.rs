//! What killed programs of ours left on a machine: a check for each kind, and its repair.

/// Interfaces that a killed `hopwise mesh up` left changed.
pub(super) mod bringup {
    use std::collections::BTreeSet;
    use std::path::Path;

    use hopwise_host::bringup::{Record, left_bringups};
    use hopwise_host::routing::forget_gone;

    use super::super::faults;
    use super::super::finding::Finding;

    /// A finding for each file of old states in these folders. With `is_repair` they are restored.
    pub(in crate::doctor) fn examine(folders: [&Path; 2], is_repair: bool) -> Vec<Finding> {
        if is_repair {
            folders.into_iter().for_each(|folder| {
                forget_gone(folder);
            });
        }
        let left: BTreeSet<_> = folders.into_iter().flat_map(left_bringups).collect();
        if left.is_empty() {
            return vec![
                faults::MESH_UP_LEFT.ok("no killed `hopwise mesh up` or trial left an interface changed"),
            ];
        }
        left.iter().map(|path| if is_repair { repaired(path) } else { found(path) }).collect()
    }

    fn found(path: &Path) -> Finding {
        let found =
            format!("{}: a killed `hopwise mesh up` or trial left interfaces changed", path.display());
        faults::MESH_UP_LEFT.found(found)
    }

    pub(in crate::doctor) fn repaired(path: &Path) -> Finding {
        let undone = Record::open(path).map(|mut record| record.undo());
        let problem = match undone {
            Ok(undone) if undone.problems.is_empty() => {
                return faults::MESH_UP_LEFT.ok(format!(
                    "{}: {} changes undone",
                    path.display(),
                    undone.changes
                ));
            }
            Ok(undone) => undone.problems.join("; "),
            Err(error) => error.to_string(),
        };
        faults::MESH_UP_STAYS.found(format!("{}: not all is undone: {problem}", path.display()))
    }
}

/// Devices that a killed daemon had on loan, and left changed.
pub(super) mod lent {
    use std::path::Path;

    use hopwise_host::netlink::{Repaired, device_of_loan, loans_left, repair_loan};

    use super::super::faults;
    use super::super::finding::Finding;
    use hopwise_daemon::privileges::Privileges;

    /// A finding for each file of old values in this folder. With `is_repair` they are restored.
    pub(in crate::doctor) fn examine(folder: &Path, is_repair: bool) -> Vec<Finding> {
        let left = loans_left(folder);
        if left.is_empty() {
            return vec![
                faults::LENT_LEFT.ok("no killed daemon left a device changed that was there before it"),
            ];
        }
        left.iter().map(|path| if is_repair { repaired(path) } else { found(path) }).collect()
    }

    fn found(path: &Path) -> Finding {
        let device = device_of_loan(path).unwrap_or_else(|| "a device that is not here".to_owned());
        faults::LENT_LEFT.found(format!("{device}: a killed daemon left it changed ({})", path.display()))
    }

    pub(in crate::doctor) fn repaired(path: &Path) -> Finding {
        match repair_loan(path, &Privileges::of_daemons()) {
            Ok(Repaired::Device(device)) => {
                faults::LENT_LEFT.ok(format!("{device}: as it was before a killed daemon changed it"))
            }
            Ok(Repaired::NoDevice) => {
                faults::LENT_LEFT.ok(format!("{}: removed, since its device is gone", path.display()))
            }
            Ok(Repaired::Junk) => {
                faults::LENT_LEFT.ok(format!("{}: removed, since it names no device", path.display()))
            }
            Err(error) => faults::LENT_STAYS.found(format!("{}: not put back: {error}", path.display())),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_file_that_names_no_device_is_said_to_do_so() {
            let folder = std::env::temp_dir().join(format!("hopwise-lent-{}", std::process::id()));
            std::fs::create_dir_all(&folder).expect("a folder");
            std::fs::write(folder.join("x.lent"), "no device\n").expect("it can be written");
            let said: Vec<_> = examine(&folder, true).iter().map(|finding| format!("{finding:?}")).collect();
            std::fs::remove_dir_all(&folder).expect("it is there");
            assert!(
                matches!(&said[..], [one] if one.contains("removed, since it names no device")),
                "{said:?}"
            );
        }
    }
}

/// Rules of nft and iptables that a killed proxy left: they lead into netfilter queues that nobody has.
pub(super) mod queues {
    use std::collections::BTreeSet;
    use std::io;

    use hopwise_host::{left_queues, remove_left_queues};

    use super::super::faults;
    use super::super::finding::Finding;

    /// With `is_repair` the rules of killed proxies are removed.
    pub(in crate::doctor) fn examine(is_repair: bool) -> Finding {
        match left_queues() {
            Ok(left) if left.is_empty() => {
                faults::QUEUES_LEFT.ok("no killed proxy left any rule into a netfilter queue")
            }
            Ok(left) if is_repair => removed(&left, remove_left_queues()),
            Ok(left) => {
                let found = format!(
                    "a killed `hopwise proxy` left rules into netfilter queue {} (nft, or iptables): packets go on \
                     there",
                    listed(&left)
                );
                faults::QUEUES_LEFT.found(found)
            }
            Err(error) => faults::QUEUES_LEFT.skipped(format!("nft does not list its tables: {error}")),
        }
    }

    fn listed(queues: &BTreeSet<u16>) -> String {
        queues.iter().map(u16::to_string).collect::<Vec<_>>().join(", ")
    }

    pub(in crate::doctor) fn removed(left: &BTreeSet<u16>, done: io::Result<BTreeSet<u16>>) -> Finding {
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
}

/// Routes to hosts that a killed routing daemon left.
pub(super) mod routes {
    use hopwise_host::routing::{left_routes, remove_left_routes};

    use super::super::faults;
    use super::super::finding::Finding;

    /// With `is_repair` they are removed.
    pub(in crate::doctor) fn examine(is_repair: bool) -> Finding {
        match left_routes() {
            Ok(0) => faults::ROUTES_LEFT.ok("no killed daemon left any route to a host"),
            Ok(_) if is_repair => match remove_left_routes() {
                Ok(count) => faults::ROUTES_LEFT.ok(format!("{} removed", named(count))),
                Err(error) => faults::ROUTES_STAY.found(format!("not removed: {error}")),
            },
            Ok(count) => {
                let found =
                    format!("a killed `hopwise route` left {} (`ip route show proto 87`)", named(count));
                faults::ROUTES_LEFT.found(found)
            }
            Err(error) => faults::ROUTES_LEFT.skipped(error.to_string()),
        }
    }

    fn named(count: usize) -> String {
        if count == 1 { "1 route to a host".to_owned() } else { format!("{count} routes to hosts") }
    }
}

/// Routing rules that a killed proxy left, or that a running proxy has without their routes.
pub(super) mod rules {
    use hopwise_host::netlink::{left_rules, remove_left_rules};

    use super::super::faults;
    use super::super::finding::Finding;

    /// With `is_repair` the rules of a killed proxy are removed.
    pub(in crate::doctor) fn examine(is_repair: bool) -> Vec<Finding> {
        let left = match left_rules() {
            Ok(left) => left,
            Err(error) => return vec![faults::RULES_LEFT.skipped(error.to_string())],
        };
        let mut findings: Vec<_> = left.of_devices.iter().map(|device| without_routes(device)).collect();
        match left.count() {
            0 if !findings.is_empty() => {}
            0 => findings.push(faults::RULES_LEFT.ok("no killed proxy left any rule of routing")),
            _ if is_repair => findings.push(removed()),
            count => {
                let found = format!("a killed `hopwise proxy` left {} of routing (`ip rule`)", named(count));
                findings.push(faults::RULES_LEFT.found(found));
            }
        }
        findings
    }

    fn named(count: usize) -> String {
        if count == 1 { "1 rule".to_owned() } else { format!("{count} rules") }
    }

    /// The kernel forgets a device's routes when it goes down, and does not restore them.
    fn without_routes(device: &str) -> Finding {
        let found = format!(
            "a `hopwise proxy` runs, but its device {device} is down, or was: packets go on without it; its rules stay"
        );
        faults::PROXY_PASSED.found(found).with("IF", device)
    }

    fn removed() -> Finding {
        match remove_left_rules() {
            Ok(count) => faults::RULES_LEFT.ok(format!("{} of routing removed", named(count))),
            Err(error) => faults::RULES_STAY.found(format!("not removed: {error}")),
        }
    }
}

/// The kernel's switches that a killed routing daemon left changed.
pub(super) mod switches {
    use std::path::Path;

    use hopwise_host::routing::{forget_gone, left_in, repair};

    use super::super::faults;
    use super::super::finding::Finding;
    use hopwise_daemon::privileges::Privileges;

    /// A finding for each file of old values in this folder. With `is_repair` they are restored.
    pub(in crate::doctor) fn examine(folder: &Path, is_repair: bool) -> Vec<Finding> {
        let forgotten = if is_repair { forget_gone(folder) } else { 0 };
        let mut findings = Vec::new();
        if forgotten > 0 {
            let files = if forgotten == 1 { "file" } else { "files" };
            let said = format!("{forgotten} {files} removed: their network namespaces are gone");
            findings.push(faults::SWITCHES_LEFT.ok(said));
        }
        let left = left_in(folder);
        if left.is_empty() {
            findings.push(faults::SWITCHES_LEFT.ok("no killed daemon left any switch of the kernel changed"));
        }
        findings.extend(left.iter().map(|path| if is_repair { repaired(path) } else { found(path) }));
        findings
    }

    fn found(path: &Path) -> Finding {
        let found =
            format!("{}: a killed `hopwise route` left switches of the kernel changed", path.display());
        faults::SWITCHES_LEFT.found(found)
    }

    pub(in crate::doctor) fn repaired(path: &Path) -> Finding {
        match repair(path, &Privileges::of_daemons()) {
            Ok(count) => faults::SWITCHES_LEFT.ok(format!("{}: {count} switches put back", path.display())),
            Err(error) => faults::SWITCHES_STAY.found(format!("{}: not put back: {error}", path.display())),
        }
    }
}

/// Rules and routes that a killed transparent node left.
pub(super) mod transparent {
    use hopwise_host::transparent::{LeftRulesAndRoutes, TransparentError, left, remove_left};

    use super::super::faults;
    use super::super::finding::Finding;

    /// With `is_repair` they are removed.
    pub(in crate::doctor) fn examine(is_repair: bool) -> Finding {
        match left() {
            Ok(left) if left.is_empty() => {
                faults::TRANSPARENT_LEFT.ok("no killed transparent node left any rule or route")
            }
            Ok(left) if is_repair => removed(&left, remove_left()),
            Ok(left) => {
                faults::TRANSPARENT_LEFT.found(format!("a killed transparent node left {}", listed(&left)))
            }
            Err(error) => faults::TRANSPARENT_LEFT.skipped(error.to_string()),
        }
    }

    pub(in crate::doctor) fn removed(
        left: &LeftRulesAndRoutes,
        rest: Result<LeftRulesAndRoutes, TransparentError>,
    ) -> Finding {
        match rest {
            Ok(rest) if rest.is_empty() => faults::TRANSPARENT_LEFT.ok(format!("{} removed", listed(left))),
            Ok(rest) => faults::TRANSPARENT_STAYS.found(format!("{} not removed", listed(&rest))),
            Err(error) => faults::TRANSPARENT_STAYS.found(format!("not removed: {error}")),
        }
    }

    fn listed(left: &LeftRulesAndRoutes) -> String {
        let tables = left.tables.iter().map(|table| format!("the rule and the route of table {table}"));
        let queues = left.queues.iter().map(|queue| format!("the rule of iptables into queue {queue}"));
        tables.chain(queues).collect::<Vec<_>>().join(", ")
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn each_table_and_each_queue_is_named() {
            let left = LeftRulesAndRoutes { tables: [7300, 7301].into(), queues: [7300].into() };
            assert_eq!(
                listed(&left),
                "the rule and the route of table 7300, the rule and the route of table 7301, the rule of iptables into \
                 queue 7300"
            );
        }
    }
}
