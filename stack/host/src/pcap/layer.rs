//! Headers before the IP packet in a captured frame, by libpcap's numbers.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layer {
    /// No header (TUN).
    Raw,
    Ethernet,
    /// The header of BSD's loopback device: four bytes.
    Null,
    /// The header of Linux' "any" device, in its two versions.
    Cooked,
    Cooked2,
}

impl Layer {
    /// One number of each, the most common first.
    pub(super) const NUMBERS: [i32; 5] = [1, 12, 113, 276, 0];

    pub(super) fn from_number(number: i32) -> Option<Layer> {
        match number {
            12 | 14 | 101 | 228 | 229 => Some(Layer::Raw),
            1 => Some(Layer::Ethernet),
            0 | 108 => Some(Layer::Null),
            113 => Some(Layer::Cooked),
            276 => Some(Layer::Cooked2),
            _ => None,
        }
    }

    /// The IP packet in a frame, if it is one.
    pub(super) fn packet(self, frame: &[u8]) -> Option<&[u8]> {
        let (kind_at, mut begins) = match self {
            Layer::Raw => return Some(frame),
            Layer::Null => return frame.get(4..),
            Layer::Ethernet => (12, 14),
            Layer::Cooked => (14, 16),
            Layer::Cooked2 => (0, 20),
        };
        let mut kind = frame.get(kind_at..kind_at + 2)?;
        // VLAN tags.
        while matches!(kind, [0x81, 0x00] | [0x88, 0xa8]) && self == Layer::Ethernet {
            kind = frame.get(begins + 2..begins + 4)?;
            begins += 4;
        }
        matches!(kind, [0x08, 0x00] | [0x86, 0xdd]).then(|| frame.get(begins..)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packet_is_found_behind_each_header() {
        let mut tagged = vec![0; 12];
        tagged.extend_from_slice(&[0x81, 0, 0, 5, 0x08, 0, 0x45]);
        assert_eq!(Layer::Ethernet.packet(&tagged), Some(&[0x45][..]));
        let mut cooked = vec![0; 14];
        cooked.extend_from_slice(&[0x86, 0xdd, 0x60]);
        assert_eq!(Layer::Cooked.packet(&cooked), Some(&[0x60][..]));
        assert_eq!(Layer::Raw.packet(&[0x45]), Some(&[0x45][..]));
        assert_eq!(Layer::Null.packet(&[2, 0, 0, 0, 0x45]), Some(&[0x45][..]));
    }

    #[test]
    fn what_is_no_ip_or_too_short_is_none() {
        assert_eq!(Layer::Ethernet.packet(&[0; 14]), None);
        assert_eq!(Layer::Ethernet.packet(&[0; 5]), None);
        assert_eq!(Layer::Cooked2.packet(&[8, 0, 0]), None);
        assert_eq!(Layer::from_number(147), None);
    }
}
