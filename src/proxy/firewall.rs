//! Warns at the start of rules of the router's own firewall that do not hold for packets as the proxy leads them.

use hopwise_host::firewall::{Between, Ruleset};

use super::config::{By, Config};

pub(super) fn look(config: &Config) {
    let Some(steer) = &config.steer else { return };
    let is_concerned = steer.by == By::Tun || steer.by == By::Nfqueue && config.cuts();
    if !is_concerned {
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
        for rule in rules.against_cuts(&between) {
            tracing::warn!(
                rule,
                "this rule does not go with `split` by netfilter queues, as the router itself has these connections: \
                 take `by: tun`"
            );
        }
        return;
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
