//! Hosts that begin connections and abandon them, and hosts that sign their segments. A SYN of theirs says nothing of
//! the router's firewall.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZero;

use hopwise_core::wire::Sum;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Protocol, SendFlags, SocketFlags, SocketType, connect, sendto, socket_with,
};
use rustix::process::Signal;

use super::hangs::stop;
use super::{Chain, PORT, TOOLS, V4, V6};
use crate::field::text;
use crate::world::{until, within_patience};

/// Sends a SYN with these options past the kernel's TCP of the host, which knows of no connection.
fn send_syn(chain: &Chain, from: SocketAddr, options: &[u8]) {
    let (SocketAddr::V4(from), to) = (from, V4[1].parse::<Ipv4Addr>().expect("an address")) else { return };
    let header = 20 + u8::try_from(options.len()).expect("few");
    let mut segment = [from.port().to_be_bytes(), PORT.to_be_bytes()].concat();
    segment.extend_from_slice(&[0, 0, 0, 7, 0, 0, 0, 0, header << 2, 2, 0xff, 0xff, 0, 0, 0, 0]);
    segment.extend_from_slice(options);
    let sum = Sum::pseudo_header((*from.ip()).into(), to.into(), 6, segment.len() as u32).add(&segment);
    segment[16..18].copy_from_slice(&sum.finish().to_be_bytes());
    // The kernel fills in the length and the sum.
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0];
    packet.extend_from_slice(&from.ip().octets());
    packet.extend_from_slice(&to.octets());
    packet.extend_from_slice(&segment);
    chain.host.run(|| {
        let raw = Protocol::from_raw(NonZero::new(255).expect("not zero"));
        let socket = socket_with(AddressFamily::INET, SocketType::RAW, SocketFlags::CLOEXEC, Some(raw));
        let socket = socket.expect("root may open a raw socket");
        sendto(&socket, &packet, SendFlags::empty(), &SocketAddr::from((to, 0))).expect("it is sent");
    });
}

/// Begins a connection to each server, and gives them up before the SYNs are answered.
fn give_up(chain: &Chain, last: &crate::field::Daemon) {
    stop(last);
    let held = |wanted: usize| chain.status(&chain.first, 1)["bounds"]["held"]["transparent"] == wanted;
    let before = chain.status(&chain.first, 1)["bounds"]["held"]["transparent"].as_u64().expect("a number");
    let begun = [V4, V6].map(|[_, server]| {
        let to = SocketAddr::new(server.parse().expect("an address"), PORT);
        let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        chain.host.run(|| {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = socket_with(family, SocketType::STREAM, flags, None).expect("a socket");
            assert_eq!(connect(&socket, &to), Err(Errno::INPROGRESS));
            socket
        })
    });
    within_patience(until(|| held(before as usize + begun.len())));
    drop(begun);
    last.tell(Signal::CONT);
}

/// A scanner, a made-up source to which no route leads, and clients that give up. The kernel of the first router keeps
/// no socket of any.
#[test]
fn connections_that_their_hosts_abandon_close_the_way_in_to_nobody() {
    needs!(&TOOLS);
    let chain = Chain::new("abandoned");
    chain.serve(PORT);
    for [_, server] in [V4, V6] {
        chain.exchange(server, 1000);
    }
    for interface in ["all", "lan0"] {
        chain.first.sysctl(&format!("ipv4/conf/{interface}/rp_filter"), "0");
    }
    let (last, _first) = (chain.last(), chain.first());
    for from in ["10.1.0.2:40000", "203.0.113.5:40000"] {
        send_syn(&chain, from.parse().expect("an address"), &[]);
    }
    within_patience(until(|| chain.at_first("caught") == 2));
    give_up(&chain, &last);
    within_patience(until(|| chain.at_first("caught") == 4));
    // The node has looked for all of them by then.
    within_patience(until(|| chain.status(&chain.first, 1)["bounds"]["held"]["transparent"] == 0));
    for [_, server] in [V4, V6] {
        chain.exchange(server, 100_000);
    }
    let counts = ["caught", "straight", "not-let-in"].map(|what| chain.at_first(what));
    assert_eq!(counts, [6, 0, 0], "{}", chain.log(1));
    assert!(!chain.log(1).contains("did not come in"), "{}", chain.log(1));
}

/// The kernel here may lack one of the two kinds, so these SYNs are made by hand.
#[test]
fn a_syn_with_a_signature_goes_straight_on() {
    needs!(&TOOLS);
    let chain = Chain::new("signature");
    chain.serve(PORT);
    chain.exchange(V4[1], 1000);
    let (_last, _first) = (chain.last(), chain.first());
    let [md5, ao] = [&[19, 18][..], &[29, 16, 1, 1]];
    for (nth, kind) in [md5, ao].into_iter().enumerate() {
        let mut options = [&[2, 4, 5, 180], kind].concat();
        options.resize(24, 0);
        send_syn(&chain, SocketAddr::from(([10, 1, 0, 2], 40_000 + nth as u16)), &options);
        within_patience(until(|| chain.at_first("straight") == nth as u64 + 1));
    }
    assert_eq!((chain.at_first("signed"), chain.at_first("caught")), (2, 0));
    send_syn(&chain, SocketAddr::from(([10, 1, 0, 2], 40_009)), &[2, 4, 5, 180]);
    within_patience(until(|| chain.at_first("caught") == 1));
}

/// A server that takes signed connections of the host alone, and that host. 14 is TCP_MD5SIG.
const SIGNED: &str = "
import socket, struct, sys
def signed(peer):
    s = socket.socket()
    of = struct.pack('=H', socket.AF_INET) + struct.pack('!H4s', 0, socket.inet_aton(peer))
    s.setsockopt(socket.IPPROTO_TCP, 14, struct.pack('=128sBBHI80s', of, 0, 0, 3, 0, b'key'))
    return s
if sys.argv[1] == 'try':
    signed('10.1.0.2')
elif sys.argv[1] == 'serve':
    server = signed('10.1.0.2')
    server.bind(('', 5000))
    server.listen()
    while True:
        client, at = server.accept()
        client.sendall(at[0].encode())
        client.close()
else:
    s = signed('10.2.0.2')
    s.settimeout(60)
    s.connect(('10.2.0.2', 5000))
    print(s.recv(99).decode())
";

#[test]
fn hosts_that_sign_their_segments_reach_each_other_as_without_nodes() {
    needs!(&[&TOOLS[..], &["python3"]].concat());
    let chain = Chain::new("signed");
    let tried = chain.host.output(&["python3", "-c", SIGNED, "try"]);
    if !tried.status.success() {
        println!("skipped: {}: this kernel has no TCP_MD5SIG: {}", name_of_test!(), text(&tried.stderr));
        return;
    }
    let _server = chain.server.start(&["python3", "-c", SIGNED, "serve"]);
    within_patience(until(|| chain.server.has_listener(PORT)));
    let (_last, _first) = (chain.last(), chain.first());
    let reached = chain.host.output(&["python3", "-c", SIGNED, "connect"]);
    assert_eq!(text(&reached.stdout).trim(), "10.1.0.2", "{}", text(&reached.stderr));
    assert_eq!((chain.at_first("signed"), chain.at_first("caught"), chain.at_last("opened")), (1, 0, 0));
}
