use std::net::IpAddr;
use std::time::Duration;

use hopwise_core::agent::{Path, PathEvent};
use hopwise_core::endpoint::PathSeam;
use hopwise_core::{Instant, Seq};

use super::super::messages::{AodvMessage, Rreq};
use super::*;
use crate::on_demand::Key;

const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// Data from port 40000 there has arrived at port 5001 here, up to `seq`.
#[derive(Debug)]
struct Arrived {
    seq: u32,
    flows: u16,
}

impl PathSeam for Arrived {
    fn handle_path(&mut self, _: Instant, _: IpAddr, _: Option<(u16, u16)>, _: &PathEvent, _: &Path) {}

    fn ack_hints(&self, peer: IpAddr, sink: &mut dyn FnMut((u16, u16), Seq)) {
        if peer == IpAddr::V4(THERE) {
            (0..self.flows).for_each(|flow| sink((40_000 + flow, 5_001), Seq(self.seq)));
        }
    }
}

fn write(seqs: &mut AckSeqs, seq: u32, flows: u16) -> Vec<u8> {
    let arrived = Arrived { seq, flows };
    let cx = Cx { now: Instant::ZERO + Duration::from_secs(1), endpoint: &arrived };
    super::write(seqs, &cx, HERE, THERE)
}

/// The entries that the peer reads from an extension behind a message.
fn read(seqs: &mut AckSeqs, extension: &[u8]) -> Result<Vec<FlowEntry>, DropReason> {
    let rreq = Rreq {
        is_join: false,
        is_repair: false,
        is_gratuitous: false,
        is_destination_only: false,
        hop_count: 0,
        id: 1,
        dst: THERE,
        dst_seq: None,
        origin: HERE,
        origin_seq: 1,
    };
    let mut bytes = Vec::new();
    AodvMessage::Rreq(rreq).emit(&mut bytes);
    bytes.extend(extension);
    let (_, extensions) = AodvMessage::parse(&bytes).expect("a message");
    super::read(seqs, THERE, HERE, &extensions)
}

fn key(byte: u8) -> Option<Key> {
    Some(Key::new([byte; 32]))
}

#[test]
fn what_arrived_is_told_with_the_ports_of_its_flow() {
    let mut open = AckSeqs::new(true, None, 0);
    let extension = write(&mut open, 0xffff_fff0, 1);
    assert_eq!(extension, [0x57, 8, 0x9c, 0x40, 0x13, 0x89, 0xff, 0xff, 0xff, 0xf0]);
    assert_eq!(read(&mut open, &extension), Ok(vec![((40_000, 5_001), PathEvent::AckSeq(Seq(0xffff_fff0)))]));
    assert_eq!(write(&mut open, 1, 100).len(), 2 + 8 * 8, "at most eight flows");
    assert_eq!(write(&mut AckSeqs::new(false, None, 0), 1, 1), [], "only where it is asked for");
    assert_eq!(read(&mut AckSeqs::new(false, None, 0), &extension), Ok(vec![]));
}

#[test]
fn with_a_key_only_who_has_it_is_believed_and_only_once() {
    let (mut ours, mut theirs) = (AckSeqs::new(true, key(1), 5), AckSeqs::new(true, key(1), 0));
    let first = write(&mut ours, 7, 1);
    let second = write(&mut ours, 9, 1);
    assert_eq!(read(&mut theirs, &second).map(|said| said.len()), Ok(1));
    assert_eq!(read(&mut theirs, &second), Err(DropReason::RoutingRefused), "played again");
    assert_eq!(read(&mut theirs, &first).map(|said| said.len()), Ok(1), "overtaken, but new");
    for bit in 16..8 * first.len() {
        let mut spoiled = write(&mut ours, 7, 1);
        spoiled[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&mut theirs, &spoiled).is_err(), "bit {bit}");
    }
    let unsigned = write(&mut AckSeqs::new(true, None, 0), 7, 1);
    assert_eq!(read(&mut theirs, &unsigned), Err(DropReason::RoutingRefused));
    let foreign = write(&mut AckSeqs::new(true, key(2), 99), 7, 1);
    assert_eq!(read(&mut theirs, &foreign), Err(DropReason::RoutingRefused));
}

#[test]
fn lengths_that_make_no_flows_are_refused() {
    let mut open = AckSeqs::new(true, None, 0);
    for len in (1..80).filter(|len| len % 8 != 0 || *len > 64) {
        let extension = [&[ACK_SEQ, len][..], &vec![0; usize::from(len)]].concat();
        assert_eq!(read(&mut open, &extension), Err(DropReason::RoutingMalformed), "{len}");
    }
    let mut signed = AckSeqs::new(true, key(1), 0);
    assert_eq!(read(&mut signed, &[SIGNED_ACK_SEQ, 3, 1, 2, 3]), Err(DropReason::RoutingMalformed));
}
