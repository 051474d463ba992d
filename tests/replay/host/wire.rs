//! Devices and sockets in a network namespace of their own. It has a name only until they are open, so that nothing is
//! left behind, whatever ends the process. Without rights for it, nothing is sent.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::{Mutex, OnceLock};

use hopwise_core::Instant;
use hopwise_core::ip::Prefix;
use hopwise_host::routing::{ControlSocket, InterfaceWatch};
use hopwise_host::{Link, Namespace, Raw, RawConfig, Received, TapConfig, TapDevice, netlink};

const DEVICE: &str = "radio";
const PORT: u16 = 654;
const MTU: u16 = 65_000;
/// The longest packet of IP, without a jumbo payload.
const LONGEST: usize = 65_535;
/// The header of UDP.
const UDP: usize = 8;
/// Room for a frame with everything before it.
const ROOM: usize = 1 << 17;

struct Wire {
    tap: TapDevice,
    raw: Raw,
    watch: InterfaceWatch,
    control: ControlSocket,
    sender: UdpSocket,
    buffer: Vec<u8>,
    now: Instant,
}

fn wire() -> &'static Mutex<Option<Wire>> {
    static WIRE: OnceLock<Mutex<Option<Wire>>> = OnceLock::new();
    WIRE.get_or_init(|| {
        let made = Wire::open();
        if let Err(problem) = &made {
            println!("frames and datagrams are not sent for real: {problem}");
        }
        Mutex::new(made.ok())
    })
}

impl Wire {
    fn open() -> Result<Wire, String> {
        let namespace = Namespace::create(&format!("hopwise-fuzz-{}", std::process::id()));
        let namespace = namespace.map_err(|error| error.to_string())?;
        namespace.run(Wire::inside).map_err(|error| error.to_string())?
    }

    fn inside() -> Result<Wire, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        netlink::set_up("lo", true).map_err(|error| text(&error))?;
        let addresses = Vec::new();
        let name = DEVICE.to_owned();
        let tap = TapConfig { name, mtu: MTU, mac: [2, 0, 0, 0, 0, 1], queue_packets: 64, addresses };
        let tap = TapDevice::open(&tap).map_err(|error| text(&error))?;
        let ours = [IpAddr::from([10, 0, 0, 1]), IpAddr::from([0xfd, 0, 0, 0, 0, 0, 0, 1])];
        let addresses = ours.iter().filter_map(|address| Prefix::new(*address, 24).ok()).collect();
        let raw = RawConfig { device: DEVICE.to_owned(), addresses, offload: true };
        let raw = Raw::open(&raw).map_err(|error| text(&error))?;
        let watch = InterfaceWatch::open(DEVICE).map_err(|error| text(&error))?;
        let control = ControlSocket::open("lo", PORT, Ipv4Addr::BROADCAST).map_err(|error| text(&error))?;
        let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| text(&error))?;
        sender.set_nonblocking(true).map_err(|error| text(&error))?;
        let buffer = vec![0; ROOM];
        Ok(Wire { tap, raw, watch, control, sender, buffer, now: Instant::from_millis(1) })
    }

    fn receive(&mut self, frame: &[u8]) {
        // The kernel refuses a frame that is too short or too long.
        let _ = self.tap.write(frame);
        self.now += std::time::Duration::from_millis(1);
        loop {
            match self.raw.receive(self.now, &mut self.buffer) {
                Received::Packet(arrived) => {
                    // Such a device also takes frames that are larger than its MTU.
                    assert!(arrived.bytes <= LONGEST && matches!(self.buffer[0] >> 4, 4 | 6));
                }
                Received::Dropped => {}
                Received::Nothing => break,
                Received::Gone => panic!("the device is gone"),
            }
        }
        self.raw.flush(self.now);
        if self.raw.poll_timeout().is_some_and(|due| due <= self.now) {
            self.raw.handle_timeout(self.now);
        }
        self.raw.drain_events(&mut |_| {});
        self.watch.look(&mut |_| {});
        while let Ok(Some(_)) = self.tap.read(&mut self.buffer) {}
    }

    fn hear(&mut self, message: &[u8]) {
        // A message that is too long is refused.
        let _ = self.sender.send_to(message, (Ipv4Addr::LOCALHOST, PORT));
        while let Received::Packet(arrived) = self.control.receive(self.now, &mut self.buffer) {
            let packet = &self.buffer[..arrived.bytes];
            let ip = hopwise_core::wire::IpView::parse(packet).expect("a packet of ours");
            let udp = hopwise_core::wire::UdpView::parse(ip.src, ip.dst, ip.payload).expect("a datagram");
            assert_eq!((udp.dst_port, udp.payload.len()), (PORT, ip.payload.len() - UDP));
        }
    }
}

pub(super) fn frame(frame: &[u8]) {
    if let Some(wire) = &mut *wire().lock().expect("no other input broke it") {
        wire.receive(frame);
    }
}

pub(super) fn datagram(message: &[u8]) {
    if let Some(wire) = &mut *wire().lock().expect("no other input broke it") {
        wire.hear(message);
    }
}
