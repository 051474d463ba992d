//! `hopwise mesh`: brings the interfaces of a mesh up, and back to what they were.
//!
//! A process of its own makes the changes and waits for their confirmation (`keep`). It belongs to no session: the
//! end of the ssh connection, or of the command that started it, does not reach it. It is no timer of systemd, as
//! routers and namespaces have none.

use std::path::PathBuf;

use clap::Args;

pub(crate) mod config;
pub(super) mod confirm;
pub(super) mod down;
pub(super) mod keep;
mod session;
mod told;
pub(super) mod up;
mod work;

/// The folder of the files by default. It is root's: in `/run/hopwise` the daemons' user may remove a file of root.
pub(crate) const STATE: &str = "/run/hopwise-mesh";

/// The folder with the file of old states.
#[derive(Args, Clone, Debug)]
struct State {
    /// Folder of the file that says how to undo the changes
    #[arg(long, value_name = "FOLDER", default_value = STATE)]
    state: PathBuf,
}
