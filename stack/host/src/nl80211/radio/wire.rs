//! Messages of nl80211 about a radio and its settings, as bytes (linux/nl80211.h).

use std::fmt;

use super::super::station::ADDRESS;
use crate::netlink::message::{GENERIC_HEADER, NetlinkMessage, attribute, attributes, word};

/// Commands.
pub(super) const GET_WIPHY: u8 = 1;
pub(super) const SET_WIPHY: u8 = 2;
pub(in crate::nl80211) const GET_INTERFACE: u8 = 5;
pub(super) const SET_INTERFACE: u8 = 6;
pub(in crate::nl80211) const NEW_INTERFACE: u8 = 7;
pub(super) const SET_DOMAIN: u8 = 27;
const GET_MESH: u8 = 28;
const SET_MESH: u8 = 29;
pub(super) const GET_DOMAIN: u8 = 31;
pub(super) const JOIN_IBSS: u8 = 43;
pub(super) const LEAVE_IBSS: u8 = 44;
pub(super) const SET_RATES: u8 = 57;
const SET_POWER_SAVE: u8 = 61;
const GET_POWER_SAVE: u8 = 62;
pub(super) const JOIN_MESH: u8 = 68;
pub(super) const LEAVE_MESH: u8 = 69;
/// Attributes.
const NAME: u16 = 2;
pub(super) const TYPE: u16 = 5;
const BANDS: u16 = 22;
const MESH_ID: u16 = 24;
const TYPES: u16 = 32;
pub(super) const COUNTRY: u16 = 33;
const MESH_CONFIG: u16 = 35;
const BASIC_RATES: u16 = 36;
pub(in crate::nl80211) const FREQUENCY: u16 = 38;
const SSID: u16 = 52;
const FIXED_FREQUENCY: u16 = 60;
const TX_RATES: u16 = 90;
const POWER_SAVE: u16 = 93;
const POWER_SETTING: u16 = 97;
const POWER_LEVEL: u16 = 98;
const MULTICAST_RATE: u16 = 107;
const WIDTH: u16 = 159;
const CENTRE: u16 = 160;
pub(super) const SPLIT_DUMP: u16 = 174;
/// Within a band, and within one of its frequencies.
const BAND_FREQUENCIES: u16 = 1;
const MHZ: u16 = 1;
const DISABLED: u16 = 2;
const NO_BEACONS: u16 = 3;
const RADAR: u16 = 5;
/// Within the rates of a band, and the numbers of bands.
const LEGACY: u16 = 1;
const HT: u16 = 2;
const BAND_2_GHZ: u16 = 0;
const BAND_5_GHZ: u16 = 1;
const BAND_6_GHZ: u16 = 3;
/// The driver chooses the power, or it is as given.
const AUTOMATIC: u32 = 0;
const FIXED_POWER: u32 = 2;
const MESH_FORWARDING: u16 = 19;

/// The type of an interface, by nl80211's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceType(u32);

impl InterfaceType {
    /// A station of an ad hoc network.
    pub const IBSS: InterfaceType = InterfaceType(1);
    /// A station of an access point, which is an interface's first type.
    pub const MANAGED: InterfaceType = InterfaceType(2);
    /// A station of an 802.11s mesh.
    pub const MESH: InterfaceType = InterfaceType(7);

    const NAMES: [&str; 13] = [
        "unspecified",
        "IBSS",
        "managed",
        "AP",
        "AP/VLAN",
        "WDS",
        "monitor",
        "mesh point",
        "P2P-client",
        "P2P-GO",
        "P2P-device",
        "outside context of a BSS",
        "NAN",
    ];

    /// The type of that number.
    pub fn of(number: u32) -> InterfaceType {
        InterfaceType(number)
    }

    /// Its number.
    pub fn number(self) -> u32 {
        self.0
    }

    /// Several types, for people.
    pub fn list(kinds: &[InterfaceType]) -> String {
        kinds.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for InterfaceType {
    /// As `iw` names it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match usize::try_from(self.0).ok().and_then(|number| InterfaceType::NAMES.get(number)) {
            Some(name) => f.write_str(name),
            None => write!(f, "type {}", self.0),
        }
    }
}

