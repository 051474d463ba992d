//! Two of smoltcp's interfaces with a TCP socket each, as they come: no congestion control, no timestamps, an ACK
//! at the latest after 10 ms.

use smoltcp::iface::{Config, Interface, PollIngressSingleResult, PollResult, SocketHandle, SocketSet};
use smoltcp::phy::{self, ChecksumCapabilities, Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpCidr};

use crate::ours::{PORT, address};
use crate::pair::{Acks, BUFFER_BYTES, End, Pair, Queue, SEGMENT_BYTES, Sums};

/// IPv4 and TCP: what goes around the payload.
const HEADERS: usize = 20 + 20;
/// Longer than anything waits after a close.
const AFTER_CLOSE: Duration = Duration::from_secs(61);

pub(crate) struct Theirs {
    ends: [Host; 2],
    /// Packets to each end.
    queues: [Queue; 2],
    now: Instant,
    next_port: u16,
}

struct Host {
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    sums: Sums,
}

impl Host {
    fn new(end: End, sums: Sums, acks: Acks) -> Host {
        let mut wire = Wire { input: &mut Queue::default(), output: &mut Queue::default(), sums };
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
        Host { interface, sockets, socket, sums }
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.socket)
    }
}

impl Theirs {
    pub(crate) fn new(sums: Sums, acks: Acks) -> Theirs {
        Theirs {
            ends: [End::A, End::B].map(|end| Host::new(end, sums, acks)),
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
        let sums = host.sums;
        (host, Wire { input, output, sums })
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

    fn full_packets(&self) -> u64 {
        self.queues.iter().map(Queue::full_packets).sum()
    }
}

/// One end's view of the two queues.
struct Wire<'q> {
    input: &'q mut Queue,
    output: &'q mut Queue,
    sums: Sums,
}

impl Device for Wire<'_> {
    type RxToken<'t>
        = Arriving<'t>
    where
        Self: 't;
    type TxToken<'t>
        = Leaving<'t>
    where
        Self: 't;

    fn receive(&mut self, _: Instant) -> Option<(Arriving<'_>, Leaving<'_>)> {
        let packet = self.input.next()?;
        Some((Arriving { packet, queue: self.input }, Leaving { queue: self.output }))
    }

    fn transmit(&mut self, _: Instant) -> Option<Leaving<'_>> {
        Some(Leaving { queue: self.output })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = SEGMENT_BYTES + HEADERS;
        if self.sums == Sums::Off {
            capabilities.checksum = ChecksumCapabilities::ignored();
        }
        capabilities
    }
}

struct Arriving<'q> {
    packet: Vec<u8>,
    queue: &'q mut Queue,
}

impl phy::RxToken for Arriving<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, handle: F) -> R {
        let handled = handle(&self.packet);
        self.queue.keep(self.packet);
        handled
    }
}

struct Leaving<'q> {
    queue: &'q mut Queue,
}

impl phy::TxToken for Leaving<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, fill: F) -> R {
        let mut packet = self.queue.spare();
        // Buffers stay as long as they have been, so that nearly none is filled with zeroes first.
        packet.resize(len, 0);
        let filled = fill(&mut packet);
        self.queue.put(packet);
        filled
    }
}
