//! Netlink's messages as bytes, for families that are used without a runtime: headers and attributes.

/// The size of `struct nlmsghdr`.
pub(crate) const HEADER: usize = 16;
const ATTRIBUTE: usize = 4;
/// The size of a header of generic netlink: command, version, two empty bytes.
pub(crate) const GENERIC_HEADER: usize = 4;
/// Removes two flags from an attribute's type: nested attributes, and network order (NLA_TYPE_MASK).
const TYPE_MASK: u16 = 0x3fff;
/// Marks a list of attributes (NLA_F_NESTED). Younger families require it.
const NESTED: u16 = 0x8000;

pub(crate) const REQUEST: u16 = 1;
const ACK: u16 = 4;
pub(crate) const DUMP: u16 = 0x300;
/// The kernel's reply that a request failed or succeeded (NLMSG_ERROR).
pub(crate) const ERROR: u16 = 2;
/// A dump has ended (NLMSG_DONE).
pub(super) const DONE: u16 = 3;

/// A message that is being written.
#[derive(Clone, Debug)]
pub(crate) struct NetlinkMessage(Vec<u8>);

impl NetlinkMessage {
    pub(crate) fn new(kind: u16, flags: u16, number: u32) -> NetlinkMessage {
        let mut bytes = vec![0; 4];
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(&number.to_ne_bytes());
        bytes.extend_from_slice(&[0; 4]);
        NetlinkMessage(bytes)
    }

    /// Appends the family's own header.
    pub(crate) fn fixed(mut self, bytes: &[u8]) -> NetlinkMessage {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn attribute(mut self, kind: u16, value: &[u8]) -> NetlinkMessage {
        let len = u16::try_from(ATTRIBUTE + value.len()).unwrap_or(u16::MAX);
        self.0.extend_from_slice(&len.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Appends a list of attributes.
    pub(crate) fn nest(
        self,
        kind: u16,
        write: impl FnOnce(NetlinkMessage) -> NetlinkMessage,
    ) -> NetlinkMessage {
        let list = write(NetlinkMessage::new(0, 0, 0)).finish().split_off(HEADER);
        self.attribute(kind | NESTED, &list)
    }

    /// Finishes it as a question with that number, whose replies end with an acknowledgement or with a dump.
    pub(super) fn asking(mut self, number: u32) -> Vec<u8> {
        let flags = half(&self.0, 6).unwrap_or(0) | REQUEST | ACK;
        self.0[6..8].copy_from_slice(&flags.to_ne_bytes());
        self.0[8..12].copy_from_slice(&number.to_ne_bytes());
        self.finish()
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        let len = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0[..4].copy_from_slice(&len.to_ne_bytes());
        self.0
    }
}

/// A message that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NetlinkReply<'a> {
    pub(crate) kind: u16,
    pub(crate) number: u32,
    pub(crate) body: &'a [u8],
}

impl NetlinkReply<'_> {
    /// The error in the last reply to a question; 0 means success.
    pub(crate) fn errno(&self) -> Option<i32> {
        matches!(self.kind, ERROR | DONE)
            .then(|| word(self.body, 0).map_or(0, |code| (code as i32).wrapping_neg()))
    }
}

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
}

/// The messages of one read, up to the first truncated one.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = NetlinkReply<'_>> {
    std::iter::from_fn(move || {
        let len = word(bytes, 0)? as usize;
        let body = bytes.get(HEADER..len)?;
        let heard = NetlinkReply { kind: half(bytes, 4)?, number: word(bytes, 8)?, body };
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(heard)
    })
}

/// Attributes by their types, up to the first truncated one.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = usize::from(half(bytes, 0)?);
        let value = bytes.get(ATTRIBUTE..len)?;
        let kind = half(bytes, 2)? & TYPE_MASK;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The last attribute of that type.
pub(crate) fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).filter(|(known, _)| *known == kind).last().map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let bytes =
            NetlinkMessage::new(7, REQUEST, 9).fixed(&[1, 2, 3, 4]).attribute(5, b"abcde").attribute(6, &[]);
        let both = [bytes.clone().finish(), bytes.finish()].concat();
        let read: Vec<_> = messages(&both).collect();
        assert_eq!(read.len(), 2);
        assert_eq!((read[1].kind, read[1].number), (7, 9));
        let of: Vec<_> = attributes(&read[1].body[4..]).collect();
        assert_eq!(of, [(5, &b"abcde"[..]), (6, &[])]);
    }

    #[test]
    fn an_answer_says_what_failed() {
        let no = NetlinkMessage::new(ERROR, 0, 1).fixed(&(-22_i32).to_ne_bytes()).finish();
        assert_eq!(messages(&no).next().and_then(|heard| heard.errno()), Some(22));
        let done = NetlinkMessage::new(DONE, 0, 1).finish();
        assert_eq!(messages(&done).next().and_then(|heard| heard.errno()), Some(0));
        let other = NetlinkMessage::new(DONE + 1, 0, 1).fixed(&[1; 4]).finish();
        assert_eq!(messages(&other).next().and_then(|heard| heard.errno()), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn whatever_comes_is_read_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for heard in messages(&bytes) {
                prop_assert!(heard.body.len() <= bytes.len());
            }
            prop_assert!(attributes(&bytes).count() <= bytes.len() / ATTRIBUTE);
        }
    }
}
