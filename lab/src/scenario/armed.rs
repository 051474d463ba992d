//! One arm of a scenario at one point: its settings, and a plan for each seed.

use std::sync::Arc;

use hopwise_air::Arp;
use hopwise_air::medium::Radio;
use serde_json::Value;

use super::check::Agents;
use super::nodes::Nodes;
use super::schema::RunConfig;
use super::{
    HostPlan, ParsedScenario, Prepared, channel, check, flows, gateway, made_by, nodes, queue, radio, reach,
    routing, settings,
};
use crate::located::{Checked, YamlPath};
use crate::routing::RoutingConfig;
use crate::sim::{Plan, RoutingPlan, certificate_hash};
use crate::version;

/// Random fields that are tried until one is connected.
const MOST_DRAWS: u32 = 50;

/// An arm of a scenario, checked except for the effects of a seed.
#[derive(Debug)]
pub struct Armed {
    read: Arc<ParsedScenario>,
    agents: Agents,
    config: RoutingConfig,
    routing: RoutingPlan,
}

impl Armed {
    pub(super) fn new(read: Arc<ParsedScenario>, arm: &str) -> Checked<Armed> {
        let ParsedScenario { document, file } = &*read;
        check::all(document, file)?;
        let agents = check::agents(document, file, arm)?;
        let config = if file.world.0.is_live() { file.routing.of_daemon() } else { file.routing.clone() };
        let routing = config.plan(document, &YamlPath::root().key("routing"))?;
        Ok(Armed { read, agents, config, routing })
    }

    /// Every parameter in force, for all seeds.
    pub fn settings(&self) -> Value {
        settings::in_force(&self.read.file, &self.agents, (&self.config, &self.routing))
    }

    /// The same, with the version and certificate.
    pub fn settings_of_run(&self) -> Value {
        let mut settings = self.settings();
        settings["hopwise"] = made_by(version::of_program(), &certificate_hash());
        if let Some(commit) = version::commit() {
            settings["hopwise"]["commit"] = commit.into();
        }
        settings
    }

    /// The arm's name.
    pub fn name(&self) -> &str {
        &self.agents.arm.name
    }

    /// The plan for a seed.
    pub fn prepare(&self, seed: u64) -> Checked<Prepared> {
        let ParsedScenario { document, file } = &*self.read;
        for draw in 0..MOST_DRAWS {
            let nodes = nodes::place(document, file, (seed, draw))?;
            let plan = self.plan(&nodes, seed)?;
            if reach::check(document, file, &nodes, &plan)? == reach::FieldCheck::Usable {
                let host = HostPlan::read(document, file, &nodes.names)?;
                return Ok(Prepared { plan, names: nodes.names, routing: self.config.clone(), host });
            }
        }
        let problem = format!("{MOST_DRAWS} random fields were drawn, and none is connected");
        let accepted = "more nodes, or a smaller field";
        Err(document.refuse(&YamlPath::root().key("topology"), problem, accepted))
    }

    fn plan(&self, nodes: &Nodes, seed: u64) -> Checked<Plan> {
        let ParsedScenario { document, file } = &*self.read;
        routing::check(document, &self.routing, nodes)?;
        let RunConfig { duration, warmup, .. } = &file.run;
        let phy = radio::read(document, file)?;
        let channel = channel::read(document, file, nodes, &phy, seed)?;
        let powers = Radio::default();
        let slowest = file.radio.rate.0.slowest(&phy);
        let mac = radio::mac(&phy, file);
        Ok(Plan {
            positions: nodes.positions.clone(),
            macs: Vec::new(),
            tracks: nodes.tracks.clone(),
            wires: nodes.wires.clone(),
            phy,
            radio: channel.noise_w.map_or(powers, |noise_w| powers.over_noise(noise_w, slowest)),
            channel,
            linux_queue: queue::read(document, file, (&phy, &mac))?,
            mac,
            arp: if file.radio.arp { Arp::Asked } else { Arp::Known },
            queue_packets: file.radio.queue_packets as usize,
            when_full: file.radio.when_full.0,
            routing: self.routing.clone(),
            profile: file.tcp.profile.0,
            flows: flows::read(document, file, nodes, &self.routing, seed)?,
            rules: flows::rules(document, file, nodes)?,
            arm: self.agents.arm.clone(),
            gateway: gateway::read(document, file, nodes, &self.agents)?,
            duration: duration.0,
            warmup: warmup.0,
            seed,
            trace_events: 0,
        })
    }
}
