//! A node that is a host of a mesh, on that host: what it needs for its programs, and what it observes around them.
//!
//! Programs over the kernel's TCP have the host's own address and need no root. Programs with agents of ours are behind
//! a TUN device with an address of their own. The kernel forwards between both, and each host has a route to the
//! programs of every other host. A routing daemon sets it or, by the kernel's route to the other host, this process.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use caps::{CapSet, Capability};
use hopwise_core::Instant;
use hopwise_host::netlink::{addresses_of, is_own_address, joining_offloads, name_of, route_to};
use hopwise_host::routing::{HostRoute, KernelRoutes, Switches, is_claimed};
use hopwise_host::{Clock, set_switch};
use hopwise_lab::live::address_of_programs;
use hopwise_lab::live::mesh::{HostObservations, OnMesh};
use hopwise_lab::live::part::NodePart;
use hopwise_lab::machine;
use hopwise_lab::sim::Plan;

use crate::looks::Looking;
use hopwise_daemon::failure::Failure;
use hopwise_daemon::own_files::OwnFolder;
use hopwise_daemon::privileges::Privileges;
use hopwise_inspect::doctor;
use hopwise_node::fleet::here::{names_of_interfaces, with_stations};

/// The bits of the network that has the addresses of programs. A narrower route is one for them.
const NETWORK_BITS: u8 = 9;

/// This host, while it takes part in a run.
#[derive(Debug)]
pub(crate) struct OnHost {
    interface: String,
    clock: Clock,
    began: OnceLock<Instant>,
    looking: Looking,
    /// Routes to the programs of other hosts, and forwarding that was off before. Both go with this.
    _lent: (Option<KernelRoutes>, Option<Switches>),
    kept: Option<OwnFolder>,
}

impl OnHost {
    /// Prepares the host for the node of that number.
    pub(crate) fn open(plan: &Plan, node: u32, mesh: &OnMesh) -> Result<OnHost, Failure> {
        let own =
            *mesh.addresses.get(node as usize).ok_or_else(|| failed("the trial gives it no address"))?;
        let interface = interface_of(own)?;
        let has_agents = plan.arm.has_endpoints();
        let is_end = is_end(plan, node);
        let forwarding = if has_agents && is_end { forwarding(&interface) } else { None };
        if has_agents || !is_end {
            check_forwarding(&interface)?;
        }
        let routes = if has_agents { routes(plan, (node, own), mesh)? } else { None };
        let keeps = mesh.capture && has_agents && is_end;
        let kept = keeps.then(|| OwnFolder::make("hopwise-part-")).transpose();
        let kept = kept.map_err(|error| failed(&format!("make a folder for the capture: {error}")))?;
        let clock = Clock::start();
        let looking = Looking::start(interface.clone(), mesh.addresses.clone(), clock);
        let looking = looking.map_err(Failure::during("start a thread"))?;
        Ok(OnHost { interface, clock, began: OnceLock::new(), looking, _lent: (routes, forwarding), kept })
    }

    /// The run begins now.
    pub(crate) fn begin(&self) {
        let _ = self.began.set(self.clock.now());
    }

    /// The file for the capture, if one is wanted.
    pub(crate) fn capture(&self) -> Option<PathBuf> {
        self.kept.as_ref().map(|folder| folder.path().join("packets.pcapng"))
    }

    /// The observations, and the folder of the capture.
    pub(crate) fn end(self) -> (HostObservations, Option<OwnFolder>) {
        let began = self.began.get().copied().unwrap_or_else(|| self.clock.now());
        let station = fs::read_to_string(format!("/sys/class/net/{}/address", self.interface)).ok();
        let seen = HostObservations {
            station: station.map(|text| text.trim().to_owned()),
            kernel: machine::kernel(),
            looks: self.looking.end(began),
            interface: self.interface,
        };
        (seen, self.kept)
    }
}

fn failed(problem: &str) -> Failure {
    Failure::failed("take part", problem)
}

/// Returns whether some flow has an end at the node.
pub fn is_end(plan: &Plan, node: u32) -> bool {
    plan.flows.iter().any(|flow| flow.from == node || flow.to == node)
}

/// The interface of the mesh. The TUN device of a routing daemon has its host's address: the radio is another
/// interface.
pub(crate) fn interface_of(own: Ipv4Addr) -> Result<String, Failure> {
    let route = Some(IpAddr::V4(own)).filter(|own| is_own_address(*own)).and_then(route_to);
    let name = route.and_then(|route| name_of(route.interface).ok()).ok_or_else(|| {
        failed(&format!(
            "no interface here has the address {own}: the inventory says another address, or the mesh is not up"
        ))
    })?;
    let kind = fs::read_to_string(format!("/sys/class/net/{name}/type")).unwrap_or_default();
    let is_tun = kind.trim() == doctor::WITHOUT_LINK_LAYER;
    let radio = if is_tun { with_stations().into_iter().min() } else { None };
    Ok(radio.unwrap_or(name))
}

