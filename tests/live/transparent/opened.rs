//! The SYN of the connection that the last node opens: its hop limit, its DSCP and its source.

use std::io::Read;
use std::net::{IpAddr, SocketAddr, TcpStream};

use hopwise_core::wire::IpView;
use rustix::net::{AddressFamily, SocketType, connect, ipproto, socket, sockopt};

use super::{Chain, LAST, PORT, TOOLS, V4, V6, exchange_over};
use crate::namespace::Running;
use crate::world::{PATIENCE, until, within_patience};

/// A server that sends each client the SYN by which it came. 27 is TCP_SAVE_SYN, and 28 TCP_SAVED_SYN.
const SERVER: &str = "
import socket
server = socket.socket(socket.AF_INET6)
server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
server.setsockopt(socket.IPPROTO_TCP, 27, 1)
server.bind(('::', 5000))
server.listen(16)
while True:
    client, _ = server.accept()
    client.sendall(client.getsockopt(socket.IPPROTO_TCP, 28, 512))
    client.close()
";
/// EF of RFC 3246.
const EXPEDITED: u8 = 46;

/// A SYN's source, the hops that it may still go, and its DSCP.
type Syn = (IpAddr, u8, u8);

fn serve(chain: &Chain) -> Running {
    let running = chain.server.start(&["python3", "-c", SERVER]);
    within_patience(until(|| chain.server.run(|| TcpStream::connect((V4[1], 5000)).is_ok())));
    // All neighbours are known before a node may wait for them.
    for [_, server] in [V4, V6] {
        let _ = arrived(chain, server, (64, 0));
    }
    running
}

/// The SYN that reached the server when the host sent one with this hop limit and DSCP.
fn arrived(chain: &Chain, server: &str, (hops, dscp): (u8, u8)) -> Syn {
    let to = SocketAddr::new(server.parse().expect("an address"), 5000);
    let mut stream = chain.host.run(|| {
        let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = socket(family, SocketType::STREAM, Some(ipproto::TCP)).expect("a socket");
        if to.is_ipv4() {
            sockopt::set_ip_ttl(&socket, hops.into()).expect("it is a number");
            sockopt::set_ip_tos(&socket, dscp << 2).expect("it is a number");
        } else {
            sockopt::set_ipv6_unicast_hops(&socket, Some(hops)).expect("it is a number");
            sockopt::set_ipv6_tclass(&socket, u32::from(dscp) << 2).expect("it is a number");
        }
        connect(&socket, &to).expect("the server is reached");
        TcpStream::from(socket)
    });
    stream.set_read_timeout(Some(PATIENCE)).expect("it is a socket");
    let mut syn = Vec::new();
    stream.read_to_end(&mut syn).expect("the server answers");
    let syn = IpView::parse(&syn).expect("a packet");
    (syn.src, syn.hop_limit, syn.dscp)
}

fn parsed([host, server]: [&'static str; 2]) -> (IpAddr, &'static str) {
    (host.parse().expect("an address"), server)
}

#[test]
fn the_server_sees_the_hosts_address_its_dscp_and_its_hops_less_those_of_the_pair() {
    needs!(&TOOLS);
    let chain = Chain::new("opened");
    let _server = serve(&chain);
    let (_last, _first) = (chain.last(), chain.first());
    for (nth, (host, server)) in [V4, V6].map(parsed).into_iter().enumerate() {
        assert_eq!(arrived(&chain, server, (40, EXPEDITED)), (host, 32, EXPEDITED));
        assert_eq!((chain.at_first("caught"), chain.at_first("straight")), (nth as u64 + 1, 0));
    }
}

/// By the kernel's path it has two routers behind it. The last node's own kernel is the last router of a carried one.
#[test]
fn a_syn_with_too_few_hops_for_a_pair_goes_straight_on() {
    needs!(&TOOLS);
    let chain = Chain::new("hops");
    let _server = serve(&chain);
    let (_last, _first) = (chain.last(), chain.first());
    for (nth, (host, server)) in [V4, V6].map(parsed).into_iter().enumerate() {
        let nth = nth as u64 + 1;
        assert_eq!(arrived(&chain, server, (8, EXPEDITED)), (host, 6, EXPEDITED));
        assert_eq!((chain.at_first("no-hops"), chain.at_first("straight")), (nth, nth));
        assert_eq!(arrived(&chain, server, (9, EXPEDITED)), (host, 1, EXPEDITED));
        assert_eq!((chain.at_first("caught"), chain.at_first("straight")), (nth, nth));
    }
}

#[test]
fn with_an_own_source_the_server_sees_the_last_nodes_address_at_once() {
    needs!(&TOOLS);
    let chain = Chain::new("own-source");
    let _server = serve(&chain);
    let own = LAST.replace(" }", ", source: own }");
    let (_last, _first) = (chain.node(&chain.last, 2, &own), chain.first());
    for (server, node) in [(V4[1], "10.2.0.1"), (V6[1], "fd02::1")] {
        let node: IpAddr = node.parse().expect("an address");
        assert_eq!(arrived(&chain, server, (40, EXPEDITED)), (node, 32, EXPEDITED));
    }
    assert_eq!((chain.at_last("opened"), chain.at_last("opened-as-client")), (2, 0));
}

/// Connections that their hosts close first, more than the last node's machine has ports.
#[test]
fn connections_that_have_ended_keep_no_port_from_those_to_other_servers() {
    needs!(&TOOLS);
    for (source, client) in [("own", "10.2.0.1"), ("client", V4[0])] {
        let chain = Chain::new(&format!("ports-{source}"));
        (PORT..PORT + 2).for_each(|port| chain.serve(port));
        chain.exchange(V4[1], 1000);
        chain.last.sysctl("ipv4/ip_local_port_range", "33000 33015");
        let last = LAST.replace("from", &format!("source: {source}, from"));
        let (_last, _first) = (chain.node(&chain.last, 2, &last), chain.first());
        while chain.at_last("not-opened") == 0 {
            chain.exchange(V4[1], 1000);
        }
        let opened = chain.at_last("opened");
        assert!((1..=16).contains(&opened), "{opened}: {}", chain.log(2));
        let stream = chain.connect(V4[1], PORT + 1).expect("the server is reached");
        let seen = exchange_over(stream, 1000).expect("the connection holds");
        assert_eq!(seen.by_server.ip().to_string(), client);
        assert_eq!(
            (chain.at_last("opened"), chain.at_last("not-opened")),
            (opened + 1, 1),
            "{}",
            chain.log(2)
        );
        let program = chain.last.run(|| TcpStream::connect((V4[1], PORT + 1)));
        program.expect("programs of the machine find a port, too");
    }
}
