//! Whole transfers, checked by their SHA-256: clean, over IPv6, and under faults. `HOPWISE_LONG=1` makes the long
//! ones ten times as long.

use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::thread::JoinHandle;
use std::time::Duration;

use hopwise_core::endpoint::ListenOptions;
use hopwise_core::impairment::Impairment;
use hopwise_core::tcp::TcpConfig;
use hopwise_host::{Fault, Link, TunFast};
use tokio::io::AsyncWriteExt;

use crate::namespace::Namespace;
use crate::stream::{Hash, Stream, read_all, receive_all, send_all, write_all};
use crate::world::{KERNELS, KERNELS_V6, OURS, OURS_V6, World, is_long, tun_config, within_patience};

const BYTES: u64 = 20_000_000;

/// Reads one connection to the kernel to its end.
fn kernel_reader(world: &World, at: IpAddr) -> (SocketAddr, JoinHandle<io::Result<(u64, Hash)>>) {
    let (listener, address) = world.kernel_listener(at);
    let reader = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        read_all(&mut stream)
    });
    (address, reader)
}

fn we_send(world: &World, to: IpAddr, bytes: u64) {
    let (address, reader) = kernel_reader(world, to);
    let sent = within_patience(async {
        let mut stream = world.connect(address).await;
        let sent = send_all(&mut stream, 1, bytes).await.expect("the connection holds");
        stream.shutdown().await.expect("the connection holds");
        sent
    });
    let received = reader.join().expect("the reader ends").expect("the kernel reads");
    assert_eq!(received, (bytes, sent));
}

fn the_kernel_sends(world: &World, to: IpAddr, bytes: u64) {
    let listener = world.stack.listen(None, 80, ListenOptions::default()).expect("the port is free");
    let mut stream = world.kernel_connects((to, 80).into()).expect("we listen");
    let writer = std::thread::spawn(move || write_all(&mut stream, 2, bytes));
    let received = within_patience(async {
        let mut stream = listener.accept().await.expect("the stack lives");
        receive_all(&mut stream).await.expect("the connection holds")
    });
    let sent = writer.join().expect("the writer ends").expect("the kernel writes");
    assert_eq!(received, (bytes, sent));
}

#[test]
fn what_we_send_the_kernel_receives() {
    needs![];
    we_send(&World::new(), KERNELS, BYTES);
}

#[test]
fn what_the_kernel_sends_we_receive() {
    needs![];
    the_kernel_sends(&World::new(), OURS, BYTES);
}

/// Otherwise several of the kernel's connections lose segments there that we have promised to take.
#[test]
fn the_devices_queue_holds_what_a_window_promises() {
    needs![];
    let world = World::new();
    let shown = world.namespace.output(&["ip", "link", "show", "hop0"]);
    let shown = String::from_utf8_lossy(&shown.stdout);
    let packets = shown.split_once(" qlen ").and_then(|(_, rest)| rest.split_whitespace().next());
    let packets: u32 = packets.and_then(|packets| packets.parse().ok()).expect("a queue has a length");
    assert!(packets * 1460 >= TcpConfig::modern().recv_buffer.max, "{packets} packets");
}

#[test]
fn ipv6_carries_both_directions() {
    needs![];
    let world = World::new();
    we_send(&world, KERNELS_V6, BYTES);
    the_kernel_sends(&world, OURS_V6, BYTES);
}

#[test]
fn bundles_carry_both_directions_and_both_families() {
    needs![];
    let world = World::fast();
    world.namespace.sysctl("ipv4/tcp_ecn", "1");
    for (ours, kernels) in [(OURS, KERNELS), (OURS_V6, KERNELS_V6)] {
        we_send(&world, kernels, 5 * BYTES);
        the_kernel_sends(&world, ours, 5 * BYTES);
    }
    let counters = &world.stack.counters()[0];
    assert!(counters.drops.is_empty(), "{counters:?}");
    for traffic in [counters.sent, counters.received] {
        assert!(traffic.bytes / traffic.packets > 1500, "no bundles: {counters:?}");
    }
}

/// A file whose content is a stream by a seed, and its hash.
fn file_of(seed: u64, bytes: u64) -> (File, Hash) {
    let path = std::env::temp_dir().join(format!("hoplive-{}-file", std::process::id()));
    let file = File::options().create(true).truncate(true).read(true).write(true).open(&path);
    let mut file = file.expect("it can be made");
    std::fs::remove_file(&path).expect("it was made a moment ago");
    let hash = write_all(&mut file, seed, bytes).expect("there is room");
    (file, hash)
}

