//! A bridge by the kernel's description: its ports, its Ethernet addresses, its isolated ports, and the tables of nft
//! that filter its frames.
//!
//! Our own table keeps the kernel from carrying packets that are read here. A process owns it (`flags owner`): the
//! kernel removes the table when that process ends, and the process ends with ours for any reason.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::{fmt, io};

use hopwise_core::StationAddress;

use super::BridgeConfig;
use crate::firewall::OURS;
use crate::netlink::message::{NetlinkReply, attribute, word};
use crate::netlink::own::{HEADER, each_link};
use crate::nft::{OwnedTable, in_a_name, ruleset};
use crate::raw::ethernet::Mac;

/// Attributes of a bridge, and of a port (linux/if_link.h).
const VLAN_FILTERING: u16 = 7;
const ISOLATED: u16 = 33;

/// A bridge by the kernel's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bridge {
    pub(super) name: String,
    pub(super) ports: BTreeSet<String>,
    isolated: BTreeSet<String>,
    filters_vlans: bool,
    /// Addresses of the kernel's own: of the ports, of the bridge, and of devices on top of it.
    pub(super) own: BTreeSet<Mac>,
}

/// The bridge of a port; `None` if the device is no port.
pub(super) fn of(device: &str) -> io::Result<Option<Bridge>> {
    Ok(among(&dump()?, device))
}

impl Bridge {
    /// The reason why a proxy must not carry the TCP between these two ports; `None` if it may.
    pub(super) fn obstacle(&self, wire: &str, radio: &str) -> Option<String> {
        let name = &self.name;
        let others: Vec<_> =
            self.ports.iter().filter(|port| ![wire, radio].contains(&port.as_str())).cloned().collect();
        if !self.ports.contains(radio) {
            Some(format!("{radio} is no port of its bridge {name}: expected both as ports of one bridge"))
        } else if !others.is_empty() {
            let others = others.join(", ");
            Some(format!(
                "its bridge {name} has other ports, too: {others}; expected {wire} and {radio} alone"
            ))
        } else if [wire, radio].iter().all(|port| self.isolated.contains(*port)) {
            Some(format!(
                "{wire} and {radio} are isolated from each other: expected one that is not `isolated`"
            ))
        } else if self.filters_vlans {
            Some(format!("its bridge {name} filters VLANs: expected one with `vlan_filtering 0`"))
        } else {
            None
        }
    }
}

impl fmt::Display for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" ");
        let own: BTreeSet<_> = self.own.iter().map(|mac| StationAddress(*mac).to_string()).collect();
        write!(f, "{} of {}, with {}", self.name, join(&self.ports), join(&own))?;
        if !self.isolated.is_empty() {
            write!(f, ", isolated {}", join(&self.isolated))?;
        }
        f.write_str(if self.filters_vlans { ", filters VLANs" } else { "" })
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct PortDevice {
    index: u32,
    name: String,
    mac: Option<Mac>,
    lower: Option<u32>,
    master: Option<u32>,
    is_bridge: bool,
    filters_vlans: bool,
    is_isolated: bool,
}

fn among(devices: &[PortDevice], device: &str) -> Option<Bridge> {
    let master = devices.iter().find(|known| known.name == device)?.master?;
    let bridge = devices.iter().find(|known| known.index == master && known.is_bridge)?;
    let ports = || devices.iter().filter(|known| known.master == Some(master));
    let above = devices.iter().filter(|known| known.lower == Some(master));
    Some(Bridge {
        name: bridge.name.clone(),
        ports: ports().map(|port| port.name.clone()).collect(),
        isolated: ports().filter(|port| port.is_isolated).map(|port| port.name.clone()).collect(),
        filters_vlans: bridge.filters_vlans,
        own: ports().chain([bridge]).chain(above).filter_map(|known| known.mac).collect(),
    })
}

fn dump() -> io::Result<Vec<PortDevice>> {
    let mut devices = Vec::new();
    each_link(|heard| devices.extend(read(heard)))?;
    Ok(devices)
}

