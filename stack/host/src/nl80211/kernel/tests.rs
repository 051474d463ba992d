use proptest::prelude::*;

use super::*;
use crate::nl80211::station::nested;

const MOBILE: [u8; 6] = [2, 0, 0, 0, 1, 0];

#[test]
fn the_group_tells_who_came_who_left_and_who_is_not_heard() {
    let news = |command, rest: &[u8]| {
        let body = nested(|message| {
            let message = message.fixed(&[command, 1, 0, 0]).attribute(INTERFACE, &4_u32.to_ne_bytes());
            message.attribute(6, &MOBILE).attribute(CQM, rest)
        });
        [news(&body, 4), news(&body, 5)]
    };
    let address = StationAddress(MOBILE);
    assert_eq!(news(NEW_STATION, &[]), [Some(StationNews::Came(address)), None]);
    assert_eq!(news(DEL_STATION, &[]), [Some(StationNews::Left(address)), None]);
    let lost = nested(|message| message.attribute(PACKETS_LOST, &50_u32.to_ne_bytes()));
    assert_eq!(news(NOTIFY_CQM, &lost), [Some(StationNews::Unheard { address, packets: 50 }), None]);
    // A threshold of the signal was passed, which is no loss.
    let rssi = nested(|message| message.attribute(3, &0_u32.to_ne_bytes()));
    assert_eq!(news(NOTIFY_CQM, &rssi), [None, None]);
}

#[test]
fn the_family_s_answer_names_its_number_and_its_group() {
    let group = |name: &[u8], id: u32| {
        nested(|message| message.attribute(GROUP_NAME, name).attribute(GROUP_ID, &id.to_ne_bytes()))
    };
    let groups =
        nested(|message| message.attribute(1, &group(b"scan\0", 3)).attribute(2, &group(b"mlme\0", 5)));
    let answer = |groups: &[u8]| {
        nested(|message| {
            let message = message.fixed(&[1, 2, 0, 0]).attribute(FAMILY_NAME, b"nl80211\0");
            message.attribute(FAMILY_ID, &28_u16.to_ne_bytes()).attribute(GROUPS, groups)
        })
    };
    assert_eq!(family(&answer(&groups)), Some((28, Some(5))));
    assert_eq!(family(&answer(&[])), Some((28, None)));
}

#[test]
fn a_kernel_without_wi_fi_says_so() {
    if let Err(error) = Nl80211::open() {
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn nonsense_is_no_station_and_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let _ = (station(&bytes, Instant::ZERO), news(&bytes, 4), family(&bytes));
    }
}
