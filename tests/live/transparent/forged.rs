//! SYNs in a host's name that the first router's firewall tells from the host's own ones by what is in no SYN's bytes:
//! the frame that carries it, and what connection tracking makes of it.

use std::net::SocketAddr;

use super::clashes::{end, nft, send};
use super::{Chain, PORT, TOOLS, V4};
use crate::field::text;
use crate::flood::{SYN, segment_between};
use crate::namespace::Namespace;
use crate::world::{until, within_patience};

const ACK: u8 = 16;
/// Sends packets, whose digits are the last arguments, in frames by this device to this address of its link.
const FRAMES: &str = "import socket, sys
device, to = sys.argv[1], bytes.fromhex(sys.argv[2].replace(':', ''))
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((device, 0))
for packet in map(bytearray.fromhex, sys.argv[3:]):
    kind = b'\\x86\\xdd'
    if packet[0] >> 4 == 4:
        kind = b'\\x08\\x00'
        words = sum(int.from_bytes(packet[at:at + 2], 'big') for at in range(0, 20, 2))
        packet[10:12] = (~((words & 0xffff) + (words >> 16)) & 0xffff).to_bytes(2, 'big')
    s.send(to + s.getsockname()[4] + kind + packet)
";
const TO_ALL: &str = "ff:ff:ff:ff:ff:ff";

/// A connection's ends from this port of the host.
fn ends(port: u16) -> [SocketAddr; 2] {
    [end(V4[0], port), end(V4[1], PORT)]
}

/// Sends a SYN that the firewall drops for its hop limit, and waits until the node has blamed the firewall for it: what
/// came before has been judged by then.
fn witness(chain: &Chain) {
    let before = chain.at_first("not-let-in");
    send(&chain.host, ends(50_000), 7, (SYN, 33));
    within_patience(until(|| chain.at_first("not-let-in") > before));
    // A SYN that is asked for a moment later.
    send(&chain.host, ends(50_001), 7, (SYN, 34));
    within_patience(until(|| chain.at_first("not-let-in") > before + 1));
}

