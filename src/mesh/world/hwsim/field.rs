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
use hopwise_host::netlink::hwsim::{Hwsim, Mac};
use hopwise_host::netlink::{self, DeviceSettings};
use hopwise_host::nl80211::Nl80211;
use hopwise_host::routing::KernelRoutes;
use hopwise_lab::live::air::{self as live, Station, Step};
use hopwise_lab::scenario::Prepared;
use hopwise_lab::sim::RoutingPlan;

use crate::failure::Failure;
use crate::mesh::air::stations::{AnyError, Serves, name_of, set_routes, set_switches};

const MTU: u16 = 1500;
/// The first channel of 2.4 GHz, whatever frequency the scenario's propagation is computed for.
pub(super) const MHZ: u32 = 2_412;
const MONITOR: &str = "mon0";

// Dropped in this order: routes, then the namespaces. The radios go with the medium's socket.
#[derive(Debug)]
pub(super) struct Field {
    _routes: Vec<KernelRoutes>,
    nodes: Vec<Node>,
    phy: Phy,
}

#[derive(Debug)]
struct Node {
    namespace: Namespace,
    device: String,
    /// The radios that it hears without loss of time, as far as the scenario's reach tells.
    neighbours: Vec<Mac>,
}

impl Field {
    /// Makes the namespaces and the radios, which have not joined anything yet.
    pub(super) fn open(
        prepared: &Prepared,
        hwsim: &Hwsim,
        (serves, with_monitors): (Serves, bool),
    ) -> Result<Field, Failure> {
        let plan = &prepared.plan;
        let stations = live::stations(plan);
        let macs: Vec<_> = stations.iter().map(|station| (station.address, station.mac)).collect();
        let mut field = Field { _routes: Vec::new(), nodes: Vec::new(), phy: plan.phy };
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
            let device =
                station.devices.first().map_or_else(String::new, |device| name_of(device.link, true));
            let neighbours = neighbours.map(|(_, mac)| *mac).collect();
            // From here on it is removed with the field.
            field.nodes.push(Node { namespace, device, neighbours });
            let Some(node) = field.nodes.last() else { continue };
            hwsim.make_radio(name, station.mac).map_err(|error| failed(&error))?;
            node.furnish(name, with_monitors).map_err(|error| failed(&error))?;
            let is_static = plan.routing == RoutingPlan::Static;
            let steps = is_static.then_some((&steps[..], serves));
            let set = node.namespace.run(|| node.configure(station, steps));
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
            // With 802.11n the kernel aggregates frames and counts no retries. A fixed BSSID keeps the cells one.
            let words =
                ["ibss", "join", "hopwise", &frequency, "NOHT", "fixed-freq", &cell, "mcast-rate", &basic];
            let joined = node.iw(&["set", "bitrates", "legacy-2.4", &rate]).and_then(|()| node.iw(&words));
            joined.map_err(|error| {
                Failure::failed("join the network", format_args!("{}: {error}", node.name()))
            })?;
        }
        Ok(())
    }

    /// The nodes that have not heard all of their neighbours.
    pub(super) fn deaf(&self) -> Vec<&str> {
        let is_deaf = |node: &&Node| {
            let heard =
                node.namespace.run(|| heard_by(&node.device)).ok().and_then(Result::ok).unwrap_or_default();
            !node.neighbours.iter().all(|mac| heard.contains(&StationAddress(*mac)))
        };
        self.nodes.iter().filter(is_deaf).map(Node::name).collect()
    }
}

fn heard_by(device: &str) -> Result<Vec<StationAddress>, AnyError> {
    let stations = Nl80211::open()?.stations(netlink::index_of(device)?, Instant::ZERO)?;
    Ok(stations.iter().map(|station| station.station).collect())
}

impl Node {
    fn name(&self) -> &str {
        self.namespace.name()
    }

    /// Moves the radio of that name here, and names its interface.
    fn furnish(&self, radio: &str, with_monitor: bool) -> Result<(), AnyError> {
        let interfaces = Path::new("/sys/class/ieee80211").join(radio).join("device/net");
        let entry = fs::read_dir(&interfaces)?.next().ok_or("the radio has no interface")??;
        let interface = entry.file_name().to_string_lossy().into_owned();
        run("iw", &["phy", radio, "set", "netns", "name", self.name()])?;
        run("ip", &["-n", self.name(), "link", "set", &interface, "name", &self.device])?;
        self.iw(&["set", "type", "ibss"])?;
        if with_monitor {
            self.iw(&["interface", "add", MONITOR, "type", "monitor"])?;
            run("ip", &["-n", self.name(), "link", "set", MONITOR, "up"])?;
        }
        Ok(())
    }

    /// Runs inside its namespace. Without steps a daemon has the routes.
    fn configure(
        &self,
        station: &Station,
        steps: Option<(&[Step], Serves)>,
    ) -> Result<Option<KernelRoutes>, AnyError> {
        set_switches()?;
        netlink::set_up("lo", true)?;
        let settings = DeviceSettings {
            mtu: Some(MTU),
            addresses: vec![Prefix::host(station.address)],
            ..DeviceSettings::default()
        };
        netlink::configure(&self.device, &settings)?;
        steps.map(|(steps, serves)| set_routes(station, steps, serves)).transpose()
    }

    fn iw(&self, words: &[&str]) -> Result<(), AnyError> {
        run("ip", &[&["netns", "exec", self.name(), "iw", "dev", &self.device], words].concat())
    }
}

/// As `iw` writes a rate.
fn megabits(rate: Rate) -> String {
    (rate.bits_per_second as f64 / 1e6).to_string()
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
