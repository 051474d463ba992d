//! Flows over mesh nodes in the radio world: the plan of a scenario, one run of it, and the certificate of its radios.

pub(crate) mod build;
pub mod calibration;
pub mod field;
mod gateway;
mod host;
pub(crate) mod loads;
mod outages;
mod plan;
mod positions;
pub(crate) mod results;
pub mod series;

use std::net::IpAddr;
use std::time::Duration;

pub use build::Unbuildable;
pub(crate) use build::agents_of;
pub use gateway::{Calibration, ForecastErrors, GatewayPlan, Signal, SignalError, calibrate, live_news};
use hopwise_air::RadioWorld;
use hopwise_core::{Instant, LinkId};
use hopwise_mesh::StaticNeighbour;
pub use host::SimHost;
pub use plan::{Arm, Directions, FlowPlan, Plan, RoutingPlan, Talk, TcpPlan, TrafficPlan, WirePlan};
pub use results::{
    AirTotals, DataDirection, FlowResult, NodeResult, QueueTotals, QueueWait, ReorderTotals, Results,
    WaitsByLoad,
};
use sha2::{Digest, Sha256};

use crate::hex;

/// One run of a plan, from its beginning to its end.
pub fn run(plan: &Plan) -> Result<Results, Unbuildable> {
    let mut simulation = Simulation::new(plan)?;
    simulation.run_until(plan.end());
    Ok(simulation.results())
}

/// A plan in progress.
#[derive(Debug)]
pub struct Simulation<'p> {
    /// The plan of the run.
    pub plan: &'p Plan,
    world: RadioWorld<SimHost>,
    outages: outages::OutageWatch,
}

impl<'p> Simulation<'p> {
    /// Builds the world of a plan, at time 0.
    pub fn new(plan: &'p Plan) -> Result<Simulation<'p>, Unbuildable> {
        let lead = plan.gateway.as_ref().map_or(Duration::ZERO, |gateway| gateway.forecast.lead);
        let outages = outages::OutageWatch::new(&plan.channel.outages, lead);
        Ok(Simulation { plan, world: build::world(plan)?, outages })
    }

    /// The world, to watch it or to act on its nodes.
    pub fn world(&mut self) -> &mut RadioWorld<SimHost> {
        &mut self.world
    }

    /// Lets everything happen up to `until`, itself included.
    pub fn run_until(&mut self, until: Instant) {
        while let Some(look) = self.outages.next(until) {
            self.world.run_until(look);
            self.outages.look(self.plan, &self.world);
        }
        self.world.run_until(until);
    }

    /// The measurements until now.
    pub fn results(&self) -> Results {
        results::of(self.plan, &self.world, &self.outages)
    }
}

/// Output of `cargo run --release --example certify`. A test of the example compares the two: a change of the radio
/// must change this file.
pub const CERTIFICATE: &str = include_str!("../calibration/certificate.txt");

/// SHA-256 of the certificate, in hexadecimal digits.
pub fn certificate_hash() -> String {
    hex(&Sha256::digest(CERTIFICATE))
}

/// Every node's name for its radio; wires follow.
const RADIO: LinkId = LinkId(0);

/// The address of a node; 10.0.0.1 is the first one's.
pub fn address_of(node: u32) -> IpAddr {
    let number = 0x0a00_0001 + node;
    IpAddr::from(number.to_be_bytes())
}

/// The links of each node at the beginning of a plan.
#[derive(Debug)]
pub struct Reach(Vec<Vec<StaticNeighbour>>);

impl Reach {
    /// Computes the links of a plan. Its faders and losses do not count.
    pub fn of(plan: &Plan) -> Reach {
        Reach(build::neighbours(plan))
    }

    /// The number of links on the shortest path from each node to `end`; `None`: there is no path.
    pub fn hops_to(&self, end: u32) -> Vec<Option<u8>> {
        let mut hops = vec![None; self.0.len()];
        hops[end as usize] = Some(0);
        for (node, step) in hopwise_mesh::towards(end as usize, &self.0) {
            hops[node] = Some(step.hops);
        }
        hops
    }

    /// Returns whether every node has a path to the first one.
    pub fn is_connected(&self) -> bool {
        self.0.is_empty() || self.hops_to(0).iter().all(Option::is_some)
    }
}

#[cfg(test)]
mod tests;