/// Sends packets past the kernel's routes and its TCP.
pub(super) fn send_frames(by: &Namespace, device: &str, to: &str, packets: &[Vec<u8>]) {
    let digits =
        packets.iter().map(|packet| packet.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    let command = ["python3", "-c", FRAMES, device, to].map(str::to_owned).into_iter().chain(digits);
    let done = by.output(&command.collect::<Vec<_>>());
    assert!(done.status.success(), "{}", text(&done.stderr));
}

pub(super) fn counter(name: &str, rule: &str) -> String {
    format!(
        "table inet {name} {{ counter came {{ }}; chain early {{ type filter hook prerouting priority -300; {rule} \
         counter name came; }}; }}"
    )
}

pub(super) fn has_come(chain: &Chain, name: &str) -> bool {
    nft(&chain.first, &format!("list counter inet {name} came")).contains("packets 1 ")
}

#[test]
fn a_syn_in_a_frame_to_all_is_not_caught_and_closes_no_way() {
    needs!(&["nft", "python3"]);
    let chain = Chain::new("to-all");
    chain.serve(PORT);
    nft(
        &chain.first,
        "table inet wall { chain input { type filter hook input priority 0; meta pkttype { broadcast, multicast } \
         drop; tcp dport 5000 ip ttl { 33, 34 } drop; }; }",
    );
    nft(&chain.first, &counter("seen", "meta pkttype broadcast tcp dport 5000"));
    let (_last, _first) = (chain.last(), chain.first());
    chain.exchange(V4[1], 1000);
    let [from, to] = ends(40_000);
    send_frames(&chain.host, "lan0", TO_ALL, &[segment_between(from, to, 7, (SYN, 64))]);
    within_patience(until(|| has_come(&chain, "seen")));
    witness(&chain);
    assert_eq!((chain.at_first("caught"), chain.at_first("not-let-in")), (3, 2), "{}", chain.log(1));
}

#[test]
fn a_syn_that_tracking_has_no_place_for_and_the_firewall_drops_closes_no_way() {
    needs!(&TOOLS);
    assert_placeless_closes_nothing(&Chain::new("placeless"));
}

/// Tracking then has no entry of any packet when the node begins.
#[test]
fn nor_does_it_where_a_rule_keeps_the_loopback_out_of_tracking() {
    needs!(&TOOLS);
    let chain = Chain::new("untracked");
    nft(
        &chain.first,
        "table ip raw { chain out { type filter hook output priority -300; oifname lo notrack; }; chain pre { type \
         filter hook prerouting priority -300; iifname lo notrack; }; }",
    );
    assert_placeless_closes_nothing(&chain);
}

/// The server opens a connection from its port, and somebody answers in the host's name: tracking then takes a SYN of
/// the host for no part of it.
fn assert_placeless_closes_nothing(chain: &Chain) {
    chain.serve(PORT);
    nft(
        &chain.first,
        "table inet wall { chain input { type filter hook input priority 0; policy drop; iifname { mid0, hw0, lo } \
         accept; meta l4proto ipv6-icmp accept; ct state established,related accept; ip ttl { 33, 34 } drop; iifname \
         lan0 ct state new accept; }; }",
    );
    nft(&chain.first, &counter("opened", "tcp dport 40000 iifname mid0 tcp flags == syn"));
    nft(&chain.first, &counter("answered", "tcp sport 40000 iifname lan0 tcp flags == syn | ack"));
    nft(
        &chain.host,
        "table inet silent { chain output { type filter hook output priority 0; tcp flags & rst == rst drop; }; }",
    );
    let (_last, _first) = (chain.last(), chain.first());
    chain.exchange(V4[1], 1000);
    let [host, server] = ends(40_000);
    send(&chain.server, [server, host], 8, (SYN, 64));
    within_patience(until(|| has_come(chain, "opened")));
    send(&chain.host, [host, server], 9, (SYN | ACK, 64));
    within_patience(until(|| has_come(chain, "answered")));
    send(&chain.host, [host, server], 7, (SYN, 64));
    within_patience(until(|| chain.at_first("caught") == 2));
    witness(chain);
    let counts = ["caught", "not-let-in", "lost"].map(|what| chain.at_first(what));
    assert_eq!(counts, [4, 2, 1], "{}", chain.log(1));
}

/// Its connection stands half open. Its copy, with another hop limit, is none of its host's.
#[test]
fn a_copy_that_is_not_like_the_syn_that_has_come_in_closes_no_way() {
    needs!(&TOOLS);
    let chain = Chain::new("copies");
    chain.serve(PORT);
    nft(
        &chain.first,
        "table inet wall { chain input { type filter hook input priority 0; tcp dport 5000 ip ttl { 33, 34, 35 } \
         drop; }; }",
    );
    nft(
        &chain.host,
        "table inet silent { chain output { type filter hook output priority 0; tcp flags & rst == rst drop; }; }",
    );
    let (_last, _first) = (chain.last(), chain.first());
    chain.exchange(V4[1], 1000);
    send(&chain.host, ends(40_000), 7, (SYN, 64));
    within_patience(until(|| chain.at_first("caught") == 2));
    for seq in [7, 8] {
        send(&chain.host, ends(40_000), seq, (SYN, 35));
    }
    witness(&chain);
    let counts = ["caught", "not-let-in", "lost"].map(|what| chain.at_first(what));
    assert_eq!(counts, [4, 2, 0], "{}", chain.log(1));
}

/// Entries that stay would fill the sets, and a full set says nothing of the SYNs of others.
#[test]
fn a_syn_that_has_come_to_its_listener_takes_no_place_in_a_set() {
    needs!(&TOOLS);
    let chain = Chain::new("places");
    chain.serve(PORT);
    let (_last, _first) = (chain.last(), chain.first());
    for to in [V4[1], super::V6[1]] {
        chain.exchange(to, 1000);
    }
    assert_eq!(chain.at_first("caught"), 2, "{}", chain.log(1));
    for set in ["caught4", "arrived4", "caught6", "arrived6"] {
        let listed = nft(&chain.first, &format!("list set inet hopwise_transparent_7300 {set}"));
        assert!(listed.contains(set) && !listed.contains("elements"), "{listed}");
    }
}
