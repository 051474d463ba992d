//! S1 of TCP-pgy: routing messages carry the arrivals at a node.
//!
//! A flow's entry holds the sender's port, the receiver's, and the receiver's `rcv_nxt`. A RREQ carries entries of its
//! origin to its destination, and a RREP entries of its destination to its origin, if it may carry any. The gratuitous
//! RREP to the destination carries the RREQ's entries. With a key, a counter and a tag go along, and other messages are
//! not believed. Entries are only passed on: a connection uses no number that is not in flight, and `snd_una` never
//! moves by it. The protocol decides how entries stand in a message.

use std::net::{IpAddr, Ipv4Addr};

use hopwise_core::Seq;
use hopwise_core::agent::PathEvent;
use hopwise_core::trace::DropReason;

use super::key::{Key, Replays, TAG_BYTES};
use crate::routing::Cx;

const FLOW_BYTES: usize = 8;
const COUNTER_BYTES: usize = 8;
const MOST_FLOWS: usize = 8;

#[derive(Debug)]
pub(crate) struct AckSeqs {
    is_on: bool,
    key: Option<Key>,
    counter: u64,
    replays: Replays,
}

/// The arrivals that a message carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    Open(Vec<u8>),
    Signed(Vec<u8>),
}

/// One flow's entry in a message: its ports (the sender's, the receiver's) and the number.
pub(crate) type FlowEntry = ((u16, u16), PathEvent);

impl AckSeqs {
    /// Counters begin above `counter`, which must grow from one start to the next.
    pub(crate) fn new(is_on: bool, key: Option<Key>, counter: u64) -> AckSeqs {
        AckSeqs { is_on, key, counter, replays: Replays::default() }
    }

    /// The arrivals for a message from `own` to `peer`, if there are any.
    pub(crate) fn write(&mut self, cx: &Cx<'_>, own: Ipv4Addr, peer: Ipv4Addr) -> Option<Statement> {
        if !self.is_on {
            return None;
        }
        let mut flows = Vec::new();
        cx.endpoint.ack_hints(IpAddr::V4(peer), &mut |(theirs, ours), Seq(seq)| {
            if flows.len() < MOST_FLOWS * FLOW_BYTES {
                flows.extend(theirs.to_be_bytes());
                flows.extend(ours.to_be_bytes());
                flows.extend(seq.to_be_bytes());
            }
        });
        if flows.is_empty() {
            return None;
        }
        let Some(key) = &self.key else { return Some(Statement::Open(flows)) };
        self.counter = self.counter.checked_add(1)?;
        let counter = self.counter.to_be_bytes();
        let tag = key.tag(&[&own.octets(), &peer.octets(), &counter, &flows]);
        Some(Statement::Signed([&counter[..], &flows, &tag].concat()))
    }

    /// The arrivals in a message from `peer` to us, as far as they are believed.
    pub(crate) fn read(
        &mut self,
        own: Ipv4Addr,
        peer: Ipv4Addr,
        open: Option<&[u8]>,
        signed: Option<&[u8]>,
    ) -> Result<Vec<FlowEntry>, DropReason> {
        if !self.is_on {
            return Ok(Vec::new());
        }
        let flows = match (&self.key, signed) {
            (None, _) => open.unwrap_or_default(),
            (Some(_), None) if open.is_some() => return Err(DropReason::RoutingRefused),
            (Some(_), None) => return Ok(Vec::new()),
            (Some(key), Some(data)) => {
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

fn said(flow: &[u8]) -> FlowEntry {
    let port = |at: usize| u16::from_be_bytes([flow[at], flow[at + 1]]);
    let seq = u32::from_be_bytes([flow[4], flow[5], flow[6], flow[7]]);
    ((port(0), port(2)), PathEvent::AckSeq(Seq(seq)))
}