pub(crate) fn read(heard: &NetlinkReply<'_>) -> Option<PortDevice> {
    let attributes = heard.body.get(HEADER..)?;
    let number = |kind| attribute(attributes, kind).and_then(|value| word(value, 0));
    let info = attribute(attributes, libc::IFLA_LINKINFO).unwrap_or_default();
    let flag = |of: u16, kind: u16| {
        let data = attribute(info, of).unwrap_or_default();
        attribute(data, kind).and_then(<[u8]>::first).is_some_and(|value| *value != 0)
    };
    let is_bridge = attribute(info, libc::IFLA_INFO_KIND).is_some_and(|kind| kind == b"bridge\0");
    Some(PortDevice {
        index: word(heard.body, 4)?,
        name: String::from_utf8_lossy(attribute(attributes, libc::IFLA_IFNAME)?.strip_suffix(&[0])?)
            .into_owned(),
        mac: attribute(attributes, libc::IFLA_ADDRESS).and_then(|mac| mac.try_into().ok()),
        // A device of another namespace may have the number of one here.
        lower: number(libc::IFLA_LINK).filter(|_| attribute(attributes, libc::IFLA_LINK_NETNSID).is_none()),
        master: number(libc::IFLA_MASTER),
        is_bridge,
        filters_vlans: is_bridge && flag(libc::IFLA_INFO_DATA, VLAN_FILTERING),
        is_isolated: flag(libc::IFLA_INFO_SLAVE_DATA, ISOLATED),
    })
}

#[derive(Debug)]
pub(super) struct BlockedPackets(OwnedTable);

impl BlockedPackets {
    pub(super) fn set(config: &BridgeConfig, own: &[Mac]) -> io::Result<BlockedPackets> {
        OwnedTable::set(&table(config), &chains(config, own)).map(BlockedPackets)
    }

    /// Returns whether the table still exists.
    pub(super) fn stands(&mut self) -> bool {
        self.0.stands()
    }
}

fn table(config: &BridgeConfig) -> String {
    format!("netdev hopwise_bridge_{}", in_a_name(&config.wire))
}

/// The chains are at ingress, after packet sockets have their copy and before the bridge. There a tagged frame has the
/// type of its tag: a frame of a VLAN is never blocked.
fn chains(config: &BridgeConfig, own: &[Mac]) -> String {
    let own: Vec<_> = own.iter().map(|mac| StationAddress(*mac).to_string()).collect();
    let own = own.join(", ");
    let chain = |name: &str, device: &str, end: &str| {
        let mut chain = format!("chain {name} {{ type filter hook ingress device \"{device}\" priority 0; ");
        for network in &config.mobiles {
            let (family, tcp) = if network.address().is_ipv4() {
                ("ip", "ether type ip ip protocol tcp")
            } else {
                ("ip6", "ether type ip6 ip6 nexthdr tcp")
            };
            // Writing to a String does not fail.
            let _ = write!(chain, "ether daddr != {{ {own} }} {tcp} {family} {end} {network} drop; ");
        }
        chain + "}; "
    };
    chain("wire", &config.wire, "daddr") + &chain("radio", &config.radio, "saddr")
}

/// The administrator's tables for bridged frames, and for these devices, by their families and names.
pub(super) fn beside(devices: &[&str]) -> io::Result<Vec<String>> {
    let (bridge, netdev) = (ruleset(Some("bridge"))?, ruleset(Some("netdev"))?);
    let of_bridge = tables(&bridge, |chain| chain.contains(" hook "));
    let on_devices = tables(&netdev, |chain| {
        // nft quotes a single device, and none of several.
        let mut words = chain.split(|letter: char| letter.is_whitespace() || "\",{}".contains(letter));
        chain.contains(" hook ") && words.any(|word| devices.contains(&word))
    });
    Ok(of_bridge.into_iter().chain(on_devices).collect())
}

