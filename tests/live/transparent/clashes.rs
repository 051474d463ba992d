//! A sender in a host's name who brings connection tracking of the first router into disorder. Tracking then drops a
//! caught SYN, or gives it another source. That says nothing of the router's firewall.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};

use rustix::net::{AddressFamily, SendFlags, SocketType, bind, connect, ipproto, sendto, socket};
use rustix::process::Signal;

use super::hangs::stop;
use super::{Chain, PORT, TOOLS, V4, V6, exchange_over};
use crate::field::text;
use crate::flood::{SYN, raw_socket, segment_between};
use crate::namespace::Namespace;
use crate::world::{PATIENCE, until, within_patience};

const ACK: u8 = 16;
/// The first router gives what its hosts send into the mesh its own address.
const MASQUERADE: &str = "table inet nat { chain post { type nat hook postrouting priority 100; oifname \"mid0\" ip \
                          saddr 10.1.0.0/24 masquerade; oifname \"mid0\" ip6 saddr fd01::/64 masquerade; }; }";
/// A firewall that drops what tracking finds no place for, and lets all other packets in.
const STRICT: &str =
    "table inet strict { chain input { type filter hook input priority 0; ct state invalid drop; }; }";
/// A host that does not answer what it knows nothing of.
pub(super) const SILENT: &str = "table inet silent { chain output { type filter hook output priority 0; tcp flags & \
                                 rst == rst drop; }; }";

pub(super) fn nft(namespace: &Namespace, rules: &str) -> String {
    let done = namespace.output(&["nft", rules]);
    assert!(done.status.success(), "{done:?}");
    text(&done.stdout)
}

pub(super) fn end(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse().expect("an address"), port)
}

/// Sends a segment past the kernel's TCP of its sender, which knows of no connection.
pub(super) fn send(by: &Namespace, [from, to]: [SocketAddr; 2], seq: u32, form: (u8, u8)) {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let packet = segment_between(from, to, seq, form);
    let to = SocketAddr::new(to.ip(), 0);
    let sent = by.run(|| sendto(raw_socket(family), &packet, SendFlags::empty(), &to));
    assert_eq!(sent, Ok(packet.len()), "{from}");
}

/// Sends an acknowledgement that the first router still forwards and the last one does not, and waits until it has
/// left the first router.
fn send_ack(chain: &Chain, ends: [SocketAddr; 2]) {
    let family = if ends[0].is_ipv4() { "ip" } else { "ip6" };
    let port = ends[1].port();
    let counted = format!(
        "table inet seen; delete table inet seen; table inet seen {{ counter acks {{ }}; chain early {{ type filter \
         hook prerouting priority -300; iifname \"mid0\" {family} daddr {} tcp dport {port} tcp flags == ack counter \
         name acks; }}; }}",
        ends[1].ip()
    );
    nft(&chain.last, &counted);
    send(&chain.host, ends, 8, (ACK, 2));
    within_patience(until(|| nft(&chain.last, "list counter inet seen acks").contains("packets 1 ")));
}

/// A connection of the host from this port.
pub(super) fn connect_from(chain: &Chain, from: SocketAddr, to: SocketAddr) -> io::Result<TcpStream> {
    chain.host.run(|| {
        let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = socket(family, SocketType::STREAM, Some(ipproto::TCP)).expect("a socket");
        bind(&socket, &from).expect("the port is free");
        connect(&socket, &to)?;
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    })
}

/// The host's connections are carried, and no SYN of them is missing.
fn assert_open(chain: &Chain, to: &str, caught: u64) {
    chain.exchange(to, 100_000);
    assert_eq!((chain.at_first("caught"), chain.at_first("not-let-in")), (caught, 0), "{}", chain.log(1));
    assert!(!chain.log(1).contains("did not come in"), "{}", chain.log(1));
}

pub(super) fn held(chain: &Chain) -> u64 {
    chain.status(&chain.first, 1)["bounds"]["held"]["transparent"].as_u64().expect("a number")
}

