//! Changes of the path during a transfer: the device goes down and comes back, vanishes, and carries less.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hopwise_core::LinkId;
use hopwise_core::NextHop;
use hopwise_core::endpoint::{ListenOptions, Route};
use hopwise_host::{LinkDrop, Tun};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::namespace::Namespace;
use crate::stream::{Hash, Stream, read_all, send_all, write_all};
use crate::world::{KERNELS, OURS, OURS_V6, World, tun_config, until, within_patience};

const BYTES: u64 = 50_000_000;

#[test]
fn a_device_that_goes_down_and_comes_back_interrupts_and_does_not_end_our_sending() {
    needs![];
    let world = World::new();
    let (listener, address) = world.kernel_listener(KERNELS);
    let reader = std::thread::spawn(move || read_all(&mut listener.accept()?.0));
    let sent = within_patience(async {
        let mut stream = world.connect(address).await;
        let id = stream.id();
        let sending = async {
            let sent = send_all(&mut stream, 3, BYTES).await.expect("the connection holds");
            stream.shutdown().await.expect("the connection holds");
            sent
        };
        let interrupting = async {
            until(|| world.stack.info(id).is_some_and(|info| info.stats.bytes_acked > 1_000_000)).await;
            world.namespace.ip(&["link", "set", "hop0", "down"]);
            until(|| world.stack.counters()[0].drops.contains_key(&LinkDrop::Down)).await;
            until(|| world.stack.info(id).is_none_or(|info| info.stats.timeouts > 0)).await;
            world.namespace.ip(&["link", "set", "hop0", "up"]);
        };
        tokio::join!(sending, interrupting).0
    });
    assert_eq!(reader.join().expect("the reader ends").expect("the kernel reads"), (BYTES, sent));
}

/// The kernel takes IPv6 addresses from a device that goes down, unless it is configured to keep them.
#[test]
fn a_device_that_goes_down_and_comes_back_is_spoken_to_by_ipv6_again() {
    needs![];
    let world = World::new();
    let _listener = world.stack.listen(None, 80, ListenOptions::default()).expect("the port is free");
    world.namespace.ip(&["link", "set", "hop0", "down"]);
    world.namespace.ip(&["link", "set", "hop0", "up"]);
    world.kernel_connects((OURS_V6, 80).into()).expect("the kernel has its address and a route");
}

#[test]
fn a_device_that_goes_down_and_comes_back_interrupts_and_does_not_end_the_kernels_sending() {
    needs![];
    let world = World::new();
    let listener = world.stack.listen(None, 80, ListenOptions::default()).expect("the port is free");
    let mut stream = world.kernel_connects((OURS, 80).into()).expect("we listen");
    let writer = std::thread::spawn(move || write_all(&mut stream, 4, BYTES));
    let received = within_patience(async {
        let mut stream = listener.accept().await.expect("the stack lives");
        let mut before = vec![0; 1_000_000];
        stream.read_exact(&mut before).await.expect("the connection holds");
        world.namespace.ip(&["link", "set", "hop0", "down"]);
        // Packets on their way are read; after them nothing comes any more.
        let mut rest = vec![0; 1 << 16];
        let silence = Duration::from_millis(100);
        while let Ok(read) = tokio::time::timeout(silence, stream.read(&mut rest)).await {
            before.extend_from_slice(&rest[..read.expect("the connection holds")]);
        }
        world.namespace.ip(&["link", "set", "hop0", "up"]);
        stream.read_to_end(&mut before).await.expect("the connection holds");
        before
    });
    writer.join().expect("the writer ends").expect("the kernel writes");
    let mut expected = vec![0; BYTES as usize];
    Stream::new(4, BYTES).next(&mut expected);
    assert!(received == expected, "{} bytes came", received.len());
}

