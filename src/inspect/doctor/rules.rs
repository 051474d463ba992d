//! Routing rules that a killed proxy left, and those of a running proxy whose routes are gone.

use hopwise_host::netlink::{left_rules, remove_left_rules};

use super::faults;
use super::finding::Finding;

const CHECK: &str = "rules";

/// With `is_repair` the rules of a killed proxy are removed.
pub(super) fn examine(is_repair: bool) -> Vec<Finding> {
    let left = match left_rules() {
        Ok(left) => left,
        Err(error) => return vec![Finding::skipped(CHECK, error.to_string())],
    };
    let mut findings: Vec<_> = left.of_devices.iter().map(|device| without_routes(device)).collect();
    match left.count {
        0 if !findings.is_empty() => {}
        0 => findings.push(Finding::ok(CHECK, "no killed proxy left any rule of routing")),
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
        Ok(count) => Finding::ok(CHECK, format!("{} of routing removed", named(count))),
        Err(error) => faults::RULES_STAY.found(format!("not removed: {error}")),
    }
}
