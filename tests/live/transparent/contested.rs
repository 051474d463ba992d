//! A sender in a host's name who knows the ports of a connection that goes straight on, and SYNs that the first
//! router's kernel answers with a cookie.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use rustix::process::Signal;

use super::clashes::{SILENT, connect_from, end, nft, send};
use super::forged::{counter, has_come};
use super::{Chain, PORT, TOOLS, V4, V6};
use crate::field::text;
use crate::flood::SYN;
use crate::world::{until, within_patience};

const ACK: u8 = 16;
const RST: u8 = 4;
/// ECE and CWR: a SYN that asks for ECN.
const ECN: u8 = 0xc0;
/// A firewall that lets no packet in or through that tracking has no place for.
const STRICT: &str = "table inet strict { chain input { type filter hook input priority 0; ct state invalid drop; }; \
                      chain forward { type filter hook forward priority 0; ct state invalid drop; }; }";

/// Sends a byte to the server and back. The server's first word is its line about the host.
pub(super) fn talk(stream: &mut TcpStream) {
    stream.write_all(b"x").expect("it is open");
    stream.read_exact(&mut [0; 1]).expect("the server answers");
}

pub(super) fn open(chain: &Chain, [host, server]: [SocketAddr; 2]) -> TcpStream {
    let mut stream = connect_from(chain, host, server).expect("the server is reached");
    stream.write_all(b"who am I\n").expect("it is open");
    let mut told = [0; 1];
    while told != *b"\n" {
        stream.read_exact(&mut told).expect("the server answers");
    }
    stream
}

/// Returns whether the first router's kernel has half of this connection.
pub(super) fn is_half_open(chain: &Chain, ends: [SocketAddr; 2]) -> bool {
    text(&chain.first.output(&["ss", "-Htn", "state", "syn-recv"]).stdout).contains(&ends[0].to_string())
}

pub(super) fn ends_of([host, server]: [&str; 2], port: u16) -> [SocketAddr; 2] {
    [end(host, port), end(server, PORT)]
}

/// The connections are older than the node.
#[test]
fn a_syn_in_a_hosts_name_ends_no_connection_that_goes_straight_on() {
    needs!(&["nft", "ss"]);
    let chain = Chain::new("older");
    chain.serve(PORT);
    let both = [V4, V6].map(|both| ends_of(both, 40_000));
    let mut streams = both.map(|ends| open(&chain, ends));
    let demux = || chain.first.run(|| fs::read_to_string("/proc/sys/net/ipv4/tcp_early_demux"));
    let (_last, mut first) = (chain.last(), chain.first());
    for (stream, ends) in streams.iter_mut().zip(both) {
        send(&chain.host, ends, 7, (SYN, 64));
        within_patience(until(|| is_half_open(&chain, ends)));
        talk(stream);
        // Another number, a copy, a SYN that asks for ECN, and packets with a guess.
        for (seq, flags) in [(8, SYN), (7, SYN), (7, SYN | ECN), (8, ACK), (9, SYN | ACK), (8, RST)] {
            send(&chain.host, ends, seq, (flags, 64));
            talk(stream);
        }
    }
    assert_eq!((chain.at_first("caught"), chain.at_first("open")), (2, 0), "{}", chain.log(1));
    assert_eq!(demux().expect("a switch"), "0\n");
    first.tell(Signal::TERM);
    assert_eq!(first.ended(), Some(0), "{}", chain.log(1));
    assert_eq!(demux().expect("a switch"), "1\n", "as it was before the node");
}

/// Tracking would take the packets of the connection for invalid if this machine's kernel answered the SYN.
#[test]
fn nor_does_it_beside_a_firewall_that_drops_what_tracking_calls_invalid() {
    needs!(&TOOLS);
    let chain = Chain::new("tracked");
    chain.serve(PORT);
    nft(&chain.first, STRICT);
    let both = [V4, V6].map(|both| ends_of(both, 40_000));
    let mut streams = both.map(|ends| open(&chain, ends));
    let (_last, _first) = (chain.last(), chain.first());
    for (nth, ends) in both.into_iter().enumerate() {
        for seq in [7, 8, 7] {
            send(&chain.host, ends, seq, (SYN, 64));
            talk(&mut streams[nth]);
        }
        within_patience(until(|| chain.at_first("straight") == 3 * (nth as u64 + 1)));
        chain.exchange(&ends[1].ip().to_string(), 1000);
        talk(&mut streams[nth]);
        assert_eq!(chain.at_first("caught"), nth as u64 + 1, "{}", chain.log(1));
    }
}

