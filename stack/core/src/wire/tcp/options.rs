//! TCP options: lenient when reading, one fixed order when writing.

use arrayvec::ArrayVec;

use super::hopwise_option::{KIND_HOPWISE, KIND_RATE_REQUEST};
use super::{Flags, HopwiseOption, MAX_OPTIONS_LEN, RateRequest};
use crate::Seq;
use crate::narrow::as_u8;

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

const MSS_LEN: usize = 4;
const WINDOW_SCALE_LEN: usize = 3;
const SACK_PERMITTED_LEN: usize = 2;
const TIMESTAMPS_LEN: usize = 10;
const SACK_FIXED_LEN: usize = 2;
const SACK_BLOCK_LEN: usize = 8;
const MAX_SACK_BLOCKS: usize = 4;

/// Timestamps after the two NOPs that RFC 7323 appendix A recommends.
pub(super) const TIMESTAMPS_ALONE_LEN: usize = 12;

/// RFC 7323 §2.3: a larger shift counts as this one.
const MAX_WINDOW_SCALE: u8 = 14;

/// RFC 7323 §3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval.
    pub value: u32,
    /// TSecr.
    pub echo: u32,
}

impl Timestamps {
    /// The bytes before the two values if timestamps are the only option.
    #[inline]
    pub(super) fn lead(self) -> u32 {
        u32::from_be_bytes([NOP, NOP, TIMESTAMPS, as_u8(TIMESTAMPS_LEN)])
    }
}

/// Received bytes, from `left` to just before `right` (RFC 2018 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SackBlock {
    /// The block's first number.
    pub left: Seq,
    /// The number after the block.
    pub right: Seq,
}

/// All options that are read and written here.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TcpOptions {
    /// On SYNs only: payload and options of the largest segment that its sender takes (RFC 6691).
    pub mss: Option<u16>,
    /// On SYNs only: the shift of later windows, at most 14 (RFC 7323 §2.3).
    pub window_scale: Option<u8>,
    /// True if the sender takes SACK blocks; on SYNs only (RFC 2018 §2).
    pub sack_permitted: bool,
    /// On a SYN they are an offer. If both SYNs have them, so has every later segment but a RST (RFC 7323 §3.2).
    pub timestamps: Option<Timestamps>,
    /// Never on a SYN. The blocks for which a header has no room are not written.
    pub sack: ArrayVec<SackBlock, MAX_SACK_BLOCKS>,
    /// Kind 253: the offer or the notes of one end's agents.
    pub hopwise: Option<HopwiseOption>,
    /// Kind 254 (draft-ietf-tcpm-ack-rate-request).
    pub rate_request: Option<RateRequest>,
}

impl TcpOptions {
    /// Reads the options of a header with these flags. An option that makes no sense ends the list.
    pub fn parse(bytes: &[u8], flags: Flags) -> TcpOptions {
        let mut options = TcpOptions::default();
        options.read(bytes, flags);
        options
    }

    /// Reads the options and never fails. An impossible length ends the reading (RFC 9293 §3.1, MUST-7). Unknown
    /// options, and those with a wrong length or on the wrong kind of segment, are skipped.
    #[inline(always)]
    pub(super) fn read(&mut self, bytes: &[u8], flags: Flags) {
        match bytes {
            // The options of most segments.
            [NOP, NOP, TIMESTAMPS, 10, body @ ..] if body.len() == 8 => {
                self.timestamps = read_timestamps(body);
            }
            _ => self.walk(bytes, flags),
        }
    }

    fn walk(&mut self, mut bytes: &[u8], flags: Flags) {
        while let [kind, tail @ ..] = bytes {
            match *kind {
                END => return,
                NOP => bytes = tail,
                kind => {
                    let Some(len) = tail.first().map(|len| usize::from(*len)) else { return };
                    if len < 2 || len > bytes.len() {
                        return;
                    }
                    let (option, rest) = bytes.split_at(len);
                    self.take(kind, option, flags);
                    bytes = rest;
                }
            }
        }
    }

    /// If an option comes twice, the last one counts.
    fn take(&mut self, kind: u8, option: &[u8], flags: Flags) {
        let body = &option[2..];
        let on_syn = flags.contains(Flags::SYN);
        match (kind, body) {
            (MSS, [high, low]) if on_syn => self.mss = Some(u16::from_be_bytes([*high, *low])),
            (WINDOW_SCALE, [shift]) if on_syn => self.window_scale = Some((*shift).min(MAX_WINDOW_SCALE)),
            (SACK_PERMITTED, []) if on_syn => self.sack_permitted = true,
            (SACK, _) if !on_syn => self.take_sack(body),
            (TIMESTAMPS, _) => self.timestamps = read_timestamps(body).or(self.timestamps),
            (KIND_HOPWISE, _) => self.hopwise = HopwiseOption::parse(option, flags).or(self.hopwise),
            (KIND_RATE_REQUEST, _) => {
                self.rate_request = RateRequest::parse(option, flags).or(self.rate_request);
            }
            _ => {}
        }
    }

    fn take_sack(&mut self, body: &[u8]) {
        let (blocks, rest) = body.as_chunks::<SACK_BLOCK_LEN>();
        if !rest.is_empty() || blocks.is_empty() || blocks.len() > MAX_SACK_BLOCKS {
            return;
        }
        self.sack = blocks
            .iter()
            .map(|[a, b, c, d, right @ ..]| SackBlock {
                left: Seq(u32::from_be_bytes([*a, *b, *c, *d])),
                right: Seq(u32::from_be_bytes(*right)),
            })
            .collect();
    }

