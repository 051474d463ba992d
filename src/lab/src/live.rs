//! Live runs of a scenario: processes on the nodes of a field, and the trial that directs them.

pub mod guest;

mod busy;
mod carriers;
mod children;
mod director;
mod field;
mod in_time;
mod listening;
mod mesh;
mod play;
mod routes;

pub(crate) use director::{Director, Unmade, check, check_user};
pub(crate) use mesh::{Fleet, OfMesh, PreflightNeeds};
pub(crate) use play::Run;
