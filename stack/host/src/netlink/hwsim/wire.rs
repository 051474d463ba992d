//! The messages of MAC80211_HWSIM as bytes.

use crate::netlink::message::{GENERIC_HEADER, NetlinkMessage, REQUEST, attribute, messages, word};

/// An Ethernet address.
pub type Mac = [u8; 6];

/// Commands and attributes of drivers/net/wireless/mac80211_hwsim.h.
const REGISTER: u8 = 1;
const FRAME: u8 = 2;
const TX_INFO_FRAME: u8 = 3;
const NEW_RADIO: u8 = 4;
const ADD_ADDRESS: u8 = 7;
const RECEIVER: u16 = 1;
const TRANSMITTER: u16 = 2;
const CONTENT: u16 = 3;
const FLAGS: u16 = 4;
const RX_RATE: u16 = 5;
const SIGNAL: u16 = 6;
const TX_INFO: u16 = 7;
const COOKIE: u16 = 8;
const CHANNELS: u16 = 9;
const DESTROY_ON_CLOSE: u16 = 16;
const RADIO_NAME: u16 = 17;
const FREQUENCY: u16 = 19;
const PERMANENT_ADDRESS: u16 = 22;

/// The frequency of frames that say none, in MHz: the first channel of 2.4 GHz.
const USUAL_MHZ: u32 = 2_412;
const NO_ACK: u32 = 2;
const ACKNOWLEDGED: u32 = 4;
/// The number of pairs in which a transmit status lists its tries by rate.
const RATES: usize = 4;
const NO_RATE: u8 = 0xff;

/// A frame that a radio sends, without its FCS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The address that the radio was made with.
    pub radio: Mac,
    /// The frame of 802.11.
    pub content: &'a [u8],
    /// The kernel's transmit flags, which the status repeats.
    pub flags: u32,
    /// The kernel knows the frame by it until its status comes.
    pub cookie: u64,
    /// The frequency in MHz.
    pub mhz: u32,
}

/// A message of a kernel or program that has radios, to the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RadioMessage<'a> {
    /// A radio sends a frame.
    Frame(Frame<'a>),
    /// The radio of the first address has an interface of the second.
    Interface(Mac, Mac),
    /// Nothing that a medium needs to know.
    Other,
}

/// A frame that a radio receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedFrame<'a> {
    /// The address that the radio was made with.
    pub radio: Mac,
    /// The frame of 802.11, without its FCS.
    pub content: &'a [u8],
    /// The power of the frame at the radio, in dBm.
    pub signal_dbm: i8,
    /// The index of the rate, as in [`legacy_rate`].
    pub rate: u8,
    /// The frequency in MHz.
    pub mhz: u32,
}

/// The fate of a frame that a radio sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The address that the radio was made with.
    pub radio: Mac,
    /// As they came with the frame.
    pub flags: u32,
    /// The frame's cookie, as it came.
    pub cookie: u64,
    /// The fate of the frame.
    pub fate: SenderFate,
    /// The power of its acknowledgement, in dBm.
    pub signal_dbm: i8,
    /// The index of the rate, as in [`legacy_rate`].
    pub rate: u8,
    /// The number of transmissions; 0 if it did not come to the air.
    pub tries: u8,
}

/// The end of a frame at its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderFate {
    /// Its receiver has acknowledged it.
    Acknowledged,
    /// No acknowledgement came.
    Lost,
    /// A frame that needs none has left. The same is said of one that did not come to the air at all: the kernel
    /// counts no loss of the link for it.
    Unanswered,
}

/// The fastest rate of 2.4 GHz without 802.11n that is no faster than this, and its index: DSSS and CCK come first,
/// then OFDM.
pub fn legacy_rate(bits_per_second: u64) -> (u64, u8) {
    const HALVES: [u64; 12] = [2, 4, 11, 22, 12, 18, 24, 36, 48, 72, 96, 108];
    let rates = HALVES.iter().map(|halves| halves * 500_000).zip(0..);
    rates.filter(|(rate, _)| *rate <= bits_per_second).max().unwrap_or((1_000_000, 0))
}

fn message(family: u16, command: u8) -> NetlinkMessage {
    NetlinkMessage::new(family, REQUEST, 0).fixed(&[command, 1, 0, 0])
}

pub(super) fn register(family: u16) -> NetlinkMessage {
    message(family, REGISTER)
}

pub(super) fn new_radio(family: u16, name: &str, mac: Mac) -> NetlinkMessage {
    message(family, NEW_RADIO)
        .attribute(CHANNELS, &1_u32.to_ne_bytes())
        .attribute(DESTROY_ON_CLOSE, &[])
        .attribute(RADIO_NAME, name.as_bytes())
        .attribute(PERMANENT_ADDRESS, &mac)
}

