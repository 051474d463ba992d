//! Hostile input: invalid packets, and a flood of SYNs from made-up addresses.

use std::collections::BTreeSet;
use std::io::Read;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hopwise_core::endpoint::ListenOptions;
use hopwise_core::trace::{DropReason, TraceEvent, TraceKind};
use hopwise_host::{Direction, LinkCounters, LinkDrop, Observer, SeenPacket, StackConfig, Tun};
use parking_lot::Mutex;
use tokio::io::AsyncReadExt;

use crate::flood;
use crate::namespace::Namespace;
use crate::world::{KERNELS, OURS, PATIENCE, World, tun_config, until, within_patience};

/// Writes to a device as a neighbour would: whole frames with any contents.
const SEND_JUNK: &str = r"
import random, socket, sys
random.seed(int(sys.argv[2]))
sent = 0
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
def frame(protocol, data):
    global sent
    try:
        s.sendto(data, (sys.argv[1], protocol))
        sent += 1
    except OSError:
        pass
head = bytes.fromhex('450000280001400040060000') + socket.inet_aton('10.7.0.2') + socket.inet_aton('10.7.0.1')
for i in range(5000):
    size = random.choice([0, 1, 19, 20, 21, 39, 40, 60, 576, 1499, 1500])
    junk = random.randbytes(size)
    frame(0x0800, junk)
    frame(0x86dd, junk)
    frame(0x88b5, junk)
    broken = bytearray(head + random.randbytes(random.randrange(60)))
    for _ in range(random.randrange(4)):
        broken[random.randrange(len(broken))] ^= 1 << random.randrange(8)
    frame(0x0800, bytes(broken))
print(sent)
";

/// The packets that came, by their numbers in the trace.
#[derive(Debug, Default)]
struct Seen {
    packets: u64,
    /// Packets that no kernel writes.
    junk: BTreeSet<u64>,
    dropped: Vec<u64>,
}

struct Watcher(Arc<Mutex<Seen>>);

impl Observer for Watcher {
    fn on_packet(&mut self, seen: &SeenPacket<'_>) {
        let mut all = self.0.lock();
        if seen.direction == Direction::In {
            all.packets += 1;
            if !is_kernels(seen.packet) {
                all.junk.insert(seen.id);
            }
        }
    }

    fn on_trace(&mut self, event: &TraceEvent) {
        if matches!(event.kind, TraceKind::Dropped(_)) {
            self.0.lock().dropped.push(event.packet);
        }
    }
}

/// Returns whether its header is sound: IPv4's checksum holds, IPv6's length is the packet's.
fn is_kernels(packet: &[u8]) -> bool {
    let word = |at: usize| packet.get(at..at + 2).map_or(0, |two| u16::from_be_bytes([two[0], two[1]]));
    if word(0) >> 12 == 6 {
        return usize::from(word(4)) + 40 == packet.len();
    }
    let sum: u32 = (0..20).step_by(2).map(|at| u32::from(word(at))).sum();
    word(0) >> 8 == 0x45 && sum.is_multiple_of(0xffff)
}

/// The packets that the kernel has handed over at the device, and the packets that its full queue has dropped.
fn handed_over(world: &World) -> (u64, u64) {
    let told = world.namespace.output(&["ip", "-s", "-j", "link", "show", "hop0"]).stdout;
    let told: serde_json::Value = serde_json::from_slice(&told).expect("iproute2 writes JSON");
    let tx = &told[0]["stats64"]["tx"];
    let count = |what: &str| tx[what].as_u64().expect("a count");
    (count("packets"), count("dropped"))
}

/// Each packet that the kernel handed over was refused by the link or came to the endpoint. There each junk packet was
/// dropped once, and each drop stands in a counter.
async fn each_is_counted(world: &World, seen: &Mutex<Seen>, sent: u64) {
    let mut link = LinkCounters::default();
    until(|| {
        let (passed, kept_back) = handed_over(world);
        link = world.stack.counters().remove(0);
        let dropped: u64 = world.stack.with(|_, endpoint| {
            assert_eq!(endpoint.forgotten_events(), 0);
            DropReason::ALL.iter().map(|reason| endpoint.drops(*reason)).sum()
        });
        let seen = seen.lock();
        passed + kept_back >= sent
            && link.received.packets + link.drops.values().sum::<u64>() == passed
            && (seen.packets, seen.dropped.len() as u64) == (link.received.packets, dropped)
    })
    .await;
    assert!(link.drops.keys().all(|why| [LinkDrop::Truncated, LinkDrop::NotIp].contains(why)), "{link:?}");
    let seen = seen.lock();
    let mut taken = seen.junk.clone();
    let dropped = seen.dropped.iter().filter(|id| seen.junk.contains(id));
    let again: Vec<_> = dropped.filter(|id| !taken.remove(id)).collect();
    assert!(taken.is_empty() && again.is_empty(), "not dropped: {taken:?}; more than once: {again:?}");
    assert!(seen.junk.len() > 1000, "hardly any has come: {}", seen.junk.len());
}

