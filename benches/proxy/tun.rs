//! Bulk data from kernel to kernel through a router between two TUN devices.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use hopwise_agents::StandardAgents;
use hopwise_core::{Instant, LinkEvent, LinkId, Machine, NextHop, Payload, QueueClass, Rx, Transmit};
use hopwise_host::netlink::{Detour, DetourConfig};
use hopwise_host::{Driver, Iteration, Link, Tun, TunConfig};
use hopwise_mesh::{Proxy, ProxyConfig};

use crate::namespace::{Namespace, obstacle};
use crate::row::{Better, Row, in_turn};
use crate::usage::thread_seconds;

const MOBILE: &str = "10.9.0.2";
const MEASURED: Duration = Duration::from_secs(1);

pub(crate) fn rows() -> Vec<Row> {
    if let Some(reason) = obstacle() {
        eprintln!("  skipped: {reason}");
        return Vec::new();
    }
    let path = Path::new();
    let of = |agent: &str| {
        let config = ProxyConfig::new(LinkId(0), LinkId(1), agent);
        Proxy::new(config, Box::new(StandardAgents::default())).expect("an agent that there is")
    };
    let mut rows = Vec::new();
    for agent in ["none", "ack-hold"] {
        let (ours, theirs) = in_turn(|| path.through(of(agent)), || path.through(Bare::default()));
        let name = format!("bulk over TUN with {agent}");
        rows.push(
            Row::beside(name, "Mbit/CPU s", Better::More, ours, ("bare relay", theirs)).meant_to_be(0.9),
        );
    }
    rows
}

/// Forwards packets unread.
#[derive(Debug, Default)]
struct Bare {
    queues: [VecDeque<Vec<u8>>; 2],
    spare: Vec<Vec<u8>>,
}

impl Machine for Bare {
    fn handle_packet(&mut self, _: Instant, rx: &Rx<'_>) {
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(rx.packet);
        self.queues[usize::from(1 - rx.link.0)].push_back(copy);
    }

    fn handle_link_event(&mut self, _: Instant, _: LinkId, _: &LinkEvent<'_>) {}

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant, link: LinkId, _: Payload, out: &mut Vec<u8>) -> Option<Transmit> {
        let mut packet = self.queues[usize::from(link.0)].pop_front()?;
        std::mem::swap(out, &mut packet);
        self.spare.push(packet);
        Some(Transmit { to: NextHop::Link, class: QueueClass::Data, segment_bytes: None, id: 0 })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

struct Path {
    fixed: Namespace,
    router: Namespace,
    mobile: Namespace,
}

impl Path {
    fn new() -> Path {
        let (fixed, router, mobile) = (Namespace::new(), Namespace::new(), Namespace::new());
        fixed.join(&router, "wire", "10.8.0.1/24", "10.8.0.2/24");
        router.join(&mobile, "radio", "10.9.0.1/24", "10.9.0.2/24");
        fixed.ip(&["route", "add", "default", "via", "10.8.0.2"]);
        mobile.ip(&["route", "add", "default", "via", "10.9.0.1"]);
        router.sysctl("ipv4/ip_forward", "1");
        Path { fixed, router, mobile }
    }

    /// The Mbit that the driving thread carries in a second of CPU time.
    fn through(&self, machine: impl Machine + Send + 'static) -> f64 {
        let is_over = Arc::new(AtomicBool::new(false));
        let (ready, waiting) = channel();
        let ends = Arc::clone(&is_over);
        let driving = self.router.spawn(move || {
            let tun = |name| {
                // Without an address the kernel filters sources strictly (as in the daemon).
                let kernel_addresses = vec!["192.0.0.8/32".parse().expect("an address")];
                let config = TunConfig { kernel_addresses, ..TunConfig::new(name) };
                Box::new(Tun::open(&config).expect("a device")) as Box<dyn Link>
            };
            let driver = Driver::new(machine, vec![tun("hopf"), tun("hopm")], Vec::new());
            let mut driver = driver.expect("a driver");
            let _detour = detour();
            ready.send(driver.poller()).expect("somebody waits");
            let mut links = Vec::new();
            let before = thread_seconds();
            while !ends.load(Ordering::Relaxed) {
                driver.wait(&mut links).expect("it waits");
                while driver.iterate(&links) == Iteration::MoreToRead {}
            }
            thread_seconds() - before
        });
        let poller = waiting.recv().expect("it drives");
        let carried = self.carried();
        is_over.store(true, Ordering::Relaxed);
        poller.wake();
        let seconds = driving.join().expect("no panic");
        carried as f64 * 8.0 / seconds / 1e6
    }

    /// The number of bytes that arrive.
    fn carried(&self) -> u64 {
        let listener = self.mobile.run(|| TcpListener::bind((MOBILE, 0))).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let mut stream = self.fixed.run(|| TcpStream::connect((MOBILE, port))).expect("it connects");
        let (mut reader, _) = listener.accept().expect("it is accepted");
        let received = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&received);
        let reading = thread::spawn(move || {
            let mut buffer = vec![0; 1 << 18];
            while let Ok(bytes @ 1..) = reader.read(&mut buffer) {
                count.fetch_add(bytes as u64, Ordering::Relaxed);
            }
        });
        let writer = stream.try_clone().expect("a handle");
        let writing = thread::spawn(move || {
            let chunk = vec![7; 1 << 18];
            while stream.write_all(&chunk).is_ok() {}
        });
        // This channel has no sender: a thread that only parks may be woken by an earlier wait.
        let (_silent, never) = channel::<()>();
        let _ = never.recv_timeout(MEASURED);
        let _ = writer.shutdown(std::net::Shutdown::Both);
        writing.join().expect("no panic");
        reading.join().expect("no panic");
        received.load(Ordering::Relaxed)
    }
}

fn detour() -> Detour {
    for device in ["hopf", "hopm"] {
        let path = format!("/proc/sys/net/ipv4/conf/{device}/rp_filter");
        std::fs::write(path, "2").expect("a switch");
    }
    let config = DetourConfig {
        wire: "wire".to_owned(),
        radio: "radio".to_owned(),
        networks: vec!["10.9.0.0/24".parse().expect("a network")],
        fixed: "hopf".to_owned(),
        mobile: "hopm".to_owned(),
        table: 7100,
    };
    Detour::open(&config).expect("a detour")
}
