//! Flows over mesh nodes in the radio world: the plan of a scenario, and one run of it.

pub(crate) mod build;
pub mod calibration;
mod certificate;
pub mod field;
mod gateway;
mod host;
pub(crate) mod loads;
mod names;
mod outages;
mod plan;
mod positions;
mod reach;
pub(crate) mod results;
pub mod series;

pub use certificate::{CERTIFICATE, certificate_hash};
pub use gateway::{Calibration, Forecast, GatewayPlan, Signal, SignalError, calibrate};
pub use host::Host;
pub use names::address_of;
pub use plan::{Arm, Directions, FlowPlan, Plan, Router, RoutingPlan, Talk, TcpPlan, TrafficPlan, WirePlan};
pub use reach::Reach;
pub use results::{
    AirTotals, Direction, FlowResult, NodeResult, QueueTotals, QueueWait, ReorderTotals, Results, WaitsByLoad,
};

use std::time::Duration;

use hopwise_air::RadioWorld;
use hopwise_core::Instant;

/// One run of a plan, from its beginning to its end.
pub fn run(plan: &Plan) -> Result<Results, Unbuildable> {
    let mut simulation = Simulation::new(plan)?;
    simulation.run_until(plan.end());
    Ok(simulation.results())
}

pub use build::Unbuildable;
pub(crate) use build::agents_of;

/// A plan in progress.
#[derive(Debug)]
pub struct Simulation<'p> {
    plan: &'p Plan,
    world: RadioWorld<Host>,
    outages: outages::Watch,
}

impl<'p> Simulation<'p> {
    /// Builds the world of a plan, at time 0.
    pub fn new(plan: &'p Plan) -> Result<Simulation<'p>, Unbuildable> {
        let lead = plan.gateway.as_ref().map_or(Duration::ZERO, |gateway| gateway.forecast.lead);
        let outages = outages::Watch::new(&plan.channel.outages, lead);
        Ok(Simulation { plan, world: build::world(plan)?, outages })
    }

    /// The plan of the run.
    pub fn plan(&self) -> &'p Plan {
        self.plan
    }

    /// The world, to watch it or to act on its nodes.
    pub fn world(&mut self) -> &mut RadioWorld<Host> {
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

#[cfg(test)]
mod tests;
