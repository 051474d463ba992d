//! Sets devices, addresses and routes in the kernel over rtnetlink.

pub(crate) mod ask;
pub mod batman_adv;
pub(crate) mod carrier;
mod detour;
pub(crate) mod device;
pub(crate) mod features;
pub mod hwsim;
pub(crate) mod message;
mod names;
mod on_loan;
pub(crate) mod own;
mod routes;
mod sockets;
pub(crate) mod way;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use futures_util::TryStreamExt;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::LinkAttribute;
use netlink_packet_route::route::RouteProtocol;
use rtnetlink::{AddressGetRequest, Handle, LinkUnspec, LinkVeth};
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

use hopwise_core::ip::Prefix;

use crate::namespace::set_switch;

pub use ask::KernelRefusal;
pub use carrier::CarrierWatch;
pub use detour::{Detour, DetourConfig, LeftRules, detours, left_rules, remove_left_rules};
pub(crate) use detour::{add_rule, check_table, rules_of_ours, table_of};
pub use device::addresses_of;
pub use device::{QueuedPackets, queued};
pub use features::{computes_checksums, joining_offloads};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use names::read_answer;
pub(crate) use names::{BoundName, names_with};
use on_loan::Added;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use on_loan::known;
pub(crate) use on_loan::{EarlierState, OnLoan};
pub use on_loan::{Repaired, device_of_loan, loans_left, repair_loan};
pub(crate) use own::interfaces as all_interfaces;
pub use own::{is_own_address, owns_address};
use routes::{SubnetRoute, check_free, route_message};
pub(crate) use routes::{all_of, new_route};
pub use sockets::{is_abandoned, is_connected, is_unacknowledged, user_of};
pub use way::{RouteTo, route_to};

/// The maker of our routes and rules. No registered program has this number.
pub(crate) const OURS: RouteProtocol = RouteProtocol::Other(87);

/// RFC 8200 §5: a link with less has no IPv6.
const IPV6_MIN_MTU: u16 = 1280;

/// The settings that a device gets. It keeps the settings that it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceSettings {
    /// The longest packet in bytes.
    pub mtu: Option<u16>,
    /// Its own Ethernet address.
    pub mac: Option<[u8; 6]>,
    /// The number of packets that the kernel queues for it.
    pub queue_packets: Option<u32>,
    /// The kernel's own addresses on the device.
    pub addresses: Vec<Prefix>,
    /// The subnets that the kernel routes there.
    pub routes: Vec<Prefix>,
}

/// What the kernel was asked for, or why it failed.
pub(crate) type NetlinkResult<T = ()> = Result<T, NetlinkError>;

/// The reasons why a change failed.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// The kernel knows no device of this name.
    #[error("there is no such device: {0}")]
    NoDevice(io::Error),
    /// A call to the system failed.
    #[error("{doing}: {error}")]
    System {
        /// The attempt, in a few words.
        doing: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// The kernel refused a request.
    #[error("{doing}: {error}")]
    Kernel {
        /// The attempt, in a few words.
        doing: String,
        /// The kernel's answer.
        error: Box<rtnetlink::Error>,
    },
    /// A route to a subnet leads elsewhere.
    #[error("a route to {subnet} leads elsewhere already{}", why_taken(.of.as_ref()))]
    RouteTaken {
        /// The subnet.
        subnet: Prefix,
        /// The interface whose own subnet it is, with its address there.
        of: Option<(String, Prefix)>,
    },
    /// The routes of this table belong to another program.
    #[error(
        "table {0} has routes to another device (`ip route show table {0}` shows them): expected two tables without \
         routes, such as `table: 7200`"
    )]
    TableTaken(u32),
    /// The device has this address already, with another subnet.
    #[error(
        "the device has the address of {0} with another prefix length (`ip addr` shows it): take that one, or remove \
         it"
    )]
    OtherSubnet(Prefix),
    /// The device is no TUN, or a program has it open.
    #[error("{0} is no TUN device, or a program has it open: end that program first")]
    InUse(String),
    /// With a smaller MTU than IPv6 needs, the kernel would remove addresses of a device that is not ours.
    #[error(
        "mtu: {0}: the device was there before and has addresses of IPv6, which the kernel takes away below \
         {IPV6_MIN_MTU}: take that much, or remove them"
    )]
    TooSmallForAddresses(u16),
}

