//! The steps from what the kernel has to what a file wants.

use std::fmt;
use std::io;
use std::net::IpAddr;

use super::change::{InterfaceChange, StepError, What, told};
use super::managers::Manager;
use super::setting;
use super::{Network, WantedInterface, WantedState};
use crate::netlink::device::{self, NamedDevice, OwnAddress};
use crate::netlink::{self, features};
use crate::nl80211::radio::{Abilities, InterfaceType, MeshCell, Radio, RadioState, Rates};
use crate::rfkill::{self, Blocks};

/// One step, with the changes that undo it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BringupStep {
    /// The interface, or `None` for the machine.
    pub interface: Option<String>,
    pub(super) change: InterfaceChange,
    /// The last one is made first.
    pub(super) undo: Vec<InterfaceChange>,
}

impl BringupStep {
    /// Makes the change.
    pub(super) fn make(&self) -> Result<(), StepError> {
        self.change.make().map_err(|refused| StepError {
            step: self.to_string(),
            answer: refused.to_string(),
            accepted: self.change.accepted(),
        })
    }
}

impl fmt::Display for BringupStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&told(self.interface.as_deref(), &self.change.what))
    }
}

/// The steps, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The steps; none if the machine is as wanted.
    pub steps: Vec<BringupStep>,
}

/// The reasons why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// This machine has no interface of that name.
    #[error("no interface is called `{0}` here")]
    NoInterface(String),
    /// The interface has no radio.
    #[error("{0} has no radio that the kernel knows (nl80211): expected `mode: wired`")]
    NoRadio(String),
    /// The driver has no interfaces of the wanted type.
    #[error("{interface}: its driver has no mode {wanted}: it has {}", InterfaceType::list(.has))]
    NoKind {
        /// The interface.
        interface: String,
        /// The wanted type.
        wanted: InterfaceType,
        /// The types that the driver has.
        has: Vec<InterfaceType>,
    },
    /// A button or the firmware has switched the radio off.
    #[error("{0}: a button or the firmware has switched its radio off (hard block of rfkill)")]
    SwitchedOff(String),
    /// The state of the interface, or of the machine, could not be read.
    #[error("{0}: {1}")]
    Unread(String, io::Error),
}

impl Plan {
    /// Looks at the machine, and changes nothing.
    pub fn of(wanted: &WantedState) -> Result<Plan, PlanError> {
        Plan::made(wanted, false)
    }

    /// The same for a machine on which it was carried out before: a radio that is in its network is as wanted.
    pub fn to_mend(wanted: &WantedState) -> Result<Plan, PlanError> {
        Plan::made(wanted, true)
    }

    fn made(wanted: &WantedState, was_made: bool) -> Result<Plan, PlanError> {
        let mut plan = Plan::default();
        if let Some(country) = &wanted.country {
            plan.country(country)?;
        }
        // Undoing then removes new addresses first. If forwarding ends first, Linux 6.18 sometimes keeps the anycast
        // route of an address. The machine therefore forwards a little before it has its new addresses.
        plan.forward_ipv6(wanted)?;
        for interface in &wanted.interfaces {
            plan.steps.extend(StepsInMaking::begin(interface)?.steps(was_made)?);
        }
        Ok(plan)
    }

    fn country(&mut self, wanted: &str) -> Result<(), PlanError> {
        let unread = |error| PlanError::Unread("the regulatory domain".to_owned(), error);
        let now = Radio::open().and_then(|radio| radio.country()).map_err(unread)?;
        let now = now.unwrap_or_else(|| "00".to_owned());
        // The kernel calls a mixture of domains by a number, which it does not take back.
        let before =
            if now.chars().all(|letter| letter.is_ascii_digit()) { "00".to_owned() } else { now.clone() };
        if now != wanted {
            let undo = vec![InterfaceChange::new(0, What::Country(before))];
            self.push(None, InterfaceChange::new(0, What::Country(wanted.to_owned())), undo);
        }
        Ok(())
    }

