//! TCP segments (RFC 9293 §3.1).

mod flags;
mod hopwise_option;
mod options;

pub use super::checksum::Checksums;
pub use flags::Flags;
pub use hopwise_option::{HopwiseOption, Notes, OfferFlags, RateRequest};
use options::TIMESTAMPS_ALONE_LEN;
pub use options::{SackBlock, TcpOptions, Timestamps};

use std::net::IpAddr;

use super::Sum;
use super::protocol::TCP;
use crate::Seq;
use crate::narrow::as_u32;
use crate::trace::DropReason;

/// Without options.
pub(crate) const HEADER_LEN: usize = 20;
/// A header has at most 60 bytes: 15 words of four (RFC 9293 §3.1).
pub(crate) const MAX_OPTIONS_LEN: usize = 40;

/// A received segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpView<'a> {
    /// The sender's port.
    pub src_port: u16,
    /// The receiver's port.
    pub dst_port: u16,
    /// The number of the first byte; a SYN takes the number before it.
    pub seq: Seq,
    /// The next number that the sender expects, if the ACK flag is set.
    pub ack: Seq,
    /// All eight, ECE and CWR included.
    pub flags: Flags,
    /// The header's value, not scaled.
    pub window: u16,
    /// The distance from `seq` to the byte after urgent data, if the URG flag is set.
    pub urgent: u16,
    /// Unknown and faulty options are left out.
    pub options: TcpOptions,
    /// A SYN may have some too.
    pub payload: &'a [u8],
}

impl<'a> TcpView<'a> {
    /// Reads a segment. Both addresses are those of the packet, for the pseudo-header.
    #[inline]
    pub fn parse(
        src: IpAddr,
        dst: IpAddr,
        bytes: &'a [u8],
        checksums: Checksums,
    ) -> Result<TcpView<'a>, DropReason> {
        let checked = TcpBytes::check(src, dst, bytes, checksums)?;
        let mut view = TcpView::fixed(checked);
        view.read_options(checked);
        Ok(view)
    }

    /// The view of checked bytes, without its options. The view is large: made in two steps, it is never moved.
    #[inline(always)]
    pub(crate) fn fixed(checked: TcpBytes<'a>) -> TcpView<'a> {
        let TcpBytes { bytes, header, header_len } = checked;
        let u16_at = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let u32_at = |at: usize| u32::from(u16_at(at)) << 16 | u32::from(u16_at(at + 2));
        TcpView {
            src_port: u16_at(0),
            dst_port: u16_at(2),
            seq: Seq(u32_at(4)),
            ack: Seq(u32_at(8)),
            flags: Flags(header[13]),
            window: u16_at(14),
            urgent: u16_at(18),
            options: TcpOptions::default(),
            payload: &bytes[header_len..],
        }
    }

    #[inline(always)]
    pub(crate) fn read_options(&mut self, checked: TcpBytes<'a>) {
        self.options.read(&checked.bytes[HEADER_LEN..checked.header_len], self.flags);
    }

    /// SEG.LEN: payload, SYN and FIN.
    #[inline]
    pub fn sequence_len(&self) -> u32 {
        let controls =
            u32::from(self.flags.contains(Flags::SYN)) + u32::from(self.flags.contains(Flags::FIN));
        as_u32(self.payload.len()) + controls
    }
}

/// The bytes of a segment with a whole header, and a correct checksum unless the link vouches for it.
#[derive(Clone, Copy, Debug)]
pub struct TcpBytes<'a> {
    bytes: &'a [u8],
    header: &'a [u8; HEADER_LEN],
    header_len: usize,
}

impl<'a> TcpBytes<'a> {
    /// `bytes` is the whole payload of the packet. With [`Checksums::Trust`] only the lengths are checked.
    #[inline]
    pub fn check(
        src: IpAddr,
        dst: IpAddr,
        bytes: &'a [u8],
        checksums: Checksums,
    ) -> Result<TcpBytes<'a>, DropReason> {
        let header = bytes.first_chunk::<HEADER_LEN>().ok_or(DropReason::Truncated)?;
        // The header length in bytes; its field counts words of four bytes.
        let header_len = usize::from(header[12] >> 4) * 4;
        if header_len < HEADER_LEN {
            return Err(DropReason::TcpMalformed);
        }
        if bytes.len() < header_len {
            return Err(DropReason::Truncated);
        }
        if checksums == Checksums::Verify
            && Sum::pseudo_header(src, dst, TCP, as_u32(bytes.len())).add(bytes).finish() != 0
        {
            return Err(DropReason::TcpChecksum);
        }
        Ok(TcpBytes { bytes, header, header_len })
    }
}

