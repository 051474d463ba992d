//! Two of smoltcp's interfaces with a TCP socket each, with defaults: no congestion control, no timestamps, an ACK at
//! the latest after 10 ms.

use std::num::NonZeroUsize;

use smoltcp::iface::{Config, Interface, PollIngressSingleResult, PollResult, SocketHandle, SocketSet};
use smoltcp::phy::{self, Checksum, ChecksumCapabilities, Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpCidr, Ipv4Packet, TcpPacket};

use crate::ours::{PORT, address};
use crate::pair::{Acks, BUFFER_BYTES, BUNDLE_BYTES, End, Packets, Pair, Queue, SEGMENT_BYTES, Sums};

/// The headers around the payload: IPv4 and TCP.
const HEADERS: usize = 20 + 20;
/// Longer than anything waits after a close.
const AFTER_CLOSE: Duration = Duration::from_secs(61);

pub(crate) struct Theirs {
    ends: [Host; 2],
    /// The packets to each end.
    queues: [Queue; 2],
    now: Instant,
    next_port: u16,
}

struct Host {
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    link: Link,
}

/// The wire's service to a host.
#[derive(Clone, Copy, Debug)]
struct Link {
    sums: Sums,
    packets: Packets,
}

impl Host {
    fn new(end: End, link: Link, acks: Acks) -> Host {
        let mut wire = Wire { input: &mut Queue::default(), output: &mut Queue::default(), link };
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = end as u64 + 1;
        let mut interface = Interface::new(config, &mut wire, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            addresses.push(IpCidr::new(address(end).into(), 24)).expect("there is room for one");
        });
        let buffer = || SocketBuffer::new(vec![0; BUFFER_BYTES]);
        let mut socket = Socket::new(buffer(), buffer());
        if acks == Acks::Immediate {
            socket.set_ack_delay(None);
        }
        let mut sockets = SocketSet::new(vec![]);
        let socket = sockets.add(socket);
        Host { interface, sockets, socket, link }
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.socket)
    }
}

impl Theirs {
    pub(crate) fn new(sums: Sums, acks: Acks, packets: Packets) -> Theirs {
        let link = Link { sums, packets };
        Theirs {
            ends: [End::A, End::B].map(|end| Host::new(end, link, acks)),
            queues: Default::default(),
            now: Instant::ZERO,
            next_port: 49_152,
        }
    }

    /// The end, and its side of the wire.
    fn parts(&mut self, end: End) -> (&mut Host, Wire<'_>) {
        let [to_a, to_b] = &mut self.queues;
        let (input, output) = match end {
            End::A => (to_a, to_b),
            End::B => (to_b, to_a),
        };
        let host = &mut self.ends[end as usize];
        let link = host.link;
        (host, Wire { input, output, link })
    }
}

impl Pair for Theirs {
    fn wait_us(&mut self, us: u64) {
        self.now += Duration::from_micros(us);
    }

    fn open(&mut self) {
        self.ends[1].socket().listen(PORT).expect("it is closed");
        let port = self.next_port;
        self.next_port = port.checked_add(1).unwrap_or(49_152);
        let Host { interface, sockets, socket, .. } = &mut self.ends[0];
        let client = sockets.get_mut::<Socket<'_>>(*socket);
        client.connect(interface.context(), (address(End::B), PORT), port).expect("it is closed");
        for _ in 0..3 {
            self.give(End::A);
            self.take(End::B);
            self.give(End::B);
            self.take(End::A);
        }
    }

    fn close(&mut self) {
        for end in [End::A, End::B] {
            self.ends[end as usize].socket().close();
            self.give(end);
            self.take(end.other());
        }
        self.give(End::A);
        self.take(End::B);
        self.now += AFTER_CLOSE;
        self.give(End::A);
        self.give(End::B);
        assert!(
            self.ends.iter_mut().all(|end| end.socket().state() == State::Closed),
            "closed and forgotten"
        );
    }

    fn write(&mut self, end: End, data: &[u8]) -> usize {
        self.ends[end as usize].socket().send_slice(data).expect("it is open")
    }

    fn read(&mut self, end: End, out: &mut [u8]) -> usize {
        self.ends[end as usize].socket().recv_slice(out).expect("it is open")
    }

    fn take(&mut self, end: End) {
        let now = self.now;
        let (host, mut wire) = self.parts(end);
        while host.interface.poll_ingress_single(now, &mut wire, &mut host.sockets)
            != PollIngressSingleResult::None
        {}
    }

    fn give_one(&mut self, end: End) -> bool {
        let now = self.now;
        let (host, mut wire) = self.parts(end);
        host.interface.poll_egress(now, &mut wire, &mut host.sockets) != PollResult::None
    }

    fn full_segments(&self) -> u64 {
        self.queues.iter().map(Queue::full_segments).sum()
    }
}

/// One end's view of the two queues.
struct Wire<'q> {
    input: &'q mut Queue,
    output: &'q mut Queue,
    link: Link,
}

impl Device for Wire<'_> {
    type RxToken<'t>
        = Received<'t>
    where
        Self: 't;
    type TxToken<'t>
        = Leaving<'t>
    where
        Self: 't;

    fn receive(&mut self, _: Instant) -> Option<(Received<'_>, Leaving<'_>)> {
        let packet = self.input.next()?.packet;
        Some((Received { packet, queue: self.input }, Leaving { queue: self.output, link: self.link }))
    }

    fn transmit(&mut self, _: Instant) -> Option<Leaving<'_>> {
        Some(Leaving { queue: self.output, link: self.link })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = SEGMENT_BYTES + HEADERS;
        if self.link.sums == Sums::Off {
            capabilities.checksum = ChecksumCapabilities::ignored();
        }
        if self.link.packets == Packets::Bundles {
            capabilities.segmentation.tcpv4 = NonZeroUsize::new(BUNDLE_BYTES);
            // smoltcp leaves the sums of such packets to the device, which computes them below.
            capabilities.checksum.tcp = match self.link.sums {
                Sums::On => Checksum::Rx,
                Sums::Off => Checksum::None,
            };
        }
        capabilities
    }
}

struct Received<'q> {
    packet: Vec<u8>,
    queue: &'q mut Queue,
}

impl phy::RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, handle: F) -> R {
        let handled = handle(&self.packet);
        self.queue.keep(self.packet);
        handled
    }
}

struct Leaving<'q> {
    queue: &'q mut Queue,
    link: Link,
}

impl phy::TxToken for Leaving<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, fill: F) -> R {
        let mut packet = self.queue.spare();
        // Buffers keep their earlier length: nearly none is filled with zeroes first.
        packet.resize(len, 0);
        let filled = fill(&mut packet);
        if self.link.packets == Packets::Bundles && self.link.sums == Sums::On {
            finish_checksum(&mut packet);
        }
        self.queue.put(packet, None);
        filled
    }
}

/// Computes the sum with smoltcp's own routine, at the cost that its sender would have.
fn finish_checksum(packet: &mut [u8]) {
    let mut ip = Ipv4Packet::new_unchecked(packet);
    let (src, dst) = (ip.src_addr(), ip.dst_addr());
    TcpPacket::new_unchecked(ip.payload_mut()).fill_checksum(&src.into(), &dst.into());
}
