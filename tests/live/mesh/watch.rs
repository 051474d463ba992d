//! Passing packets, as the routing daemon sees them.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, UdpSocket};

use hopwise_host::routing::InterfaceWatch;

use crate::namespace::Namespace;
use crate::world::{until, within_patience};

const HERE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

#[test]
fn packets_that_come_in_are_told_from_those_that_leave() {
    needs!["ip"];
    let (here, there) = (Namespace::new(), Namespace::new());
    here.join(&there, "wire0", "10.77.0.1/24", "10.77.0.2/24");
    let watch = here.run(|| InterfaceWatch::open("wire0").expect("root may watch"));
    let bind = |namespace: &Namespace, address| {
        namespace.run(|| UdpSocket::bind((address, 7_000)).expect("a free port"))
    };
    let (ours, theirs) = (bind(&here, HERE), bind(&there, THERE));
    let mut seen = BTreeSet::new();
    within_patience(until(|| {
        ours.send_to(b"out", (THERE, 7_000)).expect("it leaves");
        theirs.send_to(b"in", (HERE, 7_000)).expect("it leaves");
        watch.look(&mut |passing| {
            if passing.protocol == 17 && passing.dst.octets()[..2] == [10, 77] {
                seen.insert((passing.src, passing.dst, passing.came_in));
            }
        });
        seen.len() >= 2
    }));
    assert_eq!(seen, BTreeSet::from([(HERE, THERE, false), (THERE, HERE, true)]));
}
