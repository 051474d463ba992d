//! A link with smaller frames beyond a node: its router tells the sender of each packet that does not fit.

use std::net::SocketAddr;

use hopwise_core::wire::{IcmpKind, IpHeader, icmp, protocol};
use rustix::net::{AddressFamily, SendFlags, sendto};

use super::clashes::{nft, send};
use super::contested::{ends_of, is_half_open, open, talk};
use super::forged::counter;
use super::{Chain, FIRST, PORT, TOOLS, V4, V6, exchange_over, serve_at};
use crate::flood::{SYN, raw_socket, segment_between};
use crate::namespace::Namespace;
use crate::world::{until, within_patience};

const ACK: u8 = 16;

/// Puts a machine behind one end of the chain, which sends on what fits into a frame of 1280 bytes.
fn behind(router: &Namespace, net: u8) -> Namespace {
    let machine = Namespace::new();
    let device = format!("narrow{net}");
    let [near, far] = [1, 2].map(|end| format!("10.{net}.0.{end}/24"));
    router.join(&machine, &device, &near, &far);
    for (namespace, end) in [(router, 1), (&machine, 2)] {
        namespace.ip(&["addr", "add", &format!("fd0{net}::{end}/64"), "dev", &device, "nodad"]);
    }
    router.sysctl("ipv4/ip_forward", "1");
    router.sysctl("ipv6/conf/all/forwarding", "1");
    for network in [format!("10.{net}.0.0/24"), format!("fd0{net}::/64")] {
        router.ip(&["route", "replace", &network, "dev", &device, "mtu", "1280"]);
    }
    for gateway in [format!("10.{net}.0.1"), format!("fd0{net}::1")] {
        machine.ip(&["route", "add", "default", "via", &gateway]);
    }
    machine
}

#[test]
fn carried_bytes_pass_a_link_with_smaller_frames_beyond_either_node() {
    needs!(&TOOLS);
    let chain = Chain::new("narrow");
    let (host, server) = (behind(&chain.host, 8), behind(&chain.server, 6));
    for (router, routes) in [
        (&chain.first, [["10.8.0.0/24", "10.1.0.2"], ["fd08::/64", "fd01::2"]]),
        (&chain.first, [["10.6.0.0/24", "10.5.0.2"], ["fd06::/64", "fd05::2"]]),
        (&chain.last, [["10.8.0.0/24", "10.5.0.1"], ["fd08::/64", "fd05::1"]]),
        (&chain.last, [["10.6.0.0/24", "10.2.0.2"], ["fd06::/64", "fd02::2"]]),
    ] {
        for [to, via] in routes {
            router.ip(&["route", "add", to, "via", via]);
        }
    }
    serve_at(&server, PORT);
    let first = FIRST.replace(
        "to: [",
        "to: [{ network: 10.6.0.0/24, node: 10.7.2.2 }, { network: \"fd06::/64\", node: 10.7.2.2 }, ",
    );
    let (_last, _first) = (chain.last(), chain.node(&chain.first, 1, &first));
    for (nth, to) in ["10.6.0.2", "fd06::2"].into_iter().enumerate() {
        let stream = chain.connect_by(&host, to, PORT).expect("the server is reached");
        exchange_over(stream, 300_000).expect("the connection holds");
        assert_eq!(
            (chain.at_first("caught"), chain.at_first("straight")),
            (nth as u64 + 1, 0),
            "{}",
            chain.log(1)
        );
    }
}

/// A router's word that this packet of a server does not fit, sent by the host.
fn send_word(chain: &Chain, [host, server]: [SocketAddr; 2]) {
    let packet = segment_between(server, host, 7, (ACK, 64));
    let (mut message, mut word) = (Vec::new(), Vec::new());
    icmp::emit_error(host.ip(), server.ip(), IcmpKind::PacketTooBig { mtu: 1280 }, &packet, &mut message);
    let number = if host.is_ipv4() { protocol::ICMP } else { protocol::ICMPV6 };
    IpHeader::plain(host.ip(), server.ip(), number).emit(message.len(), &mut word);
    word.extend(message);
    let family = if host.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let to = SocketAddr::new(server.ip(), 0);
    let sent = chain.host.run(|| sendto(raw_socket(family), &word, SendFlags::empty(), &to));
    assert_eq!(sent, Ok(word.len()));
}

/// The connections are older than the node, whose kernel has half of another connection with the ports of each.
#[test]
fn a_routers_word_about_a_connection_that_goes_straight_on_comes_to_its_server() {
    needs!(&["nft", "ss"]);
    let chain = Chain::new("word");
    chain.serve(PORT);
    let both = [V4, V6].map(|both| ends_of(both, 40_000));
    let mut streams = both.map(|ends| open(&chain, ends));
    let (_last, _first) = (chain.last(), chain.first());
    let words = ["icmp type destination-unreachable", "icmpv6 type packet-too-big"];
    for (nth, (ends, word)) in both.into_iter().zip(words).enumerate() {
        send(&chain.host, ends, 7, (SYN, 64));
        within_patience(until(|| is_half_open(&chain, ends)));
        let name = format!("word{nth}");
        nft(&chain.server, &counter(&name, word));
        send_word(&chain, ends);
        let listed = || nft(&chain.server, &format!("list counter inet {name} came"));
        within_patience(until(|| listed().contains("packets 1 ")));
        talk(&mut streams[nth]);
    }
}
