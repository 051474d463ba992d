//! Connections that the last node opens in the names of hosts. The host may have such a port already.

use std::fs;

use rustix::process::Signal;

use super::contested::{ends_of, open, talk};
use super::{Chain, PORT, TOOLS, V4, V6};

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
