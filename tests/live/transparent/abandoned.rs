//! Hosts that begin connections and abandon them. A SYN of theirs says nothing of the router's firewall.

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
use crate::namespace::can_run;
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
    if !can_run("connections_that_their_hosts_abandon_close_the_way_in_to_nobody", &TOOLS) {
        return;
    }
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
