//! One change of an interface, or of the whole machine.

use std::fmt;
use std::io;

use hopwise_core::ip::Prefix;

use super::line;
use super::managers::{Manager, networkd};
use super::setting;
use crate::namespace::{set_switch, switch_of};
use crate::netlink::{self, KernelRefusal, device, features};
use crate::nl80211::radio::{InterfaceType, MeshCell, Radio, Rates};
use crate::rfkill;

/// A change, of the interface with this number; changes of the whole machine have none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InterfaceChange {
    pub(super) index: u32,
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Up or down.
    Link(bool),
    Mtu(u32),
    /// An address, in the kernel's message.
    Add(Vec<u8>),
    Remove(Prefix),
    /// A route, in the kernel's message.
    Route(Vec<u8>),
    Kind(InterfaceType),
    Join(InterfaceType, MeshCell),
    /// Leaves a network, for an interface of this type.
    Leave(InterfaceType),
    /// The rates in the band of a frequency.
    Rates(u32, Rates),
    /// A program's block of the radio (rfkill).
    Blocked(bool),
    Offloads(Vec<String>, bool),
    /// A key below /proc/sys/net, in which `{}` stands for the interface's name, and its value.
    Switch(String, String),
    /// A number of the interface or of its radio, by its name among settings.
    Setting(String, u32),
    /// A command of the user for a shell.
    Run(String),
    /// The country of the regulatory domain.
    Country(String),
    /// A program has the interface, or leaves it alone.
    Managed(Manager, bool),
}

/// A step that failed.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {answer}{}", .accepted.as_ref().map(|accepted| format!("; expected {accepted}")).unwrap_or_default())]
pub struct StepError {
    /// The step, in words.
    pub step: String,
    /// The answer of the kernel or of a driver.
    pub answer: String,
    /// The values that would be accepted, if they are known.
    pub accepted: Option<String>,
}

impl InterfaceChange {
    pub(super) fn new(index: u32, what: What) -> InterfaceChange {
        InterfaceChange { index, what }
    }

    /// Makes the change.
    pub(super) fn make(&self) -> Result<(), KernelRefusal> {
        let index = self.index;
        match &self.what {
            What::Link(is_up) => device::set_link(index, *is_up),
            What::Mtu(mtu) => device::set_number(index, libc::IFLA_MTU, *mtu),
            What::Add(message) => device::add_address(message),
            What::Remove(prefix) => device::remove_address(index, prefix),
            What::Route(message) => device::add_route(message),
            What::Kind(kind) => Radio::open()?.set_kind(index, *kind),
            What::Join(kind, cell) => Radio::open()?.join(index, *kind, cell),
            What::Leave(kind) => Radio::open()?.leave(index, *kind),
            What::Rates(mhz, rates) => Radio::open()?.set_rates(index, *mhz, rates),
            What::Blocked(is_on) => Ok(rfkill::set_soft_block(&self.place("{}")?, *is_on)?),
            What::Offloads(names, is_on) => features::set_offloads(index, names, *is_on),
            What::Switch(key, value) => Ok(set_switch(&self.place(key)?, value)?),
            What::Setting(name, value) => setting::set(index, name, *value),
            What::Run(command) => setting::run(command),
            What::Country(code) => Radio::open()?.set_country(code),
            What::Managed(manager, has) => manager.tell(index, &self.place("{}")?, *has),
        }
    }

    /// Undoes with it what was there before; an interface that is gone needs nothing.
    pub(super) fn make_back(&self) -> Result<(), KernelRefusal> {
        if self.index > 0 && device::device(self.index).is_err() {
            // A file about it stays without it.
            let is_file = self.what == What::Managed(Manager::Networkd, true);
            return if is_file { networkd::give(self.index) } else { Ok(()) };
        }
        match self.make() {
            // Its network was left already, when it went down.
            Err(refused) if matches!(self.what, What::Leave(_)) && refused.is_one_of(&[libc::EBUSY]) => {
                Ok(())
            }
            done => done,
        }
    }