/// Tracking has seen a packet of each end, since its rules are younger than the connection.
#[test]
fn nor_does_it_where_tracking_has_picked_the_connection_up_in_its_middle() {
    needs!(&TOOLS);
    let chain = Chain::new("picked");
    chain.serve(PORT);
    let both = [V4, V6].map(|both| ends_of(both, 40_000));
    let mut streams = both.map(|[host, server]| connect_from(&chain, host, server).expect("it is reached"));
    nft(&chain.first, STRICT);
    let (_last, _first) = (chain.last(), chain.first());
    for (nth, ends) in both.into_iter().enumerate() {
        let stream = &mut streams[nth];
        let name = format!("answered{nth}");
        nft(&chain.first, &counter(&name, "tcp sport 5000 iifname mid0 tcp flags == ack"));
        stream.write_all(b"who ").expect("it is open");
        within_patience(until(|| has_come(&chain, &name)));
        for seq in [7, 8, 7] {
            send(&chain.host, ends, seq, (SYN, 64));
        }
        within_patience(until(|| chain.at_first("straight") == 3 * (nth as u64 + 1)));
        stream.write_all(b"am I\n").expect("it is open");
        talk(stream);
        assert_eq!(chain.at_first("caught"), 0, "{}", chain.log(1));
    }
}

/// The host tries twice, and gives up after three seconds.
#[test]
fn a_syn_that_precedes_a_host_keeps_back_no_connection_of_its_ports() {
    needs!(&["nft", "ss"]);
    let chain = Chain::new("precedes");
    chain.serve(PORT);
    nft(&chain.first, STRICT);
    nft(&chain.host, SILENT);
    chain.host.sysctl("ipv4/tcp_syn_retries", "1");
    let (_last, _first) = (chain.last(), chain.first());
    for (nth, both) in [V4, V6].into_iter().enumerate() {
        chain.exchange(both[1], 1000);
        let ends = ends_of(both, 40_000);
        send(&chain.host, ends, 7, (SYN, 64));
        within_patience(until(|| is_half_open(&chain, ends)));
        let mut stream = open(&chain, ends);
        for seq in [7, 8, 7] {
            send(&chain.host, ends, seq, (SYN, 64));
            talk(&mut stream);
        }
        assert_eq!(chain.at_first("caught"), 2 * (nth as u64 + 1), "{}", chain.log(1));
    }
}

/// The server has the first SYN by its second copy, and only the host's reset ends that.
#[test]
fn syns_of_two_numbers_that_precede_a_host_keep_back_no_connection_of_its_ports() {
    needs!(&["nft", "ss"]);
    let chain = Chain::new("two");
    chain.serve(PORT);
    chain.host.sysctl("ipv4/tcp_syn_retries", "1");
    let (_last, _first) = (chain.last(), chain.first());
    for (nth, both) in [V4, V6].into_iter().enumerate() {
        chain.exchange(both[1], 1000);
        let ends = ends_of(both, 40_000);
        send(&chain.host, ends, 7, (SYN, 64));
        within_patience(until(|| chain.at_first("caught") == 2 * (nth as u64 + 1)));
        for seq in [8, 7] {
            send(&chain.host, ends, seq, (SYN, 64));
        }
        talk(&mut open(&chain, ends));
    }
}

#[test]
fn connections_whose_syns_are_answered_with_a_cookie_are_carried() {
    needs!(&TOOLS);
    let chain = Chain::new("cookies");
    chain.serve(PORT);
    chain.first.sysctl("ipv4/tcp_syncookies", "2");
    let (_last, _first) = (chain.last(), chain.first());
    for nth in 1..=20 {
        for server in [V4[1], V6[1]] {
            chain.exchange(server, 10_000);
        }
        assert_eq!((chain.at_first("caught"), chain.at_first("straight")), (2 * nth, 0), "{}", chain.log(1));
    }
}

/// The queue of half-open connections is shorter than the seats are many.
#[test]
fn half_open_connections_that_fill_a_short_queue_end_no_connection() {
    needs!(&["nft", "ss"]);
    let chain = Chain::new("short");
    (PORT..PORT + 4).for_each(|port| chain.serve(port));
    chain.first.sysctl("core/somaxconn", "8");
    nft(&chain.host, SILENT);
    let (_last, _first) = (chain.last(), chain.first());
    chain.exchange(V4[1], 1000);
    // One host has eight places at each port of a server.
    for port in 40_000..40_020 {
        send(&chain.host, [end(V4[0], port), end(V4[1], PORT + port % 4)], 7, (SYN, 64));
    }
    within_patience(until(|| chain.at_first("caught") == 21));
    // Each of them may be among the eight.
    within_patience(until(|| (40_000..40_020).any(|port| is_half_open(&chain, ends_of(V4, port)))));
    chain.exchange(V4[1], 100_000);
    assert_eq!((chain.at_first("caught"), chain.at_first("straight")), (22, 0), "{}", chain.log(1));
}
