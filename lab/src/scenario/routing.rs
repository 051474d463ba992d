//! The routing protocol of a scenario: `routing:`.

use super::nodes::Nodes;
use crate::located::{Document, Place, Refusal};
use crate::routing::{Protocol, RoutingConfig};
use crate::sim::RoutingPlan;

pub(super) fn read(document: &Document, config: &RoutingConfig) -> Result<RoutingPlan, Box<Refusal>> {
    let place = Place::root().key("routing");
    let settings = config.aodv(document, &place)?;
    Ok(match config.protocol {
        Protocol::Static => RoutingPlan::Static,
        Protocol::Aodv => RoutingPlan::Aodv(Box::new(settings)),
        Protocol::Dymo => {
            let dymo = config.dymo.clone().unwrap_or_default();
            RoutingPlan::Dymo(Box::new(dymo.settings(document, &place.key("dymo"))?))
        }
        Protocol::Dsr => {
            let dsr = config.dsr.clone().unwrap_or_default();
            RoutingPlan::Dsr(Box::new(dsr.settings(document, &place.key("dsr"))?))
        }
        Protocol::Gpsr => {
            let gpsr = config.gpsr.clone().unwrap_or_default();
            RoutingPlan::Gpsr(Box::new(gpsr.settings(document, &place.key("gpsr"))?))
        }
    })
}

/// Refuses GPSR where a node has no position.
pub(super) fn check(document: &Document, routing: &RoutingPlan, nodes: &Nodes) -> Result<(), Box<Refusal>> {
    if !matches!(routing, RoutingPlan::Gpsr(_)) || nodes.places.iter().all(Option::is_some) {
        return Ok(());
    }
    let problem = "a node on a wire stands nowhere, and GPSR needs to know where";
    let places = [Place::root().key("routing").key("protocol"), Place::root().key("topology")];
    Err(document.refuse_among(&places, problem, "static, aodv or dsr"))
}
