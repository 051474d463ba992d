//! Reads frames from captures of the radio world: their kind, their addresses, their packet.

use hopwise_air::dcf::FrameKind;
use hopwise_core::StationAddress;
use pcap_file::DataLink;

use super::packets::{Layers, layers, name};

/// An 802.11 frame behind a radiotap header.
pub(super) struct RadioFrame<'a> {
    pub(super) kind: FrameKind,
    /// The Retry bit: the same frame was sent before.
    pub(super) is_retry: bool,
    /// The frame's kind and addresses, in words.
    pub(super) what: String,
    /// The IP packet that a data frame carries.
    pub(super) packet: Option<&'a [u8]>,
}

pub(super) fn read(bytes: &[u8]) -> Option<RadioFrame<'_>> {
    let Layers { air: Some(frame), ip } = layers(DataLink::IEEE802_11_RADIOTAP, bytes) else {
        return None;
    };
    let (kind, to) = (frame.kind()?, address(frame.to()?));
    let what = match frame.from() {
        Some(from) => format!("{}, {} to {to}", name(kind), address(from)),
        None => format!("{} to {to}", name(kind)),
    };
    Some(RadioFrame { kind, is_retry: frame.is_retry(), what, packet: ip })
}

fn address(mac: [u8; 6]) -> String {
    if mac == [0xff; 6] { "everyone".to_owned() } else { StationAddress(mac).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(control: u8, rest: &[u8]) -> Vec<u8> {
        let radiotap = [0, 0, 8, 0, 0, 0, 0, 0];
        let head = [control, 0, 0, 0, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9];
        [&radiotap[..], &head, rest].concat()
    }

    #[test]
    fn a_frame_is_told_by_its_kind_and_its_addresses() {
        let what = |bytes: &[u8]| read(bytes).map(|frame| (frame.what, frame.packet.map(<[u8]>::to_vec)));
        let rts = ("RTS, 02:00:00:00:00:09 to 02:00:00:00:00:01".to_owned(), None);
        assert_eq!(what(&frame(0xb4, &[])), Some(rts));
        let packet = [&[0; 8][..], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], b"E\0\0\x05x"].concat();
        let data = ("data, 02:00:00:00:00:09 to 02:00:00:00:00:01".to_owned(), Some(b"E\0\0\x05x".to_vec()));
        assert_eq!(what(&frame(0x08, &packet)), Some(data));
        assert_eq!((what(&frame(0x80, &[])), what(&[0; 9]), what(&[])), (None, None, None));
    }
}