/// The tables with a wanted line, in a listing of nft.
fn tables(listed: &str, is_wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let (mut found, mut table) = (BTreeSet::new(), "");
    for line in listed.lines() {
        if let Some(name) = line.strip_prefix("table ") {
            table = name.split(" {").next().unwrap_or(name);
        } else if is_wanted(line) && !table.contains(OURS) {
            found.insert(table.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::message::{NetlinkMessage, messages};

    impl Bridge {
        pub(in crate::bridge) fn of_ports(name: &str, ports: &[&str]) -> Bridge {
            Bridge {
                name: name.to_owned(),
                ports: ports.iter().map(|port| (*port).to_owned()).collect(),
                isolated: BTreeSet::new(),
                filters_vlans: false,
                own: BTreeSet::new(),
            }
        }
    }

    fn device(index: u32, name: &str, master: Option<u32>) -> PortDevice {
        PortDevice {
            index,
            name: name.to_owned(),
            mac: Some([index as u8; 6]),
            master,
            ..PortDevice::default()
        }
    }

    fn devices() -> Vec<PortDevice> {
        let bridge = PortDevice { is_bridge: true, ..device(1, "br0", None) };
        vec![bridge, device(2, "wire", Some(1)), device(3, "radio", Some(1)), device(4, "lan", None)]
    }

    #[test]
    fn a_bridge_is_known_by_its_ports_with_what_stands_on_it() {
        let above = PortDevice { lower: Some(1), ..device(5, "macvlan0", None) };
        let devices = [devices(), vec![above]].concat();
        let bridge = among(&devices, "wire").expect("it is a port");
        assert_eq!(bridge.ports, BTreeSet::from(["wire", "radio"].map(str::to_owned)));
        assert_eq!(bridge.own, BTreeSet::from([1, 2, 3, 5].map(|index| [index; 6])));
        assert_eq!(bridge.obstacle("wire", "radio"), None);
        assert!(bridge.to_string().starts_with("br0 of radio wire, with 01:01:01:01:01:01 02:"), "{bridge}");
        assert_eq!(among(&devices, "lan"), None);
        assert_eq!(among(&devices, "nosuch"), None);
    }

    #[test]
    fn a_device_on_top_of_one_in_another_namespace_does_not_stand_on_the_bridge() {
        let lower = |elsewhere: Option<u32>| {
            let message =
                NetlinkMessage::new(16, 0, 0).fixed(&[0; HEADER]).attribute(libc::IFLA_IFNAME, b"far\0");
            let message = message.attribute(libc::IFLA_LINK, &1_u32.to_ne_bytes());
            let message = elsewhere.into_iter().fold(message, |message, namespace| {
                message.attribute(libc::IFLA_LINK_NETNSID, &namespace.to_ne_bytes())
            });
            let bytes = message.finish();
            messages(&bytes).next().and_then(|heard| read(&heard)).expect("a device").lower
        };
        assert_eq!(lower(None), Some(1));
        assert_eq!(lower(Some(0)), None);
    }

    #[test]
    fn what_stands_in_the_way_of_carrying_beside_a_bridge_is_named() {
        let obstacle = |change: fn(&mut Vec<PortDevice>)| {
            let mut devices = devices();
            change(&mut devices);
            among(&devices, "wire").expect("it is a port").obstacle("wire", "radio")
        };
        let isolated = |devices: &mut Vec<PortDevice>| devices[1].is_isolated = true;
        assert_eq!(obstacle(isolated), None, "an isolated port reaches one that is not");
        let says = |change, expected: &str| {
            let said = obstacle(change).expect("an obstacle");
            assert!(said.contains(expected), "{said}");
        };
        says(|devices| devices[3].master = Some(1), "br0 has other ports, too: lan");
        says(|devices| devices[2].master = None, "radio is no port");
        says(
            |devices| devices.iter_mut().for_each(|port| port.is_isolated = true),
            "isolated from each other",
        );
        says(|devices| devices[0].filters_vlans = true, "filters VLANs");
    }

    #[test]
    fn the_kernel_describes_its_devices() {
        let devices = dump().expect("it can be asked");
        assert!(devices.iter().any(|device| device.name == "lo" && device.index == 1), "{devices:?}");
    }

    #[test]
    fn what_is_blocked_is_the_mobiles_tcp_and_never_what_is_for_the_bridge_itself() {
        let mobiles = ["10.9.0.0/24", "fd09::/64"].map(|text| text.parse().expect("a prefix")).to_vec();
        let config = BridgeConfig { wire: "eth0.1".into(), radio: "radio".into(), mobiles };
        assert_eq!(table(&config), "netdev hopwise_bridge_eth0_2e1");
        let script = chains(&config, &[[2, 0, 0, 0, 0, 1]]);
        assert_eq!(script.lines().count(), 1);
        for rule in [
            "ether daddr != { 02:00:00:00:00:01 } ether type ip ip protocol tcp ip daddr 10.9.0.0/24 drop;",
            "ether daddr != { 02:00:00:00:00:01 } ether type ip6 ip6 nexthdr tcp ip6 saddr fd09::/64 drop;",
        ] {
            assert!(script.contains(rule), "{rule} in {script}");
        }
    }

    const LISTED: &str = "\
table netdev f {
\tchain c {
\t\ttype filter hook ingress device \"radio\" priority 10; policy accept;
\t\tip protocol tcp drop
\t}
}
table netdev hopwise_bridge_wire { # progname nft
\tchain wire {
\t\ttype filter hook ingress device \"wire\" priority filter; policy accept;
\t}
}
table bridge without_a_hook {
\tchain c {
\t}
}
";

    #[test]
    fn a_table_counts_by_its_hook_and_ours_does_not() {
        assert_eq!(tables(LISTED, |line| line.contains(" hook ")), BTreeSet::from(["netdev f".to_owned()]));
        assert!(tables(LISTED, |line| line.contains("\"lan\"")).is_empty());
    }
}
