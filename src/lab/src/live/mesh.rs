//! The world `mesh`: hosts of an inventory are the nodes of a scenario, with radios and routes of their own.
//!
//! [`fleet`] reaches the hosts over ssh and looks before the first run at what could spoil one (`preflight`). A run is
//! a process on each host (`play`), which the trial tells to begin and which ends with it. On the host `hopwise part`
//! runs the node's programs, and looks at radio and routes meanwhile. During a run only its flows cross the air, unless
//! ssh itself does. A host that falls silent spoils the run and not the trial: the director repeats the run once the
//! host answers again.

mod fleet;
mod play;
mod preflight;

pub(crate) use fleet::{Fleet, OfMesh};
pub(super) use fleet::{LostHost, check};
pub(super) use play::play;
pub(crate) use preflight::PreflightNeeds;
