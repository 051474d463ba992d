//! A device that was there before us and stays after us: it is left as it was.

use std::io;

use futures_util::StreamExt;
use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags};
use netlink_packet_route::route::RouteMessage;
use rtnetlink::{Handle, LinkUnspec};

use super::{NetlinkError, blocking, index_of, keeps_addresses, kernel};
use crate::namespace::{set_switch, switch_of};

/// How a device was.
#[derive(Debug)]
pub(crate) struct Before {
    index: u32,
    is_up: bool,
    mtu: Option<u32>,
    queue_packets: Option<u32>,
    keeps_addresses: Option<String>,
}

/// What it did not have.
#[derive(Debug, Default)]
pub(super) struct Added {
    pub(super) addresses: Vec<AddressMessage>,
    pub(super) routes: Vec<RouteMessage>,
}

/// Is taken back when it is dropped, for which it needs CAP_NET_ADMIN.
#[derive(Debug)]
pub(crate) struct OnLoan {
    device: String,
    before: Before,
    added: Added,
}

impl Before {
    /// None of a device that is not there.
    pub(crate) fn of(device: &str) -> Result<Option<Before>, NetlinkError> {
        let Ok(index) = index_of(device) else { return Ok(None) };
        let mut before = blocking(async |handle| Before::look(&handle, index).await)?;
        before.keeps_addresses = switch_of(&keeps_addresses(device)).ok();
        Ok(Some(before))
    }

    async fn look(handle: &Handle, index: u32) -> Result<Before, NetlinkError> {
        let mut links = Box::pin(handle.link().get().match_index(index).execute());
        let gone = || NetlinkError::NoDevice(io::ErrorKind::NotFound.into());
        let link = links.next().await.ok_or_else(gone)?.map_err(|error| kernel("look at it", error))?;
        let is_up = link.header.flags.contains(LinkFlags::Up);
        let mut before = Before { index, is_up, mtu: None, queue_packets: None, keeps_addresses: None };
        for attribute in link.attributes {
            match attribute {
                LinkAttribute::Mtu(mtu) => before.mtu = Some(mtu),
                LinkAttribute::TxQueueLen(packets) => before.queue_packets = Some(packets),
                _ => {}
            }
        }
        Ok(before)
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
        let request = handle.link().set(link.build());
        request.execute().await.map_err(|error| kernel("set it as it was", error))
    }
}

impl Added {
    async fn remove(self, handle: &Handle) -> Result<(), NetlinkError> {
        for route in self.routes {
            let request = handle.route().del(route);
            request.execute().await.map_err(|error| kernel("remove a route", error))?;
        }
        for address in self.addresses {
            let request = handle.address().del(address);
            request.execute().await.map_err(|error| kernel("remove an address", error))?;
        }
        Ok(())
    }
}

impl OnLoan {
    pub(super) fn new(device: &str, before: Before, added: Added) -> OnLoan {
        OnLoan { device: device.to_owned(), before, added }
    }
}

impl Drop for OnLoan {
    fn drop(&mut self) {
        let OnLoan { device, before, added } = self;
        // A device that was removed meanwhile has nothing left of it.
        if index_of(device).ok() != Some(before.index) {
            return;
        }
        let added = std::mem::take(added);
        let restored = blocking(async |handle| {
            added.remove(&handle).await?;
            before.restore(&handle).await
        });
        if let Err(error) = restored {
            tracing::warn!(device, %error, "what was set on it stays");
        }
        if let Some(value) = &before.keeps_addresses
            && let Err(error) = set_switch(&keeps_addresses(device), value)
        {
            tracing::warn!(device, %error, "its switch keep_addr_on_down stays set");
        }
    }
}
