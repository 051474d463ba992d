//! Live runs of a scenario: processes on the nodes of a field, and the trial that directs them.

pub(crate) mod guest;
pub(crate) mod part;

mod algorithms;
mod busy;
mod captured;
mod carriers;
mod children;
mod director;
mod field;
mod in_time;
mod kernel;
mod listening;
mod lost;
mod mesh;
mod play;
mod routes;
pub(crate) mod talk;
mod traced;

pub(crate) use director::{Director, Unmade, check, check_user};
pub(crate) use mesh::{Fleet, Needs, OfMesh};
pub(crate) use play::Run;
