//! The routing protocol of a scenario: `routing:`.

use super::nodes::Nodes;
use crate::located::{Checked, Document, YamlPath};
use crate::routing::names;
use crate::sim::RoutingPlan;

/// Refuses a protocol that needs positions where a node has none.
pub(super) fn check(document: &Document, routing: &RoutingPlan, nodes: &Nodes) -> Checked {
    let protocol = routing.protocol;
    if !protocol.needs_positions || nodes.positions.iter().all(Option::is_some) {
        return Ok(());
    }
    let problem = format!("a node on a wire stands nowhere, and {} needs to know where", protocol.subject);
    let paths = [YamlPath::root().key("routing").key("protocol"), YamlPath::root().key("topology")];
    let accepted = names(|other| !other.needs_positions).join(", ");
    Err(document.refuse_among(&paths, problem, &accepted))
}
