//! The file of `hopwise mesh up`: the keys, and the checks that need several keys.

use hopwise_core::StationAddress;
use hopwise_core::ip::Prefix;
use hopwise_host::bringup::{Network, WantedInterface, WantedState};
use hopwise_host::nl80211::radio::{InterfaceType, MeshCell, Rates};
use hopwise_lab::file_kind;
use hopwise_lab::keys;
use hopwise_lab::located::{Checked, Document, Refusal, YamlPath};
use hopwise_lab::units::Rate;
use schemars::JsonSchema;
use serde::Deserialize;

use hopwise_daemon::check_interface;

mod channel;

use channel::ChannelWidth;

/// The most interfaces of a file, and the most addresses of an interface. Each is a step of its own, and undone alone.
const MOST: usize = 256;

/// The interfaces of a mesh on one machine.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InterfacesFile {
    /// Country whose radio rules hold on this machine, as two letters (default: the one that is set).
    country: Option<String>,
    /// Synchronisation of this machine's clock, as by NTP: only then the times of several nodes can be compared
    /// (default warn).
    #[serde(default)]
    clock: ClockDemand,
    /// Interfaces of the mesh, at least one. Interfaces that are not in the list stay as they are.
    interfaces: Vec<Interface>,
}

/// The demand on the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ClockDemand {
    /// A clock that is not synchronised is refused.
    Require,
    /// It draws a warning.
    #[default]
    Warn,
    /// It is not looked at.
    Ignore,
}

/// An interface.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Interface {
    /// Name of the interface.
    name: String,
    /// Mode of the interface.
    mode: InterfaceMode,
    /// Name of the network, up to 32 bytes: the SSID, or the mesh ID with mode: mesh (required by modes ibss and mesh).
    ssid: Option<String>,
    /// Channel by its number, in the bands of 2.4 and 5 GHz (required by modes ibss and mesh, or `frequency`).
    #[schemars(extend("x-range" = "1 to 177", "x-unit" = "no unit"))]
    channel: Option<u32>,
    /// Channel by the middle of its first 20 MHz (default: the frequency of `channel`).
    #[schemars(extend("x-range" = "2412 to 7115", "x-unit" = "MHz"))]
    frequency: Option<u32>,
    /// Width of the channel. With 802.11n (all but noht, 5mhz and 10mhz) frames are aggregated, and most drivers count
    /// no retries (default noht).
    #[serde(default)]
    width: ChannelWidth,
    /// BSSID of the ad hoc network, equal at all nodes: without it, nodes that begin at once form separate networks
    /// (default: the BSSID of a network in reach, or a random one).
    bssid: Option<String>,
    /// Rates of 802.11a, b or g at which data is sent; one rate fixes it (default: all that the radio has).
    #[schemars(extend("x-range" = "1mbit to 54mbit"))]
    rates: Option<Vec<Rate>>,
    /// Rates of 802.11n at which data is sent, by their index (default: all that the radio has).
    #[schemars(extend("x-range" = "0 to 31", "x-unit" = "no unit"))]
    mcs: Option<Vec<u8>>,
    /// Rates that every node of the network must have (default: the kernel's choice).
    #[schemars(extend("x-range" = "1mbit to 54mbit"))]
    basic_rates: Option<Vec<Rate>>,
    /// Rate of broadcasts, such as routing messages (default: the lowest basic rate).
    #[schemars(extend("x-range" = "1mbit to 54mbit"))]
    multicast_rate: Option<Rate>,
    /// Transmit power (default: the driver's choice).
    #[schemars(extend("x-range" = "0 to 30", "x-unit" = "dBm"))]
    tx_power: Option<u32>,
    /// Power save: the radio sleeps between frames, which delays them.
    #[serde(default)]
    power_save: bool,
    /// Forwarding by 802.11s itself (mode: mesh), so that the network is a single hop for IP. Leave it off where
    /// `hopwise route` finds the ways.
    #[serde(default)]
    mesh_forwarding: bool,
    /// Addresses with their networks; all further addresses of this interface are removed (default: it keeps its
    /// addresses).
    addresses: Option<Vec<String>>,
    /// Longest packet (default: it stays as it is).
    #[schemars(extend("x-range" = "68 to 65535", "x-unit" = "bytes"))]
    mtu: Option<u32>,
    /// Forwarding of packets for other hosts; IPv6 is forwarded as well if `addresses` has an IPv6 address (default: it
    /// stays as it is).
    forwarding: Option<bool>,
    /// Offloads that join or cut segments (GRO, LRO, TSO, GSO) stay as they are. With false they are turned off: a
    /// captured or counted segment is then one on the air, and each takes more of the processor.
    #[serde(default = "as_they_are")]
    offloads: bool,
    /// Programs that configure interfaces (NetworkManager, systemd-networkd, dhcpcd, wpa_supplicant) keep this one.
    /// With false they are told to leave it alone.
    #[serde(default)]
    managed: bool,
}

