//! VLAN tags: the kernel removes a frame's outer tag before a packet socket reads it. It reports the tag beside the
//! frame (packet(7), `PACKET_AUXDATA`).

use std::mem::offset_of;

/// The kind of a frame's outer tag, by IEEE 802.1Q or 802.1ad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    None,
    /// It names no VLAN, but a priority alone (IEEE 802.1Q clause 9.6, VID 0).
    Priority,
    Vlan,
}

/// The low bits of a tag, which name the VLAN.
const VID: u16 = 0xfff;
/// Offsets in a control message of the kernel: its length, two numbers of four bytes, its data.
const LEVEL_AT: usize = size_of::<usize>();
const KIND_AT: usize = LEVEL_AT + 4;
const DATA_AT: usize = KIND_AT + 4;
const BYTES: usize = DATA_AT + size_of::<libc::tpacket_auxdata>();
const WORDS: usize = BYTES.div_ceil(8);

/// Room for one control message, aligned as the kernel wants it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub(super) struct Control(pub(super) [u64; WORDS]);

impl Control {
    /// The tag that the kernel has written. All other bytes are zeros.
    pub(super) fn tag(&self) -> Tag {
        let mut written = [0; WORDS * 8];
        for (to, word) in written.chunks_exact_mut(8).zip(self.0) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        read(&written).unwrap_or(Tag::None)
    }
}

fn read(message: &[u8]) -> Option<Tag> {
    let word = |at: usize| Some(u32::from_ne_bytes(message.get(at..at + 4)?.try_into().ok()?));
    let half = |at: usize| Some(u16::from_ne_bytes(message.get(at..at + 2)?.try_into().ok()?));
    let kind = (word(LEVEL_AT)?, word(KIND_AT)?);
    if kind != (libc::SOL_PACKET.cast_unsigned(), libc::PACKET_AUXDATA.cast_unsigned()) {
        return None;
    }
    let status = word(DATA_AT + offset_of!(libc::tpacket_auxdata, tp_status))?;
    let tag = half(DATA_AT + offset_of!(libc::tpacket_auxdata, tp_vlan_tci))?;
    if status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    Some(if tag & VID == 0 { Tag::Priority } else { Tag::Vlan })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(status: u32, tag: u16) -> Control {
        let mut bytes = [0; WORDS * 8];
        bytes[LEVEL_AT..][..4].copy_from_slice(&libc::SOL_PACKET.to_ne_bytes());
        bytes[KIND_AT..][..4].copy_from_slice(&libc::PACKET_AUXDATA.to_ne_bytes());
        let mut put = |at: usize, value: &[u8]| bytes[DATA_AT + at..][..value.len()].copy_from_slice(value);
        put(offset_of!(libc::tpacket_auxdata, tp_status), &status.to_ne_bytes());
        put(offset_of!(libc::tpacket_auxdata, tp_vlan_tci), &tag.to_ne_bytes());
        let mut control = Control::default();
        for (word, bytes) in control.0.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().unwrap());
        }
        control
    }

    #[test]
    fn a_tag_of_vlan_0_is_a_priority_and_any_other_names_a_vlan() {
        const VALID: u32 = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        for (status, tag, expected) in [
            (1, 0, Tag::None),
            (1, 100, Tag::None),
            (VALID, 0, Tag::Priority),
            (VALID, 0xe000, Tag::Priority),
            (VALID, 100, Tag::Vlan),
            (VALID, 0xefff, Tag::Vlan),
        ] {
            assert_eq!(message(status, tag).tag(), expected, "{status} {tag}");
        }
    }

    #[test]
    fn where_nothing_or_something_else_is_told_there_is_no_tag() {
        assert_eq!(Control::default().tag(), Tag::None);
        let mut other = message(libc::TP_STATUS_VLAN_VALID, 100);
        other.0[KIND_AT / 8] ^= u64::MAX;
        assert_eq!(other.tag(), Tag::None);
    }
}
