//! The field of a live run: hosts in namespaces of their own, and the scenario's radios between them.

use std::os::fd::OwnedFd;
use std::path::Path;

use hopwise_air::Lateness;
use hopwise_host::Namespace;
use hopwise_lab::live::air;
use hopwise_lab::sim::{AirTotals, QueueTotals};

use crate::failure::Failure;
use crate::mesh::world::hwsim::{Carried, Network};

mod netns;

pub(super) use netns::Netns;

/// Dropping it removes all of it.
pub(super) trait Field {
    fn namespace(&self, node: u32) -> &Namespace;

    /// Does the work with the radios on the air, whose clock begins with it. `ends` is readable once the user wants no
    /// more.
    fn on_the_air<T: Send>(
        &self,
        capture: Option<&Path>,
        ends: &OwnedFd,
        work: impl FnOnce() -> Result<T, Failure> + Send,
    ) -> Result<(T, Heard), Failure>;
}

/// The radios' counters at the end of the work.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) air: AirTotals,
    pub(super) lateness: Lateness,
    /// Frames that the system lost between nodes and radios.
    pub(super) lost: u64,
    /// Nodes that did not hear all of their neighbours before the work.
    pub(super) deaf: Vec<String>,
}

impl Field for Network<'_> {
    fn namespace(&self, node: u32) -> &Namespace {
        self.namespace(node)
    }

    fn on_the_air<T: Send>(
        &self,
        capture: Option<&Path>,
        ends: &OwnedFd,
        work: impl FnOnce() -> Result<T, Failure> + Send,
    ) -> Result<(T, Heard), Failure> {
        let (done, carried) = self.on_the_air(capture, ends, work)?;
        let Carried { mut live, dropped, refusals, deaf } = carried;
        let queues = QueueTotals { drops: Some(dropped.by_queue.iter().sum()), ..QueueTotals::default() };
        let (air, lateness) = (air::totals(live.world(), queues), live.lateness());
        Ok((done, Heard { air, lateness, lost: refusals.overruns, deaf }))
    }
}
