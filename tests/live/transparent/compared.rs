//! A firewall of the first router that compares the whole mark of an entry in connection tracking, and strangers in the
//! names of both ends of a connection that goes straight on.

use std::net::SocketAddr;
use std::thread;

use super::clashes::{end, nft};
use super::contested::{open, talk};
use super::forged::{counter, send_frames};
use super::{Chain, V4, V6};
use crate::field::text;
use crate::flood::segment_between;
use crate::namespace::Namespace;
use crate::world::{until, within_patience};

const ACK: u8 = 16;
/// A port of the server that the node does not take.
const OTHER_PORT: u16 = 6000;
/// A firewall that marks what hosts begin, and lets nothing else through.
const MARKS: &str = "table inet marks { chain forward { type filter hook forward priority 0; policy drop; \
                     meta l4proto ipv6-icmp accept; iifname lan0 ct state new ct mark set 1 accept; \
                     ct mark 1 accept; }; }";
/// A server that hears no SYN.
const DEAF: &str =
    "table inet deaf { chain input { type filter hook input priority 0; tcp flags syn counter drop; }; }";

/// The address of the first router on the link of that device.
fn link_address(chain: &Chain, device: &str) -> String {
    text(&chain.first.output(&["cat", &format!("/sys/class/net/{device}/address")]).stdout).trim().to_owned()
}

/// Sends sixteen acknowledgements in the server's name from the hosts' link and sixteen in the host's name from the
/// mesh, over all sequence numbers, and waits until the first router has so `many` of each.
fn come_between(chain: &Chain, [host, server]: [SocketAddr; 2], hops: u8, many: usize) {
    let strangers: [(&Namespace, &str, [SocketAddr; 2]); 2] =
        [(&chain.host, "lan0", [server, host]), (&chain.last, "mid0", [host, server])];
    for (by, device, [from, to]) in strangers {
        let packets: Vec<_> = (0..16).map(|nth| segment_between(from, to, nth << 28, (ACK, hops))).collect();
        send_frames(by, device, &link_address(chain, device), &packets);
        let name = name_of(device, from);
        within_patience(until(|| {
            nft(&chain.first, &format!("list counter inet {name} came")).contains(&format!("packets {many} "))
        }));
    }
}

/// The name of the counter of strangers' packets by that device.
fn name_of(device: &str, from: SocketAddr) -> String {
    format!("{device}{}", if from.is_ipv4() { 4 } else { 6 })
}

/// The first packets come while the connection waits for the server's answer, and no host hears them.
#[test]
fn strangers_in_the_names_of_both_ends_change_nothing_that_a_firewall_compares() {
    needs!(&["nft", "python3"]);
    let chain = Chain::new("compared");
    chain.serve(OTHER_PORT);
    nft(&chain.first, MARKS);
    let (_last, _first) = (chain.last(), chain.first());
    for [host, server] in [V4, V6] {
        let (host, server) = (end(host, 40_000), end(server, OTHER_PORT));
        let family = if host.is_ipv4() { "ip" } else { "ip6" };
        for (device, from) in [("lan0", server), ("mid0", host)] {
            let rule = format!("iifname {device} {family} saddr {} tcp flags == ack", from.ip());
            nft(&chain.first, &counter(&name_of(device, from), &rule));
        }
        nft(&chain.server, DEAF);
        let mut stream = thread::scope(|scope| {
            let opens = scope.spawn(|| open(&chain, [host, server]));
            within_patience(until(|| !nft(&chain.server, "list table inet deaf").contains("packets 0 ")));
            come_between(&chain, [host, server], 1, 16);
            nft(&chain.server, "delete table inet deaf");
            opens.join().expect("it does not panic")
        });
        for nth in 2..=4 {
            come_between(&chain, [host, server], 64, 16 * nth);
            talk(&mut stream);
        }
    }
    assert_eq!(chain.at_first("caught"), 0, "{}", chain.log(1));
}