/// Tracking makes an entry for the acknowledgement while the SYN has one that is not in the table yet. The first SYN is
/// the sender's own, and the second one the host's.
#[test]
fn an_acknowledgement_in_a_hosts_name_that_overtakes_a_held_syn_closes_the_way_in_to_nobody() {
    needs!(&TOOLS);
    let chain = Chain::new("overtaken");
    chain.serve(PORT);
    let (last, _first) = (chain.last(), chain.first());
    // Tracking's own chains then stand behind the last ones of the node.
    nft(&chain.first, MASQUERADE);
    let overtaken = |ends: [SocketAddr; 2], caught: u64| {
        within_patience(until(|| held(&chain) == 1));
        send_ack(&chain, ends);
        last.tell(Signal::CONT);
        within_patience(until(|| chain.at_first("caught") == caught));
        within_patience(until(|| held(&chain) == 0));
        assert_eq!(chain.at_first("not-let-in"), 0, "{}", chain.log(1));
    };
    for (nth, [host, server]) in [V4, V6].into_iter().enumerate() {
        let [of_sender, of_host] = [40_000, 40_001].map(|port| [end(host, port), end(server, PORT)]);
        let nth = nth as u64;
        assert_open(&chain, server, 4 * nth + 1);
        within_patience(until(|| held(&chain) == 0));
        stop(&last);
        send(&chain.host, of_sender, 7, (SYN, 64));
        overtaken(of_sender, 4 * nth + 2);
        stop(&last);
        std::thread::scope(|scope| {
            let opens = scope.spawn(|| connect_from(&chain, of_host[0], of_host[1]));
            overtaken(of_host, 4 * nth + 3);
            let stream = opens.join().expect("it does not panic").expect("the server is reached");
            exchange_over(stream, 100_000).expect("the connection holds");
        });
        assert_open(&chain, server, 4 * nth + 4);
    }
}

/// The SYN belongs to the entry of the acknowledgement, and would get the source that the entry has beyond the router.
#[test]
fn a_connection_whose_port_tracking_already_knows_stands_and_closes_the_way_in_to_nobody() {
    needs!(&TOOLS);
    let chain = Chain::new("foreseen");
    chain.serve(PORT);
    nft(&chain.first, MASQUERADE);
    let (_last, _first) = (chain.last(), chain.first());
    for (nth, [host, server]) in [V4, V6].into_iter().enumerate() {
        let ends = [end(host, 40_000), end(server, PORT)];
        let nth = nth as u64;
        assert_open(&chain, server, 2 * nth + 1);
        send_ack(&chain, ends);
        let stream = connect_from(&chain, ends[0], ends[1]).expect("the server is reached");
        let seen = exchange_over(stream, 100_000).expect("the connection holds");
        assert_ne!(seen.by_server.ip(), host.parse::<IpAddr>().expect("an address"), "it went straight on");
        assert_open(&chain, server, 2 * nth + 2);
    }
}

/// A packet in the server's name comes before the host's SYN. Tracking then takes the SYN for an answer, and the
/// connection is carried all the same.
fn carry_after(test: &str, form: (u8, u8)) {
    let chain = Chain::new(test);
    chain.serve(PORT);
    nft(&chain.first, STRICT);
    nft(&chain.host, SILENT);
    let (_last, _first) = (chain.last(), chain.first());
    for (nth, [host, server]) in [V4, V6].into_iter().enumerate() {
        let ends = [end(host, 40_000), end(server, PORT)];
        let nth = nth as u64;
        assert_open(&chain, server, 3 * nth + 1);
        send(&chain.server, [ends[1], ends[0]], 8, form);
        let stream = connect_from(&chain, ends[0], ends[1]).expect("the server is reached");
        exchange_over(stream, 100_000).expect("the connection holds");
        assert_eq!(chain.at_first("straight"), 0, "{}", chain.log(1));
        assert_open(&chain, server, 3 * nth + 3);
    }
}

/// After an acknowledgement.
#[test]
fn a_syn_that_tracking_calls_invalid_comes_in() {
    needs!(&TOOLS);
    carry_after("invalid", (ACK, 64));
}

#[test]
fn a_syn_in_a_servers_name_leads_no_connection_past_the_node() {
    needs!(&TOOLS);
    carry_after("answering", (SYN, 64));
}

