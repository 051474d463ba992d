//! Reads frames from captures of the radio world: their kind, their addresses, their packet.

/// An 802.11 frame behind a radiotap header.
pub(super) struct RadioFrame<'a> {
    pub(super) kind: &'static str,
    /// The Retry bit: the same frame was sent before.
    pub(super) is_retry: bool,
    /// The frame's kind and addresses, in words.
    pub(super) what: String,
    /// The IP packet that a data frame carries.
    pub(super) packet: Option<&'a [u8]>,
}

/// LLC and SNAP headers with the types of IPv4 and IPv6.
const SNAP: [[u8; 8]; 2] = [[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], [0xaa, 0xaa, 3, 0, 0, 0, 0x86, 0xdd]];
const FCS: usize = 4;
/// A bit in the second byte of Frame Control.
const RETRY: u8 = 0x08;
const DATA_HEADER: usize = 24;

pub(super) fn read(bytes: &[u8]) -> Option<RadioFrame<'_>> {
    let radiotap = usize::from(u16::from_le_bytes(bytes.get(2..4)?.try_into().ok()?));
    let frame = bytes.get(radiotap..bytes.len().checked_sub(FCS)?)?;
    let to = address(frame, 4)?;
    let (kind, from) = match frame[0] {
        0xb4 => ("RTS", address(frame, 10)),
        0xc4 => ("CTS", None),
        0xd4 => ("MAC ACK", None),
        0x08 => ("data", address(frame, 10)),
        _ => return None,
    };
    let what = match from {
        Some(from) => format!("{kind}, {from} to {to}"),
        None => format!("{kind} to {to}"),
    };
    let body = frame.get(DATA_HEADER..).filter(|_| kind == "data");
    let packet = body.and_then(|body| SNAP.iter().find_map(|snap| body.strip_prefix(snap)));
    let is_retry = frame.get(1)? & RETRY != 0;
    Some(RadioFrame { kind, is_retry, what, packet })
}

fn address(frame: &[u8], at: usize) -> Option<String> {
    let pairs: Vec<_> = frame.get(at..at + 6)?.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(if pairs.iter().all(|pair| pair == "ff") { "everyone".to_owned() } else { pairs.join(":") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(control: u8, rest: &[u8]) -> Vec<u8> {
        let radiotap = [0, 0, 8, 0, 0, 0, 0, 0];
        let head = [control, 0, 0, 0, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9];
        [&radiotap[..], &head, rest, &[0; FCS]].concat()
    }

    #[test]
    fn a_frame_is_told_by_its_kind_and_its_addresses() {
        let what = |bytes: &[u8]| read(bytes).map(|frame| (frame.what, frame.packet.map(<[u8]>::to_vec)));
        let rts = ("RTS, 02:00:00:00:00:09 to 02:00:00:00:00:01".to_owned(), None);
        assert_eq!(what(&frame(0xb4, &[])), Some(rts));
        let packet = [&[0; 8][..], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], b"packet"].concat();
        let data = ("data, 02:00:00:00:00:09 to 02:00:00:00:00:01".to_owned(), Some(b"packet".to_vec()));
        assert_eq!(what(&frame(0x08, &packet)), Some(data));
        assert_eq!((what(&frame(0x80, &[])), what(&[0; 9]), what(&[])), (None, None, None));
    }
}
