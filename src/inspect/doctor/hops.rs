//! Hop limits: agents that count hops by them expect 64 at the first host.

use std::io;

use hopwise_core::tcp::HopCounting;
use hopwise_host::firewall::Ruleset;

use super::System;
use super::faults;
use super::finding::Finding;

/// The keys below /proc/sys/net with the hop limits of new packets.
fn keys(interfaces: &[String]) -> Vec<String> {
    let own = interfaces.iter().map(|name| format!("ipv6/conf/{name}/hop_limit"));
    ["ipv4/ip_default_ttl".to_owned(), "ipv6/conf/all/hop_limit".to_owned()].into_iter().chain(own).collect()
}

pub(super) fn examine(system: &System, interfaces: &[String], rules: io::Result<Ruleset>) -> Vec<Finding> {
    let mut findings = vec![limits(system, interfaces)];
    if let Ok(rules) = rules {
        findings.extend(rules.setting_hop_limits().iter().map(|rule| of_rule(rule)));
    }
    findings
}

fn limits(system: &System, interfaces: &[String]) -> Finding {
    let check = faults::HOP_LIMIT_OTHER.check;
    let expected = HopCounting::default().peers_hop_limit.to_string();
    let of = |key: String| system.read(&format!("proc/sys/net/{key}")).map(|limit| (key, limit));
    let all: Vec<_> = keys(interfaces).into_iter().filter_map(of).collect();
    match all.iter().find(|(_, limit)| *limit != expected) {
        _ if all.is_empty() => Finding::skipped(check, "the kernel does not show it"),
        None => Finding::ok(check, format!("packets begin with {expected}")),
        Some((key, limit)) => faults::HOP_LIMIT_OTHER
            .found(format!("packets begin with {limit} ({key}), and hops are counted from {expected}"))
            .with("KEY", key)
            .with("LIMIT", limit),
    }
}

fn of_rule(rule: &str) -> Finding {
    let table = rule.split(':').next().unwrap_or(rule);
    faults::HOP_LIMIT_RULE.found(format!("a rule gives packets another one: {rule}")).with("TABLE", table)
}
