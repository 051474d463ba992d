//! smoltcp's TCP on our devices, with the offload that 0.14 knows. It hands bundles to the device and takes them from
//! it, and leaves checksums to it. By default it has no congestion control, no SACK when sending and no timestamps.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;

use hopwise_core::wire::Sum;
use hopwise_core::{Instant as OurInstant, NextHop, QueueClass, Transmit};
use hopwise_host::{Link, MAX_PACKET, Received};
use smoltcp::iface::{Config, Interface, PollResult, SocketHandle, SocketSet};
use smoltcp::phy::{self, Checksum, DeviceCapabilities, Medium, PacketMeta};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr, IpEndpoint};

use crate::mover::wait_readable;
use crate::ours::PORT;
use crate::place::{Device, OURS};
use crate::usage::now_us;

/// The size that our buffers may grow to; smoltcp's do not grow.
pub(crate) const BULK_BUFFER: usize = 4 << 20;
pub(crate) const IDLE_BUFFER: usize = 4 << 10;

pub(crate) struct Theirs {
    interface: Interface,
    sockets: SocketSet<'static>,
    handles: Vec<SocketHandle>,
    wire: Wire,
}

/// The result of a program's step: some progress, none, or the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Some,
    None,
    Done,
}

fn address(ip: IpAddr) -> IpAddress {
    IpAddress::from(ip)
}

impl Theirs {
    pub(crate) fn start(device: Device, sockets: usize, buffer_bytes: usize) -> Theirs {
        let mut wire = Wire { link: device.open(), device, input: vec![0; MAX_PACKET], output: Vec::new() };
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = now_us().unsigned_abs();
        let mut interface = Interface::new(config, &mut wire, now());
        interface.update_ip_addrs(|addresses| {
            addresses.push(IpCidr::new(address(OURS), 24)).expect("there is room for one");
        });
        let buffer = || SocketBuffer::new(vec![0; buffer_bytes]);
        let mut set = SocketSet::new(Vec::new());
        let handles = (0..sockets).map(|_| set.add(Socket::new(buffer(), buffer()))).collect();
        Theirs { interface, sockets: set, handles, wire }
    }

    /// Polls until the program is done, and waits when nothing moves.
    fn run(&mut self, mut program: impl FnMut(&mut SocketSet<'static>, &[SocketHandle]) -> Progress) {
        loop {
            let polled = self.interface.poll(now(), &mut self.wire, &mut self.sockets);
            let moved = program(&mut self.sockets, &self.handles);
            if moved == Progress::Done {
                let _ = self.interface.poll(now(), &mut self.wire, &mut self.sockets);
                return;
            }
            if polled == PollResult::None && moved == Progress::None {
                let delay = self.interface.poll_delay(now(), &self.sockets);
                wait_readable(&*self.wire.link, delay.map(std::time::Duration::from));
            }
        }
    }

    fn listen(&mut self) {
        for handle in &self.handles {
            let socket = self.sockets.get_mut::<Socket<'_>>(*handle);
            socket.listen(PORT).expect("it is closed");
        }
    }

    pub(crate) fn send(&mut self, to: SocketAddr, bytes_each: u64) {
        let zeros = vec![0; 256 << 10];
        for (port, handle) in (40_000..).zip(&self.handles) {
            let socket = self.sockets.get_mut::<Socket<'_>>(*handle);
            let to = IpEndpoint::new(address(to.ip()), to.port());
            socket.connect(self.interface.context(), to, port).expect("it is closed");
        }
        let mut rest = vec![bytes_each; self.handles.len()];
        self.run(|sockets, handles| {
            let (mut progress, mut open) = (Progress::None, 0);
            for (handle, rest) in handles.iter().zip(&mut rest) {
                let socket = sockets.get_mut::<Socket<'_>>(*handle);
                if *rest > 0 && socket.can_send() {
                    let length = (*rest).min(zeros.len() as u64) as usize;
                    *rest -= socket.send_slice(&zeros[..length]).expect("it is open") as u64;
                    progress = Progress::Some;
                    if *rest == 0 {
                        socket.close();
                    }
                }
                open += usize::from(*rest > 0 || !matches!(socket.state(), State::Closed | State::TimeWait));
            }
            if open == 0 { Progress::Done } else { progress }
        });
    }

    /// Reads every connection to its end; call [`ready`](Theirs::ready) before a client connects.
    pub(crate) fn receive(&mut self) {
        let mut buffer = vec![0; 256 << 10];
        let mut has_begun = false;
        self.run(|sockets, handles| {
            let (mut progress, mut open) = (Progress::None, 0);
            for handle in handles {
                let socket = sockets.get_mut::<Socket<'_>>(*handle);
                if socket.can_recv() {
                    has_begun = true;
                    socket.recv_slice(&mut buffer).expect("it is open");
                    progress = Progress::Some;
                } else if socket.state() == State::CloseWait {
                    socket.close();
                    progress = Progress::Some;
                }
                open += usize::from(socket.state() != State::Closed);
            }
            if open == 0 && has_begun { Progress::Done } else { progress }
        });
    }

    pub(crate) fn ready(&mut self) {
        self.listen();
    }

    /// Sends received bytes back until `is_over`. The first `idle` sockets are idle connections, which its program need
    /// not look at.
    pub(crate) fn echo(&mut self, idle: usize, is_over: impl Fn() -> bool) {
        self.listen();
        let mut quiet = 0;
        self.run(|sockets, handles| {
            if is_over() {
                return Progress::Done;
            }
            let mut progress = Progress::None;
            while quiet < idle && sockets.get::<Socket<'_>>(handles[quiet]).state() == State::Established {
                quiet += 1;
            }
            for handle in &handles[quiet..] {
                let socket = sockets.get_mut::<Socket<'_>>(*handle);
                match socket.state() {
                    State::Established | State::CloseWait if socket.can_recv() => {
                        let mut buffer = [0; 64];
                        let read = socket.recv_slice(&mut buffer).expect("it is open");
                        socket.send_slice(&buffer[..read]).expect("there is room for what came");
                        progress = Progress::Some;
                    }
                    State::CloseWait => {
                        socket.close();
                        progress = Progress::Some;
                    }
                    State::Closed => {
                        socket.listen(PORT).expect("it is closed");
                        progress = Progress::Some;
                    }
                    _ => {}
                }
            }
            progress
        });
    }
}