    fn push(&mut self, interface: Option<&str>, change: InterfaceChange, undo: Vec<InterfaceChange>) {
        self.steps.push(BringupStep { interface: interface.map(str::to_owned), change, undo });
    }

    /// IPv6 is forwarded by all interfaces or none (net.ipv6.conf.all.forwarding). An interface that forwards ignores
    /// router advertisements unless `accept_ra` is 2, so the other interfaces get 2 to keep their addresses.
    fn forward_ipv6(&mut self, wanted: &WantedState) -> Result<(), PlanError> {
        let has_ipv6 = |one: &WantedInterface| {
            let addresses = one.addresses.iter().flatten();
            one.forwards == Some(true) && addresses.into_iter().any(|address| address.address().is_ipv6())
        };
        let all =
            InterfaceChange::new(0, What::Switch("ipv6/conf/all/forwarding".to_owned(), "1".to_owned()));
        let now = all.now("ipv6/conf/all/forwarding");
        if now.as_deref() != Some("0") || !wanted.interfaces.iter().any(has_ipv6) {
            return Ok(());
        }
        let unread = |error| PlanError::Unread("the interfaces of this machine".to_owned(), error);
        // A change of all of them changes each.
        let mut undo = Vec::new();
        for index in netlink::all_interfaces().map_err(unread)? {
            let of = |name: &str, value: &str| {
                InterfaceChange::new(index, What::Switch(format!("ipv6/conf/{{}}/{name}"), value.to_owned()))
            };
            let forwards = of("forwarding", "");
            if let Some(before) = forwards.now("ipv6/conf/{}/forwarding") {
                undo.push(of("forwarding", &before));
            }
            let Ok(device) = device::device(index) else { continue };
            let is_ours = wanted.interfaces.iter().any(|one| one.name == device.name);
            if !is_ours && forwards.now("ipv6/conf/{}/accept_ra").as_deref() == Some("1") {
                self.push(Some(&device.name), of("accept_ra", "2"), vec![of("accept_ra", "1")]);
            }
        }
        undo.push(InterfaceChange::new(
            0,
            What::Switch("ipv6/conf/all/forwarding".to_owned(), "0".to_owned()),
        ));
        self.push(None, all, undo);
        Ok(())
    }
}

/// The steps of one interface, while they are put together.
struct StepsInMaking<'a> {
    wanted: &'a WantedInterface,
    index: u32,
    device: NamedDevice,
    addresses: Vec<OwnAddress>,
    routes: Vec<Vec<u8>>,
    steps: Vec<BringupStep>,
}

