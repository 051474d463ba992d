//! Where AODV's messages carry what has arrived: extensions behind RREQ and RREP (RFC 3561 §9).

use std::net::Ipv4Addr;

use hopwise_core::trace::DropReason;

use super::messages::{Extension, Extensions};
use crate::on_demand::ack_seq::{AckSeqs, Said, Statement};
use crate::routing::Cx;

/// Extension types that no registry knows, of those that may be skipped.
pub const ACK_SEQ: u8 = 0x57;
pub const SIGNED_ACK_SEQ: u8 = 0x58;

/// The extension for a message from `own` to `peer`; empty when nothing is to be said.
pub(super) fn write(seqs: &mut AckSeqs, cx: &Cx<'_>, own: Ipv4Addr, peer: Ipv4Addr) -> Vec<u8> {
    let mut out = Vec::new();
    match seqs.write(cx, own, peer) {
        None => {}
        Some(Statement::Open(data)) => Extension { kind: ACK_SEQ, data: &data }.emit(&mut out),
        Some(Statement::Signed(data)) => Extension { kind: SIGNED_ACK_SEQ, data: &data }.emit(&mut out),
    }
    out
}

/// What a message from `peer` to us says, as far as it is to be believed.
pub(super) fn read(
    seqs: &mut AckSeqs,
    own: Ipv4Addr,
    peer: Ipv4Addr,
    extensions: &Extensions<'_>,
) -> Result<Vec<Said>, DropReason> {
    seqs.read(own, peer, extensions.find(ACK_SEQ), extensions.find(SIGNED_ACK_SEQ))
}

#[cfg(test)]
mod tests;
