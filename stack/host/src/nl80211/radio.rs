//! Sets the radio of a Wi-Fi interface: its type, its network, its rates and powers (linux/nl80211.h).
//!
//! The messages are few, and no crate for nl80211 that is kept well joins an ad hoc network or an 802.11s mesh.

pub(super) mod wire;

use std::os::fd::OwnedFd;
use std::time::Duration;
use std::{io, thread};

use hopwise_core::StationAddress;
use rustix::net::netlink::GENERIC;

use super::kernel::{INTERFACE, family_named};
use crate::netlink::ask::{KernelRefusal, ask, open_for_words, request};
use crate::netlink::message::{DUMP, GENERIC_HEADER, NetlinkMessage, NetlinkReply, attribute, word};

pub(crate) use wire::RadioNumber;
pub use wire::{Abilities, ChannelSetting, Frequency, InterfaceType, MeshCell, RadioState, Rates};

/// The kernel changes its regulatory domain some time after it was asked.
const DOMAIN_WITHIN: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A socket with which radios are set.
#[derive(Debug)]
pub struct Radio {
    socket: OwnedFd,
    family: u16,
}

impl Radio {
    /// Fails with `NotFound` if this kernel has no Wi-Fi.
    pub fn open() -> io::Result<Radio> {
        let socket = open_for_words(Some(GENERIC))?;
        let (family, _) = family_named(&socket, b"nl80211\0")?;
        Ok(Radio { socket, family })
    }