/// A channel in nl80211's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelSetting {
    /// The middle of its first 20 MHz.
    pub mhz: u32,
    /// NL80211_CHAN_WIDTH_*.
    pub width: u32,
    /// The middle of the whole channel.
    pub centre_mhz: u32,
}

/// A network without access points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshCell {
    /// SSID, or mesh ID.
    pub name: Vec<u8>,
    /// The channel.
    pub channel: ChannelSetting,
    /// The BSSID of an ad hoc network; `None` takes the BSSID of a network that is heard, or chooses one.
    pub bssid: Option<[u8; 6]>,
    /// The rates that all stations have, in units of 500 kbit/s; none leaves them to the kernel.
    pub basic: Vec<u8>,
    /// The rate of broadcasts, in units of 100 kbit/s.
    pub multicast: Option<u32>,
    /// An 802.11s mesh forwards frames itself.
    pub forwards: bool,
}

impl MeshCell {
    /// A network that an interface was in, as far as the kernel tells it.
    pub(crate) fn told(name: Vec<u8>, channel: ChannelSetting) -> MeshCell {
        MeshCell { name, channel, bssid: None, basic: Vec::new(), multicast: None, forwards: false }
    }

    pub(super) fn write(&self, message: NetlinkMessage, kind: InterfaceType) -> NetlinkMessage {
        let is_mesh = kind == InterfaceType::MESH;
        let ChannelSetting { mhz, width, centre_mhz } = self.channel;
        let mut message = message.attribute(if is_mesh { MESH_ID } else { SSID }, &self.name);
        for (kind, value) in [(FREQUENCY, mhz), (WIDTH, width), (CENTRE, centre_mhz)] {
            message = message.attribute(kind, &value.to_ne_bytes());
        }
        if is_mesh {
            let forwards = [u8::from(self.forwards)];
            message = message.nest(MESH_CONFIG, |config| config.attribute(MESH_FORWARDING, &forwards));
        } else {
            message = message.attribute(FIXED_FREQUENCY, &[]);
            message = self.bssid.iter().fold(message, |message, bssid| message.attribute(ADDRESS, bssid));
        }
        if !self.basic.is_empty() {
            message = message.attribute(BASIC_RATES, &self.basic);
        }
        match self.multicast {
            Some(rate) => message.attribute(MULTICAST_RATE, &rate.to_ne_bytes()),
            None => message,
        }
    }
}

/// The rates at which a radio sends; none of a sort means all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Rates of 802.11a, b and g, in units of 500 kbit/s.
    pub legacy: Vec<u8>,
    /// Rates of 802.11n, by their index.
    pub mcs: Vec<u8>,
}

impl Rates {
    pub(super) fn write(&self, message: NetlinkMessage, mhz: u32) -> NetlinkMessage {
        if self.legacy.is_empty() && self.mcs.is_empty() {
            return message;
        }
        let band = match mhz {
            ..3_000 => BAND_2_GHZ,
            3_000..5_950 => BAND_5_GHZ,
            _ => BAND_6_GHZ,
        };
        let of_band = |rates: NetlinkMessage| rates.attribute(LEGACY, &self.legacy).attribute(HT, &self.mcs);
        message.nest(TX_RATES, |bands| bands.nest(band, of_band))
    }
}

pub(super) fn power(message: NetlinkMessage, hundredths: Option<u32>) -> NetlinkMessage {
    let setting = if hundredths.is_some() { FIXED_POWER } else { AUTOMATIC };
    let message = message.attribute(POWER_SETTING, &setting.to_ne_bytes());
    match hundredths {
        Some(level) => message.attribute(POWER_LEVEL, &level.to_ne_bytes()),
        None => message,
    }
}

/// A number of a radio, of its interface or of its mesh: the commands that tell it and set it, its attribute, and the
/// bytes that its value has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RadioNumber {
    pub(super) get: u8,
    pub(super) set: u8,
    attribute: u16,
    bytes: usize,
}

