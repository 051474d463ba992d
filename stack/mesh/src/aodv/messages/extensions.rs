//! The extensions that may follow a message: type, length, bytes (RFC 3561 §9).

use super::Malformed;
use hopwise_core::narrow::as_u8;

/// The time between a node's hellos, in milliseconds.
pub(crate) const HELLO_INTERVAL: u8 = 1;
/// Receivers may not skip unknown types from here on.
const MUST_KNOW: u8 = 128;

/// An extension: a type, and the bytes of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension<'a> {
    /// The type. Receivers that do not know it skip one below 128, and refuse the message from 128 on.
    pub kind: u8,
    /// The value, of 255 bytes at most.
    pub data: &'a [u8],
}

/// Extensions whose lengths were checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extensions<'a> {
    bytes: &'a [u8],
}

impl<'a> Extensions<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Extensions<'a>, Malformed> {
        let mut rest = bytes;
        while let [kind, len, behind @ ..] = rest {
            if *kind >= MUST_KNOW {
                return Err(Malformed);
            }
            rest = behind.get(usize::from(*len)..).ok_or(Malformed)?;
        }
        if rest.is_empty() { Ok(Extensions { bytes }) } else { Err(Malformed) }
    }

    /// All extensions, in the order of the message.
    pub fn iter(&self) -> impl Iterator<Item = Extension<'a>> {
        let mut rest = self.bytes;
        std::iter::from_fn(move || {
            let [kind, len, behind @ ..] = rest else { return None };
            let (data, behind) = behind.split_at_checked(usize::from(*len))?;
            rest = behind;
            Some(Extension { kind: *kind, data })
        })
    }

    /// The value of the first extension of this type.
    pub fn find(&self, kind: u8) -> Option<&'a [u8]> {
        self.iter().find(|extension| extension.kind == kind).map(|extension| extension.data)
    }

    /// The bytes as they came, to be passed on.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl Extension<'_> {
    /// Appends it in the form of the RFC; a value of more than 255 bytes panics.
    pub fn emit(&self, out: &mut Vec<u8>) {
        assert!(self.data.len() <= usize::from(u8::MAX), "an extension's length is one byte");
        out.extend([self.kind, as_u8(self.data.len())]);
        out.extend(self.data);
    }
}
