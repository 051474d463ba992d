//! `by: tun` on a router that has more to do: other interfaces, other mobiles, addresses to translate.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread;

use super::{By, Network, ways};
use crate::namespace::Namespace;
use crate::world::{PATIENCE, until, within_patience};

const BYTES: usize = 200_000;

/// A host in a namespace, by its address.
type Host<'a> = (&'a Namespace, &'a str);

/// No read or write of it lasts for ever.
fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).expect("it can be set");
    stream.set_write_timeout(Some(PATIENCE)).expect("it can be set");
    stream
}

/// Connects, sends some data each way, and answers which address the listener saw. It panics with `what`.
fn carries(what: &str, (client, from): Host<'_>, (server, to): Host<'_>) -> IpAddr {
    let listener = server.run(|| TcpListener::bind((to, 0))).expect("a port");
    let address: SocketAddr = listener.local_addr().expect("bound");
    let accepted = thread::spawn(move || {
        let (stream, peer) = listener.accept().expect("it is accepted");
        let mut stream = patient(stream);
        stream.write_all(&[7; BYTES]).expect("it is taken");
        stream.shutdown(std::net::Shutdown::Write).expect("it is open");
        let mut read = Vec::new();
        stream.read_to_end(&mut read).expect("it comes");
        (read.len(), peer.ip())
    });
    let stream = client.run(|| TcpStream::connect_timeout(&address, PATIENCE));
    let mut stream = patient(stream.unwrap_or_else(|error| panic!("{what}, from {from}: {error}")));
    stream.write_all(&[3; BYTES]).expect("it is taken");
    stream.shutdown(std::net::Shutdown::Write).expect("it is open");
    let mut read = Vec::new();
    stream.read_to_end(&mut read).expect("it comes");
    assert_eq!(read.len(), BYTES, "{what}");
    let (read, peer) = accepted.join().expect("it is served");
    assert_eq!(read, BYTES, "{what}");
    peer
}

/// Beside the mobile's, the radio has another mobile, which only the router reaches.
fn add_mobile(network: &Network) -> Namespace {
    let (other, router) = (Namespace::new(), &network.router);
    router.ip(&["link", "set", "radio", "down"]);
    router.ip(&["addr", "flush", "dev", "radio"]);
    router.ip(&["link", "set", "radio", "name", "port"]);
    router.ip(&["link", "set", "port", "up"]);
    router.ip(&["link", "add", "radio", "type", "bridge"]);
    router.join(&other, "other", "10.7.9.1/24", "10.9.0.3/32");
    for port in ["port", "other"] {
        router.ip(&["link", "set", port, "master", "radio"]);
    }
    router.ip(&["link", "set", "radio", "up"]);
    router.ip(&["addr", "add", "10.9.0.1/24", "dev", "radio"]);
    other.ip(&["route", "add", "default", "via", "10.9.0.1", "dev", "other", "onlink"]);
    network.mobile.ip(&["route", "add", "10.9.0.3/32", "via", "10.9.0.1"]);
    other
}

#[test]
fn mobiles_reach_each_other_and_every_interface_of_the_router() {
    needs!["nft", "ethtool"];
    let network = Network::new("proxy-router");
    let (third, other) = (Namespace::new(), add_mobile(&network));
    third.join(&network.router, "lan", "10.7.0.1/24", "10.7.0.2/24");
    third.ip(&["route", "add", "default", "via", "10.7.0.2"]);
    // Redirects of the router would lead mobiles around it.
    network.router.sysctl("ipv4/conf/all/send_redirects", "0");
    network.router.sysctl("ipv4/conf/radio/send_redirects", "0");
    let (wire, mobile) = ((&network.fixed, "10.8.0.1"), (&network.mobile, "10.9.0.2"));
    let (third, other) = ((&third, "10.7.0.1"), (&other, "10.9.0.3"));
    for (filter, agent) in [("0", "ack-hold"), ("1", "split")] {
        network.router.sysctl("ipv4/conf/all/rp_filter", filter);
        let mut running = network.proxy(agent, "none");
        for (what, from, to) in [
            ("to the wire", mobile, wire),
            ("from the wire", wire, mobile),
            ("to a third interface", mobile, third),
            ("from a third interface", third, mobile),
            ("to another mobile", mobile, other),
        ] {
            carries(&format!("{agent}: {what}"), from, to);
        }
        let ping = network.mobile.output(&["ping", "-c", "1", "-t", "2", "-W", "60", "10.8.0.1"]);
        assert!(ping.status.success(), "what is no TCP goes no farther than without the proxy");
        let status = network.tell("{\"tell\":\"status\"}");
        assert!(
            !status.contains("\"packets\":0"),
            "what is between wire and radio passes the proxy: {status}"
        );
        running.interrupt();
        carries("without the proxy", mobile, wire);
    }
}

