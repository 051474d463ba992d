//! The routing protocol of a scenario: `routing:`.

use hopwise_mesh::{aodvv2, batman, dsr, gpsr, hwmp};

use super::nodes::Nodes;
use crate::located::{Document, Refusal, YamlPath};
use crate::routing::{Protocol, RoutingConfig};
use crate::sim::RoutingPlan;

pub(super) fn read(document: &Document, config: &RoutingConfig) -> Result<RoutingPlan, Box<Refusal>> {
    let at = YamlPath::root().key("routing");
    Ok(match config.protocol {
        Protocol::Static => RoutingPlan::Static,
        Protocol::Aodv => RoutingPlan::Aodv(Box::new(config.aodv(document, &at)?)),
        Protocol::Dymo => {
            let settings = config.dymo.over(aodvv2::Settings::default(), document, &at.key("dymo"))?;
            RoutingPlan::Dymo(Box::new(settings))
        }
        Protocol::Dsr => {
            let settings = config.dsr.over(dsr::Settings::default(), document, &at.key("dsr"))?;
            RoutingPlan::Dsr(Box::new(settings))
        }
        Protocol::Gpsr => {
            let settings = config.gpsr.over(gpsr::Settings::default(), document, &at.key("gpsr"))?;
            RoutingPlan::Gpsr(Box::new(settings))
        }
        Protocol::Batman => {
            let settings = config.batman.over(batman::Settings::default(), document, &at.key("batman"))?;
            RoutingPlan::Batman(Box::new(settings))
        }
        Protocol::Hwmp => {
            let settings = config.hwmp.over(hwmp::Settings::default(), document, &at.key("hwmp"))?;
            RoutingPlan::Hwmp(Box::new(settings))
        }
    })
}

/// Refuses GPSR where a node has no position.
pub(super) fn check(document: &Document, routing: &RoutingPlan, nodes: &Nodes) -> Result<(), Box<Refusal>> {
    if !matches!(routing, RoutingPlan::Gpsr(_)) || nodes.positions.iter().all(Option::is_some) {
        return Ok(());
    }
    let problem = "a node on a wire stands nowhere, and GPSR needs to know where";
    let paths = [YamlPath::root().key("routing").key("protocol"), YamlPath::root().key("topology")];
    Err(document.refuse_among(&paths, problem, "static, aodv or dsr"))
}