/// The acknowledgement alone shows no connection that goes straight on.
#[test]
fn packets_in_a_hosts_name_that_no_server_answers_lead_no_connection_past_the_node() {
    needs!(&TOOLS);
    let chain = Chain::new("unanswered");
    chain.serve(PORT);
    nft(&chain.first, STRICT);
    let (_last, _first) = (chain.last(), chain.first());
    for (nth, [host, server]) in [V4, V6].into_iter().enumerate() {
        let ends = [end(host, 40_000), end(server, PORT)];
        let nth = nth as u64;
        assert_open(&chain, server, 3 * nth + 1);
        send_ack(&chain, ends);
        let stream = connect_from(&chain, ends[0], ends[1]).expect("the server is reached");
        let seen = exchange_over(stream, 100_000).expect("the connection holds");
        assert_eq!(seen.by_server.ip(), ends[0].ip());
        assert_eq!((chain.at_first("straight"), chain.at_first("lost")), (0, 0), "{}", chain.log(1));
        assert_open(&chain, server, 3 * nth + 3);
    }
}

/// Sends packets in the names of both ends of a connection to the first router: tracking takes it for one that stands.
/// Each packet goes there by this gateway, and none reaches its end.
fn play_both(chain: &Chain, by: &Namespace, gateway: &str, ends: [SocketAddr; 2]) {
    let counted = format!(
        "table inet seen; delete table inet seen; table inet seen {{ counter acks {{ }}; chain early {{ type filter \
         hook prerouting priority -310; tcp flags == ack tcp sport . tcp dport {{ {0} . {1}, {1} . {0} }} counter name \
         acks; }}; }}",
        ends[0].port(),
        ends[1].port()
    );
    nft(&chain.first, &counted);
    let addresses = ends.map(|end| end.ip().to_string());
    for to in &addresses {
        by.ip(&["route", "add", to, "via", gateway]);
    }
    let [host, server] = ends;
    for (nth, ends) in [[host, server], [server, host], [host, server]].into_iter().enumerate() {
        send(by, ends, 8, (ACK, 2));
        // The last router sends some of them back.
        within_patience(until(|| {
            !nft(&chain.first, "list counter inet seen acks").contains(&format!("packets {nth} "))
        }));
    }
    for to in &addresses {
        by.ip(&["route", "del", to, "via", gateway]);
    }
}

/// The sender is on the hosts' link, and then on the mesh.
#[test]
fn a_sender_who_plays_a_host_and_its_server_leads_no_connection_past_the_node() {
    needs!(&TOOLS);
    let chain = Chain::new("played");
    chain.serve(PORT);
    nft(&chain.first, STRICT);
    let (_last, _first) = (chain.last(), chain.first());
    for (nth, [host, server]) in [["10.1.0.9", V4[1]], ["fd01::9", V6[1]]].into_iter().enumerate() {
        let is_v4 = nth == 0;
        assert_open(&chain, server, 3 * nth as u64 + 1);
        let gateways = if is_v4 { ["10.1.0.1", "10.5.0.1"] } else { ["fd01::1", "fd05::1"] };
        for (port, (by, gateway)) in (40_000..).zip([&chain.host, &chain.last].into_iter().zip(gateways)) {
            play_both(&chain, by, gateway, [end(host, port), end(server, PORT)]);
        }
        let length = if is_v4 { 24 } else { 64 };
        let address = format!("{host}/{length}");
        chain
            .host
            .ip(&[&["addr", "add", &address, "dev", "lan0"][..], if is_v4 { &[] } else { &["nodad"] }]
                .concat());
        for port in 40_000..40_002 {
            let ends = [end(host, port), end(server, PORT)];
            let stream = connect_from(&chain, ends[0], ends[1]).expect("the server is reached");
            let seen = exchange_over(stream, 100_000).expect("the connection holds");
            assert_eq!(chain.at_first("straight"), 0, "{ends:?}: {}", chain.log(1));
            assert_eq!(seen.by_server.ip(), ends[0].ip());
        }
    }
}
