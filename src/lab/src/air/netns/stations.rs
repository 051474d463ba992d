//! A namespace for each node, with its devices and its routes to all nodes. Dropping it removes all of this.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use hopwise_core::LinkId;
use hopwise_core::ip::Prefix;
use hopwise_core::narrow::as_u32;
use hopwise_host::netlink;
use hopwise_host::nl80211::StationOffer;
use hopwise_host::own_file::open_own;
use hopwise_host::routing::{HostRoute, KernelRoutes};
use hopwise_host::{Namespace, NamespaceId, TapConfig, TapDevice, set_switch};
use hopwise_lab::live::air::{self as live, Device, LiveStation, RouteStep};
use hopwise_lab::live::{address_of_host, address_of_programs};
use hopwise_lab::scenario::Prepared;
use hopwise_lab::sim::{Arm, Plan};
use hopwise_mesh::LiveRouter;
use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;

use hopwise_daemon::failure::Failure;
use hopwise_daemon::shell;

/// Each node takes a namespace, a process of `ip`, and a route to every other one.
const MOST: usize = 200;
const MTU: u16 = 1500;
/// The folder of the files that list the namespaces of a prefix.
const NOTES: &str = "/run/hopwise";

/// The addresses behind a node to which all other nodes have routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServedAddresses {
    /// Its own alone.
    Itself,
    /// The address of its programs as well.
    Programs,
    /// These, and the address of the host behind it.
    Hosts,
}

impl ServedAddresses {
    /// The addresses that the arm's programs have.
    pub(crate) fn of(arm: &Arm) -> ServedAddresses {
        if arm.transparent { ServedAddresses::Hosts } else { ServedAddresses::Programs }
    }

    /// The addresses behind the kernel of that node.
    pub(crate) fn behind(self, node: u32) -> Vec<IpAddr> {
        match self {
            ServedAddresses::Itself => Vec::new(),
            ServedAddresses::Programs => vec![address_of_programs(node)],
            ServedAddresses::Hosts => vec![address_of_programs(node), address_of_host(node)],
        }
    }
}

/// A device of a node.
#[derive(Debug)]
pub(crate) struct NodePort {
    pub(crate) node: u32,
    pub(crate) link: LinkId,
    pub(crate) device: TapDevice,
}

// Dropped in this order: devices and routes, the namespaces, the note of them.
#[derive(Debug)]
pub(crate) struct NetnsStations {
    /// In the order of nodes.
    pub(crate) ports: Vec<NodePort>,
    /// The radios that tell their stations, by node. A medium holds them while it runs.
    offers: Mutex<Vec<(u32, StationOffer)>>,
    _routes: Vec<KernelRoutes>,
    namespaces: Vec<Namespace>,
    addresses: Vec<IpAddr>,
    note: Note,
}

/// Refuses a prefix or scenario for which no namespaces can be made.
pub(crate) fn check(prefix: &str, prepared: &Prepared) -> Result<(), Failure> {
    let is_sound = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if prefix.is_empty() || prefix.len() > 100 || prefix.starts_with('.') || !prefix.chars().all(is_sound) {
        let wanted = "expected letters, digits, dots and dashes, for names of namespaces";
        return Err(Failure::refused("--prefix", format_args!("`{prefix}`, {wanted}")));
    }
    let count = prepared.plan.positions.len();
    if count > MOST {
        let problem = format!("{count} nodes, expected at most {MOST}: each gets a namespace of its own");
        return Err(Failure::refused("topology", problem));
    }
    let problem = match prepared.plan.routing.protocol.live {
        LiveRouter::Nobody | LiveRouter::Daemon => return Ok(()),
        LiveRouter::BatmanAdv | LiveRouter::Mac80211 => {
            "kernels speak it over radios of Wi-Fi alone, expected static, what `hopwise route` speaks, or world: hwsim"
        }
        LiveRouter::Simulation => {
            "this protocol is only for simulations, expected static, or what `hopwise route` speaks"
        }
    };
    Err(Failure::refused("routing.protocol", problem))
}

/// Refuses a user that may not make namespaces; the error ends with `way`, a way without root.
pub(crate) fn check_user(way: &str) -> Result<(), Failure> {
    let forbidden = |advice| {
        let problem = format!("only root may; {advice}; {way}");
        Failure::failed("make namespaces", problem)
    };
    shell::as_root().map_or(Ok(()), |advice| Err(forbidden(advice)))
}

