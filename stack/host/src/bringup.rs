//! Brings interfaces into the state that a mesh needs, and back into the one that they had.
//!
//! A [`Plan`] is a list of steps, made from what a file wants and from what the kernel has. Each step is a change of
//! one interface, with the changes that undo it. These are on disk ([`Record`]) before the step is made. They are
//! undone in reverse order, whoever does it: the process that made them, `hopwise mesh down`, or `hopwise doctor`.

mod change;
mod line;
mod managers;
mod plan;
mod record;
mod setting;

use hopwise_core::ip::Prefix;

use crate::nl80211::radio::{InterfaceType, MeshCell, Rates};

pub use change::StepError;
pub use plan::{BringupStep, Plan, PlanError, interface_with};
pub use record::{Config, OF_MESH, OF_TRIAL, Phase, Record, Undone, left_bringups, record_in};
pub use setting::{Setting, command_step};

/// The wanted state of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedState {
    /// The country of the regulatory domain.
    pub country: Option<String>,
    /// The interfaces that change.
    pub interfaces: Vec<WantedInterface>,
}

/// The wanted state of an interface. A setting that is absent stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedInterface {
    /// The interface's name.
    pub name: String,
    /// The network of its radio; `None` for a wire.
    pub network: Option<Network>,
    /// The longest packet in bytes.
    pub mtu: Option<u32>,
    /// All its addresses: it loses every address that is not listed here.
    pub addresses: Option<Vec<Prefix>>,
    /// It forwards packets for other hosts.
    pub forwards: Option<bool>,
    /// No offload joins or cuts segments.
    pub without_offloads: bool,
    /// Programs such as NetworkManager leave it alone.
    pub without_managers: bool,
}

/// The network of a radio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// [`InterfaceType::IBSS`] or [`InterfaceType::MESH`].
    pub kind: InterfaceType,
    /// The network.
    pub cell: MeshCell,
    /// The rates at which the radio sends.
    pub rates: Rates,
    /// Its power in hundredths of dBm.
    pub power: Option<u32>,
    /// It may sleep between frames.
    pub power_save: Option<bool>,
}
