//! A namespace and a simulated Wi-Fi radio for each node, and their ad hoc network. Dropping it removes all of this.

use std::fmt::Display;
use std::fs;
use std::path::Path;
use std::process::Command;

use hopwise_air::phy::{Phy, Rate};
use hopwise_air::radiotap::CELL;
use hopwise_core::ip::Prefix;
use hopwise_core::{Instant, StationAddress};
use hopwise_host::Namespace;
use hopwise_host::netlink::hwsim::{Hwsim, Mac, legacy_rate};
use hopwise_host::netlink::{self, DeviceSettings, batman_adv};
use hopwise_host::nl80211::Nl80211;
use hopwise_host::routing::KernelRoutes;
use hopwise_lab::live::air::{self as live, LiveStation, RouteStep};
use hopwise_lab::scenario::Prepared;
use hopwise_mesh::LiveRouter;

use crate::air::netns::stations::{AnyError, ServedAddresses, name_of, set_routes, set_switches};
use hopwise_daemon::failure::Failure;

const MTU: u16 = 1500;
/// The first channel of 2.4 GHz, whatever frequency the scenario's propagation is computed for.
pub(super) const MHZ: u32 = 2_412;
/// The name of the network.
const NAME: &str = "hopwise";
const MONITOR: &str = "mon0";
/// The interface of a radio that is left to the user's programs, as they know it.
const BARE: &str = "wlan0";
/// The device of batman-adv, and the bytes that its headers add to a packet.
const BATMAN: &str = "bat0";
const BATMAN_HEADERS: u16 = 32;

/// What nodes have beside their radio.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RadioSetup {
    pub(crate) serves: ServedAddresses,
    /// A monitor interface, which hears frames for all nodes.
    pub(crate) has_monitors: bool,
    /// Programs of the user configure the radio, and join networks.
    pub(crate) is_bare: bool,
}

// Dropped in this order: routes, then the namespaces. The radios go with the medium's socket.
#[derive(Debug)]
pub(super) struct HwsimField {
    _routes: Vec<KernelRoutes>,
    nodes: Vec<FieldNode>,
    phy: Phy,
    /// The part of its nodes that finds routes.
    pub(super) router: LiveRouter,
}

#[derive(Debug)]
struct FieldNode {
    namespace: Namespace,
    device: String,
    mac: Mac,
    /// The radios that it hears without loss of time, as far as the scenario's reach tells.
    neighbours: Vec<Mac>,
}

impl HwsimField {
    /// Makes the namespaces and the radios, which have not joined anything yet.
    pub(super) fn open(prepared: &Prepared, hwsim: &Hwsim, setup: RadioSetup) -> Result<HwsimField, Failure> {
        let plan = &prepared.plan;
        let stations = live::stations(plan);
        let macs: Vec<_> = stations.iter().map(|station| (station.address, station.mac)).collect();
        let router = plan.routing.protocol.live;
        let mut field = HwsimField { _routes: Vec::new(), nodes: Vec::new(), phy: plan.phy, router };
        for ((name, station), steps) in prepared.names.iter().zip(&stations).zip(live::routes(plan)) {
            let failed =
                |error: &dyn Display| Failure::failed("make a node", format_args!("{name}: {error}"));
            if Namespace::exists(name) {
                return Err(failed(
                    &"a namespace of that name is there already: remove it, or rename the node",
                ));
            }
            let namespace = Namespace::create(name).map_err(|error| failed(&error))?;
            let near = steps.iter().filter(|step| step.to == step.via).map(|step| step.to);
            let neighbours = near.filter_map(|near| macs.iter().find(|(known, _)| *known == near));
            let own = station.devices.first().map_or_else(String::new, |device| name_of(device.link, true));
            let device = if setup.is_bare { BARE.to_owned() } else { own };
            let neighbours = neighbours.map(|(_, mac)| *mac).collect();
            // From here on it is removed with the field.
            field.nodes.push(FieldNode { namespace, device, mac: station.mac, neighbours });
            let Some(node) = field.nodes.last() else { continue };
            hwsim.make_radio(name, station.mac).map_err(|error| failed(&error))?;
            node.furnish(name, router, setup).map_err(|error| failed(&error))?;
            let serves = setup.serves;
            let set = node.namespace.run(|| match setup.is_bare {
                true => Ok(netlink::set_up("lo", true).map(|()| None)?),
                false => node.configure(station, &routed(router, &steps), (router, serves)),
            });
            let set = set.map_err(|error| failed(&error))?;
            field._routes.extend(set.map_err(|error| failed(&error))?);
        }
        Ok(field)
    }

    pub(super) fn namespace(&self, node: u32) -> &Namespace {
        &self.nodes[node as usize].namespace
    }

    /// Joins all nodes to the network. Frames have to be carried meanwhile.
    pub(super) fn join(&self) -> Result<(), Failure> {
        let cell = StationAddress(CELL).to_string();
        let (rate, basic) = (megabits(self.phy.data), megabits(self.phy.basic));
        for node in &self.nodes {
            let frequency = MHZ.to_string();
            // With 802.11n the kernel aggregates frames and counts no retries: the medium does so by itself, as devices
            // do. A fixed BSSID keeps the cells one.
            let words = match self.router {
                LiveRouter::Mac80211 => {
                    vec!["mesh", "join", NAME, "freq", &frequency, "NOHT", "mcast-rate", &basic]
                }
                _ => {
                    vec!["ibss", "join", NAME, &frequency, "NOHT", "fixed-freq", &cell, "mcast-rate", &basic]
                }
            };
            let joined = node.iw(&["set", "bitrates", "legacy-2.4", &rate]).and_then(|()| node.iw(&words));
            joined.map_err(|error| {
                Failure::failed("join the network", format_args!("{}: {error}", node.name()))
            })?;
        }
        Ok(())
    }