impl RadioNumber {
    pub(crate) const POWER_SAVE: RadioNumber =
        RadioNumber { get: GET_POWER_SAVE, set: SET_POWER_SAVE, attribute: POWER_SAVE, bytes: 4 };

    pub(crate) const fn of_radio(attribute: u16, bytes: usize) -> RadioNumber {
        RadioNumber { get: GET_WIPHY, set: SET_WIPHY, attribute, bytes }
    }

    pub(crate) const fn of_mesh(attribute: u16, bytes: usize) -> RadioNumber {
        RadioNumber { get: GET_MESH, set: SET_MESH, attribute, bytes }
    }

    pub(super) fn read(self, body: &[u8]) -> Option<u32> {
        let all = body.get(GENERIC_HEADER..)?;
        let all = if self.get == GET_MESH { attribute(all, MESH_CONFIG)? } else { all };
        match *attribute(all, self.attribute)? {
            [byte] => Some(byte.into()),
            [first, second] => Some(u16::from_ne_bytes([first, second]).into()),
            ref value => word(value, 0),
        }
    }

    pub(super) fn write(self, message: NetlinkMessage, value: u32) -> NetlinkMessage {
        let bytes = match self.bytes {
            1 => value.to_le_bytes()[..1].to_vec(),
            2 => u16::try_from(value).unwrap_or(u16::MAX).to_ne_bytes().to_vec(),
            _ => value.to_ne_bytes().to_vec(),
        };
        if self.set == SET_MESH {
            return message.nest(MESH_CONFIG, |config| config.attribute(self.attribute, &bytes));
        }
        message.attribute(self.attribute, &bytes)
    }
}

/// The name of a radio.
pub(super) fn name(body: &[u8]) -> Option<String> {
    let name = String::from_utf8_lossy(attribute(body.get(GENERIC_HEADER..)?, NAME)?);
    Some(name.trim_end_matches('\0').to_owned())
}

/// The state of an interface with a radio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RadioState {
    /// Its type.
    pub kind: InterfaceType,
    /// The name of its network.
    pub ssid: Option<Vec<u8>>,
    /// The channel of its network.
    pub channel: Option<ChannelSetting>,
    /// Its power in hundredths of dBm.
    pub power: Option<u32>,
}

pub(super) fn state(body: &[u8]) -> Option<RadioState> {
    let all = body.get(GENERIC_HEADER..).filter(|_| body[0] == NEW_INTERFACE)?;
    let number = |kind| attribute(all, kind).and_then(|value| word(value, 0));
    let channel = |mhz| {
        let (width, centre_mhz) = (number(WIDTH).unwrap_or(0), number(CENTRE).unwrap_or(mhz));
        ChannelSetting { mhz, width, centre_mhz }
    };
    Some(RadioState {
        kind: InterfaceType(number(TYPE)?),
        ssid: attribute(all, SSID).map(<[u8]>::to_vec),
        channel: number(FREQUENCY).map(channel),
        power: number(POWER_LEVEL),
    })
}

/// A frequency of a radio, under the regulatory domain of the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frequency {
    /// The middle of 20 MHz.
    pub mhz: u32,
    /// The domain lets nobody send there.
    pub is_disabled: bool,
    /// The domain lets nobody begin a network there.
    pub is_passive: bool,
}

/// The abilities of a radio.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// The types that its interfaces can have.
    pub kinds: Vec<InterfaceType>,
    /// Its frequencies.
    pub frequencies: Vec<Frequency>,
}

impl Abilities {
    /// Adds one part of a dump.
    pub(super) fn add(&mut self, body: &[u8]) {
        let all = body.get(GENERIC_HEADER..).unwrap_or_default();
        for (number, _) in attributes(attribute(all, TYPES).unwrap_or_default()) {
            let kind = InterfaceType(u32::from(number));
            if !self.kinds.contains(&kind) {
                self.kinds.push(kind);
            }
        }
        for (_, band) in attributes(attribute(all, BANDS).unwrap_or_default()) {
            let list = attribute(band, BAND_FREQUENCIES).unwrap_or_default();
            self.frequencies.extend(attributes(list).filter_map(|(_, one)| frequency(one)));
        }
    }

