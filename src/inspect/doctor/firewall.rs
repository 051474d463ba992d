//! Rules of a router's own firewall that do not hold for TCP that passes a running proxy.

use std::io;

use hopwise_host::firewall::{Between, Ruleset};
use hopwise_host::netlink::detours;

use super::faults;
use super::finding::Finding;

const CHECK: &str = "firewall";

pub(super) fn examine() -> Vec<Finding> {
    let rules = match Ruleset::read() {
        Ok(rules) => rules,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return vec![without_nft()],
        Err(error) => return vec![Finding::skipped(CHECK, format!("nft does not list its rules: {error}"))],
    };
    match detours(&rules) {
        Ok(detours) if detours.is_empty() => {
            vec![Finding::ok(
                CHECK,
                "no `hopwise proxy` by TUN runs here, so that each rule holds for all packets",
            )]
        }
        Ok(detours) => detours.iter().flat_map(|between| of(&rules, between)).collect(),
        Err(error) => vec![Finding::skipped(CHECK, error.to_string())],
    }
}

fn without_nft() -> Finding {
    let said =
        "nft is not there: beside `hopwise route`, what comes in from the mesh is forwarded to all devices";
    faults::FIREWALL_NO_NFT.found(said)
}

/// The rules that one proxy takes packets from.
fn of(rules: &Ruleset, between: &Between) -> Vec<Finding> {
    let Between { wire, radio, fixed } = between;
    let found: Vec<_> = [rules.between(between), rules.redirects(between)].concat();
    if found.is_empty() {
        let said = format!(
            "no rule names both {radio} and {wire} without {fixed}, or redirects TCP by {radio} alone"
        );
        return vec![Finding::ok(CHECK, said)];
    }
    let warned = |rule: &String| {
        let found =
            format!("TCP between {radio} and {wire} passes `hopwise proxy`, and does not match: {rule}");
        faults::FIREWALL_BYPASSED.found(found).with("FIXED", fixed).with("RADIO", radio)
    };
    found.iter().map(warned).collect()
}