    /// The nodes that have not heard all of their neighbours. Nodes of 802.11s have to be peers as well, and nodes of
    /// batman-adv have to know each node.
    pub(super) fn deaf(&self) -> Result<Vec<&str>, Failure> {
        let all = self.nodes.iter().map(|node| node.mac);
        let mut deaf = Vec::new();
        for node in &self.nodes {
            let known = match self.router {
                LiveRouter::Mac80211 => node.peers(),
                LiveRouter::BatmanAdv => node.originators(),
                _ => node.stations(),
            };
            let known = known.map_err(|error| {
                Failure::failed("ask who hears whom", format_args!("{}: {error}", node.name()))
            })?;
            let is_known = |mac: Mac| known.contains(&StationAddress(mac));
            let knows_its_own = match self.router {
                LiveRouter::BatmanAdv => all.clone().filter(|mac| *mac != node.mac).all(is_known),
                _ => node.neighbours.iter().copied().all(is_known),
            };
            if !knows_its_own {
                deaf.push(node.name());
            }
        }
        Ok(deaf)
    }
}

/// The steps of a node's kernel. Below IP a mesh is one hop.
fn routed(router: LiveRouter, steps: &[RouteStep]) -> Vec<RouteStep> {
    match router {
        LiveRouter::Nobody => steps.to_vec(),
        LiveRouter::BatmanAdv | LiveRouter::Mac80211 => {
            steps.iter().map(|step| RouteStep { via: step.to, ..*step }).collect()
        }
        LiveRouter::Daemon | LiveRouter::Simulation => Vec::new(),
    }
}

impl FieldNode {
    fn name(&self) -> &str {
        self.namespace.name()
    }

    /// The stations that its radio hears.
    fn stations(&self) -> Result<Vec<StationAddress>, AnyError> {
        self.namespace.run(|| {
            let stations = Nl80211::open()?.stations(netlink::index_of(&self.device)?, Instant::ZERO)?;
            Ok(stations.iter().map(|station| station.station).collect())
        })?
    }

    /// The stations of 802.11s that are its peers.
    fn peers(&self) -> Result<Vec<StationAddress>, AnyError> {
        self.namespace.run(|| Ok(Nl80211::open()?.peers(netlink::index_of(&self.device)?)?))?
    }

    /// The nodes of batman-adv that have told it of their addresses.
    fn originators(&self) -> Result<Vec<StationAddress>, AnyError> {
        self.namespace.run(|| Ok(batman_adv::originators(netlink::index_of(BATMAN)?)?))?
    }

    /// Moves the radio of that name here, and names its interface.
    fn furnish(&self, radio: &str, router: LiveRouter, setup: RadioSetup) -> Result<(), AnyError> {
        let interfaces = Path::new("/sys/class/ieee80211").join(radio).join("device/net");
        let entry = fs::read_dir(&interfaces)?.next().ok_or("the radio has no interface")??;
        let interface = entry.file_name().to_string_lossy().into_owned();
        run("iw", &["phy", radio, "set", "netns", "name", self.name()])?;
        run("ip", &["-n", self.name(), "link", "set", &interface, "name", &self.device])?;
        if !setup.is_bare {
            self.iw(&["set", "type", if router == LiveRouter::Mac80211 { "mp" } else { "ibss" }])?;
        }
        if setup.has_monitors {
            self.iw(&["interface", "add", MONITOR, "type", "monitor"])?;
            run("ip", &["-n", self.name(), "link", "set", MONITOR, "up"])?;
        }
        Ok(())
    }

    /// Runs inside its namespace. Without steps a daemon has the routes.
    fn configure(
        &self,
        station: &LiveStation,
        steps: &[RouteStep],
        (router, serves): (LiveRouter, ServedAddresses),
    ) -> Result<Option<KernelRoutes>, AnyError> {
        set_switches()?;
        netlink::set_up("lo", true)?;
        let settings = DeviceSettings {
            mtu: Some(MTU),
            addresses: vec![Prefix::host(station.address)],
            ..DeviceSettings::default()
        };
        let mut device = self.device.as_str();
        if router == LiveRouter::BatmanAdv {
            device = BATMAN;
            let wide = DeviceSettings { mtu: Some(MTU + BATMAN_HEADERS), ..DeviceSettings::default() };
            netlink::configure(&self.device, &wide)?;
            run("ip", &["link", "add", BATMAN, "type", "batadv"])?;
            // No node has a bridge here.
            batman_adv::end_avoidance_of_bridge_loops(netlink::index_of(BATMAN)?)?;
            run("ip", &["link", "set", &self.device, "master", BATMAN])?;
        }
        netlink::configure(device, &settings)?;
        let has_steps = !steps.is_empty();
        has_steps.then(|| set_routes((station, |_| device.to_owned()), steps, serves)).transpose()
    }

    fn iw(&self, words: &[&str]) -> Result<(), AnyError> {
        run("ip", &[&["netns", "exec", self.name(), "iw", "dev", &self.device], words].concat())
    }
}

/// As `iw` writes the rate that the kernel knows in its place.
fn megabits(rate: Rate) -> String {
    (legacy_rate(rate.bits_per_second).0 as f64 / 1e6).to_string()
}

fn run(program: &str, words: &[&str]) -> Result<(), AnyError> {
    let output = Command::new(program).args(words).output();
    let output = output.map_err(|error| format!("run `{program}` (Debian: iproute2 and iw): {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("{program} {}: {said}", words.join(" ")).into())
}
