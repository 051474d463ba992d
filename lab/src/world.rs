//! The worlds that a scenario runs in, and arms that run the kernel's TCP there: `receiver: kernel`,
//! `sender: kernel:bbr`.

use crate::words::{word_for, words};

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
        word_for(self).unwrap_or_default()
    }

    /// True if its nodes are processes over kernels, so that no two of its runs are equal.
    pub fn is_live(self) -> bool {
        self != World::Sim
    }
}

words! {
    /// World that a scenario runs in.
    World as "World" {
        /// The simulated radio, in virtual time.
        "sim" => Sim,
        /// The simulated radio in real time. Each node is a network namespace of this machine, where the kernel
        /// forwards. It needs root.
        "netns" => Netns,
        /// The simulated radio under the Wi-Fi stack of a kernel (mac80211_hwsim), in an emulated virtual machine.
        "hwsim" => Hwsim,
        /// Hosts of an inventory, reached by ssh, with the radios and routes that they have. Agents of ours need root
        /// there.
        "mesh" => Mesh,
    }
}

/// The receiver of such an arm, and the beginning of its sender.
const KERNEL: &str = "kernel";

/// The algorithm of a sender such as `kernel:bbr`; none for a sender of ours.
pub fn kernel_algorithm(sender: &str) -> Option<&str> {
    sender.strip_prefix(KERNEL)?.strip_prefix(':')
}

/// True if a receiver is the kernel's.
pub(crate) fn is_kernel_receiver(receiver: &str) -> bool {
    receiver == KERNEL
}

/// True if the kernel may have an algorithm of that name: 1 to 15 letters, digits, `_` or `-`.
pub(crate) fn is_algorithm(algorithm: &str) -> bool {
    let is_sound = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    (1..16).contains(&algorithm.len()) && algorithm.chars().all(is_sound)
}
