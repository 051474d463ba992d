//! The kernel's queue of a TAP, on which the queues of nodes in real time rest.

use std::fs;
use std::net::UdpSocket;

use hopwise_core::ip::Prefix;
use hopwise_host::{TapConfig, TapDevice, set_switch};
use hopwise_lab::live::air::LONGEST_EXACT_QUEUE;

use crate::namespace::Namespace;

/// A device whose queue is filled by broadcasts, which wait for no neighbour.
struct Filled {
    device: TapDevice,
    socket: UdpSocket,
}

impl Filled {
    fn new(queue_packets: usize) -> Filled {
        set_switch("ipv6/conf/default/disable_ipv6", "1").expect("root may set it");
        let address: Prefix = "10.5.0.1/24".parse().expect("a prefix");
        let device = TapDevice::open(&TapConfig {
            name: "queue0".to_owned(),
            mtu: 1_500,
            mac: [2, 0, 0, 0, 0, 1],
            queue_packets: queue_packets.try_into().expect("it is small"),
            addresses: vec![address],
        });
        let socket = UdpSocket::bind("10.5.0.1:0").and_then(|socket| {
            socket.set_broadcast(true)?;
            Ok(socket)
        });
        let filled = Filled {
            device: device.expect("root may make a device"),
            socket: socket.expect("the address is there"),
        };
        while filled.takes_one() {}
        filled
    }

    /// Sends a packet. Returns whether the queue had room for it.
    fn takes_one(&self) -> bool {
        let before = drops();
        // A full queue is an error to some kernels.
        let sent = self.socket.send_to(b"x", "10.5.0.255:9").is_ok();
        sent && drops() == before
    }

    /// The packets that find room when each comes after one has left.
    fn taken_of(&self, packets: usize) -> usize {
        let mut buffer = [0; 2_000];
        let one_leaves =
            || self.device.read(&mut buffer).expect("the device can be read").expect("it is full");
        std::iter::repeat_with(one_leaves).take(packets).filter(|_| self.takes_one()).count()
    }
}

fn drops() -> u64 {
    let table = fs::read_to_string("/proc/thread-self/net/dev").expect("the kernel tells it");
    let row =
        table.lines().find_map(|line| line.trim().strip_prefix("queue0:")).expect("the device is there");
    row.split_whitespace().nth(11).and_then(|count| count.parse().ok()).expect("a number")
}

#[test]
fn a_queue_of_the_longest_exact_length_has_room_as_soon_as_one_has_left_and_a_longer_one_has_not() {
    needs!["ip"];
    let taken = |queue_packets| Namespace::new().run(|| Filled::new(queue_packets).taken_of(10));
    assert_eq!([1, LONGEST_EXACT_QUEUE].map(taken), [10, 10]);
    assert!(taken(LONGEST_EXACT_QUEUE + 1) < 10, "longer queues are exact as well now");
}
