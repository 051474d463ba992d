//! The options of a trial in the world `mesh`.

use clap::Args;
use hopwise_lab::units::Time;
use hopwise_lab::world::World;

use crate::failure::Failure;
use crate::fleet::host::Host;
use crate::fleet::inventory::Chosen;

/// The hosts of the world `mesh`, and the trial's patience with them.
#[derive(Args, Clone, Debug)]
pub(crate) struct OfMesh {
    #[command(flatten)]
    chosen: Chosen,
    /// Longest time to wait for a lost host before the trial ends with the runs that it has, in the world mesh
    #[arg(long, value_name = "TIME", default_value = "2m")]
    pub(super) wait: Time,
    /// Begin although `hopwise doctor` finds a failure on a host, in the world mesh
    #[arg(long)]
    pub(super) despite_doctor: bool,
}

impl OfMesh {
    /// The hosts of the inventory, which the world mesh needs and no other one takes.
    pub(crate) fn hosts(&self, worlds: &[World]) -> Result<Option<Vec<Host>>, Failure> {
        let is_mesh = worlds.contains(&World::Mesh);
        match (self.chosen.hosts()?, is_mesh) {
            (None, true) => {
                let problem = "the world mesh needs hosts, expected --inventory FILE; `hopwise schema inventory` shows \
                               what it may say";
                Err(Failure::refused("--world", problem))
            }
            (Some(_), false) => Err(Failure::refused(
                "--inventory",
                "no other world has hosts, expected it with --world mesh",
            )),
            (hosts, _) => Ok(hosts),
        }
    }
}
