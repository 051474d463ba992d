//! Ends TCP of other hosts on a router: their SYNs are held until someone decides on each.
//!
//! A table of nft marks the SYNs that come in on some interfaces for some networks, and a netfilter queue holds them. A
//! SYN that is let go continues on the kernel's own path, unchanged, with the router's firewall and NAT still ahead. A
//! caught SYN goes to a socket that takes the addresses of other hosts (TPROXY), and the kernel's TCP ends its
//! connection.
//!
//! All of it fails open. The table belongs to our process and goes with it, however that ends. A queue without a
//! listener, or a full one, lets packets go on. While we hang, another process may read the queue ([`Bypass`]). A TUN
//! device as the hosts' route would fail open, too. But a SYN that came there would have to be sent anew, past the
//! firewall and the NAT that it should meet.

mod chains;
mod held;
mod iptables;
mod likeness;
mod ways;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use hopwise_core::ip::Prefix;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};

use crate::netlink::NetlinkError;
use crate::nfqueue::socket::NetfilterQueue;
use crate::nft::{OwnedTable, nft};
use crate::poller::once_free;
use crate::routing::Switches;
use crate::sys;

pub use chains::{Arrival, Arrivals};
pub use held::Bypass;
pub use held::{HeldSyn, HeldSyns, Syn};
use iptables::InIptables;
pub use iptables::{LeftRulesAndRoutes, left, remove_left};
pub use likeness::Likeness;
use ways::HostWays;

/// The bit of a packet's mark that leads it to a socket here.
const CAUGHT: u32 = 0x0400_0000;
/// The bit of a SYN that is held.
const HELD: u32 = 0x0200_0000;
/// The largest number of connections not yet accepted. Linux takes net.core.somaxconn if that is less.
const MOST_WAITING: i32 = 4096;
/// Further answers to a SYN, each after twice as long as the one before. The kernel forgets the SYN 15 s after it.
const MORE_ANSWERS: libc::c_int = 3;
/// An address of each version of IP.
const ANY: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];

/// The SYNs that are held, and the numbers that no other program uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransparentConfig {
    /// The interfaces towards the hosts; without any, no SYN is held.
    pub interfaces: Vec<String>,
    /// Ports of destinations; an empty list stands for all.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Networks of destinations.
    pub networks: Vec<Prefix>,
    /// Destinations whose SYNs are never held.
    pub spared: Vec<IpAddr>,
    /// The bound of connections that are carried or wait at the same time.
    pub seats: usize,
    /// The netfilter queue.
    pub queue: u16,
    /// The table of routing, and the priority of the rules that lead to it.
    pub table: u32,
    /// The file for the old value of a switch of the kernel; without it the switch stays as it is.
    pub switches: Option<PathBuf>,
}

/// The reason why packets cannot be led here.
#[derive(Debug, thiserror::Error)]
pub enum TransparentError {
    /// Another program has the queue.
    #[error("another program has the netfilter queue {0}")]
    QueueTaken(u16),
    /// A step failed, or the kernel refused a route or a rule.
    #[error("{0}")]
    Step(NetlinkError),
}

impl TransparentError {
    /// Returns whether the system forbids it.
    pub fn is_forbidden(&self) -> bool {
        match self {
            TransparentError::QueueTaken(_) => false,
            TransparentError::Step(NetlinkError::System { error, .. }) => {
                error.kind() == io::ErrorKind::PermissionDenied
            }
            TransparentError::Step(error) => error.code() == Some(libc::EPERM),
        }
    }
}

fn failed(doing: &'static str) -> impl Fn(io::Error) -> TransparentError {
    move |error| TransparentError::Step(NetlinkError::System { doing, error })
}

/// The rules that lead packets here, and the switch. They go when this is dropped, in this order.
#[derive(Debug)]
pub struct LedPackets {
    _table: OwnedTable,
    _iptables: Option<InIptables>,
    _ways: HostWays,
    _switches: Option<Switches>,
}

/// The held SYNs, and the listeners that take caught SYNs, one for each version of IP.
#[derive(Debug)]
pub struct Caught {
    /// The SYNs, before a runtime waits for them.
    pub held: HeldQueue,
    /// The listeners, which do not block.
    pub listeners: Vec<TcpListener>,
    /// The ends of caught SYNs.
    pub arrivals: Arrivals,
}

/// A queue that is bound, and that no runtime reads yet.
#[derive(Debug)]
pub struct HeldQueue(NetfilterQueue);

impl HeldQueue {
    /// The queue's socket, for a [`Bypass`] in another process.
    pub fn socket(&self) -> io::Result<OwnedFd> {
        self.0.descriptor().try_clone_to_owned()
    }

    /// The SYNs, inside a runtime.
    pub fn read(self) -> io::Result<HeldSyns> {
        HeldSyns::new(self.0)
    }
}

