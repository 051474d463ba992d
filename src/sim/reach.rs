//! Who can reach whom over the links that a plan begins with.

use hopwise_mesh::Neighbour;

use super::build;
use super::plan::Plan;

#[derive(Debug)]
pub struct Reach(Vec<Vec<Neighbour>>);

impl Reach {
    pub fn of(plan: &Plan) -> Reach {
        Reach(build::neighbours(plan))
    }

    /// Of each node, whether a way leads from it to `end`.
    pub fn to(&self, end: u32) -> Vec<bool> {
        let mut reaches = vec![false; self.0.len()];
        reaches[end as usize] = true;
        for (node, _) in hopwise_mesh::towards(end as usize, &self.0) {
            reaches[node] = true;
        }
        reaches
    }

    pub fn is_connected(&self) -> bool {
        self.0.is_empty() || self.to(0).into_iter().all(|reaches| reaches)
    }
}
