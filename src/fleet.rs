//! The hosts of a fleet: the inventory that names them, and ssh, which reaches them.
//!
//! An inventory is read in one place (`inventory`), whatever its form. Hosts are reached in one way (`ssh`): by the
//! user's own ssh, over one connection a host, with bounded waits.

pub(crate) mod ask;
pub(crate) mod here;
pub(crate) mod host;
pub(crate) mod inventory;
pub(crate) mod report;
pub(crate) mod ssh;
pub(crate) mod top;
pub(crate) mod view;