/// The interfaces of a node: that of a mesh, or in a namespace all that have an address.
pub(crate) fn interfaces_of(part: &NodePart) -> Result<Vec<String>, Failure> {
    if let Some(own) = part.mesh.as_ref().and_then(|mesh| mesh.addresses.get(part.node as usize)) {
        return Ok(vec![interface_of(*own)?]);
    }
    let has_address = |name: &String| addresses_of(name).is_ok_and(|all| !all.is_empty());
    Ok(names_of_interfaces().into_iter().filter(has_address).collect())
}

/// What a record says of them; an interface that does not tell is left out.
pub(crate) fn offloads_of(part: &NodePart) -> Result<BTreeMap<String, Vec<String>>, Failure> {
    let names = interfaces_of(part)?.into_iter();
    Ok(names.filter_map(|name| joining_offloads(&name).ok().map(|on| (name, on))).collect())
}

/// Lets packets pass between the radio and the device of the programs, at an end whose radio forwards nothing. Where
/// that may not be, `check_forwarding` refuses the end.
fn forwarding(interface: &str) -> Option<Switches> {
    if check_forwarding(interface).is_ok() || check_user().is_err() {
        return None;
    }
    let file = Switches::file_beside(Path::new("/run/hopwise/part")).ok()?;
    fs::create_dir_all(file.parent()?).ok()?;
    let mut switches = Switches::open(&file, &Privileges::of_daemons()).ok()?;
    switches.set(&format!("ipv4/conf/{interface}/forwarding"), "1").ok()?;
    Some(switches)
}

/// Refuses an interface whose packets go no farther.
fn check_forwarding(interface: &str) -> Result<(), Failure> {
    let switch = format!("/proc/sys/net/ipv4/conf/{interface}/forwarding");
    let value = fs::read_to_string(&switch).map_err(|error| failed(&format!("{switch}: {error}")))?;
    if value.trim() == "1" {
        return Ok(());
    }
    Err(failed(&format!(
        "{interface} forwards no packets: `forwarding: true` in the file of `hopwise mesh up` changes this, or \
         `sysctl net.ipv4.conf.{interface}.forwarding=1`"
    )))
}

/// Lets packets pass between the mesh and the programs' device.
pub(crate) fn forward(device: &str) -> Result<(), Failure> {
    let switch = format!("ipv4/conf/{device}/forwarding");
    set_switch(&switch, "1").map_err(|error| failed(&format!("net/{switch}: {error}")))
}

/// Refuses a user who may not make devices and routes.
fn check_user() -> Result<(), Failure> {
    if caps::has_cap(None, CapSet::Effective, Capability::CAP_NET_ADMIN).unwrap_or(false) {
        return Ok(());
    }
    Err(failed(
        "agents of ours need CAP_NET_ADMIN here, for a TUN device and routes: expected `command: sudo -n hopwise` in \
         the inventory, `setcap cap_net_admin+ep` for the command here, or arms with the kernel's TCP alone",
    ))
}

/// Sets the routes to the programs of the other hosts that nothing else has set.
fn routes(plan: &Plan, (node, own): (u32, Ipv4Addr), mesh: &OnMesh) -> Result<Option<KernelRoutes>, Failure> {
    check_user()?;
    let is_served = is_claimed(own);
    // This removes routes that a killed process left.
    let routes = (!is_served).then(|| KernelRoutes::open(own)).transpose();
    let routes = routes.map_err(|error| failed(&error.to_string()))?;
    for (other, address) in (0..).zip(&mesh.addresses) {
        let Some(programs) = v4(address_of_programs(other)).filter(|_| other != node && is_end(plan, other))
        else {
            continue;
        };
        if route_to(programs.into()).is_some_and(|route| route.bits >= NETWORK_BITS) {
            continue;
        }
        let Some(routes) = &routes else {
            return Err(failed(&format!(
                "the routing daemon here has no route to {programs}: expected `serves: [{programs}]` in the file of \
                 the daemon at {address}, and a `network` of both that contains it"
            )));
        };
        let way = route_to(IpAddr::V4(*address)).filter(|way| way.bits > 0);
        let way = way.and_then(|way| Some((way.interface, v4(way.next_hop)?)));
        let Some((device, next_hop)) = way else {
            return Err(failed(&format!("there is no route to {address}, another host of the mesh")));
        };
        // A host on the link is its own next hop.
        let set = routes.set(programs, HostRoute { device, next_hop });
        set.map_err(|error| failed(&error.to_string()))?;
    }
    Ok(routes)
}

/// An address of IPv4.
pub fn v4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}
