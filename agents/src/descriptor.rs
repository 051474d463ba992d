//! Descriptions of agents. A description needs no instance of its agent.

use hopwise_core::agent::{EnsembleMember, ReceiverAgent, SenderAgent, Serves};

use crate::param::{Args, Param};
use crate::sender::train::SharedPath;

/// One agent, as docs, specs and results know it.
#[derive(Debug)]
pub struct Descriptor {
    /// Unique within its kind: `train` is a receiver and a sender.
    pub name: &'static str,
    /// One line that says what the agent does.
    pub rule: &'static str,
    /// The paper or RFC that the agent follows.
    pub source: &'static str,
    /// In the order in which specs and results print them.
    pub params: &'static [Param],
    /// The parameter that `name:value` sets.
    pub shorthand: Option<&'static str>,
    /// Called for each connection or flow, and to check a list of senders.
    pub make: Make,
}

/// An agent, and the text of its file. `hopwise agents show` prints the paragraphs of the file's header.
pub type Listed = (&'static Descriptor, &'static str);

/// Declares the modules of a kind's agents and lists them, in the order of `hopwise agents`.
/// One line registers an agent.
macro_rules! agents {
    ($folder:literal: $(pub mod $name:ident;)+) => {
        $(pub(crate) mod $name;)+

        pub(crate) static AGENTS: &[$crate::descriptor::Listed] = &[$(
            (&$name::DESCRIPTOR, include_str!(concat!($folder, "/", stringify!($name), ".rs")))
        ),+];
    };
}
pub(crate) use agents;

/// The constructor of an agent. The variant shows the agent's kind.
#[derive(Clone, Copy, Debug)]
pub enum Make {
    /// A receiver agent that wraps no other.
    Receiver(fn(&Args) -> Box<dyn ReceiverAgent>),
    /// A receiver agent around another: `dup-count(delayed)`.
    ReceiverAround(fn(&Args, Box<dyn ReceiverAgent>) -> Box<dyn ReceiverAgent>),
    /// A sender agent that owns cwnd and ssthresh: the first of every list.
    Owner(fn(&Args) -> Box<dyn SenderAgent>),
    /// The same for a flow that takes turns with the other flows between two hosts. These flows share what they learn.
    Member(fn(&Args, SharedPath) -> Box<dyn EnsembleMember>),
    /// A sender agent that can only narrow what its predecessors allow.
    Narrower(fn(&Args) -> Box<dyn SenderAgent>),
    /// An agent for flows through a base station.
    BaseStation(fn(&Args) -> Serves),
}

hopwise_core::named! {
    /// The party that an agent acts for. It prints as `receiver`, `sender` or `base-station`.
    pub enum Kind {
        /// Decides when to acknowledge: a [`ReceiverAgent`].
        Receiver = "receiver",
        /// Decides how much may be in flight, and from when on: a [`SenderAgent`].
        Sender = "sender",
        /// Decides about the packets of a flow whose link may fade: [`Serves`].
        BaseStation = "base-station",
    }
}

impl Descriptor {
    /// Follows from the variant of `make`.
    pub fn kind(&self) -> Kind {
        match self.make {
            Make::Receiver(_) | Make::ReceiverAround(_) => Kind::Receiver,
            Make::Owner(_) | Make::Member(_) | Make::Narrower(_) => Kind::Sender,
            Make::BaseStation(_) => Kind::BaseStation,
        }
    }

    /// Returns whether the agent wraps another agent.
    pub fn wraps(&self) -> bool {
        matches!(self.make, Make::ReceiverAround(_))
    }

    /// Returns whether the agent owns cwnd and ssthresh: exactly the first of a list of senders does.
    pub fn owns_cwnd(&self) -> bool {
        matches!(self.make, Make::Owner(_) | Make::Member(_))
    }

    /// The parameters with which the agent's paper prints it, which `name:as-printed` sets; empty if all are defaults.
    /// `None` for an agent without a paper, or if the paper's text is not at hand.
    pub fn as_printed(&self) -> Option<&'static str> {
        match self.name {
            "altman-jimenez" | "dca" | "delayed" | "dup-count" | "pgy" | "tda" => Some(""),
            "ack-hold" => Some("mode=paper,margin=1,over=1,guard=off,duplicates=2"),
            _ => None,
        }
    }

    /// `None` if the agent has no parameter of this name.
    pub fn param(&self, name: &str) -> Option<&'static Param> {
        self.params.iter().find(|param| param.name == name)
    }
}
