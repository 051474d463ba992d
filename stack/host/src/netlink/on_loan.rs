//! Restores a device that existed before us and stays after us. A killed daemon leaves its changes on disk (`left`).

mod left;

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use futures_util::StreamExt;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{InfoKind, LinkAttribute, LinkFlags, LinkInfo};
use netlink_packet_route::route::RouteMessage;
use rtnetlink::{Handle, LinkUnspec};

use hopwise_core::ip::Prefix;

use super::{
    DeviceSettings, IPV6_MIN_MTU, NetlinkError, NetlinkResult, address_message, apply, blocking, code_of,
    has_address, index_of, keep_addresses, keeps_addresses, kernel, listed, name_of, routes,
};
use crate::journal::{self, Journal, OF_LOAN};
use crate::namespace::{OWN_NAMESPACE, in_namespace, set_switch, switch_of};
use left::Set;

/// The earlier state of a device.
#[derive(Debug)]
pub(crate) struct EarlierState {
    /// A device can be renamed, but keeps its number.
    index: u32,
    /// The namespace of that number; elsewhere the number may belong to another device. The drop may run in another
    /// namespace.
    namespace: File,
    is_up: bool,
    mtu: Option<u32>,
    queue_packets: Option<u32>,
    keeps_addresses: Option<String>,
    /// Its addresses of IPv6 that are not the kernel's own.
    of_ipv6: Vec<IpAddr>,
    /// It is a TUN device that no program has open.
    is_idle_tun: bool,
}

/// The addresses and routes that we added.
#[derive(Debug, Default)]
pub(super) struct Added {
    pub(super) addresses: Vec<AddressMessage>,
    pub(super) routes: Vec<RouteMessage>,
}

/// Restores the device when it is dropped, for which it needs CAP_NET_ADMIN.
#[derive(Debug)]
pub(crate) struct OnLoan(Loan);

#[derive(Debug)]
struct Loan {
    before: EarlierState,
    added: Added,
    /// All changes since the device was as before, on disk if there is a file.
    changes: Vec<Set>,
    journal: Option<Journal>,
}

/// The lines of a device on loan, as a daemon writes them.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn known(lines: &[String]) -> Option<Vec<String>> {
    let (index, changes) = left::read(lines)?;
    Some(left::text(index, &changes).lines().map(str::to_owned).collect())
}

/// Returns whether the kernel knows no device of this number any more.
fn is_absence(error: &NetlinkError) -> bool {
    matches!(error, NetlinkError::Kernel { error, .. } if code_of(error) == libc::ENODEV)
}

impl EarlierState {
    /// The state of the device; `None` if it does not exist.
    pub(crate) fn of(device: &str) -> NetlinkResult<Option<EarlierState>> {
        let Ok(index) = index_of(device) else { return Ok(None) };
        let namespace = File::open(OWN_NAMESPACE)
            .map_err(|error| NetlinkError::System { doing: "name its namespace", error })?;
        let seen = blocking(async |handle| EarlierState::look(&handle, index, namespace).await);
        let mut before = match seen {
            // It went away since it was found, as a TUN device does with the last process that holds it.
            Err(error) if is_absence(&error) => return Ok(None),
            seen => seen?,
        };
        before.keeps_addresses = switch_of(&keeps_addresses(device)).ok();
        Ok(Some(before))
    }

