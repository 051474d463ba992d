//! What a routing daemon asks of Linux: sockets for its messages, routes in the kernel's table, a look at the packets
//! that the kernel forwards, and a way to send those that waited. It knows no protocol; what it changes it takes back.

mod control;
mod kernel;
mod reach;
mod resend;
mod switches;
mod watch;

pub use control::{ControlSocket, Heard};
pub use kernel::{KernelRoutes, Way};
pub use reach::{device_towards, has_route};
pub use resend::{Resender, is_link_lost};
pub use switches::{Switches, forget_gone, left_in, repair};
pub use watch::{Passing, Watch};
