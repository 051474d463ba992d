//! All that the file of an agent uses: `use hopwise::agent::{…}` in a crate of one's own, `crate::agent` in this one.
//!
//! `docs/own-agent.md` has a whole file. The contracts are those of `hopwise_core::agent`: a [`ReceiverAgent`] decides
//! when to acknowledge, and [`host`] makes one of a rule that [`Holds`]. A [`SenderAgent`] decides how much may be in
//! flight, a [`BaseStationAgent`] what happens to a flow while its link fades.

pub use hopwise_core::agent::*;
pub use hopwise_core::{Instant, Seq, ignores};

pub use crate::descriptor::{Descriptor, Make};
pub use crate::param::{Args, Brief, Form, OFF, ON, Profile, Switch, choices, params};
pub use crate::receiver::hold::{Decision, Holds, LONGEST_MS, host, since};