fn why_taken(of: Option<&(String, Prefix)>) -> String {
    match of {
        None => " (`ip route` shows it): take another subnet, or remove it".to_owned(),
        Some((interface, address)) => format!(
            ": {interface} has {address} (`ip addr` shows it); remove that address (`addresses: []` in the file of \
             `hopwise mesh up`), or take another subnet"
        ),
    }
}

impl NetlinkError {
    /// The kernel's error number, if the kernel refused.
    pub(crate) fn code(&self) -> Option<i32> {
        match self {
            NetlinkError::Kernel { error, .. } => Some(code_of(error)).filter(|code| *code != 0),
            _ => None,
        }
    }
}

/// Sets MTU, addresses and routes of a device and takes it up.
pub fn configure(device: &str, settings: &DeviceSettings) -> NetlinkResult {
    apply(device, settings, &mut Added::default(), true)
}

/// Applies the settings, and records additions even if it fails half-way.
fn apply(device: &str, settings: &DeviceSettings, added: &mut Added, is_ours: bool) -> NetlinkResult {
    let index = index_of(device)?;
    if settings.addresses.iter().any(|prefix| prefix.address().is_ipv6()) {
        keep_addresses(device, is_ours);
    }
    blocking(async move |handle| {
        check_free(&handle, index, &SubnetRoute::all_of(settings)).await?;
        let mut link = LinkUnspec::new_with_index(index).up();
        if let Some(mtu) = settings.mtu {
            link = link.mtu(u32::from(mtu));
        }
        if let Some(mac) = settings.mac {
            link = link.address(mac.to_vec());
        }
        if let Some(packets) = settings.queue_packets {
            link = link.append_extra_attribute(LinkAttribute::TxQueueLen(packets));
        }
        handle.link().set(link.build()).execute().await.map_err(kernel("take it up"))?;
        for address in &settings.addresses {
            let message = address_message(&handle, index, address);
            let mut request = handle.address().add(index, address.address(), address.bits());
            *request.message_mut() = message.clone();
            let done = request.execute().await;
            if is_new(done).map_err(kernel(format_args!("add address {address}")))? {
                added.addresses.push(message);
            } else if !has_address(&handle, index, address).await? {
                return Err(NetlinkError::OtherSubnet(*address));
            }
        }
        for route in &settings.routes {
            let message = route_message(index, route)?;
            let done = handle.route().add(message.clone()).execute().await;
            if is_new(done).map_err(kernel(format_args!("add a route to {route}")))? {
                added.routes.push(message);
            }
        }
        Ok(())
    })
}

fn address_message(handle: &Handle, index: u32, address: &Prefix) -> AddressMessage {
    let mut request = handle.address().add(index, address.address(), address.bits());
    if address.address().is_ipv6() {
        // No other host on a new device can have the address. Duplicate address detection would only delay its first
        // use.
        request.message_mut().attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
    }
    request.message_mut().clone()
}

/// Returns whether the device has the address with this subnet. IPv6 keeps an address once only, with the subnet that
/// came first.
async fn has_address(handle: &Handle, index: u32, wanted: &Prefix) -> NetlinkResult<bool> {
    let of_device = handle.address().get().set_link_index_filter(index);
    let there = listed(of_device.set_address_filter(wanted.address())).await?;
    Ok(there.iter().any(|address| address.header.prefix_len == wanted.bits()))
}

async fn listed(asked: AddressGetRequest) -> NetlinkResult<Vec<AddressMessage>> {
    asked.execute().try_collect().await.map_err(kernel("list the addresses"))
}

/// Returns whether the addition was new.
pub(crate) fn is_new(added: Result<(), rtnetlink::Error>) -> Result<bool, rtnetlink::Error> {
    match added {
        Ok(()) => Ok(true),
        Err(error) if code_of(&error) == libc::EEXIST => Ok(false),
        Err(error) => Err(error),
    }
}