fn now() -> Instant {
    Instant::from_micros(now_us())
}

/// A device of theirs over a link of ours.
struct Wire {
    link: Box<dyn Link>,
    device: Device,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl phy::Device for Wire {
    type RxToken<'a> = Arrival<'a>;
    type TxToken<'a> = Departure<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Arrival<'_>, Departure<'_>)> {
        let Wire { link, device, input, output } = self;
        let Received::Packet(arrived) = link.receive(OurInstant::ZERO, input) else { return None };
        let departure = Departure { link: &mut **link, device: *device, output, segment_bytes: None };
        Some((Arrival(&input[..arrived.bytes]), departure))
    }

    fn transmit(&mut self, _: Instant) -> Option<Departure<'_>> {
        let Wire { link, device, output, .. } = self;
        Some(Departure { link: &mut **link, device: *device, output, segment_bytes: None })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = 1500;
        if self.device == Device::Offload {
            capabilities.checksum.tcp = Checksum::None;
            capabilities.segmentation.tcpv4 = std::num::NonZero::new(65_535);
        }
        capabilities
    }
}

struct Arrival<'a>(&'a [u8]);

impl phy::RxToken for Arrival<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

struct Departure<'a> {
    link: &'a mut dyn Link,
    device: Device,
    output: &'a mut Vec<u8>,
    segment_bytes: Option<NonZeroU16>,
}

impl phy::TxToken for Departure<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        if self.output.len() < len {
            self.output.resize(len, 0);
        }
        let packet = &mut self.output[..len];
        let written = write(packet);
        if self.device == Device::Offload {
            leave_checksum(packet);
        }
        let transmit = Transmit {
            to: NextHop::Link,
            class: QueueClass::Data,
            segment_bytes: self.segment_bytes.map(NonZeroU16::get),
            id: 0,
        };
        self.link.transmit(OurInstant::ZERO, &transmit, packet);
        written
    }

    fn set_meta(&mut self, meta: PacketMeta) {
        self.segment_bytes = meta.segmentation_offload_size;
    }
}

/// Leaves a checksum for the device to finish; it begins with the pseudo-header's checksum.
fn leave_checksum(packet: &mut [u8]) {
    if packet[9] == 6 {
        let address = |at: usize| IpAddr::from([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]]);
        let sum = Sum::pseudo_header(address(12), address(16), 6, packet.len() as u32 - 20).fold();
        packet[36..38].copy_from_slice(&sum.to_be_bytes());
    }
}
