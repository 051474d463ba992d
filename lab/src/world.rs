//! The worlds that a scenario runs in.

use crate::words::Words;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum World {
    /// Nodes, radios and programs in virtual time.
    #[default]
    Sim,
    /// The same radios in real time. Nodes are network namespaces: their kernels forward, and programs are processes.
    Netns,
}

impl World {
    pub const ALL: [World; 2] = [World::Sim, World::Netns];

    pub fn name(self) -> &'static str {
        match self {
            World::Sim => "sim",
            World::Netns => "netns",
        }
    }

    /// True if its runs take real time, so that no two of them are equal.
    pub fn is_live(self) -> bool {
        self != World::Sim
    }
}

impl Words for World {
    const NAME: &'static str = "World";
    const ABOUT: &'static str = "World that a scenario runs in.";
    const ALL: &'static [(&'static str, World, &'static str)] = &[
        ("sim", World::Sim, "The simulated radio, in virtual time."),
        (
            "netns",
            World::Netns,
            "The simulated radio in real time. Each node is a network namespace of this machine, where the kernel \
             forwards. It needs root.",
        ),
    ];
}
