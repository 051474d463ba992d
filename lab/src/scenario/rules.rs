//! `rules:` of a scenario: peers are nodes, addresses or networks.

use std::net::IpAddr;

use hopwise_core::endpoint;
use hopwise_core::ip::Prefix;

use super::nodes::Nodes;
use super::schema::ScenarioFile;
use crate::located::{Document, Refusal, YamlPath};
use crate::rules::Network;
use crate::sim::address_of;

pub(super) fn read(
    document: &Document,
    file: &ScenarioFile,
    nodes: &Nodes,
) -> Result<Vec<endpoint::Rule>, Box<Refusal>> {
    let mut rules = Vec::new();
    for (nth, rule) in file.rules.iter().enumerate() {
        let at = YamlPath::root().key("rules").index(nth).key("match");
        for (key, peer) in [("from", &rule.matches.from), ("to", &rule.matches.to)] {
            if let Some(peer) = peer.as_ref().filter(|peer| prefix(nodes, peer).is_none()) {
                let accepted = format!("a node such as {}, an address or a network", nodes.last());
                let paths = [at.key(key), YamlPath::root().key("topology")];
                return Err(document.refuse_among(&paths, format!("`{peer}` is no peer"), &accepted));
            }
        }
        let nowhere = Prefix::host(IpAddr::from([0, 0, 0, 0]));
        rules.push(rule.core(|peer| prefix(nodes, peer).unwrap_or(nowhere)));
    }
    Ok(rules)
}

fn prefix(nodes: &Nodes, peer: &str) -> Option<Prefix> {
    let of_node = nodes.find(peer).map(|node| Prefix::host(address_of(node)));
    of_node.or_else(|| peer.parse().ok().map(|Network(prefix)| prefix))
}
