//! Checks of the interfaces of a mesh, wires and radios alike.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use hopwise_core::StationAddress;
use hopwise_host::netlink::{addresses_of, joining_offloads};
use hopwise_host::{driver_of, holders};
use serde::{Deserialize, Serialize};

use super::finding::Finding;
use super::{System, faults, machine};

/// The time for answers to ARP probes about an address.
const PROBE_WITHIN: Duration = Duration::from_millis(450);
/// The flag of an address of which the kernel found a duplicate (IFA_F_DADFAILED), in /proc/net/if_inet6.
const DUPLICATE: u8 = 0x08;

/// The metres that a coverage class stands for. Every driver waits long enough for the first ones.
const CLASS_M: u64 = 450;

/// The type of a TUN device in `/sys` (ARPHRD_NONE).
pub const WITHOUT_LINK_LAYER: &str = "65534";

/// The facts about an interface that are compared between interfaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InterfaceFacts {
    pub name: String,
    /// Its own Ethernet address.
    pub station: Option<String>,
    pub mtu: Option<u32>,
    /// Its addresses with their subnets.
    #[serde(default)]
    pub(super) addresses: Vec<String>,
    /// Its RTS threshold, and the stations that it hears.
    pub(super) rts: Option<String>,
    #[serde(default)]
    pub(super) hears: Vec<String>,
    pub(super) coverage_class: Option<u32>,
    /// The names of its driver and of the firmware that the driver has loaded.
    #[serde(default)]
    pub(super) driver: Option<String>,
    #[serde(default)]
    pub(super) firmware: Option<String>,
}

impl InterfaceFacts {
    pub(super) fn of(system: &System, name: &str) -> InterfaceFacts {
        let addresses = addresses_of(name).unwrap_or_default();
        let (driver, firmware) = driver_of(name).unwrap_or_default();
        let told = |text: String| (!text.is_empty() && text != "N/A").then_some(text);
        InterfaceFacts {
            name: name.to_owned(),
            station: system.read(&format!("sys/class/net/{name}/address")),
            mtu: mtu(system, name),
            addresses: addresses.iter().map(ToString::to_string).collect(),
            driver: told(driver),
            firmware: told(firmware),
            ..InterfaceFacts::default()
        }
    }

    /// Its first address by which other hosts reach it.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.unique().find(IpAddr::is_ipv4).or_else(|| self.unique().next())
    }

    /// Its addresses without their subnets.
    pub(super) fn all_addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.addresses.iter().filter_map(|text| text.split('/').next()?.parse::<IpAddr>().ok())
    }

    /// Those that are unique in a mesh.
    fn unique(&self) -> impl Iterator<Item = IpAddr> {
        self.all_addresses()
            .filter(|address| !matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local()))
    }
}

pub(super) fn mtu(system: &System, name: &str) -> Option<u32> {
    system.read(&format!("sys/class/net/{name}/mtu"))?.parse().ok()
}

/// An interface of a mesh.
pub(super) fn examine(system: &System, facts: &InterfaceFacts) -> Vec<Finding> {
    let name = &facts.name;
    let mut findings = vec![state(system, name)];
    if !system.has(&format!("sys/class/net/{name}")) {
        return findings;
    }
    findings.push(match joining_offloads(name) {
        Ok(joining) => noted(name, &joining),
        Err(error) => faults::OFFLOADS_JOIN.skipped(format!("{name}: {error}")),
    });
    findings.push(machine::rp_filter_of(system, name));
    let ask = |address| holders(name, address, PROBE_WITHIN);
    findings.push(addresses(system, facts, &ask));
    findings
}

pub(super) fn state(system: &System, name: &str) -> Finding {
    match system.read(&format!("sys/class/net/{name}/operstate")).as_deref() {
        None => faults::INTERFACE_MISSING.found(format!("there is no {name}")),
        Some("down") => faults::INTERFACE_DOWN.found(format!("{name} is down")).with("IF", name),
        Some(state) => faults::INTERFACE_DOWN.ok(format!("{name} is {state}")),
    }
}

/// Offloads are as Linux has them, and of use to all programs: no fault of an interface of a mesh.
pub(super) fn noted(name: &str, joining: &[String]) -> Finding {
    let what = joining.join(", ");
    let said = match joining {
        [] => format!("{name} hands over what came"),
        _ => format!(
            "{name} joins or cuts segments ({what}): a capture there shows none of the air; `offloads: false` in the \
             file of `hopwise mesh up` ends that, at a cost to all programs"
        ),
    };
    faults::OFFLOADS_JOIN.ok(said)
}

/// Offloads by the kernel's names, which ethtool takes as well.
pub(super) fn offloads(name: &str, joining: &[String]) -> Finding {
    if joining.is_empty() {
        return faults::OFFLOADS_JOIN.ok(format!("{name} hands over what came"));
    }
    let switches: Vec<_> = joining.iter().map(|offload| format!("{offload} off")).collect();
    let listed = joining.join(", ");
    faults::OFFLOADS_JOIN
        .found(format!("{name} joins or cuts segments: {listed}"))
        .with("IF", name)
        .with("OFFLOADS", &switches.join(" "))
}

type StationLookup<'a> = &'a dyn Fn(Ipv4Addr) -> io::Result<Vec<StationAddress>>;