#[test]
fn a_device_that_vanishes_is_told_of_and_the_stack_still_stops() {
    needs![];
    let world = World::new();
    let (listener, address) = world.kernel_listener(KERNELS);
    let mut stream = within_patience(world.connect(address));
    world.namespace.ip(&["link", "del", "hop0"]);
    within_patience(async {
        until(|| world.stack.counters().iter().any(|link| link.is_gone)).await;
        stream.write_all(b"nobody hears this").await.expect("the buffer takes it");
        until(|| world.stack.counters()[0].drops.contains_key(&LinkDrop::Gone)).await;
    });
    let stopped = world.stack.stop(Duration::from_millis(50));
    assert_eq!(stopped.reset, 1);
    drop((listener, stream));
}

#[test]
fn a_second_user_of_a_device_is_refused() {
    needs![];
    let world = World::new();
    let second = world.namespace.run(|| Tun::open(&tun_config()));
    let said = second.map(drop).expect_err("one is enough").to_string();
    assert!(said.contains("another process has it open"), "{said}");
}

/// A network beyond the kernel, whose wire comes to carry less.
struct Beyond {
    to: &'static str,
    kernels: &'static str,
    far: &'static str,
    ours: &'static str,
    forwarding: &'static str,
    mtu: u16,
}

const BEYOND: [Beyond; 2] = [
    Beyond {
        to: "10.8.0.0/24",
        kernels: "10.8.0.1",
        far: "10.8.0.2",
        ours: "10.7.0.0/24",
        forwarding: "ipv4/ip_forward",
        mtu: 1000,
    },
    Beyond {
        to: "fd08::/64",
        kernels: "fd08::1",
        far: "fd08::2",
        ours: "fd07::/64",
        forwarding: "ipv6/conf/all/forwarding",
        // Below 1280 it is no IPv6 link any more.
        mtu: 1300,
    },
];

impl Beyond {
    /// The address of a listener over there, which reads each connection to its end.
    fn reader(&self, here: &Namespace, far: &Namespace) -> (SocketAddr, JoinHandle<io::Result<(u64, Hash)>>) {
        here.sysctl(self.forwarding, "1");
        let (_, bits) = self.to.split_once('/').expect("a network");
        for (namespace, address) in [(here, self.kernels), (far, self.far)] {
            namespace.ip(&["addr", "add", &format!("{address}/{bits}"), "dev", "wire", "nodad"]);
        }
        far.ip(&["route", "add", self.ours, "via", self.kernels]);
        let at: IpAddr = self.far.parse().expect("an address");
        let listener = far.run(|| TcpListener::bind((at, 0))).expect("the address is there");
        let address = listener.local_addr().expect("it is bound");
        (address, std::thread::spawn(move || read_all(&mut listener.accept()?.0)))
    }

    fn shrinks(&self) {
        let far = Namespace::new();
        let route = Route { to: self.to.parse().expect("a prefix"), link: LinkId(0), via: NextHop::Link };
        let world = World::with(|config| config.endpoint.routes.push(route), |link| link);
        world.namespace.join(&far, "wire", "10.9.0.1/24", "10.9.0.2/24");
        let (address, reader) = self.reader(&world.namespace, &far);
        let is_shrunk = AtomicBool::new(false);
        let sent = within_patience(async {
            let mut stream = world.connect(address).await;
            let id = stream.id();
            let sending = async {
                let sent = send_all(&mut stream, 5, BYTES).await.expect("the connection holds");
                let info = stream.info().expect("it is open");
                assert!(is_shrunk.load(Ordering::Relaxed));
                stream.shutdown().await.expect("the connection holds");
                (sent, info.path_mtu)
            };
            let shrinking = async {
                until(|| world.stack.info(id).is_some_and(|info| info.stats.bytes_acked > 1_000_000)).await;
                assert_eq!(world.stack.info(id).map(|info| info.path_mtu), Some(1500));
                world.namespace.ip(&["link", "set", "wire", "mtu", &self.mtu.to_string()]);
                is_shrunk.store(true, Ordering::Relaxed);
            };
            tokio::join!(sending, shrinking).0
        });
        assert_eq!(sent.1, self.mtu, "{}", self.to);
        assert_eq!(reader.join().expect("the reader ends").expect("the far kernel reads"), (BYTES, sent.0));
    }
}

#[test]
fn a_smaller_mtu_further_on_is_found_and_kept_to() {
    needs![];
    BEYOND.iter().for_each(Beyond::shrinks);
}