    /// The state of the interface with that number; `None` if it has no radio.
    pub fn state(&self, index: u32) -> io::Result<Option<RadioState>> {
        let mut found = None;
        let question = self.message(wire::GET_INTERFACE, index);
        let asked =
            ask(&self.socket, question, |heard| found = found.take().or_else(|| wire::state(heard.body)));
        match asked {
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENODEV | libc::EOPNOTSUPP)) => Ok(None),
            done => done.map(|()| found),
        }
    }

    /// The abilities of the interface's radio.
    pub fn abilities(&self, index: u32) -> io::Result<Abilities> {
        let mut abilities = Abilities::default();
        self.each_part(index, |heard| abilities.add(heard.body))?;
        abilities.frequencies.sort_unstable_by_key(|frequency| frequency.mhz);
        Ok(abilities)
    }

    /// The kernel tells a radio in several parts.
    fn each_part(&self, index: u32, sink: impl FnMut(&NetlinkReply<'_>)) -> io::Result<()> {
        let question = NetlinkMessage::new(self.family, DUMP, 0).fixed(&[wire::GET_WIPHY, 0, 0, 0]);
        let question = question.attribute(INTERFACE, &index.to_ne_bytes());
        ask(&self.socket, question.attribute(wire::SPLIT_DUMP, &[]), sink)
    }

    /// The name of the interface's radio, such as `phy0`.
    pub(super) fn name(&self, index: u32) -> io::Result<Option<String>> {
        let mut found = None;
        self.each_part(index, |heard| found = found.take().or_else(|| wire::name(heard.body)))?;
        Ok(found)
    }

    /// Gives the interface another type. It has to be down.
    pub fn set_kind(&self, index: u32, kind: InterfaceType) -> Result<(), KernelRefusal> {
        self.tell(
            self.message(wire::SET_INTERFACE, index).attribute(wire::TYPE, &kind.number().to_ne_bytes()),
        )
    }

    /// Joins the network. The interface has to be up and of this type.
    pub fn join(&self, index: u32, kind: InterfaceType, cell: &MeshCell) -> Result<(), KernelRefusal> {
        let command = if kind == InterfaceType::MESH { wire::JOIN_MESH } else { wire::JOIN_IBSS };
        self.tell(cell.write(self.message(command, index), kind))
    }

    /// Leaves the network of an interface of this type; one that is in none has left.
    pub fn leave(&self, index: u32, kind: InterfaceType) -> Result<(), KernelRefusal> {
        let command = if kind == InterfaceType::MESH { wire::LEAVE_MESH } else { wire::LEAVE_IBSS };
        match self.tell(self.message(command, index)) {
            Err(refused)
                if refused.is_one_of(&[libc::ENOTCONN, libc::ENOLINK, libc::ENETDOWN, libc::EOPNOTSUPP]) =>
            {
                Ok(())
            }
            done => done,
        }
    }

    /// Sends at these rates alone, in the band of this frequency; without any rate, at all that the radio has.
    pub fn set_rates(&self, index: u32, mhz: u32, rates: &Rates) -> Result<(), KernelRefusal> {
        self.tell(rates.write(self.message(wire::SET_RATES, index), mhz))
    }

    /// The power in hundredths of dBm; `None` lets the driver choose it.
    pub fn set_power(&self, index: u32, hundredths: Option<u32>) -> Result<(), KernelRefusal> {
        self.tell(wire::power(self.message(wire::SET_WIPHY, index), hundredths))
    }

    /// A number of the radio, such as its RTS threshold; `None` if there is no radio, or it does not tell.
    pub(crate) fn number(&self, index: u32, number: RadioNumber) -> io::Result<Option<u32>> {
        if self.state(index)?.is_none() {
            // The kernel tells the numbers of all radios if it is asked about an interface without a radio.
            return Ok(None);
        }
        let mut found = None;
        let sink = |heard: &NetlinkReply<'_>| found = found.or_else(|| number.read(heard.body));
        let asked = match number.get {
            wire::GET_WIPHY => self.each_part(index, sink),
            get => ask(&self.socket, self.message(get, index), sink),
        };
        match asked {
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
            done => done.map(|()| found),
        }
    }

    /// Gives a number of the radio this value.
    pub(crate) fn set_number(
        &self,
        index: u32,
        number: RadioNumber,
        value: u32,
    ) -> Result<(), KernelRefusal> {
        self.tell(number.write(self.message(number.set, index), value))
    }

    /// Returns whether the radio sleeps between frames; `None` if the driver does not tell.
    pub fn power_save(&self, index: u32) -> io::Result<Option<bool>> {
        Ok(self.number(index, RadioNumber::POWER_SAVE)?.map(|state| state != 0))
    }

    /// The networks that the interface has heard lately, its own included. No scan begins: a radio hears the beacons of
    /// its channel at any time.
    pub fn networks(&self, index: u32) -> io::Result<Vec<HeardNetwork>> {
        let mut found = Vec::new();
        let question = NetlinkMessage::new(self.family, DUMP, 0).fixed(&[GET_SCAN, 0, 0, 0]);
        ask(&self.socket, question.attribute(INTERFACE, &index.to_ne_bytes()), |heard| {
            found.extend(network(heard.body));
        })?;
        Ok(found)
    }

    /// The country of the regulatory domain, such as `DE`; `00` is the world.
    pub fn country(&self) -> io::Result<Option<String>> {
        let mut found = None;
        let question = NetlinkMessage::new(self.family, 0, 0).fixed(&[wire::GET_DOMAIN, 0, 0, 0]);
        ask(&self.socket, question, |heard| found = found.take().or_else(|| country(heard)))?;
        Ok(found)
    }

    /// Sets the country, and waits until the kernel has its domain.
    #[expect(clippy::disallowed_methods, reason = "nothing is driven while interfaces are brought up")]
    pub fn set_country(&self, code: &str) -> Result<(), KernelRefusal> {
        let question = NetlinkMessage::new(self.family, 0, 0).fixed(&[wire::SET_DOMAIN, 0, 0, 0]);
        self.tell(question.attribute(wire::COUNTRY, format!("{code}\0").as_bytes()))?;
        let mut waited = Duration::ZERO;
        while waited < DOMAIN_WITHIN {
            if self.country()?.as_deref() == Some(code) {
                return Ok(());
            }
            thread::sleep(LOOK_EVERY);
            waited += LOOK_EVERY;
        }
        let now = self.country()?.unwrap_or_else(|| "none".to_owned());
        Err(KernelRefusal {
            error: io::ErrorKind::TimedOut.into(),
            said: Some(format!(
                "the kernel stays at {now}: expected a code that its regulatory database has (Debian: \
                 wireless-regdb), and no driver that holds a domain of its own"
            )),
        })
    }

    fn message(&self, command: u8, index: u32) -> NetlinkMessage {
        NetlinkMessage::new(self.family, 0, 0)
            .fixed(&[command, 0, 0, 0])
            .attribute(INTERFACE, &index.to_ne_bytes())
    }

    fn tell(&self, message: NetlinkMessage) -> Result<(), KernelRefusal> {
        request(&self.socket, message, |_| {})
    }
}

fn country(heard: &NetlinkReply<'_>) -> Option<String> {
    let code = String::from_utf8_lossy(attribute(heard.body.get(GENERIC_HEADER..)?, wire::COUNTRY)?);
    Some(code.trim_end_matches('\0').to_owned())
}

const GET_SCAN: u8 = 32;
const NEW_SCAN_RESULTS: u8 = 34;
const BSS: u16 = 47;
/// Within a network.
const BSSID: u16 = 1;
const FREQUENCY: u16 = 2;
const ELEMENTS: u16 = 6;
const SIGNAL_MBM: u16 = 7;
const STATUS: u16 = 9;
const SEEN_MS_AGO: u16 = 10;
const BEACON_ELEMENTS: u16 = 11;
/// Elements of a beacon (IEEE 802.11, 9.4.2): the SSID, the mesh ID, and the rates.
const ELEMENT_SSID: u8 = 0;
const ELEMENT_MESH_ID: u8 = 114;
/// Its rates, in units of 500 kbit/s, each basic one with the uppermost bit.
const ELEMENT_RATES: u8 = 1;
const BASIC: u8 = 0x80;