    /// The values that would have been accepted, as far as the kernel tells them.
    pub(super) fn accepted(&self) -> Option<String> {
        let radio = || Radio::open().ok()?.abilities(self.index).ok();
        match &self.what {
            What::Join(_, cell) => {
                let of_radio = radio()?;
                let mhz = cell.channel.mhz;
                let known = of_radio.frequencies.iter().find(|one| one.mhz == mhz);
                match known {
                    None => Some(format!("a frequency of this radio: {}", of_radio.open_mhz())),
                    Some(one) if one.is_disabled || one.is_passive => Some(format!(
                        "one of {} MHz, where this regulatory domain lets a network begin, or another `country`",
                        of_radio.open_mhz()
                    )),
                    Some(_) => None,
                }
            }
            What::Add(_) => {
                let is_off = self.now("ipv6/conf/{}/disable_ipv6").as_deref() == Some("1");
                let accepted = "no addresses of IPv6, or `disable_ipv6` off for this interface (sysctl)";
                is_off.then(|| accepted.to_owned())
            }
            What::Rates(..) => Some(
                "rates of which one is a basic rate of the network, or no `rates` and `mcs`: some drivers choose rates \
                 themselves"
                    .to_owned(),
            ),
            What::Kind(kind) => Some(format!(
                "no other interface of this radio, as `iw dev` shows them: beside one, the driver may have no {kind}"
            )),
            What::Mtu(_) => Some("a smaller `mtu`, or none: `ip -d link show` has the driver's bounds".to_owned()),
            _ => None,
        }
    }

    /// The key of a switch by now: the interface may have another name.
    pub(super) fn place(&self, key: &str) -> io::Result<String> {
        if !key.contains("{}") {
            return Ok(key.to_owned());
        }
        let name =
            netlink::name_of(self.index).map_err(|error| io::Error::new(io::ErrorKind::NotFound, error))?;
        Ok(key.replace("{}", &name))
    }

    /// The value of a switch now, if this kernel has it.
    pub(super) fn now(&self, key: &str) -> Option<String> {
        switch_of(&self.place(key).ok()?).ok()
    }
}

/// A change in words for people, behind the name of its interface if it has one.
pub(super) fn told(interface: Option<&str>, what: &What) -> String {
    match (interface, what) {
        (None, what) => what.to_string(),
        (Some(name), What::Switch(key, value)) => {
            format!("{name}: {}", What::Switch(key.replace("{}", name), value.clone()))
        }
        (Some(name), what) => format!("{name}: {what}"),
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Link(true) => write!(f, "take it up"),
            What::Link(false) => write!(f, "take it down"),
            What::Mtu(mtu) => write!(f, "set its MTU to {mtu} bytes"),
            What::Add(message) => write!(f, "add address {}", line::address(message)),
            What::Remove(prefix) => write!(f, "remove address {prefix}"),
            What::Route(_) => write!(f, "add a route that it had"),
            What::Kind(kind) => write!(f, "make it an interface of type {kind}"),
            What::Join(kind, cell) => {
                let name = String::from_utf8_lossy(&cell.name);
                let what = if *kind == InterfaceType::MESH { "mesh" } else { "ad hoc network" };
                write!(f, "join the {what} `{name}` at {} MHz", cell.channel.mhz)
            }
            What::Leave(_) => write!(f, "leave its network"),
            What::Rates(_, rates) if rates.legacy.is_empty() && rates.mcs.is_empty() => {
                write!(f, "send at all rates")
            }
            What::Rates(_, rates) => write!(f, "send {}", line::rates(rates)),
            What::Blocked(true) => write!(f, "block its radio (rfkill)"),
            What::Blocked(false) => write!(f, "end the block of its radio (rfkill)"),
            What::Offloads(names, is_on) => {
                write!(f, "turn {} {}", names.join(", "), if *is_on { "on" } else { "off" })
            }
            What::Switch(key, value) => write!(f, "set net/{key} to {value}"),
            What::Setting(name, value) => write!(f, "set its {name} to {}", setting::told(name, *value)),
            What::Run(command) => write!(f, "run `{command}`"),
            What::Country(code) => write!(f, "set the regulatory domain to {code}"),
            What::Managed(manager, true) => write!(f, "give it to {manager}"),
            What::Managed(manager, false) => write!(f, "tell {manager} to leave it alone"),
        }
    }
}