/// The kernel's error number, or 0 if another part refused.
fn code_of(error: &rtnetlink::Error) -> i32 {
    if let rtnetlink::Error::NetlinkError(error) = error { -error.raw_code() } else { 0 }
}

/// The switch that keeps a device's IPv6 addresses while it is down.
fn keeps_addresses(device: &str) -> String {
    format!("ipv6/conf/{device}/keep_addr_on_down")
}

/// Keeps the IPv6 addresses of a device that goes down. Otherwise, no program would restore them. A device that we made
/// goes with us: its switch stays where all are read-only, as in a unit with ProtectKernelTunables.
fn keep_addresses(device: &str, is_ours: bool) {
    match set_switch(&keeps_addresses(device), "1") {
        Err(error) if is_ours && error.kind() == io::ErrorKind::ReadOnlyFilesystem => {}
        Err(error) => tracing::warn!(device, %error, "its addresses of IPv6 will go when it goes down"),
        Ok(()) => {}
    }
}

/// Takes a device up or down.
pub fn set_up(device: &str, is_up: bool) -> NetlinkResult {
    let index = index_of(device)?;
    blocking(async move |handle| {
        let link = LinkUnspec::new_with_index(index);
        let link = if is_up { link.up() } else { link.down() };
        handle.link().set(link.build()).execute().await.map_err(kernel("set its state"))
    })
}

/// Makes a pair of devices: what enters one leaves by the other.
pub(crate) fn make_pair(near: &str, far: &str) -> NetlinkResult {
    blocking(async |handle| {
        let made = handle.link().add(LinkVeth::new(near, far).build()).execute().await;
        made.map_err(kernel("make a pair of devices"))
    })
}

/// Lets a device resolve no addresses: its frames go to its own Ethernet address.
pub(crate) fn resolve_nothing(device: &str) -> NetlinkResult {
    let index = index_of(device)?;
    blocking(async move |handle| {
        let link = LinkUnspec::new_with_index(index).arp(false).build();
        handle.link().set(link).execute().await.map_err(kernel("turn ARP off"))
    })
}

/// The device's number.
pub fn index_of(device: &str) -> NetlinkResult<u32> {
    let socket = socket()?;
    netdevice::name_to_index(socket.as_fd(), device).map_err(|error| NetlinkError::NoDevice(error.into()))
}

/// The current name of the device with that number.
pub fn name_of(index: u32) -> NetlinkResult<String> {
    let socket = socket()?;
    netdevice::index_to_name(socket.as_fd(), index).map_err(|error| NetlinkError::NoDevice(error.into()))
}

/// A socket for questions about devices.
fn socket() -> NetlinkResult<OwnedFd> {
    socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(|error| NetlinkError::System { doing: "open a socket", error: error.into() })
}

/// Makes an error of the kernel's answer in a step.
pub(crate) fn kernel(doing: impl fmt::Display) -> impl FnOnce(rtnetlink::Error) -> NetlinkError {
    move |error| NetlinkError::Kernel { doing: doing.to_string(), error: Box::new(error) }
}

/// Runs asynchronous `work` on a thread and a runtime of its own, because the caller may be inside a runtime. Threads
/// inherit the network namespace of the thread that made them.
pub(crate) fn blocking<T: Send>(
    work: impl AsyncFnOnce(Handle) -> NetlinkResult<T> + Send,
) -> NetlinkResult<T> {
    let system = |doing| move |error| NetlinkError::System { doing, error };
    thread::scope(|scope| {
        let worker = thread::Builder::new().name("netlink".into());
        let running = worker.spawn_scoped(scope, || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
            let runtime = runtime.map_err(system("start a runtime"))?;
            runtime.block_on(async {
                let (connection, handle, _) =
                    rtnetlink::new_connection().map_err(system("open a netlink socket"))?;
                tokio::spawn(connection);
                work(handle).await
            })
        });
        let running = running.map_err(system("start a thread"))?;
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_not_there_is_named_as_such() {
        assert!(matches!(index_of("nosuchdevice"), Err(NetlinkError::NoDevice(_))));
    }
}
