//! Networks that a radio has heard (linux/nl80211.h, NL80211_CMD_GET_SCAN).

use std::time::Duration;

use hopwise_core::StationAddress;

use crate::netlink::message::{GENERIC_HEADER, attribute, word};

pub(super) const GET_SCAN: u8 = 32;
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
/// Elements of a beacon (IEEE 802.11, 9.4.2): the SSID, and the mesh ID.
const ELEMENT_SSID: u8 = 0;
const ELEMENT_MESH_ID: u8 = 114;

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
}

/// The network in one message of a dump.
pub(super) fn network(body: &[u8]) -> Option<HeardNetwork> {
    let all = body.get(GENERIC_HEADER..).filter(|_| body[0] == NEW_SCAN_RESULTS)?;
    let bss = attribute(all, BSS)?;
    let number = |kind| attribute(bss, kind).and_then(|value| word(value, 0));
    let elements = attribute(bss, ELEMENTS).or_else(|| attribute(bss, BEACON_ELEMENTS)).unwrap_or_default();
    let name = |id| element(elements, id).filter(|name| !name.is_empty());
    Some(HeardNetwork {
        bssid: attribute(bss, BSSID)?.try_into().ok().map(StationAddress)?,
        mhz: number(FREQUENCY)?,
        name: name(ELEMENT_MESH_ID).or_else(|| name(ELEMENT_SSID)).unwrap_or_default().to_vec(),
        signal_dbm: number(SIGNAL_MBM).map(|mbm| mbm.cast_signed() / 100),
        age: number(SEEN_MS_AGO).map(|ms| Duration::from_millis(ms.into())),
        is_ours: attribute(bss, STATUS).is_some(),
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
    use crate::netlink::message::{HEADER, Message};

    fn heard(elements: &[u8], is_ours: bool) -> Vec<u8> {
        let bss = |message: Message| {
            let message = message
                .attribute(BSSID, &[2, 0, 0, 0, 0, 9])
                .attribute(FREQUENCY, &2_412_u32.to_ne_bytes())
                .attribute(SIGNAL_MBM, &(-6_700_i32).to_ne_bytes())
                .attribute(SEEN_MS_AGO, &120_u32.to_ne_bytes())
                .attribute(ELEMENTS, elements);
            if is_ours { message.attribute(STATUS, &2_u32.to_ne_bytes()) } else { message }
        };
        let message = Message::new(0, 0, 0).fixed(&[NEW_SCAN_RESULTS, 1, 0, 0]).nest(BSS, bss);
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
        };
        assert_eq!(network(&heard(b"\x01\x01\x02\x00\x04cafe", false)), Some(expected.clone()));
        let mesh = heard(b"\x00\x00\x72\x04roof", true);
        assert_eq!(network(&mesh), Some(HeardNetwork { name: b"roof".to_vec(), is_ours: true, ..expected }));
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