    async fn look(handle: &Handle, index: u32, namespace: File) -> NetlinkResult<EarlierState> {
        let mut links = Box::pin(handle.link().get().match_index(index).execute());
        let gone = || NetlinkError::NoDevice(io::ErrorKind::NotFound.into());
        let link = links.next().await.ok_or_else(gone)?.map_err(kernel("look at it"))?;
        let is_up = link.header.flags.contains(LinkFlags::Up);
        let of_ipv6 = of_ipv6(handle, index).await?;
        let mut before = EarlierState {
            index,
            namespace,
            is_up,
            mtu: None,
            queue_packets: None,
            keeps_addresses: None,
            of_ipv6,
            is_idle_tun: false,
        };
        let (mut is_tun, mut is_idle) = (false, false);
        for attribute in link.attributes {
            match attribute {
                LinkAttribute::Carrier(carrier) => is_idle = carrier == 0,
                LinkAttribute::LinkInfo(info) => is_tun = info.contains(&LinkInfo::Kind(InfoKind::Tun)),
                LinkAttribute::Mtu(mtu) => before.mtu = Some(mtu),
                LinkAttribute::TxQueueLen(packets) => before.queue_packets = Some(packets),
                _ => {}
            }
        }
        before.is_idle_tun = is_tun && is_idle;
        Ok(before)
    }

    /// The state before a killed daemon made these changes. Later changes by other programs stay.
    fn adopt(&mut self, left: &[Set]) {
        for change in left {
            match change {
                Set::Up => self.is_up = false,
                Set::Mtu { before, after } if self.mtu == Some(*after) => self.mtu = Some(*before),
                Set::Queue { before, after } if self.queue_packets == Some(*after) => {
                    self.queue_packets = Some(*before);
                }
                Set::Keeps { before, after } if self.keeps_addresses.as_ref() == Some(after) => {
                    self.keeps_addresses = Some(before.clone());
                }
                Set::Address(address) => self.of_ipv6.retain(|there| *there != address.address()),
                _ => {}
            }
        }
    }

    /// The changes that these settings make.
    fn changes_by(&self, settings: &DeviceSettings, missing: Missing) -> Vec<Set> {
        let mut changes = Vec::new();
        changes.extend((!self.is_up).then_some(Set::Up));
        if let (Some(before), Some(after)) = (self.mtu, settings.mtu.map(u32::from)) {
            changes.push(Set::Mtu { before, after });
        }
        if let (Some(before), Some(after)) = (self.queue_packets, settings.queue_packets) {
            changes.push(Set::Queue { before, after });
        }
        if let Some(before) = self.keeps_addresses.clone() {
            changes.push(Set::Keeps { before, after: "1".to_owned() });
        }
        changes.extend(missing.addresses.into_iter().map(Set::Address));
        changes.extend(missing.routes.into_iter().map(Set::Route));
        changes
    }

    fn give_back(&self, added: Added) -> NetlinkResult {
        let device = name_of(self.index)?;
        if !self.is_up && self.keeps_addresses.is_some() {
            // Also for its own addresses, which it had while it was down.
            keep_addresses(&device, false);
        }
        let restored = blocking(async |handle| added.remove(&handle).await.and(self.restore(&handle).await));
        if let Some(value) = &self.keeps_addresses
            && let Err(error) = set_switch(&keeps_addresses(&device), value)
        {
            tracing::warn!(device, %error, "its switch keep_addr_on_down stays set");
        }
        restored
    }

    async fn restore(&self, handle: &Handle) -> NetlinkResult {
        let mut link = LinkUnspec::new_with_index(self.index);
        if let Some(mtu) = self.mtu {
            link = link.mtu(mtu);
        }
        if let Some(packets) = self.queue_packets {
            link = link.append_extra_attribute(LinkAttribute::TxQueueLen(packets));
        }
        let link = if self.is_up { link } else { link.down() };
        unless_gone("set it as it was", handle.link().set(link.build()).execute().await)
    }
}

/// Its IPv6 addresses, without the addresses that the kernel makes when the device comes up.
async fn of_ipv6(handle: &Handle, index: u32) -> NetlinkResult<Vec<IpAddr>> {
    let is_of_kernel = |attribute: &AddressAttribute| match attribute {
        AddressAttribute::Flags(flags) => flags.contains(AddressFlags::StablePrivacy),
        _ => false,
    };
    let there = listed(handle.address().get().set_link_index_filter(index)).await?;
    let of_ipv6 = there.iter().filter(|address| address.header.family == AddressFamily::Inet6);
    let own = of_ipv6.filter(|address| !address.attributes.iter().any(is_of_kernel));
    let address = |message: &AddressMessage| {
        message.attributes.iter().find_map(|attribute| match attribute {
            AddressAttribute::Address(address) => Some(*address),
            _ => None,
        })
    };
    Ok(own.filter_map(address).collect())
}

