//! Asks the kernel for stations, and receives its notifications of them.
//!
//! It uses plain netlink: a dump and a group are enough, and both are needed on threads that have no runtime.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use hopwise_core::{Instant, LinkFacts, StationAddress};
use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::{RecvFlags, bind, recv};

use super::station::{NEW_STATION, address, station};
use crate::netlink::ask::{ask, open};
use crate::netlink::message::{self, DUMP, GENERIC_HEADER, NetlinkMessage, attribute, attributes, word};
use crate::sys;

/// The family that lists all families (GENL_ID_CTRL), its request for one of them, and the attributes of the reply.
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const GROUPS: u16 = 7;
const GROUP_NAME: u16 = 1;
const GROUP_ID: u16 = 2;
/// Commands and attributes of linux/nl80211.h.
pub(super) const GET_STATION: u8 = 17;
const DEL_STATION: u8 = 20;
const NOTIFY_CQM: u8 = 64;
pub(super) const INTERFACE: u16 = 3;
const CQM: u16 = 94;
const PACKETS_LOST: u16 = 4;
const ADD_MEMBERSHIP: (libc::c_int, libc::c_int) = (libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP);
const BUFFER: usize = 32 << 10;

/// The kernel's notifications of an interface's stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StationNews {
    /// The interface has a new station.
    Came(StationAddress),
    /// The station is gone.
    Left(StationAddress),
    /// It has not acknowledged packets in a row.
    Unheard {
        /// The silent station.
        address: StationAddress,
        /// The number of packets in a row that it did not acknowledge.
        packets: u32,
    },
}

/// Requests the stations.
#[derive(Debug)]
pub struct Nl80211 {
    pub(super) socket: OwnedFd,
    pub(super) family: u16,
    /// The group of notifications about stations ("mlme").
    group: Option<u32>,
}

impl Nl80211 {
    /// Fails with `NotFound` if this kernel has no Wi-Fi.
    pub fn open() -> io::Result<Nl80211> {
        let socket = open(Some(GENERIC))?;
        let (family, group) = family_named(&socket, b"nl80211\0")?;
        Ok(Nl80211 { socket, family, group })
    }

    /// All stations of an interface, by its number, as its driver reports them. A
    /// [`StationSource`](super::StationSource) judges the report.
    pub fn stations(&mut self, interface: u32, at: Instant) -> io::Result<Vec<LinkFacts>> {
        let mut stations = Vec::new();
        ask(&self.socket, self.question(GET_STATION, interface), |heard| {
            stations.extend(station(heard.body, at));
        })?;
        Ok(stations)
    }

    /// The question for all that the kernel tells of an interface by this command.
    pub(super) fn question(&self, command: u8, interface: u32) -> NetlinkMessage {
        let question = NetlinkMessage::new(self.family, DUMP, 0).fixed(&[command, 0, 0, 0]);
        question.attribute(INTERFACE, &interface.to_ne_bytes())
    }
}

/// Receives the notifications of one interface's stations.
#[derive(Debug)]
pub struct StationWatch {
    socket: OwnedFd,
    family: u16,
    interface: u32,
}

impl StationWatch {
    /// Watches the interface with this index.
    pub fn open(interface: u32) -> io::Result<StationWatch> {
        let Nl80211 { family, group, .. } = Nl80211::open()?;
        let group = group.ok_or(io::ErrorKind::Unsupported)?;
        let socket = open(Some(GENERIC))?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        bind(&socket, &SocketAddrNetlink::new(0, 0))?;
        sys::set_option(socket.as_fd(), ADD_MEMBERSHIP, group as libc::c_int)?;
        Ok(StationWatch { socket, family, interface })
    }

    /// Reads the notifications so far, without waiting.
    pub fn read(&mut self, sink: &mut dyn FnMut(StationNews)) -> io::Result<()> {
        let mut buffer = [0_u8; BUFFER];
        loop {
            match recv(&self.socket, &mut buffer[..], RecvFlags::empty()) {
                Ok((bytes, _)) => {
                    let heard = message::messages(&buffer[..bytes]);
                    let ours = heard.filter(|heard| heard.kind == self.family);
                    ours.filter_map(|heard| news(heard.body, self.interface)).for_each(&mut *sink);
                }
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                // Some were lost for lack of room; the next ones are as good.
                Err(rustix::io::Errno::NOBUFS) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for StationWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The numbers of a family of generic netlink and of its group, if it has a group. The name ends with a zero. Fails
/// with `NotFound` if this kernel lacks the family.
pub(crate) fn family_named(socket: impl AsFd, name: &[u8]) -> io::Result<(u16, Option<u32>)> {
    let question =
        NetlinkMessage::new(CONTROL, 0, 0).fixed(&[GET_FAMILY, 1, 0, 0]).attribute(FAMILY_NAME, name);
    let mut found = None;
    ask(socket, question, |heard| found = found.or_else(|| family(heard.body)))?;
    found.ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The numbers of the family and of its group, if it has a group.
pub(crate) fn family(body: &[u8]) -> Option<(u16, Option<u32>)> {
    let body = body.get(GENERIC_HEADER..)?;
    let id = u16::from_ne_bytes(attribute(body, FAMILY_ID)?.try_into().ok()?);
    let groups = attribute(body, GROUPS).unwrap_or_default();
    let is_mlme = |group: &&[u8]| attribute(group, GROUP_NAME).is_some_and(|name| name == b"mlme\0");
    let mlme = attributes(groups).map(|(_, group)| group).find(is_mlme);
    Some((id, mlme.and_then(|group| word(attribute(group, GROUP_ID)?, 0))))
}

/// The notification in one message, if it is about that interface.
pub(crate) fn news(body: &[u8], interface: u32) -> Option<StationNews> {
    let all = body.get(GENERIC_HEADER..)?;
    if word(attribute(all, INTERFACE)?, 0)? != interface {
        return None;
    }
    let address = address(all)?;
    match *body.first()? {
        NEW_STATION => Some(StationNews::Came(address)),
        DEL_STATION => Some(StationNews::Left(address)),
        NOTIFY_CQM => {
            let packets = word(attribute(attribute(all, CQM)?, PACKETS_LOST)?, 0)?;
            Some(StationNews::Unheard { address, packets })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
