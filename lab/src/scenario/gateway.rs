//! `gateway:` of a scenario: the node between the wire and the radio, and the quality of its forecasts.

use super::check::Agents;
use super::nodes::Nodes;
use super::schema::{GatewayConfig, ScenarioFile, SourceName};
use crate::located::{Checked, Document, YamlPath};
use crate::sim::{ForecastErrors, GatewayPlan, Signal};

pub(super) fn read(
    document: &Document,
    file: &ScenarioFile,
    nodes: &Nodes,
    agents: &Agents,
) -> Checked<Option<GatewayPlan>> {
    let at = YamlPath::root().key("gateway");
    let Some(config) = &file.gateway else {
        let Some(_) = &agents.arm.base_station else { return Ok(None) };
        let arm = YamlPath::root().key("arms").key(&agents.arm.name).key("base_station");
        let accepted = "gateway: { node: n0 }, the node between the wire and the radio";
        return Err(document.refuse_key(&arm, "no node runs it", accepted));
    };
    let name = config.node.as_deref().unwrap_or("n0");
    let is_between = |node: u32| {
        let has_wire = nodes.wires.iter().any(|wire| wire.ends.0 == node || wire.ends.1 == node);
        has_wire && nodes.positions[node as usize].is_some()
    };
    let Some(node) = nodes.find(name).filter(|node| is_between(*node)) else {
        let problem = format!("`{name}` is no node with a wire and a radio");
        let accepted = "n0, in a topology with `wired`";
        return Err(match config.node {
            Some(_) => {
                let paths = [at.key("node"), YamlPath::root().key("topology")];
                document.refuse_among(&paths, problem, accepted)
            }
            None => document.refuse_key(&at, problem, accepted),
        });
    };
    let forecast = ForecastErrors {
        lead: config.lead.0,
        error_ppm: config.error.0,
        missing_ppm: config.missing.0,
        false_alarms: config.false_alarms,
        late: config.late.0,
    };
    Ok(Some(GatewayPlan { node, forecast, predictor: predictor(document, config)? }))
}

fn predictor(document: &Document, config: &GatewayConfig) -> Checked<Option<Signal>> {
    let GatewayConfig { slope_db_s, noise_db, shadow_db, .. } = *config;
    if config.source == SourceName::Truth {
        return Ok(None);
    }
    let signal = Signal { slope_db_s, noise_db, shadow_db };
    signal.check().map_err(|error| {
        let at = YamlPath::root().key("gateway").key(error.key);
        document.refuse(&at, format_args!("{} of {}", error.key, error.value), &error.accepted())
    })?;
    Ok(Some(signal))
}

#[cfg(test)]
mod tests;