/// A segment's header to write.
#[derive(Clone, Copy, Debug)]
pub struct TcpHeader<'a> {
    /// Our port, if an endpoint sends.
    pub src_port: u16,
    /// The peer's port, if an endpoint sends.
    pub dst_port: u16,
    /// The number of the first byte, or of the SYN or FIN.
    pub seq: Seq,
    /// It is written even without the ACK flag.
    pub ack: Seq,
    /// None is implied by other fields.
    pub flags: Flags,
    /// The header's value, not scaled.
    pub window: u16,
    /// As in [`TcpView`]; 0 without the URG flag.
    pub urgent: u16,
    /// SACK blocks for which there is no room are left out.
    pub options: &'a TcpOptions,
}

impl TcpHeader<'_> {
    /// The bytes before the payload: fixed header, options, padding.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a header is never empty")]
    pub fn len(&self) -> usize {
        HEADER_LEN + self.options.emitted_len()
    }

    /// Appends the segment. Its payload is in two pieces because it comes from a ring. With [`Checksums::Trust`] the
    /// link completes the checksum, and expects the pseudo-header's sum in its place.
    #[inline(always)]
    pub fn emit(
        &self,
        src: IpAddr,
        dst: IpAddr,
        payload: (&[u8], &[u8]),
        checksums: Checksums,
        out: &mut Vec<u8>,
    ) {
        let Some(timestamps) = self.options.only_timestamps() else {
            return self.emit_with_options(src, dst, payload, checksums, out);
        };
        let fixed = self.fixed_words(HEADER_LEN + TIMESTAMPS_ALONE_LEN);
        let [a, b, c, d, e] = fixed;
        let words = [a, b, c, d, e, timestamps.lead(), timestamps.value, timestamps.echo];
        let segment_len = size_of_val(&words) + payload.0.len() + payload.1.len();
        let sum = Sum::pseudo_header(src, dst, TCP, as_u32(segment_len));
        out.reserve(segment_len);
        let start = out.len();
        out.extend_from_slice(words.map(u32::to_be_bytes).as_flattened());
        append_payload(start, sum, |sum| sum.add_words(&words), payload, checksums, out);
    }

    /// [`emit`](TcpHeader::emit) for a link that completes the checksum and takes the payload from elsewhere.
    pub(crate) fn emit_head(&self, src: IpAddr, dst: IpAddr, payload_len: usize, out: &mut Vec<u8>) {
        let (mut header, header_len) = self.with_options();
        let sum = Sum::pseudo_header(src, dst, TCP, as_u32(header_len + payload_len));
        header[16..18].copy_from_slice(&sum.fold().to_be_bytes());
        out.extend_from_slice(&header[..header_len]);
    }

    fn emit_with_options(
        &self,
        src: IpAddr,
        dst: IpAddr,
        payload: (&[u8], &[u8]),
        checksums: Checksums,
        out: &mut Vec<u8>,
    ) {
        let (header, header_len) = self.with_options();
        let segment_len = header_len + payload.0.len() + payload.1.len();
        let sum = Sum::pseudo_header(src, dst, TCP, as_u32(segment_len));
        out.reserve(segment_len);
        let start = out.len();
        out.extend_from_slice(&header[..header_len]);
        append_payload(start, sum, |sum| sum.add_header(&header[..header_len]), payload, checksums, out);
    }

    /// The header without its checksum, and its length.
    fn with_options(&self) -> ([u8; HEADER_LEN + MAX_OPTIONS_LEN], usize) {
        let mut header = [0; HEADER_LEN + MAX_OPTIONS_LEN];
        let (fixed, options) = header.split_at_mut(HEADER_LEN);
        let header_len = HEADER_LEN + self.options.write(options);
        fixed.copy_from_slice(self.fixed_words(header_len).map(u32::to_be_bytes).as_flattened());
        (header, header_len)
    }

    /// The fixed part of a header of that length, without the checksum.
    #[inline]
    fn fixed_words(&self, header_len: usize) -> [u32; HEADER_LEN / 4] {
        [
            u32::from(self.src_port) << 16 | u32::from(self.dst_port),
            self.seq.0,
            self.ack.0,
            (as_u32(header_len) / 4) << 28 | u32::from(self.flags.0) << 16 | u32::from(self.window),
            u32::from(self.urgent),
        ]
    }
}

/// The only place where a segment's bytes come together and get their checksum. The header begins at `start`.
#[inline]
fn append_payload(
    start: usize,
    pseudo_header: Sum,
    add_header: impl FnOnce(Sum) -> Sum,
    payload: (&[u8], &[u8]),
    checksums: Checksums,
    out: &mut Vec<u8>,
) {
    let checksum = match checksums {
        Checksums::Verify => {
            let mut sum = add_header(pseudo_header);
            for piece in [payload.0, payload.1] {
                if !piece.is_empty() {
                    sum = sum.append(piece, out);
                }
            }
            sum.finish()
        }
        Checksums::Trust => {
            out.extend_from_slice(payload.0);
            out.extend_from_slice(payload.1);
            pseudo_header.fold()
        }
    };
    out[start + 16..start + 18].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests;