/// The whole message that hands a frame to a radio.
pub fn received(family: u16, received: &ReceivedFrame<'_>) -> Vec<u8> {
    message(family, FRAME)
        .attribute(RECEIVER, &received.radio)
        .attribute(CONTENT, received.content)
        .attribute(RX_RATE, &u32::from(received.rate).to_ne_bytes())
        .attribute(SIGNAL, &i32::from(received.signal_dbm).to_ne_bytes())
        .attribute(FREQUENCY, &received.mhz.to_ne_bytes())
        .finish()
}

/// The whole message that says what became of a frame.
pub fn status(family: u16, status: &Status) -> Vec<u8> {
    let flags = match status.fate {
        SenderFate::Acknowledged => status.flags | ACKNOWLEDGED,
        SenderFate::Lost => status.flags,
        SenderFate::Unanswered => status.flags | NO_ACK,
    };
    let mut tried = [[NO_RATE, 0]; RATES];
    if status.tries > 0 {
        tried[0] = [status.rate, status.tries];
    }
    message(family, TX_INFO_FRAME)
        .attribute(TRANSMITTER, &status.radio)
        .attribute(FLAGS, &flags.to_ne_bytes())
        .attribute(COOKIE, &status.cookie.to_ne_bytes())
        .attribute(SIGNAL, &i32::from(status.signal_dbm).to_ne_bytes())
        .attribute(TX_INFO, tried.as_flattened())
        .finish()
}

/// Reads a whole message, behind which there may be more bytes. None if it is cut off or lacks a part.
pub fn radio_message(bytes: &[u8]) -> Option<RadioMessage<'_>> {
    let body = messages(bytes).next()?.body;
    let all = body.get(GENERIC_HEADER..)?;
    Some(match body[0] {
        FRAME => RadioMessage::Frame(frame(body)?),
        ADD_ADDRESS => {
            let address = |kind| attribute(all, kind)?.try_into().ok();
            RadioMessage::Interface(address(TRANSMITTER)?, address(RECEIVER)?)
        }
        _ => RadioMessage::Other,
    })
}