impl NetnsStations {
    pub(crate) fn open(
        prefix: &str,
        prepared: &Prepared,
        serves: ServedAddresses,
    ) -> Result<NetnsStations, Failure> {
        check_user("`hopwise air hwsim` has radios, too, and takes no root")?;
        let plan = &prepared.plan;
        let names: Vec<_> = prepared.names.iter().map(|name| format!("{prefix}-{name}")).collect();
        let note = Note::take(Path::new(NOTES), prefix, &names)?;
        let mut stations = NetnsStations {
            ports: Vec::new(),
            offers: Mutex::default(),
            _routes: Vec::new(),
            namespaces: Vec::new(),
            addresses: live::stations(plan).iter().map(|station| station.address).collect(),
            note,
        };
        let all = live::stations(plan).into_iter().zip(live::routes(plan));
        for ((node, name), (station, steps)) in (0..).zip(&names).zip(all) {
            let failed = |error: &dyn std::fmt::Display| {
                Failure::failed("make a station", format_args!("{name}: {error}"))
            };
            stations.note.intend(name).map_err(|error| failed(&error))?;
            let namespace = Namespace::create(name).map_err(|error| failed(&error))?;
            stations.note.add(&namespace).map_err(|error| failed(&error))?;
            let furnished = namespace
                .run(|| furnish(plan, (node, serves), &station, &steps))
                .map_err(|error| failed(&error))?;
            stations.namespaces.push(namespace);
            let (ports, offer, routes) = furnished.map_err(|error| failed(&error))?;
            stations.ports.extend(ports);
            stations.offers().extend(offer.map(|offer| (node, offer)));
            stations._routes.extend(routes);
        }
        Ok(stations)
    }

    /// The namespaces in the order of nodes.
    pub(crate) fn namespaces(&self) -> &[Namespace] {
        &self.namespaces
    }

    /// The radios that tell their stations, by node.
    pub(crate) fn offers(&self) -> MutexGuard<'_, Vec<(u32, StationOffer)>> {
        self.offers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error for a port whose device was removed.
    pub(crate) fn gone(&self, port: usize, error: &io::Error) -> io::Error {
        let NodePort { node, device, .. } = &self.ports[port];
        let namespace = self.namespaces.get(*node as usize).map_or("?", Namespace::name);
        io::Error::other(format!("the device {} of {namespace} is gone: {error}", device.name()))
    }

    /// Each node's name, its namespace and its address.
    pub(crate) fn named<'a>(
        &'a self,
        prepared: &'a Prepared,
    ) -> impl Iterator<Item = (&'a str, &'a str, IpAddr)> {
        let names = prepared.names.iter().map(String::as_str);
        let places = self.namespaces.iter().map(Namespace::name).zip(self.addresses.iter().copied());
        names.zip(places).map(|(name, (namespace, address))| (name, namespace, address))
    }
}

type Furniture = (Vec<NodePort>, Option<StationOffer>, Option<KernelRoutes>);
pub(crate) type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Sets the switches of the namespace that it runs in.
pub(crate) fn set_switches() -> Result<(), AnyError> {
    // A forwarded packet leaves by the device that it came from. The kernel's own messages to IPv6 neighbours would
    // take airtime.
    for (key, value) in [
        ("ipv4/ip_forward", "1"),
        ("ipv4/conf/all/rp_filter", "0"),
        ("ipv4/conf/default/rp_filter", "0"),
        ("ipv4/conf/all/send_redirects", "0"),
        ("ipv4/conf/default/send_redirects", "0"),
        ("ipv4/conf/all/accept_redirects", "0"),
        ("ipv4/conf/default/accept_redirects", "0"),
        ("ipv6/conf/all/disable_ipv6", "1"),
        ("ipv6/conf/default/disable_ipv6", "1"),
    ] {
        set_switch(key, value).map_err(|error| format!("set net/{key}: {error}"))?;
    }
    Ok(())
}

/// Sets up a namespace from within: switches, devices, routes.
fn furnish(
    plan: &Plan,
    (node, serves): (u32, ServedAddresses),
    station: &LiveStation,
    steps: &[RouteStep],
) -> Result<Furniture, AnyError> {
    set_switches()?;
    netlink::set_up("lo", true)?;
    let (mut ports, mut offer) = (Vec::new(), None);
    for device in &station.devices {
        let name = name_of(device.link, device.is_radio);
        if device.is_radio {
            offer = Some(StationOffer::open(&name)?);
        }
        let config = TapConfig {
            name,
            mtu: MTU,
            mac: station.mac,
            queue_packets: as_u32(device.queued_in_kernel()),
            addresses: vec![Prefix::host(station.address)],
        };
        ports.push(NodePort { node, link: device.link, device: TapDevice::open(&config)? });
    }
    let has_routes = plan.routing.protocol.live == LiveRouter::Nobody;
    let routes = has_routes.then(|| set_routes((station, named), steps, serves)).transpose()?;
    Ok((ports, offer, routes))
}