/// Other stations on the link that have an address of ours.
pub(super) fn addresses(system: &System, facts: &InterfaceFacts, ask: StationLookup<'_>) -> Finding {
    let name = &facts.name;
    if let Some(address) = refused_by_kernel(system, name) {
        let said = format!("{name}: another host has {address}, and the kernel does not use it");
        return faults::DUPLICATE.found(said);
    }
    for address in facts.unique() {
        let IpAddr::V4(address) = address else { continue };
        match ask(address).as_deref() {
            Ok([]) => {}
            Ok([other, ..]) => {
                return faults::DUPLICATE.found(format!("{name}: the station {other} has {address}, too"));
            }
            Err(error) => return faults::DUPLICATE.skipped(format!("{name}: {error}")),
        }
    }
    match facts.addresses.len() {
        0 => faults::DUPLICATE.skipped(format!("{name} has no address")),
        _ => faults::DUPLICATE.ok(format!("{name}: no other station has {}", facts.addresses.join(", "))),
    }
}

/// An address of IPv6 that the kernel gave up, since another host had it.
fn refused_by_kernel(system: &System, name: &str) -> Option<String> {
    let rows = system.read("proc/net/if_inet6")?;
    rows.lines().find_map(|row| {
        let words: Vec<_> = row.split_whitespace().collect();
        let [address, _, _, _, flags, device] = words[..] else { return None };
        let is_refused = u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & DUPLICATE != 0);
        let number = u128::from_str_radix(address, 16).ok()?;
        (device == name && is_refused).then(|| std::net::Ipv6Addr::from(number).to_string())
    })
}

/// An interface of a host. The machine that is alone has no name.
#[derive(Clone, Copy, Debug)]
pub(super) struct InterfacePlace<'a> {
    pub host: &'a str,
    /// The place of the host, as the inventory has it.
    pub(super) place_m: Option<[i32; 2]>,
    pub(super) facts: &'a InterfaceFacts,
}

impl InterfacePlace<'_> {
    fn name(&self) -> String {
        if self.host.is_empty() {
            return self.facts.name.clone();
        }
        format!("{} {}", self.host, self.facts.name)
    }
}

/// Packets of a mesh fit all its interfaces, or none of them is sure.
pub(super) fn same_mtu(places: &[InterfacePlace<'_>]) -> Option<Finding> {
    let known: Vec<_> = places.iter().filter_map(|place| Some((place.facts.mtu?, *place))).collect();
    let (least, _) = known.iter().min_by_key(|(mtu, _)| *mtu)?;
    let (most, larger) = known.iter().max_by_key(|(mtu, _)| *mtu)?;
    if least == most {
        return Some(faults::MTU_DIFFERS.ok(format!("{least} bytes at all interfaces")));
    }
    let all: Vec<_> = known.iter().map(|(mtu, place)| format!("{} {mtu}", place.name())).collect();
    let found = faults::MTU_DIFFERS.found(format!("interfaces differ in it: {}", all.join(", ")));
    Some(found.with("IF", &larger.facts.name).with("MTU", &least.to_string()))
}

/// RTS is off at an interface, and a neighbour hears a station that it does not hear.
pub(super) fn hidden(places: &[InterfacePlace<'_>]) -> Vec<Finding> {
    let finding = |at: &InterfacePlace<'_>| {
        let own = at.facts.station.as_ref()?;
        let is_heard = |station: &String| station == own || at.facts.hears.contains(station);
        let near = places.iter().filter(|near| near.facts.station.as_ref().is_some_and(is_heard));
        let found = near.flat_map(|near| near.facts.hears.iter().map(move |station| (near, station)));
        let (near, far) = found.into_iter().find(|(_, station)| !is_heard(station))?;
        let (at_name, near) = (at.name(), near.name());
        let said =
            format!("{at_name}: RTS is off, expected a size: {near} hears {far}, which it does not hear");
        Some(faults::RTS_HIDDEN.found(said).with("IF", &at.facts.name))
    };
    places.iter().filter(|place| place.facts.rts.as_deref() == Some("off")).filter_map(finding).collect()
}

/// A coverage class that stands for less than the distance to a station that the interface hears.
pub(super) fn uncovered(places: &[InterfacePlace<'_>]) -> Vec<Finding> {
    let finding = |at: &InterfacePlace<'_>| {
        let (class, [x, y]) = (u64::from(at.facts.coverage_class?), at.place_m?);
        let is_heard = |station: &String| at.facts.hears.contains(station);
        let heard = places.iter().filter(|far| far.facts.station.as_ref().is_some_and(is_heard));
        let squared = |one: i32, other: i32| (i64::from(one) - i64::from(other)).unsigned_abs().pow(2);
        let metres = heard.filter_map(|far| far.place_m.map(|to| squared(x, to[0]) + squared(y, to[1])));
        let metres = metres.max()?.isqrt();
        let needed = metres.div_ceil(CLASS_M);
        let name = at.name();
        let said =
            format!("{name}: its coverage class is {class}, expected {needed}: a station is {metres} m away");
        let found = faults::COVERAGE_SHORT.found(said).with("IF", &at.facts.name);
        let found = found.with("METRES", &metres.to_string()).with("CLASS", &needed.to_string());
        (needed > class.max(1)).then_some(found)
    };
    places.iter().filter_map(finding).collect()
}

/// Addresses that two hosts have.
pub(super) fn duplicates(places: &[InterfacePlace<'_>]) -> Vec<Finding> {
    let mut holders: BTreeMap<String, Vec<InterfacePlace<'_>>> = BTreeMap::new();
    for place in places {
        let stations = place.facts.station.iter().cloned();
        for address in place.facts.unique().map(|address| address.to_string()).chain(stations) {
            holders.entry(address).or_default().push(*place);
        }
    }
    let shared = holders.iter().filter(|(_, of)| of.iter().any(|place| place.host != of[0].host));
    let finding = |(address, of): (&String, &Vec<InterfacePlace<'_>>)| {
        let names: Vec<_> = of.iter().map(InterfacePlace::name).collect();
        faults::DUPLICATE.found(format!("{address}: {}", names.join(", ")))
    };
    shared.map(finding).collect()
}