fn as_they_are() -> bool {
    true
}

/// The mode of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum InterfaceMode {
    /// Ad hoc network (IBSS): nodes reach the nodes that they hear.
    Ibss,
    /// Mesh of 802.11s.
    Mesh,
    /// No radio: an Ethernet, a bridge, a veth.
    Wired,
}

/// The configuration, checked.
#[derive(Clone, Debug)]
pub(crate) struct BringupConfig {
    pub(super) clock: ClockDemand,
    pub(super) wanted: WantedState,
}

hopwise_lab::schema_of!(InterfacesFile, checked by read);

pub(super) fn read(document: &Document) -> Checked<BringupConfig> {
    file_kind::MESH.check(document)?;
    keys::check(document, json_schema())?;
    let file: InterfacesFile = document.read()?;
    let root = YamlPath::root();
    if let Some(code) = &file.country {
        check_country(document, &root.key("country"), code)?;
    }
    if file.interfaces.is_empty() {
        let accepted = "at least one, such as [{ name: wlan0, mode: ibss, ssid: hopwise, channel: 1 }]";
        return Err(document.refuse(&root.key("interfaces"), "there is no interface", accepted));
    }
    bounded(document, &root.key("interfaces"), file.interfaces.len())?;
    let mut interfaces: Vec<WantedInterface> = Vec::new();
    for (nth, interface) in file.interfaces.iter().enumerate() {
        let at = InterfaceKeys { document, at: root.key("interfaces").index(nth) };
        let name = &interface.name;
        check_interface(document, &at.key("name"), name)?;
        if interfaces.iter().any(|other| other.name == *name) {
            return Err(document.refuse(&at.key("name"), format!("`{name}` is there twice"), "each once"));
        }
        interfaces.push(at.wanted(interface)?);
    }
    Ok(BringupConfig { clock: file.clock, wanted: WantedState { country: file.country, interfaces } })
}

fn bounded(document: &Document, at: &YamlPath, count: usize) -> Checked {
    if count <= MOST {
        return Ok(());
    }
    Err(document.refuse(at, format!("there are {count}"), &format!("at most {MOST}")))
}

fn check_country(document: &Document, at: &YamlPath, code: &str) -> Checked {
    let is_code = code.len() == 2 && code.bytes().all(|letter| letter.is_ascii_uppercase()) || code == "00";
    if is_code {
        return Ok(());
    }
    let accepted =
        "two capital letters of ISO 3166, such as DE or US, or \"00\" for the rules that hold everywhere";
    Err(document.refuse(at, format!("`{code}` is no country"), accepted))
}

/// The place of an interface in the file.
struct InterfaceKeys<'a> {
    document: &'a Document,
    at: YamlPath,
}

