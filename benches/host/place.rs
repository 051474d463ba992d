//! A network namespace that the whole benchmark runs in, and the devices in it.

use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;

use hopwise_core::ip::Prefix;
use hopwise_host::{Link, Tun, TunConfig, TunFast};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

pub(crate) const OURS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 7, 0, 1));
pub(crate) const KERNELS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 7, 0, 2));

/// The two ends of a wire between namespaces: the benchmark's, and the other one.
pub(crate) const NEARBY: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1));
pub(crate) const BEYOND: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 2));

/// The largest packet of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    Mtu,
    Offload,
}

impl Device {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Device::Mtu => "1500 bytes",
            Device::Offload => "offload",
        }
    }

    pub(crate) fn open(self) -> Box<dyn Link> {
        let address = Prefix::new(KERNELS, 24).expect("it fits");
        let config = TunConfig { kernel_addresses: vec![address], ..TunConfig::new("bench0") };
        match self {
            Device::Mtu => Box::new(Tun::open(&config).expect("root may open a TUN device")),
            Device::Offload => Box::new(TunFast::open(&config).expect("root may open a TUN device")),
        }
    }
}

/// The reason why no measurement is possible here, if there is one.
pub(crate) fn obstacle() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        Some("needs root, for network namespaces")
    } else if !Path::new("/dev/net/tun").exists() {
        Some("there is no /dev/net/tun")
    } else {
        None
    }
}

#[derive(Debug)]
pub(crate) struct Namespace(String);

impl Namespace {
    /// Moves this thread, and the threads that it starts, into a new namespace.
    pub(crate) fn enter() -> Namespace {
        let name = format!("hopbench-{}", std::process::id());
        ip(&["netns", "add", &name]);
        let namespace = Namespace(name);
        let file = File::open(format!("/run/netns/{}", namespace.0)).expect("it was made a moment ago");
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("root may setns");
        ip(&["link", "set", "lo", "up"]);
        for (key, value) in [
            ("ipv4/ip_local_port_range", "1024 65000"),
            ("ipv4/tcp_max_syn_backlog", "20000"),
            // With most ports in TIME-WAIT, the search for a free one would cost more than the connection.
            ("ipv4/tcp_max_tw_buckets", "5000"),
        ] {
            fs::write(format!("/proc/sys/net/{key}"), value).expect("root may set it");
        }
        // The kernel's ends of 10,000 idle connections are descriptors; the limit is raised as far as allowed.
        let most = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: most.maximum, ..most }).expect("up to the hard limit");
        namespace
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        ip(&["netns", "del", &self.0]);
    }
}

pub(crate) fn ip(arguments: &[&str]) {
    let done = Command::new("ip").args(arguments).status().expect("ip is installed");
    assert!(done.success(), "ip {arguments:?}");
}

/// A second namespace, and a wire to it.
#[derive(Debug)]
pub(crate) struct Other(String);

impl Other {
    pub(crate) fn new() -> Other {
        let name = format!("hopbench-{}-other", std::process::id());
        ip(&["netns", "add", &name]);
        ip(&["link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", &name]);
        ip(&["addr", "add", &format!("{NEARBY}/24"), "dev", "wire"]);
        ip(&["link", "set", "wire", "up"]);
        ip(&["-n", &name, "addr", "add", &format!("{BEYOND}/24"), "dev", "wire"]);
        ip(&["-n", &name, "link", "set", "wire", "up"]);
        Other(name)
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    /// Makes both ends of the wire carry single segments. Without ethtool they keep their defaults.
    pub(crate) fn without_offload(&self) {
        for command in [&["ethtool"][..], &["ip", "netns", "exec", &self.0, "ethtool"]] {
            let mut ethtool = Command::new(command[0]);
            ethtool.args(&command[1..]).args(["-K", "wire", "tso", "off", "gso", "off", "gro", "off"]);
            let _ = ethtool.output();
        }
    }

    /// Moves this thread into that namespace.
    pub(crate) fn enter(&self) {
        let file = File::open(format!("/run/netns/{}", self.0)).expect("it was made a moment ago");
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("root may setns");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        ip(&["link", "del", "wire"]);
        ip(&["netns", "del", &self.0]);
    }
}
