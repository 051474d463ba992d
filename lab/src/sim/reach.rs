//! Nodes that can reach each other over the first links of a plan.

use hopwise_mesh::Neighbour;

use super::build;
use super::plan::Plan;

/// The links of each node at the beginning of a plan.
#[derive(Debug)]
pub struct Reach(Vec<Vec<Neighbour>>);

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