/// A network of which the radio heard a beacon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeardNetwork {
    /// Its BSSID.
    pub bssid: StationAddress,
    /// The middle of its first 20 MHz.
    pub mhz: u32,
    /// SSID or mesh ID; empty if it is hidden.
    pub name: Vec<u8>,
    /// The power of its last beacon.
    pub signal_dbm: Option<i32>,
    /// The age of its last beacon.
    pub age: Option<Duration>,
    /// The interface belongs to it.
    pub is_ours: bool,
    /// The slowest of the rates that all its stations have, in bits a second.
    pub slowest_basic_bps: Option<u32>,
}

/// The network in one message of a dump.
fn network(body: &[u8]) -> Option<HeardNetwork> {
    let all = body.get(GENERIC_HEADER..).filter(|_| body[0] == NEW_SCAN_RESULTS)?;
    let bss = attribute(all, BSS)?;
    let number = |kind| attribute(bss, kind).and_then(|value| word(value, 0));
    let elements = attribute(bss, ELEMENTS).or_else(|| attribute(bss, BEACON_ELEMENTS)).unwrap_or_default();
    let basic = element(elements, ELEMENT_RATES).unwrap_or_default().iter().filter(|rate| **rate >= BASIC);
    let name = |id| element(elements, id).filter(|name| !name.is_empty());
    Some(HeardNetwork {
        bssid: attribute(bss, BSSID)?.try_into().ok().map(StationAddress)?,
        mhz: number(FREQUENCY)?,
        name: name(ELEMENT_MESH_ID).or_else(|| name(ELEMENT_SSID)).unwrap_or_default().to_vec(),
        signal_dbm: number(SIGNAL_MBM).map(|mbm| mbm.cast_signed() / 100),
        age: number(SEEN_MS_AGO).map(|ms| Duration::from_millis(ms.into())),
        is_ours: attribute(bss, STATUS).is_some(),
        slowest_basic_bps: basic.map(|rate| u32::from(rate - BASIC) * 500_000).min(),
    })
}

/// The content of the first element with that number.
fn element(mut elements: &[u8], id: u8) -> Option<&[u8]> {
    while let [kind, len, rest @ ..] = elements {
        let content = rest.get(..usize::from(*len))?;
        if *kind == id {
            return Some(content);
        }
        elements = &rest[usize::from(*len)..];
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::netlink::message::{HEADER, NetlinkMessage};

    #[test]
    fn a_kernel_without_wi_fi_says_so_and_a_loopback_has_no_radio() {
        match Radio::open() {
            Ok(radio) => assert_eq!(radio.state(1).expect("it answers"), None),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::NotFound, "{error}"),
        }
    }

    #[test]
    fn a_country_is_read_without_its_zero() {
        let body = NetlinkMessage::new(0, 0, 0)
            .fixed(&[wire::GET_DOMAIN, 0, 0, 0])
            .attribute(wire::COUNTRY, b"DE\0");
        let body = body.finish().split_off(HEADER);
        let heard = NetlinkReply { kind: 30, number: 1, body: &body };
        assert_eq!(country(&heard).as_deref(), Some("DE"));
    }

    fn heard(elements: &[u8], is_ours: bool) -> Vec<u8> {
        let bss = |message: NetlinkMessage| {
            let message = message
                .attribute(BSSID, &[2, 0, 0, 0, 0, 9])
                .attribute(FREQUENCY, &2_412_u32.to_ne_bytes())
                .attribute(SIGNAL_MBM, &(-6_700_i32).to_ne_bytes())
                .attribute(SEEN_MS_AGO, &120_u32.to_ne_bytes())
                .attribute(ELEMENTS, elements);
            if is_ours { message.attribute(STATUS, &2_u32.to_ne_bytes()) } else { message }
        };
        let message = NetlinkMessage::new(0, 0, 0).fixed(&[NEW_SCAN_RESULTS, 1, 0, 0]).nest(BSS, bss);
        message.finish().split_off(HEADER)
    }

    #[test]
    fn a_network_is_read_with_its_name_and_whether_it_is_ours() {
        let expected = HeardNetwork {
            bssid: StationAddress([2, 0, 0, 0, 0, 9]),
            mhz: 2_412,
            name: b"cafe".to_vec(),
            signal_dbm: Some(-67),
            age: Some(Duration::from_millis(120)),
            is_ours: false,
            slowest_basic_bps: None,
        };
        assert_eq!(network(&heard(b"\x01\x01\x02\x00\x04cafe", false)), Some(expected.clone()));
        let mesh = heard(b"\x00\x00\x72\x04roof", true);
        assert_eq!(network(&mesh), Some(HeardNetwork { name: b"roof".to_vec(), is_ours: true, ..expected }));
        let rates =
            network(&heard(b"\x01\x04\x02\x8b\x84\x0c", true)).and_then(|network| network.slowest_basic_bps);
        assert_eq!(rates, Some(2_000_000), "1 Mbit/s is there, and no basic rate");
        assert_eq!(network(&heard(b"\x00\x09cut", false)).map(|network| network.name), Some(Vec::new()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn nonsense_is_no_network_and_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = (network(&bytes), network(&heard(&bytes, false)));
        }
    }
}
