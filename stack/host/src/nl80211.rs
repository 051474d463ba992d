//! Reads the stations of a Wi-Fi interface from the kernel (nl80211), and receives its notifications of them.
//!
//! It uses plain netlink: a dump and a group are enough, and both are needed on threads that have no runtime.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::{RecvFlags, bind, recv};

use crate::netlink::ask::{ask, open};
use crate::netlink::message::{self, DUMP, Message, attribute, attributes, word};
use crate::sys;

/// The family that lists the others (GENL_ID_CTRL), its request for one, and the attributes of the reply.
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const GROUPS: u16 = 7;
const GROUP_NAME: u16 = 1;
const GROUP_ID: u16 = 2;
/// Commands and attributes of linux/nl80211.h.
const GET_STATION: u8 = 17;
const NEW_STATION: u8 = 19;
const DEL_STATION: u8 = 20;
const NOTIFY_CQM: u8 = 64;
const INTERFACE: u16 = 3;
const ADDRESS: u16 = 6;
const STATION_INFO: u16 = 21;
const CQM: u16 = 94;
const PACKETS_LOST: u16 = 4;
/// A generic message's header: command, version, two empty bytes.
const GENERIC_HEADER: usize = 4;
const ADD_MEMBERSHIP: (libc::c_int, libc::c_int) = (libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP);
const BUFFER: usize = 32 << 10;

/// A station's Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StationAddress(pub [u8; 6]);

impl fmt::Display for StationAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl std::str::FromStr for StationAddress {
    type Err = NoStationAddress;

    fn from_str(text: &str) -> Result<StationAddress, NoStationAddress> {
        let mut address = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut address {
            let part = parts.next().filter(|part| part.len() == 2).ok_or(NoStationAddress)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| NoStationAddress)?;
        }
        if parts.next().is_some() { Err(NoStationAddress) } else { Ok(StationAddress(address)) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoStationAddress;

impl fmt::Display for NoStationAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no Ethernet address such as 02:00:00:00:01:00")
    }
}

impl std::error::Error for NoStationAddress {}

/// The kernel's facts about a station. A fact that a driver does not report is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Station {
    pub address: StationAddress,
    /// The time since its last frame, which is the age of the signals.
    pub inactive: Option<Duration>,
    pub signal_dbm: Option<i8>,
    pub signal_average_dbm: Option<i8>,
    /// These count since the station came. Not every driver counts retries.
    pub tx_packets: Option<u32>,
    pub tx_retries: Option<u32>,
    pub tx_failed: Option<u32>,
    pub rx_packets: Option<u32>,
}

/// The kernel's notifications of an interface's stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StationNews {
    Came(StationAddress),
    Left(StationAddress),
    /// It has not acknowledged so many packets in a row.
    Unheard {
        address: StationAddress,
        packets: u32,
    },
}

/// Requests the stations.
#[derive(Debug)]
pub struct Nl80211 {
    socket: OwnedFd,
    family: u16,
    /// The group of notifications about stations ("mlme").
    group: Option<u32>,
}

impl Nl80211 {
    /// Fails with `NotFound` if this kernel has no Wi-Fi.
    pub fn open() -> io::Result<Nl80211> {
        let socket = open(Some(GENERIC))?;
        let mut found = None;
        ask(&socket, family_named(b"nl80211\0"), |heard| {
            found = found.or_else(|| family(heard.body));
        })?;
        let (family, group) = found.ok_or(io::ErrorKind::NotFound)?;
        Ok(Nl80211 { socket, family, group })
    }

    /// All stations of an interface, by its number.
    pub fn stations(&mut self, interface: u32) -> io::Result<Vec<Station>> {
        let question = Message::new(self.family, DUMP, 0).fixed(&[GET_STATION, 0, 0, 0]);
        let mut stations = Vec::new();
        ask(&self.socket, question.attribute(INTERFACE, &interface.to_ne_bytes()), |heard| {
            stations.extend(station(heard.body));
        })?;
        Ok(stations)
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

/// The question for a family of generic netlink, by its name with a zero at the end.
pub(crate) fn family_named(name: &[u8]) -> Message {
    Message::new(CONTROL, 0, 0).fixed(&[GET_FAMILY, 1, 0, 0]).attribute(FAMILY_NAME, name)
}

/// The family's number, and that of its group if it has one.
pub(crate) fn family(body: &[u8]) -> Option<(u16, Option<u32>)> {
    let body = body.get(GENERIC_HEADER..)?;
    let id = u16::from_ne_bytes(attribute(body, FAMILY_ID)?.try_into().ok()?);
    let groups = attribute(body, GROUPS).unwrap_or_default();
    let is_mlme = |group: &&[u8]| attribute(group, GROUP_NAME).is_some_and(|name| name == b"mlme\0");
    let mlme = attributes(groups).map(|(_, group)| group).find(is_mlme);
    Some((id, mlme.and_then(|group| word(attribute(group, GROUP_ID)?, 0))))
}

fn address(attributes: &[u8]) -> Option<StationAddress> {
    attribute(attributes, ADDRESS)?.try_into().ok().map(StationAddress)
}

/// The station in one message of a dump.
pub(crate) fn station(body: &[u8]) -> Option<Station> {
    const INACTIVE: u16 = 1;
    const SIGNAL: u16 = 7;
    const RX_PACKETS: u16 = 9;
    const TX_PACKETS: u16 = 10;
    const TX_RETRIES: u16 = 11;
    const TX_FAILED: u16 = 12;
    const SIGNAL_AVERAGE: u16 = 13;
    if *body.first()? != NEW_STATION {
        return None;
    }
    let all = body.get(GENERIC_HEADER..)?;
    let info = attribute(all, STATION_INFO)?;
    let count = |kind| word(attribute(info, kind)?, 0);
    let dbm = |kind| attribute(info, kind)?.first().map(|byte| i8::from_ne_bytes([*byte]));
    Some(Station {
        address: address(all)?,
        inactive: count(INACTIVE).map(|ms| Duration::from_millis(ms.into())),
        signal_dbm: dbm(SIGNAL),
        signal_average_dbm: dbm(SIGNAL_AVERAGE),
        tx_packets: count(TX_PACKETS),
        tx_retries: count(TX_RETRIES),
        tx_failed: count(TX_FAILED),
        rx_packets: count(RX_PACKETS),
    })
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
