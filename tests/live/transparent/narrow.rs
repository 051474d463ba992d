//! A link with smaller frames beyond a node: its router tells the sender of each packet that does not fit.

use super::{Chain, FIRST, PORT, TOOLS, exchange_over, serve_at};
use crate::namespace::Namespace;

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
