//! The interfaces of the mesh, with their sockets for messages and for packets.

use std::net::Ipv4Addr;

use hopwise_core::LinkId;
use hopwise_host::netlink;
use hopwise_host::routing::{ControlSocket, Resender, Watch};

use super::speaks::Speaks;
use super::stations::{Stations, Wifi};
use crate::failure::Failure;

#[derive(Debug)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) link: LinkId,
    pub(super) index: u32,
    pub(super) control: ControlSocket,
    pub(super) watch: Watch,
    pub(super) resender: Resender,
    /// Present on a Wi-Fi interface.
    pub(super) stations: Option<Stations>,
}

impl Port {
    pub(super) fn open(nth: usize, name: &str, speaks: &Speaks) -> Result<Port, Failure> {
        let failed = |doing: &'static str| {
            move |error: std::io::Error| Failure::failed(doing, format_args!("{name}: {error}"))
        };
        let index = netlink::index_of(name)
            .map_err(|error| Failure::failed("find an interface", format_args!("{name}: {error}")))?;
        Ok(Port {
            name: name.to_owned(),
            link: LinkId(nth as u16),
            index,
            control: ControlSocket::open(name, speaks.port(), speaks.everyone())
                .map_err(failed("open a socket for messages"))?,
            watch: Watch::open(name).map_err(failed("watch an interface"))?,
            resender: Resender::open(name).map_err(failed("open a socket for packets"))?,
            stations: Wifi::open(index).ok().map(|wifi| Stations::new(Box::new(wifi))),
        })
    }
}

/// The IPv4 address, if it is one.
pub(super) fn v4(address: std::net::IpAddr) -> Option<Ipv4Addr> {
    match address {
        std::net::IpAddr::V4(v4) => Some(v4),
        std::net::IpAddr::V6(_) => None,
    }
}