impl InterfaceKeys<'_> {
    fn key(&self, key: &str) -> YamlPath {
        self.at.key(key)
    }

    fn refuse(&self, key: &str, problem: impl std::fmt::Display, accepted: &str) -> Box<Refusal> {
        self.document.refuse(&self.key(key), problem, accepted)
    }

    fn wanted(&self, interface: &Interface) -> Checked<WantedInterface> {
        let network = match interface.mode {
            InterfaceMode::Wired => {
                self.without_radio(interface)?;
                None
            }
            InterfaceMode::Ibss => Some(self.network(interface, InterfaceType::IBSS)?),
            InterfaceMode::Mesh => Some(self.network(interface, InterfaceType::MESH)?),
        };
        let addresses =
            interface.addresses.as_ref().map(|addresses| self.addresses(addresses)).transpose()?;
        let has_ipv6 = addresses.iter().flatten().any(|address| address.address().is_ipv6());
        if let Some(mtu) = interface.mtu.filter(|mtu| *mtu < 1280 && has_ipv6) {
            let problem = format!("{mtu} bytes are too few for the addresses of IPv6");
            return Err(self.refuse("mtu", problem, "1280 or more, or no addresses of IPv6"));
        }
        Ok(WantedInterface {
            name: interface.name.clone(),
            network,
            mtu: interface.mtu,
            addresses,
            forwards: interface.forwarding,
            without_offloads: !interface.offloads,
            without_managers: !interface.managed,
        })
    }

    /// A wire has none of these keys.
    fn without_radio(&self, interface: &Interface) -> Checked {
        let given = [
            ("ssid", interface.ssid.is_some()),
            ("channel", interface.channel.is_some()),
            ("frequency", interface.frequency.is_some()),
            ("width", interface.width != ChannelWidth::default()),
            ("bssid", interface.bssid.is_some()),
            ("rates", interface.rates.is_some()),
            ("mcs", interface.mcs.is_some()),
            ("basic_rates", interface.basic_rates.is_some()),
            ("multicast_rate", interface.multicast_rate.is_some()),
            ("tx_power", interface.tx_power.is_some()),
            ("power_save", interface.power_save),
            ("mesh_forwarding", interface.mesh_forwarding),
        ];
        let Some((key, _)) = given.into_iter().find(|(_, is_given)| *is_given) else { return Ok(()) };
        let problem = format!("`{key}` is of a radio, and a wired interface has none");
        Err(self.document.refuse_key(&self.key(key), problem, "mode: ibss or mode: mesh, or no such key"))
    }

    fn network(&self, interface: &Interface, kind: InterfaceType) -> Checked<Network> {
        let channel = channel::of(self, interface)?;
        let cell = MeshCell {
            name: self.ssid(interface)?,
            channel,
            bssid: self.bssid(interface, kind)?,
            basic: channel::legacy_rates(self, "basic_rates", &interface.basic_rates, channel.mhz)?,
            multicast: channel::multicast_rate(self, interface.multicast_rate, channel.mhz)?,
            forwards: interface.mesh_forwarding,
        };
        if interface.mesh_forwarding && kind != InterfaceType::MESH {
            let problem = "an ad hoc network forwards no frames";
            let accepted = "mode: mesh, or no such key";
            return Err(self.document.refuse_key(&self.key("mesh_forwarding"), problem, accepted));
        }
        let rates = Rates {
            legacy: channel::legacy_rates(self, "rates", &interface.rates, channel.mhz)?,
            mcs: channel::mcs(self, interface.mcs.as_deref(), interface.width)?,
        };
        let power = interface.tx_power.map(|dbm| dbm * 100);
        Ok(Network { kind, cell, rates, power, power_save: Some(interface.power_save) })
    }

    fn ssid(&self, interface: &Interface) -> Checked<Vec<u8>> {
        let accepted = "1 to 32 bytes, such as ssid: hopwise";
        let Some(ssid) = &interface.ssid else {
            return Err(self.document.refuse(&self.at, "a network needs a name (`ssid`)", accepted));
        };
        if (1..=32).contains(&ssid.len()) {
            return Ok(ssid.clone().into_bytes());
        }
        Err(self.refuse("ssid", format!("a name of {} bytes", ssid.len()), accepted))
    }

    fn bssid(&self, interface: &Interface, kind: InterfaceType) -> Checked<Option<[u8; 6]>> {
        let Some(text) = &interface.bssid else { return Ok(None) };
        if kind == InterfaceType::MESH {
            let problem = "a mesh of 802.11s has no BSSID: each node has its own address";
            return Err(self.document.refuse_key(&self.key("bssid"), problem, "mode: ibss, or no such key"));
        }
        let accepted = "an address of one station, such as \"02:ca:fe:00:00:01\"";
        let StationAddress(bssid) =
            text.parse().map_err(|error| self.refuse("bssid", format!("`{text}`: {error}"), accepted))?;
        let is_group = bssid[0] & 1 == 1;
        if is_group || bssid == [0; 6] {
            return Err(self.refuse("bssid", format!("`{text}` is the address of a group"), accepted));
        }
        Ok(Some(bssid))
    }

    fn addresses(&self, texts: &[String]) -> Checked<Vec<Prefix>> {
        bounded(self.document, &self.key("addresses"), texts.len())?;
        let mut addresses: Vec<Prefix> = Vec::new();
        for (nth, text) in texts.iter().enumerate() {
            let at = self.key("addresses").index(nth);
            let accepted = "an address with the length of its network, such as 10.0.0.1/24 or fd00::1/64";
            let refuse = |problem: String| self.document.refuse(&at, problem, accepted);
            let address: Prefix = text.parse().map_err(|error| refuse(format!("`{text}`: {error}")))?;
            let ip = address.address();
            if ip.is_unspecified() || ip.is_multicast() || ip.is_loopback() || address.is_broadcast(ip) {
                return Err(refuse(format!("`{text}` is not the address of a host")));
            }
            if addresses.iter().any(|other| other.address() == ip) {
                return Err(refuse(format!("`{text}` is there twice")));
            }
            addresses.push(address);
        }
        Ok(addresses)
    }
}

#[cfg(test)]
mod tests;
