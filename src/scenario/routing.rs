//! Who finds the ways: `routing:`.

use crate::located::{Document, Place, Refusal};
use crate::routing::{Protocol, RoutingConfig};
use crate::sim::RoutingPlan;

pub(super) fn read(document: &Document, config: &RoutingConfig) -> Result<RoutingPlan, Box<Refusal>> {
    let settings = config.aodv(document, &Place::root().key("routing"))?;
    Ok(match config.protocol {
        Protocol::Static => RoutingPlan::Static,
        Protocol::Aodv => RoutingPlan::Aodv(Box::new(settings)),
    })
}
