//! S1 of TCP-pgy: routing messages carry what has arrived at the node that they speak for.
//!
//! An extension behind RREQ and RREP: for each flow the sender's port, the receiver's, and the receiver's `rcv_nxt`. A
//! RREQ speaks for its origin to its destination, a RREP for its destination to its origin; the RREP that is sent to
//! the destination because a node on the way answered carries what the RREQ said. Where a key is set the extension
//! carries a counter and a tag, and others are not believed. What is believed is only passed on: a connection takes
//! nothing that is not in flight, and `snd_una` never moves by it.

use std::net::{IpAddr, Ipv4Addr};

use hopwise_core::Seq;
use hopwise_core::agent::PathEvent;
use hopwise_core::trace::DropReason;

use super::key::{Key, Replays, TAG_BYTES};
use super::messages::{Extension, Extensions};
use crate::routing::Cx;

/// Extension types that no registry knows, of those that may be skipped.
pub const ACK_SEQ: u8 = 0x57;
pub const SIGNED_ACK_SEQ: u8 = 0x58;
const FLOW_BYTES: usize = 8;
const COUNTER_BYTES: usize = 8;
const MOST_FLOWS: usize = 8;

#[derive(Debug)]
pub(super) struct AckSeqs {
    is_on: bool,
    key: Option<Key>,
    counter: u64,
    replays: Replays,
}

/// What a message says of one flow: its ports (the sender's, the receiver's) and the number.
pub(super) type Said = ((u16, u16), PathEvent);

impl AckSeqs {
    /// Counters begin above `counter`, which must grow from one start to the next.
    pub(super) fn new(is_on: bool, key: Option<Key>, counter: u64) -> AckSeqs {
        AckSeqs { is_on, key, counter, replays: Replays::default() }
    }

    /// The extension for a message from `own` to `peer`; empty when nothing is to be said.
    pub(super) fn write(&mut self, cx: &Cx<'_>, own: Ipv4Addr, peer: Ipv4Addr) -> Vec<u8> {
        let mut flows = Vec::new();
        if self.is_on {
            cx.endpoint.ack_hints(cx.now, IpAddr::V4(peer), &mut |(theirs, ours), Seq(seq)| {
                if flows.len() < MOST_FLOWS * FLOW_BYTES {
                    flows.extend(theirs.to_be_bytes());
                    flows.extend(ours.to_be_bytes());
                    flows.extend(seq.to_be_bytes());
                }
            });
        }
        let mut out = Vec::new();
        if flows.is_empty() {
            return out;
        }
        match &self.key {
            None => Extension { kind: ACK_SEQ, data: &flows }.emit(&mut out),
            Some(key) => {
                self.counter += 1;
                let counter = self.counter.to_be_bytes();
                let tag = key.tag(&[&own.octets(), &peer.octets(), &counter, &flows]);
                let data = [&counter[..], &flows, &tag].concat();
                Extension { kind: SIGNED_ACK_SEQ, data: &data }.emit(&mut out);
            }
        }
        out
    }

    /// What a message from `peer` to us says, as far as it is to be believed.
    pub(super) fn read(
        &mut self,
        own: Ipv4Addr,
        peer: Ipv4Addr,
        extensions: &Extensions<'_>,
    ) -> Result<Vec<Said>, DropReason> {
        if !self.is_on {
            return Ok(Vec::new());
        }
        let flows = match &self.key {
            None => extensions.find(ACK_SEQ).unwrap_or_default(),
            Some(key) => {
                let Some(data) = extensions.find(SIGNED_ACK_SEQ) else {
                    let is_unsigned = extensions.find(ACK_SEQ).is_some();
                    return if is_unsigned { Err(DropReason::RoutingRefused) } else { Ok(Vec::new()) };
                };
                let (counter, flows, tag) = parts(data).ok_or(DropReason::RoutingMalformed)?;
                let is_right = key.is_right(&[&peer.octets(), &own.octets(), &counter, flows], tag);
                if !is_right || !self.replays.accept(peer, u64::from_be_bytes(counter)) {
                    return Err(DropReason::RoutingRefused);
                }
                flows
            }
        };
        if flows.len() % FLOW_BYTES != 0 || flows.len() > MOST_FLOWS * FLOW_BYTES {
            return Err(DropReason::RoutingMalformed);
        }
        Ok(flows.chunks_exact(FLOW_BYTES).map(said).collect())
    }
}

fn parts(data: &[u8]) -> Option<([u8; COUNTER_BYTES], &[u8], &[u8])> {
    let (counter, rest) = data.split_first_chunk::<COUNTER_BYTES>()?;
    let (flows, tag) = rest.split_at_checked(rest.len().checked_sub(TAG_BYTES)?)?;
    Some((*counter, flows, tag))
}

fn said(flow: &[u8]) -> Said {
    let port = |at: usize| u16::from_be_bytes([flow[at], flow[at + 1]]);
    let seq = u32::from_be_bytes([flow[4], flow[5], flow[6], flow[7]]);
    ((port(0), port(2)), PathEvent::AckSeq(Seq(seq)))
}

#[cfg(test)]
mod tests;
