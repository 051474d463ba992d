//! Input that means no good: packets that are no packets, and a flood of SYNs from addresses that are made up.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hopwise_core::endpoint::ListenOptions;
use hopwise_core::trace::DropReason;
use tokio::io::AsyncReadExt;

use crate::flood;
use crate::namespace::{Namespace, can_run};
use crate::world::{KERNELS, OURS, PATIENCE, World, until, within_patience};

/// A device is written to as a neighbour would: whole frames, whatever is in them.
const SEND_JUNK: &str = r"
import random, socket, sys
random.seed(int(sys.argv[2]))
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
def frame(protocol, data):
    try:
        s.sendto(data, (sys.argv[1], protocol))
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
";

#[test]
fn junk_on_the_device_is_counted_and_hurts_nobody() {
    if !can_run("junk_on_the_device_is_counted_and_hurts_nobody", &["python3"]) {
        return;
    }
    for world in [World::new(), World::fast()] {
        let (listener, address) = world.kernel_listener(KERNELS);
        let mut stream = within_patience(world.connect(address));
        let (kernel, _) = listener.accept().expect("we connected");
        let done = world.namespace.output(&["python3", "-c", SEND_JUNK, "hop0", "1"]);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let echo = std::thread::spawn(move || std::io::Write::write_all(&mut &kernel, b"still here"));
        within_patience(async {
            let mut said = [0; 10];
            stream.read_exact(&mut said).await.expect("the connection holds");
            assert_eq!(&said, b"still here");
            let dropped = || {
                let by_link: u64 = world.stack.counters()[0].drops.values().sum();
                let by_us = |endpoint: &hopwise_core::Endpoint| -> u64 {
                    DropReason::ALL.iter().map(|reason| endpoint.drops(*reason)).sum()
                };
                by_link + world.stack.with(|_, endpoint| by_us(endpoint))
            };
            // What the kernel would not send, it told its program; nearly all the rest makes no sense.
            until(|| dropped() > 1000).await;
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

/// Reads until the transfer has brought `bytes` more and the flood `syns`; whichever is starved never gets there.
async fn outlives(stream: &mut hopwise_host::TcpStream, bytes: usize, sent: &AtomicU64, syns: u64) {
    let mut buffer = vec![0; 1 << 16];
    let mut arrived = 0;
    while arrived < bytes || sent.load(Ordering::Relaxed) < syns {
        arrived += stream.read(&mut buffer).await.expect("the connection holds");
    }
}

#[test]
fn a_flood_of_syns_takes_neither_memory_nor_the_transfer() {
    if !can_run("a_flood_of_syns_takes_neither_memory_nor_the_transfer", &[]) {
        return;
    }
    let world = World::new();
    // Answers go nowhere, as they would in the real world.
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
        // Whoever means it is answered at its second try, and this is waited for here.
        let honest = world.namespace.spawn(|| std::net::TcpStream::connect((OURS, 80)));
        outlives(&mut stream, 50_000_000, &sent, 2 * PER_SECOND).await;
        until(|| honest.is_finished()).await;
        drop(running);
        honest.join().expect("it only connects").expect("among 100,000 others a second, too");
        let unanswered = world.stack.with(|_, endpoint| endpoint.drops(DropReason::SynRateLimited));
        assert!(unanswered > 0, "not each of {} SYNs is answered", sent.load(Ordering::Relaxed));
        // `scripts/bench host` says how fast it is meanwhile.
        let grown = resident_bytes().saturating_sub(memory_before);
        assert!(grown < 32 << 20, "{grown} bytes more");
        stop_writing.store(true, Ordering::Relaxed);
        drop(stream);
    });
    writer.join().expect("the writer ends");
}