#[test]
fn a_file_arrives_from_its_offset_to_its_end() {
    needs![];
    for world in [World::new(), World::fast()] {
        let (address, reader) = kernel_reader(&world, KERNELS);
        let (file, hash) = file_of(1, BYTES);
        within_patience(async {
            let mut stream = world.connect(address).await;
            assert_eq!(stream.send_file(&file, 0, 1_000_000).await.expect("it holds"), 1_000_000);
            // More than there is.
            assert_eq!(
                stream.send_file(&file, 1_000_000, u64::MAX).await.expect("it holds"),
                BYTES - 1_000_000
            );
            assert_eq!(
                stream.send_file(&file, u64::MAX, 1).await.map_err(|error| error.kind()),
                Err(io::ErrorKind::InvalidInput)
            );
            assert_eq!(stream.send_file(&file, BYTES, 1).await.expect("it holds"), 0);
            stream.shutdown().await.expect("it holds");
        });
        let received = reader.join().expect("the reader ends").expect("the kernel reads");
        assert_eq!(received, (BYTES, hash));
    }
}

/// A thread reads what is not in memory, so that the disk stops no other task.
#[test]
fn a_file_that_is_on_disk_alone_arrives() {
    needs![];
    let world = World::new();
    let (address, reader) = kernel_reader(&world, KERNELS);
    let (file, hash) = file_of(2, BYTES);
    file.sync_all().expect("it can be written");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("it is a file");
    within_patience(async {
        let (_reads, mut stream) = world.connect(address).await.into_split();
        assert_eq!(stream.send_file(&file, 0, BYTES).await.expect("it holds"), BYTES);
        stream.shutdown().await.expect("it holds");
    });
    assert_eq!(reader.join().expect("the reader ends").expect("the kernel reads"), (BYTES, hash));
}

#[test]
fn bytes_that_a_program_puts_into_the_send_buffer_arrive() {
    needs![];
    for world in [World::new(), World::fast()] {
        let (address, reader) = kernel_reader(&world, KERNELS);
        let sent = within_patience(async {
            let (_reads, mut stream) = world.connect(address).await.into_split();
            let mut data = Stream::new(3, BYTES);
            // Sizes that fill packets and sizes that do not, and between them the other kinds of writes.
            for most in [1, 1000, 70_000, 300_000].into_iter().cycle() {
                if stream.write_with(most, |room| Ok(data.next(room))).await.expect("it holds") == 0 {
                    break;
                }
            }
            let refused = stream.write_with(10, |_| Err(io::ErrorKind::InvalidData.into())).await;
            assert_eq!(refused.map_err(|error| error.kind()), Err(io::ErrorKind::InvalidData));
            stream.shutdown().await.expect("it holds");
            let at_once = stream.try_write_with(10, |_| panic!("there is no room after the end"));
            let late = stream.write_with(10, |_| panic!("nor later")).await;
            assert!(at_once.is_err() && late.is_err());
            data.hash()
        });
        let received = reader.join().expect("the reader ends").expect("the kernel reads");
        assert_eq!(received, (BYTES, sent));
    }
}

#[test]
fn a_device_that_outlives_its_fast_user_is_plain_again() {
    needs!["ethtool"];
    let namespace = Namespace::new();
    namespace.ip(&["tuntap", "add", "hop0", "mode", "tun"]);
    let offloads = || {
        let shown = namespace.output(&["ethtool", "-k", "hop0"]);
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        shown.lines().any(|line| line.trim() == "tx-tcp-segmentation: on")
    };
    let fast = namespace.run(|| TunFast::open(&tun_config())).expect("root may open a TUN device");
    assert!(offloads());
    drop(fast);
    assert!(!offloads());
}

/// One packet in a hundred is lost and one in a hundred late, with 2 ms in each direction.
fn lossy(link: Box<dyn Link>) -> Box<dyn Link> {
    let faults = Impairment {
        loss_ppm: 10_000,
        reorder_ppm: 10_000,
        reorder_by: Duration::from_millis(1),
        delay: Duration::from_millis(2),
        ..Impairment::NONE
    };
    Box::new(Fault::wrap(link, faults, faults, 42).expect("the settings are sound"))
}

fn lossy_bytes() -> u64 {
    if is_long() { 1_000_000_000 } else { 100_000_000 }
}

#[test]
fn a_large_transfer_of_ours_survives_loss_and_reordering() {
    needs![];
    we_send(&World::with(|_| {}, lossy), KERNELS, lossy_bytes());
}

#[test]
fn a_large_transfer_of_the_kernels_survives_loss_and_reordering() {
    needs![];
    the_kernel_sends(&World::with(|_| {}, lossy), OURS, lossy_bytes());
}

#[test]
fn bits_that_turn_over_are_noticed() {
    needs![];
    let spoils = |link| -> Box<dyn Link> {
        let faults = Impairment { corrupt_ppm: 5_000, duplicate_ppm: 5_000, ..Impairment::NONE };
        Box::new(Fault::wrap(link, faults, faults, 7).expect("the settings are sound"))
    };
    let world = World::with(|_| {}, spoils);
    we_send(&world, KERNELS, BYTES);
    the_kernel_sends(&world, OURS, BYTES);
}