    /// The frequencies in MHz on which a network may begin, as a list for people.
    pub fn open_mhz(&self) -> String {
        let open = self.frequencies.iter().filter(|one| !one.is_disabled && !one.is_passive);
        // Those of 802.11ah are no whole MHz, and have other widths.
        let open = open.filter(|one| one.mhz > 2_000);
        let open: Vec<_> = open.map(|one| one.mhz.to_string()).collect();
        if open.is_empty() { "none".to_owned() } else { open.join(", ") }
    }
}

fn frequency(one: &[u8]) -> Option<Frequency> {
    let has = |kind| attribute(one, kind).is_some();
    let is_passive = has(NO_BEACONS) || has(RADAR);
    Some(Frequency { mhz: word(attribute(one, MHZ)?, 0)?, is_disabled: has(DISABLED), is_passive })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::netlink::message::HEADER;

    fn body(command: u8, write: impl FnOnce(NetlinkMessage) -> NetlinkMessage) -> Vec<u8> {
        write(NetlinkMessage::new(0, 0, 0).fixed(&[command, 1, 0, 0])).finish().split_off(HEADER)
    }

    fn cell() -> MeshCell {
        MeshCell {
            name: b"hopwise".to_vec(),
            channel: ChannelSetting { mhz: 2_412, width: 0, centre_mhz: 2_412 },
            bssid: Some([2, 0xca, 0xfe, 0, 0, 1]),
            basic: vec![2, 4],
            multicast: Some(10),
            forwards: false,
        }
    }

    #[test]
    fn an_ad_hoc_network_is_joined_with_a_fixed_channel_and_cell_and_a_mesh_by_its_id() {
        let of = |kind| {
            let body = body(0, |message| cell().write(message, kind));
            attributes(&body[GENERIC_HEADER..])
                .map(|(kind, value)| (kind, value.to_vec()))
                .collect::<Vec<_>>()
        };
        let ibss = of(InterfaceType::IBSS);
        for wanted in [
            (SSID, b"hopwise".to_vec()),
            (FREQUENCY, 2_412_u32.to_ne_bytes().to_vec()),
            (WIDTH, vec![0; 4]),
            (FIXED_FREQUENCY, vec![]),
            (ADDRESS, vec![2, 0xca, 0xfe, 0, 0, 1]),
            (BASIC_RATES, vec![2, 4]),
            (MULTICAST_RATE, 10_u32.to_ne_bytes().to_vec()),
        ] {
            assert!(ibss.contains(&wanted), "{wanted:?} in {ibss:?}");
        }
        let mesh = of(InterfaceType::MESH);
        assert!(mesh.contains(&(MESH_ID, b"hopwise".to_vec())), "{mesh:?}");
        assert!(!mesh.iter().any(|(kind, _)| [SSID, ADDRESS, FIXED_FREQUENCY].contains(kind)), "{mesh:?}");
        let config = mesh.iter().find(|(kind, _)| *kind == MESH_CONFIG).expect("a setting");
        assert_eq!(attribute(&config.1, MESH_FORWARDING), Some(&[0][..]));
    }

    #[test]
    fn rates_stand_in_their_band_and_none_means_all() {
        let rates = Rates { legacy: vec![22], mcs: vec![0, 7] };
        for (mhz, band) in [(2_412, BAND_2_GHZ), (5_180, BAND_5_GHZ), (5_955, BAND_6_GHZ)] {
            let body = body(SET_RATES, |message| rates.write(message, mhz));
            let all = attribute(&body[GENERIC_HEADER..], TX_RATES).expect("rates");
            let of_band = attribute(all, band).expect("the band");
            assert_eq!(
                (attribute(of_band, LEGACY), attribute(of_band, HT)),
                (Some(&[22][..]), Some(&[0, 7][..]))
            );
        }
        let none = body(SET_RATES, |message| Rates::default().write(message, 2_412));
        assert_eq!(attribute(&none[GENERIC_HEADER..], TX_RATES), None);
    }

    #[test]
    fn an_interface_is_read_with_its_network() {
        let told = body(NEW_INTERFACE, |message| {
            let message = message.attribute(TYPE, &1_u32.to_ne_bytes()).attribute(SSID, b"old");
            message
                .attribute(FREQUENCY, &2_437_u32.to_ne_bytes())
                .attribute(POWER_LEVEL, &2_000_u32.to_ne_bytes())
        });
        let channel = ChannelSetting { mhz: 2_437, width: 0, centre_mhz: 2_437 };
        let expected = RadioState {
            kind: InterfaceType::IBSS,
            ssid: Some(b"old".to_vec()),
            channel: Some(channel),
            power: Some(2_000),
        };
        assert_eq!(state(&told), Some(expected));
        assert_eq!(state(&[]), None);
    }

    #[test]
    fn a_radio_is_put_together_from_the_parts_of_a_dump() {
        let mut abilities = Abilities::default();
        let types =
            |message: NetlinkMessage| message.nest(TYPES, |list| list.attribute(2, &[]).attribute(7, &[]));
        let one = |list: NetlinkMessage, (nth, mhz, flag): (u16, u32, Option<u16>)| {
            list.nest(nth, |one| {
                let one = one.attribute(MHZ, &mhz.to_ne_bytes());
                flag.map_or(one.clone(), |flag| one.attribute(flag, &[]))
            })
        };
        let bands = |message: NetlinkMessage| {
            message.nest(BANDS, |bands| {
                bands.nest(BAND_2_GHZ, |band| {
                    band.nest(BAND_FREQUENCIES, |list| {
                        let all =
                            [(0, 2_412, None), (1, 2_467, Some(NO_BEACONS)), (2, 2_484, Some(DISABLED))];
                        all.into_iter().fold(list, one)
                    })
                })
            })
        };
        abilities.add(&body(3, types));
        abilities.add(&body(3, bands));
        assert_eq!(abilities.kinds, [InterfaceType::MANAGED, InterfaceType::MESH]);
        assert_eq!(abilities.kinds[1].to_string(), "mesh point");
        assert_eq!(abilities.frequencies.len(), 3);
        assert_eq!(abilities.open_mhz(), "2412");
    }

    #[test]
    fn a_number_is_written_with_its_bytes_and_that_of_a_mesh_stands_among_the_settings_of_the_mesh() {
        for (number, value, bytes) in [
            (RadioNumber::of_radio(61, 1), 7, vec![7]),
            (RadioNumber::of_radio(64, 4), u32::MAX, vec![255; 4]),
            (RadioNumber::of_mesh(1, 2), 200, 200_u16.to_ne_bytes().to_vec()),
            (RadioNumber::of_mesh(20, 4), (-70_i32).cast_unsigned(), (-70_i32).to_ne_bytes().to_vec()),
        ] {
            let body = body(number.set, |message| number.write(message, value));
            assert_eq!(number.read(&body), Some(value), "{number:?}");
            let all = &body[GENERIC_HEADER..];
            let of_mesh = attribute(all, MESH_CONFIG).unwrap_or_default();
            let found = attribute(if number.get == GET_MESH { of_mesh } else { all }, number.attribute);
            assert_eq!(found, Some(&bytes[..]), "{number:?}");
        }
        assert_eq!(RadioNumber::of_mesh(14, 1).read(&body(0, |message| message.attribute(14, &[1]))), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn nonsense_is_no_radio_and_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            Abilities::default().add(&bytes);
            let numbers = [RadioNumber::POWER_SAVE, RadioNumber::of_mesh(14, 1), RadioNumber::of_radio(64, 4)];
            let _ = (state(&bytes), numbers.map(|number| number.read(&bytes)));
        }
    }
}
