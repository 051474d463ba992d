//! Connections that the last node opens in the names of hosts. The host may have such a port already, and a host may be
//! made up.

use std::fs;

use rustix::process::Signal;

use super::clashes::{end, send};
use super::contested::{ends_of, open, talk};
use super::{Chain, FIRST, PORT, TOOLS, V4, V6};
use crate::flood::SYN;
use crate::world::{until, within_patience};

/// The host's connection is older than the nodes, and the last node's kernel has its port and three more to choose
/// from. Each that was used waits for a minute, so that the last connection meets the host's port alone.
#[test]
fn a_port_of_the_last_node_that_a_host_has_ends_no_connection_of_the_host() {
    needs!(&TOOLS);
    let chain = Chain::new("ports");
    chain.serve(PORT);
    let mut streams = [V4, V6].map(|both| open(&chain, ends_of(both, 40_002)));
    let demux = || chain.last.run(|| fs::read_to_string("/proc/sys/net/ipv4/tcp_early_demux"));
    chain.last.sysctl("ipv4/ip_local_port_range", "40000 40003");
    let (mut last, _first) = (chain.last(), chain.first());
    for (nth, [_, server]) in [V4, V6].into_iter().enumerate() {
        for _ in 0..4 {
            chain.exchange(server, 10_000);
            streams.iter_mut().for_each(talk);
        }
        let nth = nth as u64 + 1;
        let counts = ["opened", "opened-as-client", "not-opened"].map(|what| chain.at_last(what));
        assert_eq!(counts, [3 * nth, 3 * nth, nth], "{}", chain.log(2));
        assert_eq!((chain.at_first("caught"), chain.at_first("straight")), (3 * nth, nth));
    }
    assert_eq!(demux().expect("a switch"), "0\n");
    last.tell(Signal::TERM);
    assert_eq!(last.ended(), Some(0), "{}", chain.log(2));
    assert_eq!(demux().expect("a switch"), "1\n", "as it was before the node");
    streams.iter_mut().for_each(talk);
}

/// Hosts of IPv6 in one /64 share two thirds of the places. A host that exists finds one once the first ways have
/// waited for their hosts for a while.
#[test]
fn made_up_hosts_have_few_connections_at_a_server_and_keep_none_from_a_host() {
    needs!(&TOOLS);
    let chain = Chain::new("made-up");
    chain.serve(PORT);
    for [_, server] in [V4, V6] {
        chain.exchange(server, 1000);
    }
    let soon = FIRST.replace("10s", "3s");
    let (_last, _first) = (chain.last(), chain.node(&chain.first, 1, &soon));
    let (mut caught, mut straight) = (0, 0);
    for (network, [_, server], places) in [("10.1.0.", V4, 16), ("fd01::", V6, 11)] {
        for host in 100..140 {
            let from = end(&format!("{network}{host}"), 40_000);
            send(&chain.host, [from, end(server, PORT)], 7, (SYN, 64));
        }
        (caught, straight) = (caught + places, straight + 40 - places);
        within_patience(until(|| chain.at_first("caught") + chain.at_first("straight") == caught + straight));
        let counts = [chain.at_first("caught"), chain.at_last("opened"), chain.at_first("straight")];
        assert_eq!(counts, [caught, caught, straight], "{}", chain.log(1));
        within_patience(until(|| {
            let before = (chain.at_first("caught"), chain.at_first("straight"));
            chain.exchange(server, 1000);
            let now = (chain.at_first("caught"), chain.at_first("straight"));
            (caught, straight) = (caught + now.0 - before.0, straight + now.1 - before.1);
            now.0 > before.0
        }));
    }
}