/// Addresses and routes that a device does not have yet.
#[derive(Debug, Default)]
struct Missing {
    addresses: Vec<Prefix>,
    routes: Vec<Prefix>,
}

impl Missing {
    async fn of(handle: &Handle, index: u32, settings: &DeviceSettings) -> NetlinkResult<Missing> {
        let mut addresses = Vec::new();
        for address in &settings.addresses {
            if !has_address(handle, index, address).await? {
                addresses.push(*address);
            }
        }
        Ok(Missing { addresses, routes: routes::missing(handle, index, &settings.routes).await? })
    }
}

impl Added {
    /// Additions of a killed daemon.
    async fn by(handle: &Handle, index: u32, changes: &[Set]) -> NetlinkResult<Added> {
        let mut added = Added::default();
        for change in changes {
            match change {
                Set::Address(address) => added.addresses.push(address_message(handle, index, address)),
                Set::Route(route) => added.routes.push(routes::route_message(index, route)?),
                _ => {}
            }
        }
        Ok(added)
    }

    /// Goes on after an error, and returns the first one. It goes in reverse order: with the first address of a subnet
    /// go all later addresses of that subnet.
    async fn remove(self, handle: &Handle) -> NetlinkResult {
        let mut removed = Ok(());
        for route in self.routes.into_iter().rev() {
            let done = handle.route().del(route).execute().await;
            removed = removed.and(unless_gone("remove a route", done));
        }
        for address in self.addresses.into_iter().rev() {
            let done = handle.address().del(address).execute().await;
            removed = removed.and(unless_gone("remove an address", done));
        }
        removed
    }
}

/// Ignores errors of entries that are gone already: the kernel removes the routes of a device that goes down.
fn unless_gone(doing: &str, done: Result<(), rtnetlink::Error>) -> NetlinkResult {
    match done {
        Err(error) if matches!(code_of(&error), libc::ESRCH | libc::EADDRNOTAVAIL | libc::ENODEV) => Ok(()),
        done => done.map_err(kernel(doing)),
    }
}

impl Loan {
    /// Takes over what a killed daemon left in this file.
    fn of(mut before: EarlierState, journal: Option<Journal>, left: Vec<Set>) -> Loan {
        before.adopt(&left);
        Loan { before, added: Added::default(), changes: left, journal }
    }

    /// Removes the additions of a killed daemon, and writes down the changes that follow.
    fn begin(&mut self, settings: &DeviceSettings) -> NetlinkResult {
        let (index, left) = (self.before.index, &self.changes);
        let missing = blocking(async move |handle| {
            Added::by(&handle, index, left).await?.remove(&handle).await?;
            Missing::of(&handle, index, settings).await
        })?;
        let Some(journal) = &mut self.journal else { return Ok(()) };
        for change in self.before.changes_by(settings, missing) {
            if !self.changes.contains(&change) {
                self.changes.push(change);
            }
        }
        if let Err(error) = journal.begin(&left::text(index, &self.changes)) {
            tracing::warn!(%error, "old values of a device that was there before are not on disk");
        }
        Ok(())
    }

    /// Removes its file as soon as the device is as before, or gone.
    fn end(&mut self, added: Added) -> NetlinkResult {
        let done = self.before.give_back(added);
        if matches!(done, Ok(()) | Err(NetlinkError::NoDevice(_)))
            && let Some(journal) = &mut self.journal
        {
            journal.end();
        }
        done
    }
}

