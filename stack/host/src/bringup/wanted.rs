//! The state that a file wants of a machine and of its interfaces.

use hopwise_core::ip::Prefix;

use crate::nl80211::radio::{Cell, Kind, Rates};

/// The wanted state of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The country of the regulatory domain.
    pub country: Option<String>,
    /// The interfaces; others stay as they are.
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
    /// Its addresses; it keeps no others.
    pub addresses: Option<Vec<Prefix>>,
    /// It forwards packets that are for others.
    pub forwards: Option<bool>,
    /// No offload joins or cuts segments.
    pub without_offloads: bool,
    /// Programs such as NetworkManager leave it alone.
    pub without_managers: bool,
}

/// The network of a radio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// [`Kind::IBSS`] or [`Kind::MESH`].
    pub kind: Kind,
    /// The network.
    pub cell: Cell,
    /// The rates at which the radio sends.
    pub rates: Rates,
    /// Its power in hundredths of dBm.
    pub power: Option<u32>,
    /// It may sleep between frames.
    pub power_save: Option<bool>,
}
