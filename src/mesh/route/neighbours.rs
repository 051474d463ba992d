//! The interfaces of the mesh, with their sockets for packets.

use hopwise_core::LinkId;
use hopwise_core::narrow::as_u16;
use hopwise_host::netlink;
use hopwise_host::routing::{Resender, Watch};

use super::stations::Stations;
use crate::failure::Failure;

#[derive(Debug)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) link: LinkId,
    pub(super) index: u32,
    pub(super) watch: Watch,
    pub(super) resender: Resender,
    /// Present where stations are reported: on Wi-Fi, and on a device of `hopwise air`.
    pub(super) stations: Option<Stations>,
}

impl Port {
    pub(super) fn open(nth: usize, name: &str) -> Result<Port, Failure> {
        let failed = |doing: &'static str| {
            move |error: std::io::Error| Failure::failed(doing, format_args!("{name}: {error}"))
        };
        let index = netlink::index_of(name)
            .map_err(|error| Failure::failed("find an interface", format_args!("{name}: {error}")))?;
        Ok(Port {
            name: name.to_owned(),
            link: LinkId(as_u16(nth)),
            index,
            watch: Watch::open(name).map_err(failed("watch an interface"))?,
            resender: Resender::open(name).map_err(failed("open a socket for packets"))?,
            stations: Stations::open(name).ok(),
        })
    }
}