fn named(device: &Device) -> String {
    name_of(device.link, device.is_radio)
}

pub(crate) fn name_of(link: LinkId, is_radio: bool) -> String {
    if is_radio { "air0".to_owned() } else { format!("wire{}", link.0) }
}

/// Sets the routes of a node, through devices of these names.
pub(crate) fn set_routes(
    (station, named): (&LiveStation, impl Fn(&Device) -> String),
    steps: &[RouteStep],
    serves: ServedAddresses,
) -> Result<KernelRoutes, AnyError> {
    let v4 = |address| hopwise_part::v4(address).ok_or("the kernel's routes are IPv4's here");
    let routes = KernelRoutes::open(v4(station.address)?)?;
    let mut devices = Vec::new();
    for device in &station.devices {
        devices.push((device.link, netlink::index_of(&named(device))?));
    }
    // Neighbours first: the kernel refuses a gateway without a route to it.
    let (near, far): (Vec<RouteStep>, Vec<RouteStep>) = steps.iter().partition(|step| step.to == step.via);
    for RouteStep { node, to, link, via } in near.into_iter().chain(far) {
        let device = devices.iter().find(|(known, _)| *known == link).map_or(0, |(_, index)| *index);
        let route = HostRoute { device, next_hop: v4(via)? };
        routes.set(v4(to)?, route)?;
        for behind in serves.behind(node) {
            routes.set(v4(behind)?, route)?;
        }
    }
    Ok(routes)
}

/// A file with the namespaces of a prefix, for the successor of a process that was killed. It is locked while in use.
/// Each line has a name and a `NamespaceId`: a name alone may by now belong to a namespace of another program. A name
/// without one is of a namespace that was about to be made.
#[derive(Debug)]
struct Note {
    file: File,
    path: PathBuf,
}

impl Note {
    fn take(folder: &Path, prefix: &str, names: &[String]) -> Result<Note, Failure> {
        let path = folder.join(format!("air-{prefix}.names"));
        let failed = |error: io::Error| {
            Failure::failed("write down names", format_args!("{}: {error}", path.display()))
        };
        fs::create_dir_all(folder).map_err(failed)?;
        Note::remove_abandoned(folder);
        let (file, is_locked) = Note::open_locked(&path).map_err(failed)?;
        // Users of daemons can write to the folder, and a note decides what is removed.
        if file.metadata().map_err(failed)?.uid() != geteuid().as_raw() {
            return Err(failed(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "this file belongs to somebody else",
            )));
        }
        if !is_locked {
            let problem = format!(
                "another run or `hopwise air` has `{prefix}`: end it, or take another --prefix, or another file's name"
            );
            return Err(Failure::failed("make namespaces", problem));
        }
        // From here on this process removes the file.
        let mut note = Note { file, path: path.clone() };
        note.remove_stale(prefix).map_err(failed)?;
        if let Some(name) = names.iter().find(|name| Namespace::exists(name)) {
            let problem = format!("`{name}` is somebody else's: choose another prefix with --prefix");
            return Err(Failure::failed("make namespaces", problem));
        }
        note.file.set_len(0).and_then(|()| note.file.rewind()).map_err(failed)?;
        Ok(note)
    }

    /// Opens a note, and locks it if nobody has its names. Whoever starts holds abandoned notes for a moment, and
    /// removes them: a file that was removed is nobody's note any more.
    fn open_locked(path: &Path) -> io::Result<(File, bool)> {
        let mut attempt = 0;
        loop {
            let mut options = OpenOptions::new();
            let file = open_own(path, options.read(true).write(true).create(true).mode(0o600))?;
            let is_locked = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
            if is_locked && file.metadata()?.nlink() > 0 || attempt == 100 {
                return Ok((file, is_locked));
            }
            attempt += 1;
            thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// Writes down the name of a namespace that is about to be made: a kill between its making and its line would leave
    /// it for ever.
    fn intend(&mut self, name: &str) -> io::Result<()> {
        self.file.write_all(format!("{name}\n").as_bytes())
    }

    /// Writes down a namespace that was made.
    fn add(&mut self, namespace: &Namespace) -> io::Result<()> {
        let line = format!("{} {}\n", namespace.name(), namespace.id()?);
        self.file.write_all(line.as_bytes())
    }

    /// Removes what killed processes with other prefixes have left. A note that is locked is in use.
    fn remove_abandoned(folder: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let prefix = name.to_str().and_then(|name| name.strip_prefix("air-")?.strip_suffix(".names"));
            let Some(prefix) = prefix else { continue };
            let Ok(file) = open_own(&entry.path(), OpenOptions::new().read(true).write(true)) else {
                continue;
            };
            let is_ours = file.metadata().is_ok_and(|facts| facts.uid() == geteuid().as_raw());
            if is_ours && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                let removed = Note { file, path: entry.path() }.remove_stale(prefix);
                if let Err(error) = removed {
                    tracing::warn!(%error, prefix, "namespaces were left behind");
                }
            }
        }
    }

    /// Removes the listed namespaces whose names can be of this prefix, and still stand for them.
    fn remove_stale(&mut self, prefix: &str) -> io::Result<()> {
        let mut lines = String::new();
        self.file.read_to_string(&mut lines)?;
        let left = lines.lines().filter_map(|line| {
            let (name, id) = line.split_once(' ')?;
            Some((name, NamespaceId::parse(id)?))
        });
        let made: BTreeMap<_, _> = left.collect();
        let names: BTreeSet<_> = lines.lines().filter_map(|line| line.split(' ').next()).collect();
        for name in names.into_iter().filter(|name| is_of(prefix, name) && Namespace::exists(name)) {
            let removed = match made.get(name) {
                Some(id) => Namespace::remove(name, *id),
                None => Namespace::remove_bare(name),
            };
            match removed {
                Ok(true) => tracing::info!(name, "removed a namespace that was left behind"),
                Ok(false) => tracing::warn!(name, "it is another namespace's name by now: left as it is"),
                Err(error) => tracing::warn!(%error, "a namespace was left behind"),
            }
        }
        Ok(())
    }
}

