//! The bytes of the log: numbers in groups of seven bits, and of a row only the fields that have changed.

use crate::narrow::low_u8;

/// The most fields of a row; its mask is one number.
const MOST_FIELDS: usize = 63;

pub(super) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(low_u8(value) | 0x80);
        value >>= 7;
    }
    out.push(low_u8(value));
}

/// Writes the wrapped difference of two numbers; a small one takes a byte, up or down.
pub(super) fn put_change(out: &mut Vec<u8>, from: u64, to: u64) {
    let change = to.wrapping_sub(from).cast_signed();
    put(out, ((change << 1) ^ (change >> 63)).cast_unsigned());
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Writes a mask of the fields that differ from the row before, and their differences.
pub(super) fn put_row<const N: usize>(out: &mut Vec<u8>, before: &mut [u64; N], row: [u64; N]) {
    const { assert!(N <= MOST_FIELDS) };
    let mask = (0..N).filter(|nth| before[*nth] != row[*nth]).fold(0, |mask, nth| mask | 1_u64 << nth);
    put(out, mask);
    for (before, now) in before.iter().zip(&row).filter(|(before, now)| before != now) {
        put_change(out, *before, *now);
    }
    *before = row;
}

/// Bytes that are read from the front. Each call returns None if they end too early or mean nothing.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let group = u64::from(byte & 0x7f);
            let placed = group << shift;
            if placed >> shift != group {
                return None;
            }
            value |= placed;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    pub(super) fn changed(&mut self, from: u64) -> Option<u64> {
        let coded = self.number()?;
        Some(from.wrapping_add((coded >> 1) ^ (coded & 1).wrapping_neg()))
    }

    pub(super) fn text(&mut self, longest: usize) -> Option<&'a str> {
        let len = usize::try_from(self.number()?).ok().filter(|len| *len <= longest)?;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        str::from_utf8(text).ok()
    }

    pub(super) fn row<const N: usize>(&mut self, row: &mut [u64; N]) -> Option<()> {
        let mask = self.number()?;
        if mask >> N != 0 {
            return None;
        }
        for (nth, field) in row.iter_mut().enumerate() {
            if mask & 1 << nth != 0 {
                *field = self.changed(*field)?;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(rows in prop::collection::vec(any::<[u64; 9]>(), 1..20), text in ".*") {
            let (mut out, mut before) = (Vec::new(), [0; 9]);
            put_text(&mut out, &text);
            rows.iter().for_each(|row| put_row(&mut out, &mut before, *row));
            let (mut bytes, mut row) = (Bytes(&out), [0; 9]);
            prop_assert_eq!(bytes.text(text.len()), Some(&text[..]));
            for expected in &rows {
                prop_assert_eq!(bytes.row(&mut row), Some(()));
                prop_assert_eq!(&row, expected);
            }
            prop_assert!(bytes.is_empty());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut left = Bytes(&bytes);
            let mut row = [0_u64; 3];
            while left.row(&mut row).is_some() {}
            let _ = left.text(10);
        }
    }

    #[test]
    fn small_changes_take_a_byte_in_both_directions() {
        for to in [1_000 - 64, 1_000, 1_000 + 63] {
            let mut out = Vec::new();
            put_change(&mut out, 1_000, to);
            assert_eq!((out.len(), Bytes(&out).changed(1_000)), (1, Some(to)));
        }
    }

    #[test]
    fn a_number_that_does_not_fit_is_refused() {
        assert_eq!(Bytes(&[0xff; 9]).number(), None);
        assert_eq!(
            Bytes(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]).number(),
            Some(u64::MAX)
        );
        assert_eq!(Bytes(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).number(), None);
    }
}