/// Leads packets here. An error leaves nothing behind.
pub fn open(config: &TransparentConfig) -> Result<(LedPackets, Option<Caught>), TransparentError> {
    let caught = if config.interfaces.is_empty() { None } else { Some(catch(config)?) };
    let ways = HostWays::open(config.table).map_err(TransparentError::Step)?;
    let listeners = caught.iter().flat_map(|caught| &caught.listeners);
    let ports: io::Result<Vec<SocketAddr>> = listeners.map(TcpListener::local_addr).collect();
    let ports = ports.map_err(failed("look at a listener"))?;
    let (table, iptables) = set(config, &ports)?;
    let switches = config.switches.as_deref().and_then(look_up_late);
    Ok((LedPackets { _table: table, _iptables: iptables, _ways: ways, _switches: switches }, caught))
}

/// Lets the kernel look for a packet's socket only once it knows that the packet is for this machine. It would else
/// drop packets that it is to forward where a half-open connection, or one that is being opened, has their ends.
fn look_up_late(file: &Path) -> Option<Switches> {
    let set = Switches::open(file, &[])
        .and_then(|mut switches| switches.set("ipv4/tcp_early_demux", "0").map(|()| switches));
    let without =
        "net.ipv4.tcp_early_demux stays on: a SYN in a host's name can hold up its connection for 15 s";
    set.inspect_err(|error| tracing::warn!(%error, "{without}")).ok()
}

fn catch(config: &TransparentConfig) -> Result<Caught, TransparentError> {
    // The [`Bypass`] of a killed process ends a moment after it, and has the queue until then.
    let queue = once_free(|| NetfilterQueue::bind(config.queue)).map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => TransparentError::QueueTaken(config.queue),
        _ => failed("bind a netfilter queue")(error),
    })?;
    let mut listeners = Vec::new();
    for any in ANY {
        match listen_for_others(any) {
            Ok(listener) => listeners.push(listener),
            // A kernel without IPv6 has no SYNs of it either.
            Err(error) if any.is_ipv6() && error.raw_os_error() == Some(libc::EAFNOSUPPORT) => {}
            Err(error) => return Err(failed("listen for others")(error)),
        }
    }
    Ok(Caught { held: HeldQueue(queue), listeners, arrivals: Arrivals::of(config.table) })
}

fn listen_for_others(any: IpAddr) -> io::Result<TcpListener> {
    let socket = new_socket(any, true)?;
    if any.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    sys::set_option(socket.as_fd(), (libc::IPPROTO_TCP, libc::TCP_SYNCNT), MORE_ANSWERS)?;
    bind(&socket, &SocketAddr::new(any, 0))?;
    listen(&socket, MOST_WAITING)?;
    Ok(socket.into())
}

/// A socket that does not block, with that version of IP. It may have addresses of other hosts if it `is_foreign`.
fn new_socket(address: IpAddr, is_foreign: bool) -> io::Result<OwnedFd> {
    let (family, option) = match address {
        IpAddr::V4(_) => (AddressFamily::INET, (libc::SOL_IP, libc::IP_TRANSPARENT)),
        IpAddr::V6(_) => (AddressFamily::INET6, (libc::SOL_IPV6, libc::IPV6_TRANSPARENT)),
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    if is_foreign {
        sys::set_option(socket.as_fd(), option, 1)?;
    }
    Ok(socket)
}

/// A socket with that address, of another host if it `is_foreign`. It gets its port when it connects, and the kernel
/// then goes by both ends. Where a port is bound first, any connection in TIME-WAIT is in the way, whatever its server.
pub fn socket_at(address: IpAddr, is_foreign: bool) -> io::Result<OwnedFd> {
    let socket = new_socket(address, is_foreign)?;
    sys::set_option(socket.as_fd(), (libc::SOL_IP, libc::IP_BIND_ADDRESS_NO_PORT), 1)?;
    bind(&socket, &SocketAddr::new(address, 0))?;
    Ok(socket)
}

/// Sets the table. A kernel whose nft has no queues gets that rule from iptables.
fn set(
    config: &TransparentConfig,
    ports: &[SocketAddr],
) -> Result<(OwnedTable, Option<InIptables>), TransparentError> {
    let name = chains::table(config.table);
    let in_nft = match nft(&chains::tries_queue(config)) {
        Err(error) if matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::NotFound) => {
            return Err(failed("run nft")(error));
        }
        _ if config.interfaces.is_empty() => Ok(()),
        tried => tried,
    };
    let tracks = !ports.is_empty() && chains::is_tracking();
    let table = OwnedTable::set(&name, &chains::of(config, ports, (in_nft.is_ok(), tracks)));
    let table = table.map_err(failed("set the table of nft"))?;
    let Err(of_nft) = in_nft else { return Ok((table, None)) };
    let iptables = InIptables::set(config.queue).map_err(|error| {
        failed("hold SYNs in a queue")(io::Error::new(error.kind(), format!("nft: {of_nft}; {error}")))
    })?;
    Ok((table, Some(iptables)))
}