impl<'a> StepsInMaking<'a> {
    fn begin(wanted: &'a WantedInterface) -> Result<StepsInMaking<'a>, PlanError> {
        let unread = |error| PlanError::Unread(wanted.name.clone(), error);
        let index = netlink::index_of(&wanted.name);
        let index = index.map_err(|_| PlanError::NoInterface(wanted.name.clone()))?;
        Ok(StepsInMaking {
            wanted,
            index,
            device: device::device(index).map_err(unread)?,
            addresses: device::addresses(index).map_err(unread)?,
            routes: device::routes(index).map_err(unread)?,
            steps: Vec::new(),
        })
    }

    fn steps(mut self, was_made: bool) -> Result<Vec<BringupStep>, PlanError> {
        if self.wanted.without_managers {
            for manager in Manager::of(self.index, &self.wanted.name) {
                // dhcpcd does not tell which interfaces it has: it was told already.
                if !(was_made && manager == Manager::Dhcpcd) {
                    self.step(What::Managed(manager, false), vec![What::Managed(manager, true)]);
                }
            }
        }
        match &self.wanted.network {
            Some(network) if !(was_made && self.is_in(network)?) => self.radio(network)?,
            _ => self.wire(),
        }
        self.mtu_and_addresses();
        if self.wanted.without_offloads {
            self.offloads()?;
        }
        if let Some(forwards) = self.wanted.forwards {
            let value = if forwards { "1" } else { "0" };
            self.switch("ipv4/conf/{}/forwarding", value);
        }
        Ok(self.with_routes())
    }

    fn step(&mut self, what: What, undo: Vec<What>) {
        let change = |what| InterfaceChange::new(self.index, what);
        let undo = undo.into_iter().map(change).collect();
        self.steps.push(BringupStep {
            interface: Some(self.wanted.name.clone()),
            change: change(what),
            undo,
        });
    }

    /// Leaves only wanted addresses, and takes the device up.
    fn wire(&mut self) {
        self.remove_addresses(false);
        if !self.device.is_up {
            self.step(What::Link(true), vec![What::Link(false)]);
        }
    }

    /// Gives the radio its type and network. The interface has to go down for it, and loses its addresses of IPv6.
    fn radio(&mut self, network: &Network) -> Result<(), PlanError> {
        let (radio, state, abilities) = self.look()?;
        if !abilities.kinds.contains(&network.kind) {
            return Err(PlanError::NoKind {
                interface: self.wanted.name.clone(),
                wanted: network.kind,
                has: abilities.kinds,
            });
        }
        self.unblock(rfkill::blocks_of(&self.wanted.name))?;
        self.remove_addresses(true);
        self.sleep(radio.power_save(self.index).ok().flatten(), network.power_save);
        if self.device.is_up {
            let mut undo: Vec<_> = rejoined(&state).into_iter().collect();
            undo.push(What::Link(true));
            self.step(What::Link(false), undo);
        }
        if state.kind != network.kind {
            self.step(What::Kind(network.kind), vec![What::Kind(state.kind)]);
        }
        self.step(What::Link(true), vec![What::Link(false)]);
        if let Some(power) = network.power {
            let of = |power| What::Setting("tx_power".to_owned(), power);
            self.step(of(power), vec![of(setting::OFF)]);
        }
        if network.rates != Rates::default() {
            let mhz = network.cell.channel.mhz;
            let all = What::Rates(mhz, Rates::default());
            self.step(What::Rates(mhz, network.rates.clone()), vec![all]);
        }
        self.step(What::Join(network.kind, network.cell.clone()), vec![What::Leave(network.kind)]);
        Ok(())
    }

    /// Changes whether the radio sleeps, if its driver tells it.
    fn sleep(&mut self, now: Option<bool>, wanted: Option<bool>) {
        if let Some((now, wanted)) = now.zip(wanted).filter(|(now, wanted)| now != wanted) {
            let of = |is_on| What::Setting("power_save".to_owned(), u32::from(is_on));
            self.step(of(wanted), vec![of(now)]);
        }
    }

    /// A blocked radio cannot be taken up.
    fn unblock(&mut self, blocks: Option<Blocks>) -> Result<(), PlanError> {
        match blocks {
            Some(Blocks { hard: true, .. }) => Err(PlanError::SwitchedOff(self.wanted.name.clone())),
            Some(Blocks { soft: true, .. }) => {
                self.step(What::Blocked(false), vec![What::Blocked(true)]);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the radio is in this network, as far as the kernel tells it: it names no mesh.
    fn is_in(&self, network: &Network) -> Result<bool, PlanError> {
        let (_, state, _) = self.look()?;
        let names = state.kind == InterfaceType::MESH || state.ssid.as_ref() == Some(&network.cell.name);
        let is_there = state.channel.is_some_and(|channel| channel.mhz == network.cell.channel.mhz);
        Ok(self.device.is_up && state.kind == network.kind && names && is_there)
    }

    fn look(&self) -> Result<(Radio, RadioState, Abilities), PlanError> {
        let name = || self.wanted.name.clone();
        let unread = |error| PlanError::Unread(name(), error);
        let radio = match Radio::open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(PlanError::NoRadio(name())),
            opened => opened.map_err(unread)?,
        };
        let state = radio.state(self.index).map_err(unread)?.ok_or_else(|| PlanError::NoRadio(name()))?;
        let abilities = radio.abilities(self.index).map_err(unread)?;
        Ok((radio, state, abilities))
    }

    /// Removes the addresses that are not wanted. A device that goes down loses all of IPv6.
    fn remove_addresses(&mut self, goes_down: bool) {
        let Some(wanted) = &self.wanted.addresses else {
            if goes_down {
                self.remove_where(|own| own.prefix.address().is_ipv6());
            }
            return;
        };
        self.remove_where(|own| {
            let is_lost = goes_down && own.prefix.address().is_ipv6();
            is_lost || !wanted.contains(&own.prefix)
        });
    }

    fn remove_where(&mut self, is_removed: impl Fn(&OwnAddress) -> bool) {
        let removed = self.addresses.iter().filter(|own| !own.is_of_kernel && is_removed(own));
        let (ipv4, ipv6): (Vec<_>, Vec<_>) = removed.cloned().partition(|own| own.prefix.address().is_ipv4());
        self.addresses.retain(|own| !ipv4.contains(own) && !ipv6.contains(own));
        // The kernel lists the oldest address of IPv4 first, and the oldest address of IPv6 last. The youngest goes
        // first, so that they come back in the order of their age: the oldest one of a subnet is its first.
        for own in ipv4.into_iter().rev().chain(ipv6) {
            self.step(What::Remove(own.prefix), vec![What::Add(own.message)]);
        }
    }

    fn mtu_and_addresses(&mut self) {
        if let Some(mtu) = self.wanted.mtu.filter(|mtu| *mtu != self.device.mtu) {
            self.step(What::Mtu(mtu), vec![What::Mtu(self.device.mtu)]);
        }
        for address in self.wanted.addresses.iter().flatten() {
            if !self.addresses.iter().any(|own| own.prefix == *address) {
                let message = device::new_address(self.index, address);
                self.step(What::Add(message), vec![What::Remove(*address)]);
            }
        }
    }

    fn offloads(&mut self) -> Result<(), PlanError> {
        let on = match features::offloads_on(self.index) {
            // A kernel before 5.6, or a device without a driver of the usual kind.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::Unsupported) => {
                return Ok(());
            }
            on => on.map_err(|error| PlanError::Unread(self.wanted.name.clone(), error))?,
        };
        if !on.is_empty() {
            self.step(What::Offloads(on.clone(), false), vec![What::Offloads(on, true)]);
        }
        Ok(())
    }

    fn switch(&mut self, key: &str, value: &str) {
        let of = |value: &str| What::Switch(key.to_owned(), value.to_owned());
        let now = InterfaceChange::new(self.index, of(value)).now(key);
        if let Some(before) = now.filter(|now| now != value) {
            self.step(of(value), vec![of(&before)]);
        }
    }

    /// Routes go with addresses, and with a device that goes down: they come back last.
    fn with_routes(mut self) -> Vec<BringupStep> {
        let takes = |step: &BringupStep| {
            matches!(step.change.what, What::Remove(_) | What::Link(false) | What::Mtu(_))
        };
        let is_first = |step: &&mut BringupStep| !matches!(step.change.what, What::Managed(..));
        if self.steps.iter().any(takes)
            && let Some(first) = self.steps.iter_mut().find(is_first)
        {
            let back =
                self.routes.drain(..).map(|route| InterfaceChange::new(self.index, What::Route(route)));
            first.undo.splice(0..0, back);
        }
        self.steps
    }
}

/// The network that an interface was in, as far as the kernel tells it.
fn rejoined(state: &RadioState) -> Option<What> {
    let (name, channel) = (state.ssid.clone()?, state.channel?);
    let is_ibss = state.kind == InterfaceType::IBSS && !name.is_empty();
    is_ibss.then(|| What::Join(state.kind, MeshCell::told(name, channel)))
}

/// The name of the interface that has this address.
pub fn interface_with(address: IpAddr) -> io::Result<Option<String>> {
    let Some(index) = device::device_with(address)? else { return Ok(None) };
    Ok(Some(device::device(index)?.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_is_named_and_one_without_a_radio_too() {
        let of = |name: &str, network| {
            let interface = WantedInterface { name: name.to_owned(), network, ..WantedInterface::default() };
            Plan::of(&WantedState { country: None, interfaces: vec![interface] })
        };
        let absent = of("nosuchdevice", None).expect_err("it is not there");
        assert_eq!(absent.to_string(), "no interface is called `nosuchdevice` here");
        let channel = crate::nl80211::radio::ChannelSetting { mhz: 2_412, width: 0, centre_mhz: 2_412 };
        let cell = MeshCell {
            name: b"x".to_vec(),
            channel,
            bssid: None,
            basic: vec![],
            multicast: None,
            forwards: false,
        };
        let network = Network {
            kind: InterfaceType::IBSS,
            cell,
            rates: Rates::default(),
            power: None,
            power_save: None,
        };
        match of("lo", Some(network)) {
            Err(PlanError::NoRadio(name)) => assert_eq!(name, "lo"),
            other => panic!("{other:?}"),
        }
        assert_eq!(of("lo", None).expect("nothing is wanted").steps.len(), usize::from(!is_up("lo")));
    }

    fn is_up(name: &str) -> bool {
        let index = netlink::index_of(name).expect("it is there");
        device::device(index).expect("it is there").is_up
    }

    #[test]
    fn a_mode_that_the_driver_lacks_is_refused_with_those_that_it_has() {
        let has = vec![InterfaceType::MANAGED, InterfaceType::of(3), InterfaceType::of(6)];
        let error = PlanError::NoKind { interface: "wlan0".into(), wanted: InterfaceType::IBSS, has };
        assert_eq!(error.to_string(), "wlan0: its driver has no mode IBSS: it has managed, AP, monitor");
    }

    #[test]
    fn a_programs_block_ends_before_all_else_and_that_of_a_button_is_refused() {
        let wanted = WantedInterface { name: "lo".to_owned(), ..WantedInterface::default() };
        let of = |soft, hard| {
            let mut making = StepsInMaking::begin(&wanted).expect("it is there");
            making.unblock(Some(Blocks { soft, hard })).map(|()| making.steps)
        };
        let steps = of(true, false).expect("it can be ended");
        assert_eq!(steps.len(), 1);
        assert_eq!(steps[0].to_string(), "lo: end the block of its radio (rfkill)");
        assert_eq!(steps[0].undo, [InterfaceChange::new(steps[0].change.index, What::Blocked(true))]);
        assert_eq!(of(false, false).expect("nothing blocks it"), []);
        let refused = of(true, true).expect_err("no program can end it");
        assert!(refused.to_string().contains("a button or the firmware"), "{refused}");
    }

    #[test]
    fn a_radio_that_sleeps_is_kept_awake_and_sleeps_again_afterwards() {
        let wanted = WantedInterface { name: "lo".to_owned(), ..WantedInterface::default() };
        let of = |now, wanted_now| {
            let mut making = StepsInMaking::begin(&wanted).expect("it is there");
            making.sleep(now, wanted_now);
            let steps = making.steps.into_iter();
            steps.map(|step| (step.change.what, step.undo[0].what.clone())).collect::<Vec<_>>()
        };
        let saves = |is_on| What::Setting("power_save".to_owned(), is_on);
        assert_eq!(of(Some(true), Some(false)), [(saves(0), saves(1))]);
        for (now, wanted) in [(Some(false), Some(false)), (None, Some(false)), (Some(true), None)] {
            assert_eq!(of(now, wanted), [], "{now:?} {wanted:?}");
        }
    }

    #[test]
    fn an_ad_hoc_network_that_a_radio_was_in_is_joined_again() {
        let channel = crate::nl80211::radio::ChannelSetting { mhz: 2_412, width: 0, centre_mhz: 2_412 };
        let state = RadioState {
            kind: InterfaceType::IBSS,
            ssid: Some(b"old".to_vec()),
            channel: Some(channel),
            power: None,
        };
        assert!(
            matches!(rejoined(&state), Some(What::Join(InterfaceType::IBSS, cell)) if cell.name == b"old")
        );
        assert_eq!(rejoined(&RadioState { kind: InterfaceType::MANAGED, ..state.clone() }), None);
        assert_eq!(rejoined(&RadioState { ssid: None, ..state }), None);
    }
}
