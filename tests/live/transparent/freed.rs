//! Places in the kernel's sets, which are few: a connection leaves them once it stands, is refused or is broken off.
//! Whoever opens many connections would else take the places of other hosts.

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use rustix::net::sockopt;

use super::clashes::nft;
use super::{Chain, PORT, TOOLS, V4, V6};
use crate::namespace::Namespace;
use crate::world::{until, within_patience};

/// The sets of a router that have elements.
fn taken(router: &Namespace) -> Vec<String> {
    let sets = ["asked", "opening", "calling"].map(|set| ["4", "6"].map(|version| format!("{set}{version}")));
    let mut sets = sets.concat();
    sets.retain(|set| {
        nft(router, &format!("list set inet hopwise_transparent_7300 {set}")).contains("elements")
    });
    sets
}

#[test]
fn a_connection_that_stands_has_no_number_in_a_set_and_one_that_has_ended_no_place() {
    needs!(&TOOLS);
    let chain = Chain::new("stands");
    chain.serve(PORT);
    let (_last, _first) = (chain.last(), chain.first());
    let talking = [V4, V6].map(|[_, server]| {
        let mut stream = chain.connect(server, PORT).expect("the server is reached");
        stream.write_all(b"who am I\n").expect("it is open");
        stream.read_exact(&mut [0; 1]).expect("the server answers");
        stream
    });
    assert_eq!(chain.at_first("caught"), 2, "{}", chain.log(1));
    for router in [&chain.first, &chain.last] {
        let numbers = taken(router).into_iter().filter(|set| !set.starts_with("asked"));
        assert_eq!(numbers.collect::<Vec<_>>(), [""; 0]);
    }
    for stream in talking {
        sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).expect("it is a socket");
    }
    within_patience(until(|| chain.at_first("open") == 0));
    assert_eq!(taken(&chain.first), [""; 0], "their hosts have broken them off");
    for [_, server] in [V4, V6] {
        chain.exchange(server, 1000);
    }
    assert_eq!((taken(&chain.first), taken(&chain.last)), (vec![], vec![]));
}

#[test]
fn a_connection_that_the_server_refuses_leaves_its_place_at_the_last_node() {
    needs!(&TOOLS);
    let chain = Chain::new("refused");
    let (_last, _first) = (chain.last(), chain.first());
    for (nth, [_, server]) in [V4, V6].into_iter().enumerate() {
        within_patience(until(|| {
            let refused = chain.connect(server, PORT).map(drop).map_err(|error| error.kind());
            assert_eq!(refused, Err(ErrorKind::ConnectionRefused));
            chain.at_last("not-opened") > nth as u64
        }));
    }
    assert_eq!(taken(&chain.last), [""; 0]);
}

/// The last router itself drops the first SYN, which is no word of the server.
#[test]
fn a_client_whose_syn_does_not_leave_the_last_node_is_tried_again() {
    needs!(&TOOLS);
    let chain = Chain::new("unsent");
    chain.serve(PORT);
    let (_last, _first) = (chain.last(), chain.first());
    for [client, server] in [V4, V6] {
        let family = if client == V4[0] { "ip" } else { "ip6" };
        nft(
            &chain.last,
            &format!(
                "table inet lost {{ chain output {{ type filter hook output priority -400; {family} saddr {client} tcp \
                 flags & (syn | ack) == syn drop; }}; }}"
            ),
        );
        assert_ne!(
            chain.exchange(server, 1000).by_server.ip().to_string(),
            client,
            "only the node's own is left"
        );
        nft(&chain.last, "delete table inet lost");
        assert_eq!(chain.exchange(server, 1000).by_server.ip().to_string(), client);
    }
    assert_eq!((chain.at_first("caught"), chain.at_last("opened-as-client")), (4, 2));
}
