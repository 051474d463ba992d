//! The hosts of a fleet: the inventory that names them, and ssh, which reaches them.
//!
//! An inventory is read in one place (`inventory`), whatever its form. Hosts are reached in one way (`ssh`): by the
//! user's own ssh, over one connection a host, with bounded waits.

pub mod ask;
pub mod here;
pub mod inventory;
pub mod report;
pub mod ssh;
pub mod view;
pub(crate) mod watch;
