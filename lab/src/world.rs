//! The worlds that a scenario runs in.

use crate::words::Words;

/// The kind of world in which a scenario runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum World {
    /// Nodes, radios and programs in virtual time.
    #[default]
    Sim,
    /// The same radios in real time. Nodes are network namespaces: their kernels forward, and programs are processes.
    Netns,
    /// The same radios under the Wi-Fi stack of a kernel in a virtual machine, whose clock they share.
    Hwsim,
    /// Hosts of an inventory, with radios of their own. They are reached by ssh.
    Mesh,
}

impl World {
    /// All worlds, in the order of pages.
    pub const ALL: [World; 4] = [World::Sim, World::Netns, World::Hwsim, World::Mesh];

    /// The word for it in scenarios and results.
    pub fn name(self) -> &'static str {
        match self {
            World::Sim => "sim",
            World::Netns => "netns",
            World::Hwsim => "hwsim",
            World::Mesh => "mesh",
        }
    }

    /// True if its nodes are processes over kernels, so that no two of its runs are equal.
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
        (
            "hwsim",
            World::Hwsim,
            "The simulated radio under the Wi-Fi stack of a kernel (mac80211_hwsim), in an emulated virtual machine.",
        ),
        (
            "mesh",
            World::Mesh,
            "Hosts of an inventory, reached by ssh, with the radios and routes that they have. Agents of ours need \
             root there.",
        ),
    ];
}
