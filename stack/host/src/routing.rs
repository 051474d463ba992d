//! Linux services for a routing daemon: sockets for its messages, routes in the kernel's table, a view of forwarded
//! packets, a path for waiting packets. It knows no protocol, and undoes its changes.

mod control;
mod fence;
mod kernel;
mod left;
mod reach;
mod resend;
mod switches;
mod watch;

pub use crate::journal::forget_gone;
pub use control::ControlSocket;
pub use fence::Fence;
pub use kernel::{HostRoute, KernelRoutes};
pub use left::{is_claimed, left_routes, remove_left_routes};
pub use reach::Table;
pub use resend::{Resender, is_link_lost};
pub(crate) use switches::known;
pub use switches::{Switches, left_in, repair};
pub use watch::{Passing, Watch};
