//! Restores a device that existed before us and stays after us.

use std::fs::File;
use std::io;

use futures_util::StreamExt;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags};
use netlink_packet_route::route::RouteMessage;
use rtnetlink::{Handle, LinkUnspec};

use super::{
    DeviceSettings, IPV6_MIN_MTU, NetlinkError, apply, blocking, code_of, index_of, keep_addresses,
    keeps_addresses, kernel, listed, name_of,
};
use crate::namespace::{OWN_NAMESPACE, in_namespace};
use crate::namespace::{set_switch, switch_of};

/// The earlier state of a device.
#[derive(Debug)]
pub(crate) struct Before {
    /// A device can be renamed, but keeps its number.
    index: u32,
    /// The namespace of that number; in another one, the number may belong to another device. The drop may run in
    /// another one.
    namespace: File,
    is_up: bool,
    mtu: Option<u32>,
    queue_packets: Option<u32>,
    keeps_addresses: Option<String>,
    has_ipv6: bool,
}

/// The addresses and routes that we added.
#[derive(Debug, Default)]
pub(super) struct Added {
    pub(super) addresses: Vec<AddressMessage>,
    pub(super) routes: Vec<RouteMessage>,
}

/// Restores the device when it is dropped, for which it needs CAP_NET_ADMIN.
#[derive(Debug)]
pub(crate) struct OnLoan {
    before: Before,
    added: Added,
}

impl Before {
    /// The state of the device; `None` if it does not exist.
    pub(crate) fn of(device: &str) -> Result<Option<Before>, NetlinkError> {
        let Ok(index) = index_of(device) else { return Ok(None) };
        let namespace = File::open(OWN_NAMESPACE)
            .map_err(|error| NetlinkError::System { doing: "name its namespace", error })?;
        let mut before = blocking(async |handle| Before::look(&handle, index, namespace).await)?;
        before.keeps_addresses = switch_of(&keeps_addresses(device)).ok();
        Ok(Some(before))
    }

    async fn look(handle: &Handle, index: u32, namespace: File) -> Result<Before, NetlinkError> {
        let mut links = Box::pin(handle.link().get().match_index(index).execute());
        let gone = || NetlinkError::NoDevice(io::ErrorKind::NotFound.into());
        let link = links.next().await.ok_or_else(gone)?.map_err(|error| kernel("look at it", error))?;
        let is_up = link.header.flags.contains(LinkFlags::Up);
        let has_ipv6 = has_ipv6(handle, index).await?;
        let mut before = Before {
            index,
            namespace,
            is_up,
            mtu: None,
            queue_packets: None,
            keeps_addresses: None,
            has_ipv6,
        };
        for attribute in link.attributes {
            match attribute {
                LinkAttribute::Mtu(mtu) => before.mtu = Some(mtu),
                LinkAttribute::TxQueueLen(packets) => before.queue_packets = Some(packets),
                _ => {}
            }
        }
        Ok(before)
    }

    fn give_back(&self, added: Added) {
        let Ok(device) = name_of(self.index) else {
            tracing::warn!("the device is not here any more: one that was moved keeps what was set on it");
            return;
        };
        if !self.is_up && self.keeps_addresses.is_some() {
            // Also for its own addresses, which it had while it was down.
            keep_addresses(&device);
        }
        let restored = blocking(async |handle| {
            let removed = added.remove(&handle).await;
            removed.and(self.restore(&handle).await)
        });
        if let Err(error) = restored {
            tracing::warn!(device, %error, "what was set on it stays");
        }
        if let Some(value) = &self.keeps_addresses
            && let Err(error) = set_switch(&keeps_addresses(&device), value)
        {
            tracing::warn!(device, %error, "its switch keep_addr_on_down stays set");
        }
    }

    async fn restore(&self, handle: &Handle) -> Result<(), NetlinkError> {
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

/// Returns whether it has IPv6 addresses besides those that the kernel makes when the device comes up.
async fn has_ipv6(handle: &Handle, index: u32) -> Result<bool, NetlinkError> {
    let is_of_kernel = |attribute: &AddressAttribute| match attribute {
        AddressAttribute::Flags(flags) => flags.contains(AddressFlags::StablePrivacy),
        _ => false,
    };
    let there = listed(handle.address().get().set_link_index_filter(index)).await?;
    let mut of_ipv6 = there.iter().filter(|address| address.header.family == AddressFamily::Inet6);
    Ok(of_ipv6.any(|address| !address.attributes.iter().any(is_of_kernel)))
}

impl Added {
    /// Removes as much as possible, and returns the first error. It goes in reverse order: the first address of a
    /// subnet takes the others of that subnet along.
    async fn remove(self, handle: &Handle) -> Result<(), NetlinkError> {
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
fn unless_gone(doing: &str, done: Result<(), rtnetlink::Error>) -> Result<(), NetlinkError> {
    match done {
        Err(error) if matches!(code_of(&error), libc::ESRCH | libc::EADDRNOTAVAIL | libc::ENODEV) => Ok(()),
        done => done.map_err(|error| kernel(doing, error)),
    }
}

impl OnLoan {
    /// The drop restores the device from here on; call it only once the device is ours.
    pub(crate) fn new(before: Before) -> OnLoan {
        OnLoan { before, added: Added::default() }
    }

    /// Like [`configure`](super::configure), until the drop.
    pub(crate) fn configure(&mut self, device: &str, settings: &DeviceSettings) -> Result<(), NetlinkError> {
        if let Some(mtu) = settings.mtu.filter(|mtu| self.before.has_ipv6 && *mtu < IPV6_MIN_MTU) {
            return Err(NetlinkError::TooSmallForAddresses(mtu));
        }
        apply(device, settings, &mut self.added)
    }
}

impl Drop for OnLoan {
    fn drop(&mut self) {
        let OnLoan { before, added } = self;
        let added = std::mem::take(added);
        let given_back = in_namespace(&before.namespace, || {
            before.give_back(added);
            Ok(())
        });
        if let Err(error) = given_back {
            tracing::warn!(%error, "a device that was there before stays as it is");
        }
    }
}