    #[inline]
    pub(super) fn only_timestamps(&self) -> Option<Timestamps> {
        let TcpOptions { mss, window_scale, sack_permitted, timestamps, sack, hopwise, rate_request } = self;
        let nothing_else = mss.is_none()
            && window_scale.is_none()
            && !sack_permitted
            && sack.is_empty()
            && hopwise.is_none()
            && rate_request.is_none();
        timestamps.filter(|_| nothing_else)
    }

    /// The length of these options in a header, padding included.
    #[inline]
    pub fn emitted_len(&self) -> usize {
        if self.only_timestamps().is_some() {
            return TIMESTAMPS_ALONE_LEN;
        }
        let len = self.len_without_sack();
        let blocks = self.sack_blocks_that_fit(len);
        let end = if blocks == 0 { len } else { sack_start(len) + SACK_FIXED_LEN + blocks * SACK_BLOCK_LEN };
        end.next_multiple_of(4)
    }

    /// SACK comes last and gets the remaining room. A later ACK can report a missing block, while the other options
    /// cannot wait.
    fn sack_blocks_that_fit(&self, used: usize) -> usize {
        let room = MAX_OPTIONS_LEN.saturating_sub(used + SACK_FIXED_LEN);
        self.sack.len().min(room / SACK_BLOCK_LEN)
    }

    #[inline]
    fn len_without_sack(&self) -> usize {
        let padded = |is_there: bool, len: usize| if is_there { len.next_multiple_of(4) } else { 0 };
        // SACK-permitted replaces the two NOPs before timestamps.
        let alone = self.sack_permitted && self.timestamps.is_none();
        padded(self.mss.is_some(), MSS_LEN)
            + padded(alone, SACK_PERMITTED_LEN)
            + padded(self.timestamps.is_some(), TIMESTAMPS_LEN)
            + padded(self.window_scale.is_some(), WINDOW_SCALE_LEN)
            + self.hopwise.map_or(0, HopwiseOption::len)
            + self.rate_request.map_or(0, RateRequest::len)
    }

    /// Writes the options and their padding and returns their length. `out` is zeroed, so the padding after the last
    /// option is the END of RFC 9293 §3.1 (MUST-69).
    #[inline]
    pub(super) fn write(&self, out: &mut [u8]) -> usize {
        let mut writer = Writer { out, len: 0 };
        if let Some(mss) = self.mss {
            let [high, low] = mss.to_be_bytes();
            writer.put(&[MSS, as_u8(MSS_LEN), high, low]);
        }
        self.write_timestamps(&mut writer);
        if let Some(shift) = self.window_scale {
            writer.put(&[NOP, WINDOW_SCALE, as_u8(WINDOW_SCALE_LEN), shift]);
        }
        if let Some(hopwise) = self.hopwise {
            let (bytes, len) = hopwise.bytes();
            writer.put(&bytes[..len]);
        }
        if let Some(rate_request) = self.rate_request {
            let (bytes, len) = rate_request.bytes();
            writer.put(&bytes[..len]);
        }
        self.write_sack(&mut writer);
        writer.len.next_multiple_of(4)
    }

    #[inline]
    fn write_timestamps(&self, writer: &mut Writer<'_>) {
        let lead = if self.sack_permitted { [SACK_PERMITTED, as_u8(SACK_PERMITTED_LEN)] } else { [NOP, NOP] };
        match self.timestamps {
            Some(timestamps) => {
                let ([a, b, c, d], [e, f, g, h]) =
                    (timestamps.value.to_be_bytes(), timestamps.echo.to_be_bytes());
                writer.put(&[lead[0], lead[1], TIMESTAMPS, as_u8(TIMESTAMPS_LEN), a, b, c, d, e, f, g, h]);
            }
            None if self.sack_permitted => writer.put(&[NOP, NOP, lead[0], lead[1]]),
            None => {}
        }
    }

    #[inline]
    fn write_sack(&self, writer: &mut Writer<'_>) {
        let blocks = self.sack_blocks_that_fit(writer.len);
        if blocks == 0 {
            return;
        }
        while writer.len < sack_start(writer.len) {
            writer.put(&[NOP]);
        }
        writer.put(&[SACK, as_u8(SACK_FIXED_LEN + blocks * SACK_BLOCK_LEN)]);
        for block in &self.sack[..blocks] {
            writer.put(&block.left.0.to_be_bytes());
            writer.put(&block.right.0.to_be_bytes());
        }
    }
}

#[inline]
fn read_timestamps(body: &[u8]) -> Option<Timestamps> {
    let [value, echo] = *body.as_chunks::<4>().0 else { return None };
    (body.len() == TIMESTAMPS_LEN - 2)
        .then_some(Timestamps { value: u32::from_be_bytes(value), echo: u32::from_be_bytes(echo) })
}

/// The start of SACK for which its blocks are aligned. This never costs a block, since the room ends aligned too.
#[inline]
fn sack_start(used: usize) -> usize {
    (used + SACK_FIXED_LEN).next_multiple_of(4) - SACK_FIXED_LEN
}

struct Writer<'a> {
    out: &'a mut [u8],
    len: usize,
}

impl Writer<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.out[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

#[cfg(test)]
mod tests;
