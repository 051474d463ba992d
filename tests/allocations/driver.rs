//! The poll loop: once a transfer runs, a packet costs no allocation between its descriptor and the endpoint.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;

use allocation_counter::measure;
use hopwise_core::endpoint::{ConnId, ConnectOptions, EndpointConfig, ListenOptions};
use hopwise_core::ip::Prefix;
use hopwise_core::{Endpoint, Instant, LinkId, Transmit};
use hopwise_host::{Arrived, Driver, Link, LinkDrop, LinkProperties, LinkTally, Received, Sent, describe};
use hopwise_testing::make::endpoint;

const PORT: u16 = 80;
const CHUNK: usize = 16 << 10;

/// A wire of datagrams: a descriptor as a TUN has, without root.
#[derive(Debug)]
struct Wire(UnixDatagram, LinkTally);

impl Link for Wire {
    fn properties(&self) -> LinkProperties {
        LinkProperties::plain(1500)
    }

    fn tally(&self) -> &LinkTally {
        &self.1
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }

    fn receive(&mut self, _: Instant, into: &mut [u8]) -> Received {
        self.0.recv(into).map_or(Received::Nothing, |bytes| Received::Packet(Arrived::new(bytes)))
    }

    fn transmit(&mut self, _: Instant, _: &Transmit, packet: &[u8]) -> Sent {
        match self.0.send(packet) {
            Ok(_) => Sent::Taken,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Sent::Full,
            Err(_) => Sent::Refused(LinkDrop::Oversized),
        }
    }
}

fn driver(last_octet: u8, socket: UnixDatagram) -> Driver<Endpoint> {
    socket.set_nonblocking(true).expect("a socket may be non-blocking");
    let link = Box::new(Wire(socket, LinkTally::new("wire")));
    let subnet = Prefix::new(IpAddr::from([10, 0, 0, last_octet]), 24).expect("a prefix");
    let config = EndpointConfig::new(describe(&*link, LinkId(0), vec![subnet]), [last_octet; 32]);
    Driver::new(endpoint(config), vec![link], Vec::new()).expect("the kernel gives descriptors")
}

struct Ends {
    a: Driver<Endpoint>,
    b: Driver<Endpoint>,
    sender: ConnId,
    receiver: ConnId,
    /// The buffers that the programs write from and read to.
    given: Vec<u8>,
    taken: Vec<u8>,
}

impl Ends {
    fn connect() -> Ends {
        let (one, other) = UnixDatagram::pair().expect("the kernel gives sockets");
        let (mut a, mut b) = (driver(1, one), driver(2, other));
        let listener = b.act(|_, endpoint| endpoint.listen(None, PORT, ListenOptions::default()));
        let listener = listener.expect("the port is free");
        let to = SocketAddr::from(([10, 0, 0, 2], PORT));
        let sender = a.act(|now, endpoint| endpoint.connect(now, to, &ConnectOptions::default()));
        let sender = sender.expect("a subnet of ours");
        loop {
            a.iterate(&[0]);
            b.iterate(&[0]);
            if let Some(receiver) = b.act(|now, endpoint| endpoint.accept(now, listener)) {
                return Ends { a, b, sender, receiver, given: vec![7; CHUNK], taken: vec![0; CHUNK] };
            }
        }
    }

    /// Runs until this many more bytes have arrived.
    fn pass(&mut self, bytes: usize) {
        let (sender, receiver) = (self.sender, self.receiver);
        let mut arrived = 0;
        while arrived < bytes {
            let given = &self.given;
            self.a.act(|now, endpoint| endpoint.send(now, sender, given)).expect("open");
            self.b.iterate(&[0]);
            let taken = &mut self.taken;
            arrived += self.b.act(|now, endpoint| endpoint.recv(now, receiver, taken)).expect("open");
            self.a.iterate(&[0]);
        }
    }
}

#[test]
fn a_packet_costs_the_poll_loop_no_allocation() {
    let mut ends = Ends::connect();
    ends.pass(20_000_000);
    let heap = measure(|| ends.pass(5_000_000));
    assert_eq!(heap.count_total, 0, "{heap:?}");
}
