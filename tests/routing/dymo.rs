//! AODVv2 in the radio world, and the contents of RFC 5444 packets.

use hopwise_core::wire::{Ecn, IpHeader, protocol, udp};
use hopwise_mesh::aodvv2::messages::{ACK_SEQ, RouteMessage};
use hopwise_mesh::rfc5444::{
    ALL_ROUTERS, Address, AddressBlock, AddressTlv, PORT, Packet, Rfc5444Message, Tlv, TlvValue,
};

use super::*;

#[test]
fn a_flow_is_carried_and_the_same_seed_finds_the_same_ways() {
    let plan = plan(CHAIN, &["routing={ protocol: dymo }"], 1);
    let results = run(&plan);
    assert_eq!(results.flows[0].hops.as_ref().map(|hops| hops.count), Some(4));
    assert!(results.total_kbps() > 150.0, "{}", results.total_kbps());
    assert!(results.discoveries >= 1);
    assert_eq!(results, run(&plan));
}

#[test]
fn no_way_leads_in_a_circle_while_nodes_move() {
    move_about("routing={ protocol: dymo }");
}

/// Routes are not repaired here, and the source gets the error at once. An ACK that was in flight then thaws it again.
#[test]
fn who_freezes_without_a_route_hears_at_once_that_it_is_gone_and_goes_on_when_it_is_back() {
    let routing = "routing={ protocol: dymo, dymo: { rreq_holddown_time: 1s } }";
    let seen = freezes_and_thaws(routing);
    let frozen = seen.iter().find(|(_, kind)| *kind == TraceKind::Frozen);
    let soon = Instant::from_secs(5)..Instant::from_millis(5_500);
    assert!(frozen.is_some_and(|(at, _)| soon.contains(at)), "{seen:?}");
    let sets = [CUT, "arms.x.sender=[newreno, elfn]", routing];
    let carried = (1..=8).map(|seed| run(&plan(CHAIN, &sets, seed)).total_kbps()).sum::<f64>() / 8.0;
    assert!(carried > 100.0, "{carried:.0} kbit/s of 17 s in 20, the mean of eight seeds");
}

#[test]
fn what_a_request_says_of_arrivals_reaches_a_sender_that_listens() {
    assert_heard_of_arrivals("routing={ protocol: dymo, dymo: { ack_seq: true, key: shared } }");
}

/// A RREP to the source with a claim about arrivals at the destination.
fn forged((flow, seq, from, to): Claim) -> Vec<u8> {
    let rrep = RouteMessage {
        hop_limit: 17,
        to: v4(from),
        seq: 1,
        metric: 3,
        validity: None,
        other: v4(to),
        other_seq: None,
    };
    let mut message = rrep.rrep();
    message.tlvs.push(Tlv { kind: ACK_SEQ, extension: 0, value: claimed(flow, seq) });
    said_by_a_neighbour(to, PORT, 255, &Packet::of(message).bytes().expect("short enough"))
}

#[test]
fn forged_numbers_of_what_arrived_move_nothing() {
    let keyed = "protocol: dymo, dymo: { ack_seq: true, key: shared }";
    assert_forgery_moves_nothing("protocol: dymo, dymo: { ack_seq: true }", keyed, forged);
}

#[test]
fn wireshark_reads_every_message_of_aodvv2_that_we_send() {
    let mut packets = Vec::new();
    for dymo in ["hello: true, ack_seq: true", "ack_seq: true, key: shared", "signed: true"] {
        let routing = format!("routing={{ protocol: dymo, dymo: {{ {dymo} }} }}");
        let cut = "channel={ links: [link n1-n2 down from 5 s to 8 s] }";
        let plan = plan(CHAIN, &[&routing, cut, "run.duration=12s", "traffic.0.from=n1"], 1);
        packets.extend(controls(&plan));
    }
    let sent = |kind: u8| {
        packets.iter().any(|packet| {
            Packet::parse(&packet[28..]).expect("ours").messages.iter().any(|message| message.kind == kind)
        })
    };
    for kind in 10..=13 {
        assert!(sent(kind), "no message of type {kind} was sent");
    }
    let test = "wireshark_reads_every_message_of_aodvv2_that_we_send";
    assert_dissected(test, "PacketBB", &packets);
}

/// Packets with all features of the format. Types are of the experimental range: no other reader interprets the values.
fn all_of_rfc5444() -> Vec<Packet> {
    let tlv = |kind, extension, bytes: usize| Tlv { kind, extension, value: vec![kind; bytes] };
    let v4 = |octets: [u8; 4], bits| (Address::from(Ipv4Addr::from(octets)), bits);
    let v6 = |last: u8, bits| {
        let mut octets = [0; 16];
        (octets[0], octets[15]) = (0xfd, last);
        (Address::new(&octets).expect("16 bytes"), bits)
    };
    let block = |addresses, tlvs| AddressBlock { addresses, tlvs };
    let range = |kind, first, last, value| AddressTlv { kind, extension: 0, first, last, value };
    let heads = vec![v4([10, 0, 0, 1], 32), v4([10, 0, 0, 2], 32), v4([10, 0, 0, 3], 32)];
    let zeros = vec![v4([10, 1, 0, 0], 16), v4([10, 2, 0, 0], 16), v4([10, 3, 0, 0], 16)];
    let tails = vec![v4([1, 2, 3, 4], 32), v4([7, 2, 3, 4], 24)];
    let some = vec![
        range(237, 0, 2, TlvValue::Each(vec![1, 2, 3])),
        range(238, 1, 2, TlvValue::Shared(vec![9])),
        range(239, 2, 2, TlvValue::None),
        AddressTlv { extension: 4, ..range(240, 0, 0, TlvValue::Shared(vec![1; 300])) },
    ];
    let long = Rfc5444Message {
        originator: Some(v4([10, 0, 0, 9], 32).0),
        hop_limit: Some(9),
        hop_count: Some(3),
        seq: Some(77),
        tlvs: vec![tlv(231, 0, 0), tlv(232, 5, 3), tlv(233, 0, 300)],
        blocks: vec![block(heads, some), block(zeros, vec![]), block(tails, vec![])],
        ..Rfc5444Message::new(30, 4)
    };
    let far = Rfc5444Message {
        blocks: vec![block(vec![v6(1, 128), v6(2, 64)], vec![])],
        ..Rfc5444Message::new(31, 16)
    };
    let empty = Rfc5444Message::new(32, 4);
    let whole =
        Packet { seq: Some(513), tlvs: vec![tlv(234, 0, 2)], messages: vec![long, far, empty.clone()] };
    vec![whole, Packet::of(empty), Packet { seq: Some(1), ..Packet::default() }]
}

#[test]
fn wireshark_reads_all_that_the_format_knows() {
    let packet = |packet: Packet| {
        let message = packet.bytes().expect("short enough");
        assert_eq!(Packet::parse(&message), Ok(packet));
        let header = IpHeader {
            src: address_of(0),
            dst: ALL_ROUTERS.into(),
            protocol: protocol::UDP,
            hop_limit: 255,
            ecn: Ecn::NotEct,
            dscp: 0,
            dont_fragment: false,
            id: 0,
            source_route: None,
        };
        let mut whole = Vec::new();
        header.emit(8 + message.len(), &mut whole);
        udp::emit(header.src, header.dst, (PORT, PORT), &message, &mut whole);
        whole
    };
    let packets: Vec<_> = all_of_rfc5444().into_iter().map(packet).collect();
    assert_dissected("wireshark_reads_all_that_the_format_knows", "PacketBB", &packets);
}
