//! The routing protocol of a scenario: `routing:`.

use hopwise_mesh::{aodvv2, dsr, gpsr};

use super::nodes::Nodes;
use crate::located::{Document, Place, Refusal};
use crate::routing::{Protocol, RoutingConfig};
use crate::sim::RoutingPlan;

pub(super) fn read(document: &Document, config: &RoutingConfig) -> Result<RoutingPlan, Box<Refusal>> {
    let place = Place::root().key("routing");
    Ok(match config.protocol {
        Protocol::Static => RoutingPlan::Static,
        Protocol::Aodv => RoutingPlan::Aodv(Box::new(config.aodv(document, &place)?)),
        Protocol::Dymo => {
            let settings = config.dymo.over(aodvv2::Settings::default(), document, &place.key("dymo"))?;
            RoutingPlan::Dymo(Box::new(settings))
        }
        Protocol::Dsr => {
            let settings = config.dsr.over(dsr::Settings::default(), document, &place.key("dsr"))?;
            RoutingPlan::Dsr(Box::new(settings))
        }
        Protocol::Gpsr => {
            let settings = config.gpsr.over(gpsr::Settings::default(), document, &place.key("gpsr"))?;
            RoutingPlan::Gpsr(Box::new(settings))
        }
    })
}

/// Refuses GPSR where a node has no position.
pub(super) fn check(document: &Document, routing: &RoutingPlan, nodes: &Nodes) -> Result<(), Box<Refusal>> {
    if !matches!(routing, RoutingPlan::Gpsr(_)) || nodes.positions.iter().all(Option::is_some) {
        return Ok(());
    }
    let problem = "a node on a wire stands nowhere, and GPSR needs to know where";
    let places = [Place::root().key("routing").key("protocol"), Place::root().key("topology")];
    Err(document.refuse_among(&places, problem, "static, aodv or dsr"))
}
