//! Extensions behind RREQ and RREP that carry arrivals (RFC 3561 §9).

use std::net::Ipv4Addr;

use hopwise_core::trace::DropReason;

use super::Settings;
use super::messages::{Extension, Extensions};
use crate::on_demand::ack_seq::{AckSeqs, FlowEntry, Statement};
use crate::routing::Cx;

/// Extension types without registration, from the range that may be skipped.
pub(crate) const ACK_SEQ: u8 = 0x57;
pub(crate) const SIGNED_ACK_SEQ: u8 = 0x58;

/// The extension for a message from `own` to `peer`; empty without arrivals.
pub(super) fn write(seqs: &mut AckSeqs, cx: &Cx<'_>, own: Ipv4Addr, peer: Ipv4Addr) -> Vec<u8> {
    let mut out = Vec::new();
    match seqs.write(cx, own, peer) {
        None => {}
        Some(Statement::Open(data)) => Extension { kind: ACK_SEQ, data: &data }.emit(&mut out),
        Some(Statement::Signed(data)) => Extension { kind: SIGNED_ACK_SEQ, data: &data }.emit(&mut out),
    }
    out
}

/// The same for a reply of the destination itself; empty where these may carry none.
pub(super) fn write_in_reply(
    seqs: &mut AckSeqs,
    settings: &Settings,
    cx: &Cx<'_>,
    own: Ipv4Addr,
    peer: Ipv4Addr,
) -> Vec<u8> {
    if settings.ack_seq_in_replies { write(seqs, cx, own, peer) } else { Vec::new() }
}

/// The arrivals in a message from `peer` to us, as far as they are believed.
pub(super) fn read(
    seqs: &mut AckSeqs,
    own: Ipv4Addr,
    peer: Ipv4Addr,
    extensions: &Extensions<'_>,
) -> Result<Vec<FlowEntry>, DropReason> {
    seqs.read(own, peer, extensions.find(ACK_SEQ), extensions.find(SIGNED_ACK_SEQ))
}

#[cfg(test)]
mod tests;