#[test]
fn a_router_that_translates_addresses_does_so_with_a_proxy_too() {
    needs!["nft", "ethtool"];
    let network = Network::new("proxy-masquerade");
    network.fixed.ip(&["route", "del", "default"]);
    let rules = "table ip nat { chain leaving { type nat hook postrouting priority 100; \
                 oifname \"wire\" masquerade; }; }; \
                 table inet firewall { chain passing { type filter hook forward priority 0; \
                 ct state invalid drop; }; }";
    let done = network.router.output(&["nft", rules]);
    assert!(done.status.success(), "nft: {}", String::from_utf8_lossy(&done.stderr));
    for agent in ["none", "ack-hold", "split"] {
        let _running = network.proxy(agent, "none");
        let seen = carries(agent, (&network.mobile, "10.9.0.2"), (&network.fixed, "10.8.0.1"));
        assert_eq!(seen.to_string(), "10.8.0.2", "{agent}");
        let status = network.tell("{\"tell\":\"status\"}");
        assert!(!status.contains("\"packets\":0"), "{agent}: {status}");
    }
}

/// Sends to the mobile, which has connected from behind the router's address, across a fade.
fn survives_a_fade(network: &Network) {
    let listener = network.fixed.run(|| TcpListener::bind(("10.8.0.1", PORT))).expect("a port");
    let sender = thread::spawn(move || {
        let mut stream = patient(listener.accept().expect("it is accepted").0);
        while stream.write_all(&[7; 1 << 16]).is_ok() {}
    });
    let to: SocketAddr = ([10, 8, 0, 1], PORT).into();
    let mut stream =
        patient(network.mobile.run(|| TcpStream::connect_timeout(&to, PATIENCE)).expect("it connects"));
    let mut read = vec![0; 300_000];
    stream.read_exact(&mut read).expect("it comes");
    network.tell_of("gone");
    network.set_fade(true);
    within_patience(until(|| !network.tell("{\"tell\":\"status\"}").contains("\"kept_packets\":0,")));
    network.set_fade(false);
    network.tell_of("up");
    stream.read_exact(&mut read).expect("it comes");
    drop(stream);
    sender.join().expect("it ends with the connection");
}

const PORT: u16 = 5_001;

#[test]
fn what_was_kept_comes_from_its_own_port_on_a_router_that_translates_addresses() {
    if !ways(name_of_test!()).contains(&By::Nfqueue) {
        return;
    }
    let network = Network::by("proxy-kept-nat", By::Nfqueue);
    network.fixed.ip(&["route", "del", "default"]);
    let nft = |of: &Namespace, words: &str| {
        let done = of.output(&["nft", words]);
        assert!(done.status.success(), "nft: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    let masks = "table ip nat { chain leaving { type nat hook postrouting priority 100; \
                 oifname \"wire\" masquerade; }; }";
    nft(&network.router, masks);
    let counts = "table ip seen { chain others { type filter hook prerouting priority 0; \
                  meta l4proto tcp tcp sport != 5001 counter; }; }";
    nft(&network.mobile, counts);
    let mut running = network.proxy("ack-hold:mode=kick", "none");
    survives_a_fade(&network);
    let seen = nft(&network.mobile, "list table ip seen");
    assert!(seen.contains("packets 0 bytes 0"), "{seen}");
    running.interrupt();
    assert_eq!(network.left_behind(), "");
}

#[test]
fn a_table_of_another_program_s_is_refused() {
    needs!["nft", "ethtool"];
    let network = Network::new("proxy-table");
    network.router.ip(&["route", "add", "default", "dev", "wire", "table", "7101"]);
    let said = network.refused("none");
    assert!(said.contains("table 7101 has routes to another device"), "{said}");
    assert_eq!(network.left_behind(), "");
}
