//! Warns at the start of rules of the router's own firewall that do not hold for packets as the proxy leads them.

use hopwise_host::firewall::{Between, Ruleset};

use super::config::{By, ProxySettings};

/// By netfilter queues the router itself sends what was kept, and all of connections that are cut.
fn of_queues(rules: &Ruleset, between: &Between, cuts: bool) {
    for chain in rules.silencing() {
        tracing::warn!(
            chain,
            "this chain may drop packets that were kept, as the router itself sends these: let it accept TCP between \
             the wire and the mobiles, or take `by: tun`"
        );
    }
    // The rules of the wire are allowed for, but not both at once.
    let [of_wire, of_radio] =
        [(&between.wire, true), (&between.radio, false)].map(|(device, all)| rules.translating(device, all));
    for rule in of_radio.iter().filter(|_| !of_wire.is_empty()) {
        tracing::warn!(
            rule,
            "another rule translates addresses at the wire: packets that were kept then leave by the wire from another \
             port. Take `by: tun`"
        );
    }
    for rule in rules.against_cuts(between).iter().filter(|_| cuts) {
        tracing::warn!(
            rule,
            "this rule does not go with `split` by netfilter queues, as the router itself has these connections: \
             take `by: tun`"
        );
    }
}

pub(super) fn look(config: &ProxySettings) {
    let Some(steer) = &config.steer else { return };
    if steer.by == By::Bridge {
        return;
    }
    let rules = match Ruleset::read() {
        Ok(rules) => rules,
        Err(error) => {
            return tracing::warn!(%error, "rules of the firewall could not be listed: see docs/base-station.md");
        }
    };
    let (wire, radio, fixed) = (steer.wire.clone(), steer.radio.clone(), config.fixed.name.clone());
    let between = Between { wire, radio, fixed };
    let Between { wire, radio, fixed } = &between;
    if steer.by == By::Nfqueue {
        return of_queues(&rules, &between, config.cuts());
    }
    for rule in rules.between(&between) {
        let what = "this rule does not match TCP between them, which passes the proxy";
        tracing::warn!(rule, wire, radio, "{what}: name {fixed} wherever it names {radio}");
    }
    for rule in rules.redirects(&between) {
        let what = "this rule does not apply to TCP towards the wire, which passes the proxy";
        tracing::warn!(rule, wire, radio, "{what}: name {fixed} wherever it names {radio}");
    }
}