/// The frame in one message, if it has one.
pub(crate) fn frame(body: &[u8]) -> Option<Frame<'_>> {
    if *body.first()? != FRAME {
        return None;
    }
    let all = body.get(GENERIC_HEADER..)?;
    Some(Frame {
        radio: attribute(all, TRANSMITTER)?.try_into().ok()?,
        content: attribute(all, CONTENT)?,
        flags: word(attribute(all, FLAGS)?, 0)?,
        cookie: u64::from_ne_bytes(attribute(all, COOKIE)?.try_into().ok()?),
        mhz: attribute(all, FREQUENCY).map_or(Some(USUAL_MHZ), |value| word(value, 0))?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::netlink::message::attributes;

    const RADIO: Mac = [2, 0, 0, 0, 0, 3];

    /// The attributes of a finished message, behind its command.
    fn command_and_parts(bytes: &[u8]) -> (u8, Vec<(u16, Vec<u8>)>) {
        let body = messages(bytes).next().expect("one message").body;
        let all = attributes(&body[GENERIC_HEADER..]).map(|(kind, value)| (kind, value.to_vec()));
        (body[0], all.collect())
    }

    fn of_kernel(without: Option<u16>) -> Vec<u8> {
        let (flags, mhz) = (1_u32.to_ne_bytes(), 2_412_u32.to_ne_bytes());
        let cookie = 77_u64.to_ne_bytes();
        let parts: [(u16, &[u8]); 5] = [
            (TRANSMITTER, &RADIO),
            (CONTENT, &[8; 30]),
            (FLAGS, &flags),
            (COOKIE, &cookie),
            (FREQUENCY, &mhz),
        ];
        let kept = parts.into_iter().filter(|(kind, _)| Some(*kind) != without);
        let bytes = kept.fold(message(30, FRAME), |message, (kind, value)| message.attribute(kind, value));
        let bytes = bytes.finish();
        messages(&bytes).next().expect("one message").body.to_vec()
    }

    #[test]
    fn a_frame_of_the_kernel_is_read_and_one_without_a_needed_part_is_none() {
        let whole = of_kernel(None);
        let expected = Frame { radio: RADIO, content: &[8; 30], flags: 1, cookie: 77, mhz: 2_412 };
        assert_eq!(frame(&whole), Some(expected));
        for kind in [TRANSMITTER, CONTENT, FLAGS, COOKIE] {
            assert_eq!(frame(&of_kernel(Some(kind))), None, "{kind}");
        }
        assert_eq!(frame(&of_kernel(Some(FREQUENCY))), Some(expected));
        let other = [&[TX_INFO_FRAME][..], &whole[1..]].concat();
        assert_eq!(frame(&other), None);
    }

    #[test]
    fn a_whole_message_is_read_and_each_shorter_one_is_none() {
        let of = |command, parts: &[(u16, &[u8])]| {
            parts.iter().fold(message(30, command), |message, (kind, value)| message.attribute(*kind, value))
        };
        let address = of(ADD_ADDRESS, &[(TRANSMITTER, &RADIO), (RECEIVER, &[4; 6])]).finish();
        assert_eq!(radio_message(&address), Some(RadioMessage::Interface(RADIO, [4; 6])));
        assert_eq!(radio_message(&of(TX_INFO_FRAME, &[]).finish()), Some(RadioMessage::Other));
        let (word, cookie) = (1_u32.to_ne_bytes(), 77_u64.to_ne_bytes());
        let parts: [(u16, &[u8]); 4] =
            [(TRANSMITTER, &RADIO), (CONTENT, &[8; 30]), (FLAGS, &word), (COOKIE, &cookie)];
        let whole = of(FRAME, &parts).finish();
        let padded = [&whole[..], &[7; 90]].concat();
        let frame = Frame { radio: RADIO, content: &[8; 30], flags: 1, cookie: 77, mhz: 2_412 };
        assert_eq!(radio_message(&padded), Some(RadioMessage::Frame(frame)));
        assert!((0..whole.len()).all(|len| radio_message(&whole[..len]).is_none()));
    }

    #[test]
    fn a_received_frame_has_its_signal_as_twos_complement() {
        let received_frame =
            ReceivedFrame { radio: RADIO, content: &[1, 2, 3], signal_dbm: -60, rate: 1, mhz: 2_412 };
        let (command, parts) = command_and_parts(&received(30, &received_frame));
        assert_eq!(command, FRAME);
        let expected = [
            (RECEIVER, RADIO.to_vec()),
            (CONTENT, vec![1, 2, 3]),
            (RX_RATE, 1_u32.to_ne_bytes().to_vec()),
            (SIGNAL, (-60_i32).to_ne_bytes().to_vec()),
            (FREQUENCY, 2_412_u32.to_ne_bytes().to_vec()),
        ];
        assert_eq!(parts, expected);
    }

    #[test]
    fn a_status_tells_the_tries_and_whether_they_ended_well() {
        let of = |fate, tries| {
            let status_of =
                Status { radio: RADIO, flags: 1, cookie: 5, fate, signal_dbm: -50, rate: 1, tries };
            let (command, parts) = command_and_parts(&status(30, &status_of));
            assert_eq!((command, parts.len()), (TX_INFO_FRAME, 5));
            let value = |kind| parts.iter().find(|(known, _)| *known == kind).map(|(_, value)| value.clone());
            (word(&value(FLAGS).expect("flags"), 0).expect("four bytes"), value(TX_INFO).expect("tries"))
        };
        const NONE: [u8; 6] = [NO_RATE, 0, NO_RATE, 0, NO_RATE, 0];
        assert_eq!(of(SenderFate::Acknowledged, 3), (5, [&[1, 3], &NONE[..]].concat()));
        assert_eq!(of(SenderFate::Lost, 7), (1, [&[1, 7], &NONE[..]].concat()));
        assert_eq!(of(SenderFate::Unanswered, 0), (3, [&[NO_RATE, 0], &NONE[..]].concat()));
    }

    #[test]
    fn a_radio_is_asked_for_with_its_address_and_goes_with_the_socket() {
        let (command, parts) = command_and_parts(&new_radio(30, "hopwise0", RADIO).finish());
        assert_eq!(command, NEW_RADIO);
        assert!(parts.contains(&(PERMANENT_ADDRESS, RADIO.to_vec())));
        assert!(
            parts.contains(&(RADIO_NAME, b"hopwise0".to_vec()))
                && parts.contains(&(DESTROY_ON_CLOSE, vec![]))
        );
    }

    #[test]
    fn rates_have_the_indexes_of_2_4_ghz() {
        let of = |half_mbps: u64| legacy_rate(half_mbps * 500_000);
        assert_eq!([2, 4, 11, 22, 12, 108].map(|rate| of(rate).1), [0, 1, 2, 3, 4, 11]);
        // The rates of 802.11n lie between them: MCS 7 and MCS 2.
        assert_eq!([130, 39, 1].map(of), [(54_000_000, 11), (18_000_000, 7), (1_000_000, 0)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn nonsense_is_no_frame_and_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = frame(&bytes);
            let begun = [&[FRAME, 1, 0, 0][..], &bytes].concat();
            prop_assert!(frame(&begun).is_none_or(|frame| frame.content.len() < bytes.len()));
        }
    }
}
