use proptest::prelude::*;

use super::*;

const MOBILE: [u8; 6] = [2, 0, 0, 0, 1, 0];

fn nested(write: impl FnOnce(Message) -> Message) -> Vec<u8> {
    // A message without its header is a list of attributes.
    write(Message::new(0, 0, 0)).finish().split_off(16)
}

/// A message of a dump as mac80211 writes it, with attributes in between that are not read.
fn dumped(command: u8, info: &[u8]) -> Vec<u8> {
    nested(|message| {
        let message = message.fixed(&[command, 1, 0, 0]).attribute(INTERFACE, &4_u32.to_ne_bytes());
        let message = message.attribute(ADDRESS, &MOBILE).attribute(46, &7_u32.to_ne_bytes());
        message.attribute(STATION_INFO | 0x8000, info)
    })
}

fn info() -> Vec<u8> {
    nested(|message| {
        let message = message.attribute(16, &60_u32.to_ne_bytes()).attribute(1, &12_u32.to_ne_bytes());
        let message = message.attribute(7, &[(-61_i8) as u8]).attribute(13, &[(-59_i8) as u8]);
        let message = message.attribute(9, &100_u32.to_ne_bytes()).attribute(10, &200_u32.to_ne_bytes());
        message.attribute(11, &30_u32.to_ne_bytes()).attribute(12, &4_u32.to_ne_bytes())
    })
}

#[test]
fn a_station_is_read_with_its_signal_its_counts_and_how_old_they_are() {
    let wanted = Station {
        address: StationAddress(MOBILE),
        inactive: Some(Duration::from_millis(12)),
        signal_dbm: Some(-61),
        signal_average_dbm: Some(-59),
        tx_packets: Some(200),
        tx_retries: Some(30),
        tx_failed: Some(4),
        rx_packets: Some(100),
    };
    assert_eq!(station(&dumped(NEW_STATION, &info())), Some(wanted));
    assert_eq!(station(&dumped(DEL_STATION, &info())), None);
}

#[test]
fn what_a_driver_does_not_tell_is_absent_and_not_zero() {
    let read =
        station(&dumped(NEW_STATION, &nested(|m| m.attribute(1, &5_u32.to_ne_bytes())))).expect("a station");
    assert_eq!(read.inactive, Some(Duration::from_millis(5)));
    assert_eq!((read.signal_dbm, read.tx_retries, read.tx_failed), (None, None, None));
}

#[test]
fn the_group_tells_who_came_who_left_and_who_is_not_heard() {
    let news = |command, rest: &[u8]| {
        let body = nested(|message| {
            let message = message.fixed(&[command, 1, 0, 0]).attribute(INTERFACE, &4_u32.to_ne_bytes());
            message.attribute(ADDRESS, &MOBILE).attribute(CQM, rest)
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
fn addresses_are_written_as_they_are_read() {
    let text = "02:00:00:00:01:00";
    assert_eq!(text.parse(), Ok(StationAddress(MOBILE)));
    assert_eq!(StationAddress(MOBILE).to_string(), text);
    for bad in [
        "",
        "02:00:00:00:01",
        "02:00:00:00:01:00:00",
        "2:0:0:0:1:0",
        "02-00-00-00-01-00",
        "02:00:00:00:01:0g",
    ] {
        assert_eq!(bad.parse::<StationAddress>(), Err(NoStationAddress), "{bad}");
    }
}

#[test]
fn a_kernel_without_wi_fi_says_so() {
    if let Err(error) = Nl80211::open() {
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "{error}");
    }
}

#[test]
fn what_is_cut_off_says_nothing_of_what_is_missing() {
    let whole = dumped(NEW_STATION, &info());
    assert!((0..whole.len() - 3).all(|len| station(&whole[..len]).is_none()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn nonsense_is_no_station_and_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let _ = (station(&bytes), news(&bytes, 4), family(&bytes));
    }
}
