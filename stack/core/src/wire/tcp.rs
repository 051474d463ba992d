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

use smoltcp::wire::TcpPacket;

use super::Sum;
use super::protocol::TCP;
use crate::Seq;
use crate::trace::DropReason;

/// Without options.
pub const HEADER_LEN: usize = 20;
pub const MAX_OPTIONS_LEN: usize = 40;

/// A received segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpView<'a> {
    pub src_port: u16,
    pub dst_port: u16,
    pub seq: Seq,
    pub ack: Seq,
    pub flags: Flags,
    /// As it stands in the header, not scaled.
    pub window: u16,
    pub urgent: u16,
    pub options: TcpOptions,
    pub payload: &'a [u8],
}

impl<'a> TcpView<'a> {
    #[inline(always)]
    pub fn parse(
        src: IpAddr,
        dst: IpAddr,
        bytes: &'a [u8],
        checksums: Checksums,
    ) -> Result<TcpView<'a>, DropReason> {
        if bytes.len() < HEADER_LEN {
            return Err(DropReason::Truncated);
        }
        let header = TcpPacket::new_unchecked(bytes);
        let header_len = usize::from(header.header_len());
        if header_len < HEADER_LEN {
            return Err(DropReason::TcpMalformed);
        }
        if bytes.len() < header_len {
            return Err(DropReason::Truncated);
        }
        if checksums == Checksums::Verify
            && Sum::pseudo_header(src, dst, TCP, bytes.len() as u32).add(bytes).finish() != 0
        {
            return Err(DropReason::TcpChecksum);
        }
        let flags = Flags(bytes[13]);
        Ok(TcpView {
            src_port: header.src_port(),
            dst_port: header.dst_port(),
            seq: Seq(header.seq_number().0 as u32),
            ack: Seq(header.ack_number().0 as u32),
            flags,
            window: header.window_len(),
            urgent: header.urgent_at(),
            options: TcpOptions::parse(&bytes[HEADER_LEN..header_len], flags),
            payload: &bytes[header_len..],
        })
    }

    /// SEG.LEN: payload, SYN and FIN.
    #[inline]
    pub fn sequence_len(&self) -> u32 {
        let controls =
            u32::from(self.flags.contains(Flags::SYN)) + u32::from(self.flags.contains(Flags::FIN));
        self.payload.len() as u32 + controls
    }
}

/// A segment's header to be written.
#[derive(Clone, Copy, Debug)]
pub struct TcpHeader<'a> {
    pub src_port: u16,
    pub dst_port: u16,
    pub seq: Seq,
    pub ack: Seq,
    pub flags: Flags,
    pub window: u16,
    pub urgent: u16,
    pub options: &'a TcpOptions,
}

impl TcpHeader<'_> {
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a header is never empty")]
    pub fn len(&self) -> usize {
        HEADER_LEN + self.options.emitted_len()
    }

    /// Appends the segment. Its payload is in two pieces because it comes from a ring. With
    /// [`Checksums::Trust`] the link finishes the checksum, and wants the pseudo-header's sum in its place.
    #[inline(always)]
    pub fn emit(
        &self,
        src: IpAddr,
        dst: IpAddr,
        payload: (&[u8], &[u8]),
        checksums: Checksums,
        out: &mut Vec<u8>,
    ) {
        let segment_len = self.len() + payload.0.len() + payload.1.len();
        let pseudo_header = Sum::pseudo_header(src, dst, TCP, segment_len as u32);
        out.reserve(segment_len);
        if let Some(timestamps) = self.options.only_timestamps() {
            let mut header = [0; HEADER_LEN + TIMESTAMPS_ALONE_LEN];
            header[HEADER_LEN..].copy_from_slice(&timestamps.aligned());
            self.write_fixed(&mut header);
            append(&header, payload, pseudo_header, checksums, out);
        } else {
            let mut header = [0; HEADER_LEN + MAX_OPTIONS_LEN];
            let len = HEADER_LEN + self.options.write(&mut header[HEADER_LEN..]);
            self.write_fixed(&mut header[..len]);
            append(&header[..len], payload, pseudo_header, checksums, out);
        }
    }

    /// Fills in all of a header as long as `bytes`, but for its options and the checksum.
    #[inline]
    fn write_fixed(&self, bytes: &mut [u8]) {
        bytes[0..2].copy_from_slice(&self.src_port.to_be_bytes());
        bytes[2..4].copy_from_slice(&self.dst_port.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.seq.0.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.ack.0.to_be_bytes());
        bytes[12] = (bytes.len() as u8 / 4) << 4;
        bytes[13] = self.flags.0;
        bytes[14..16].copy_from_slice(&self.window.to_be_bytes());
        bytes[18..20].copy_from_slice(&self.urgent.to_be_bytes());
    }
}

/// The only place where a segment's bytes come together and get their checksum.
#[inline]
fn append(
    header: &[u8],
    payload: (&[u8], &[u8]),
    pseudo_header: Sum,
    checksums: Checksums,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    out.extend_from_slice(header);
    let checksum = match checksums {
        Checksums::Verify => {
            pseudo_header.add_header(header).append(payload.0, out).append(payload.1, out).finish()
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