impl OnLoan {
    /// The drop restores the device from here on; call it only once the device is ours. A file next to this path keeps
    /// its old values, and the drop also restores values that a killed daemon left there.
    pub(crate) fn new(before: EarlierState, beside: Option<&Path>) -> OnLoan {
        let Some(beside) = beside else { return OnLoan(Loan::of(before, None, Vec::new())) };
        let opened = file_beside(beside, before.index).and_then(|path| Journal::open(&path, &[]));
        match opened {
            Ok((journal, lines)) => {
                let left = left::read(&lines).filter(|(index, _)| *index == before.index);
                let left = left.map_or(Vec::new(), |(_, left)| left);
                OnLoan(Loan::of(before, Some(journal), left))
            }
            Err(error) => {
                tracing::warn!(%error, "old values of a device that was there before are not on disk");
                OnLoan(Loan::of(before, None, Vec::new()))
            }
        }
    }

    /// Like [`configure`](super::configure), until the drop.
    pub(crate) fn configure(&mut self, device: &str, settings: &DeviceSettings) -> NetlinkResult {
        let OnLoan(loan) = self;
        let has_ipv6 = !loan.before.of_ipv6.is_empty();
        if let Some(mtu) = settings.mtu.filter(|mtu| has_ipv6 && *mtu < IPV6_MIN_MTU) {
            return Err(NetlinkError::TooSmallForAddresses(mtu));
        }
        loan.begin(settings)?;
        apply(device, settings, &mut loan.added, false)
    }
}

impl Drop for OnLoan {
    fn drop(&mut self) {
        let OnLoan(loan) = self;
        let Ok(namespace) = loan.before.namespace.try_clone() else { return };
        let given_back = in_namespace(&namespace, || {
            let added = std::mem::take(&mut loan.added);
            match loan.end(added) {
                Ok(()) => {}
                Err(NetlinkError::NoDevice(_)) => tracing::warn!(
                    "the device is not here any more: one that was moved keeps what was set on it"
                ),
                Err(error) => tracing::warn!(%error, "what was set on a device that was there before stays"),
            }
            Ok(())
        });
        if let Err(error) = given_back {
            tracing::warn!(%error, "a device that was there before stays as it is");
        }
    }
}

/// Each device has a file of its own.
fn file_beside(path: &Path, index: u32) -> io::Result<PathBuf> {
    journal::file_beside(path, &format!(".{index}{OF_LOAN}"))
}

/// The files in this folder of devices that killed daemons left changed.
pub fn loans_left(folder: &Path) -> Vec<PathBuf> {
    journal::left_in(folder, OF_LOAN)
}

/// The device of such a file, if it is here.
pub fn device_of_loan(path: &Path) -> Option<String> {
    let (index, _) = left::read(&Journal::lines_here(path).ok()?)?;
    name_of(index).ok()
}

/// Outcome for a device that a killed daemon left changed. Its file is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repaired {
    /// The device of this name is as it was.
    Device(String),
    /// The device is gone.
    NoDevice,
    /// The file named no device.
    Junk,
}

/// Restores the device that a killed daemon left changed, and removes its file. The file has to belong to root, our own
/// user or one of these.
pub fn repair_loan(path: &Path, users: &[u32]) -> NetlinkResult<Repaired> {
    let system = |error| NetlinkError::System { doing: "open its file", error };
    let (mut journal, lines) = Journal::open_here(path, users).map_err(system)?;
    let Some((index, left)) = left::read(&lines) else {
        // A restart of the machine has removed the device of an older file.
        let became = if journal.is_of_this_boot() { Repaired::Junk } else { Repaired::NoDevice };
        journal.end();
        return Ok(became);
    };
    let Ok(device) = name_of(index) else {
        journal.end();
        return Ok(Repaired::NoDevice);
    };
    let before = EarlierState::of(&device)?.filter(|before| before.index == index && before.is_idle_tun);
    let before = before.ok_or_else(|| NetlinkError::InUse(device.clone()))?;
    let added = blocking(async |handle| Added::by(&handle, index, &left).await)?;
    Loan::of(before, Some(journal), left).end(added)?;
    Ok(Repaired::Device(device))
}