/// Returns whether it can be the name of a namespace of this prefix.
fn is_of(prefix: &str, name: &str) -> bool {
    let node = name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('-'));
    node.is_some_and(|node| !node.is_empty() && !node.contains('/'))
}

impl Drop for Note {
    fn drop(&mut self) {
        // A process that waits for the lock of a removed file finds no names in it.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn taken(folder: &Path) -> Result<Note, Failure> {
        Note::take(folder, "mine", &["mine-n0".to_owned()])
    }

    #[test]
    fn the_note_is_opened_as_ones_own_and_for_nobody_else_to_read() {
        let folder = std::env::temp_dir().join(format!("hopwise-air-note-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let (path, target) = (folder.join("air-mine.names"), folder.join("target"));
        fs::write(&target, "precious").expect("a file");
        symlink(&target, &path).expect("a link");
        assert!(taken(&folder).is_err(), "a link");
        fs::remove_file(&path).expect("it is there");
        fs::hard_link(&target, &path).expect("a second name");
        assert!(taken(&folder).is_err(), "a second name");
        assert_eq!(fs::read_to_string(&target).expect("it is there"), "precious");
        fs::remove_file(&path).expect("it is there");
        let note = taken(&folder).expect("it is ours");
        assert_eq!(note.file.metadata().expect("it is open").mode() & 0o777, 0o600);
        assert!(taken(&folder).is_err(), "it is locked");
        drop(note);
        assert!(!path.exists());
        fs::remove_dir_all(folder).expect("it is there");
    }

    #[test]
    fn a_note_that_no_process_holds_goes_with_the_next_one_of_any_prefix() {
        let folder = std::env::temp_dir().join(format!("hopwise-air-notes-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("air-dead.names"), "dead-n0\n").expect("a file");
        let held = Note::take(&folder, "held", &["held-n0".to_owned()]).expect("it is free");
        let note = taken(&folder).expect("it is free");
        assert!(!folder.join("air-dead.names").exists() && folder.join("air-held.names").exists());
        drop((held, note));
        fs::remove_dir_all(folder).expect("it is there");
    }

    #[test]
    fn names_of_other_prefixes_are_not_believed() {
        for (name, is_ours) in [
            ("mine-n0", true),
            ("mine-rack.7", true),
            ("mine", false),
            ("mine-", false),
            ("other-n0", false),
            ("mine-/../other", false),
            ("", false),
        ] {
            assert_eq!(is_of("mine", name), is_ours, "{name}");
        }
    }
}