#[test]
fn junk_on_the_device_is_counted_and_hurts_nobody() {
    needs!["python3"];
    for is_fast in [false, true] {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let observer = Box::new(Watcher(Arc::clone(&seen)));
        let watch = |config: &mut StackConfig| config.observers.push(observer);
        let world = if is_fast { World::fast_with(watch) } else { World::with(watch, |link| link) };
        let (listener, address) = world.kernel_listener(KERNELS);
        let mut stream = within_patience(world.connect(address));
        let (kernel, _) = listener.accept().expect("we connected");
        let done = world.namespace.output(&["python3", "-c", SEND_JUNK, "hop0", "1"]);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let sent = String::from_utf8_lossy(&done.stdout).trim().parse().expect("how many left");
        let echo = std::thread::spawn(move || std::io::Write::write_all(&mut &kernel, b"still here"));
        within_patience(async {
            let mut said = [0; 10];
            stream.read_exact(&mut said).await.expect("the connection holds");
            assert_eq!(&said, b"still here");
            each_is_counted(&world, &seen, sent).await;
        });
        echo.join().expect("the kernel's end ends").expect("the kernel writes");
    }
}

/// A flood from a namespace, which ends with its guard.
struct Running {
    thread: Option<std::thread::JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Running {
    fn start(namespace: &Namespace, sent: &Arc<AtomicU64>) -> Running {
        let stop = Arc::new(AtomicBool::new(false));
        let (sent, is_over) = (Arc::clone(sent), Arc::clone(&stop));
        let thread = namespace.spawn(move || flood::run(OURS, 80, PER_SECOND, &sent, &is_over));
        Running { thread: Some(thread), stop }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the flood ends");
        }
    }
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("it is always there");
    let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("the second field");
    pages * 4096
}

const PER_SECOND: u64 = 100_000;

/// Reads until the transfer has brought `bytes` more and the flood `syns`; a starved one never gets there.
async fn outlives(stream: &mut hopwise_host::TcpStream, bytes: usize, sent: &AtomicU64, syns: u64) {
    let mut buffer = vec![0; 1 << 16];
    let mut arrived = 0;
    while arrived < bytes || sent.load(Ordering::Relaxed) < syns {
        arrived += stream.read(&mut buffer).await.expect("the connection holds");
    }
}

/// Connects anew after a failure. A client without luck repeats its SYNs ever more seldom, and is forgotten in between.
fn connect_anew() -> TcpStream {
    let connect = || TcpStream::connect_timeout(&(OURS, 80).into(), Duration::from_secs(10));
    let mut connected = None;
    within_patience(until(|| {
        connected = connect().ok();
        connected.is_some()
    }));
    connected.expect("it has been waited for")
}

#[test]
fn a_flood_of_syns_takes_neither_memory_nor_the_transfer() {
    needs![];
    let namespace = Namespace::new();
    let tun = namespace.run(|| Tun::open(&tun_config())).expect("root may open a TUN device");
    let world = World::over(namespace, Box::new(tun), |_| {});
    // Answers are discarded, as they would be in the real world.
    world.namespace.ip(&["route", "add", "blackhole", "10.128.0.0/9"]);
    world.namespace.sysctl("ipv4/conf/all/rp_filter", "0");
    let _listener = world.stack.listen(None, 80, ListenOptions::default()).expect("the port is free");
    let (listener, address) = world.kernel_listener(KERNELS);
    let stop_writing = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&stop_writing);
    let writer = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("we connect");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout can be set");
        let data = vec![0; 1 << 16];
        while !is_over.load(Ordering::Relaxed) && std::io::Write::write_all(&mut stream, &data).is_ok() {}
        let _ = stream.read(&mut [0; 1]);
    });
    within_patience(async {
        let mut stream = world.connect(address).await;
        let (memory_before, sent) = (resident_bytes(), Arc::new(AtomicU64::new(0)));
        let running = Running::start(&world.namespace, &sent);
        // An honest client gets its answer at the second try, and this waits for it.
        let honest = world.namespace.spawn(connect_anew);
        outlives(&mut stream, 50_000_000, &sent, 2 * PER_SECOND).await;
        until(|| honest.is_finished()).await;
        drop(running);
        honest.join().expect("among 100,000 others a second, too");
        let unanswered = world.stack.with(|_, endpoint| endpoint.drops(DropReason::SynRateLimited));
        assert!(unanswered > 0, "not each of {} SYNs is answered", sent.load(Ordering::Relaxed));
        // `scripts/bench host` reports the speed meanwhile.
        let grown = resident_bytes().saturating_sub(memory_before);
        assert!(grown < 32 << 20, "{grown} bytes more");
        stop_writing.store(true, Ordering::Relaxed);
        drop(stream);
    });
    writer.join().expect("the writer ends");
}
