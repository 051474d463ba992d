//! The options of the handshake, with each one that the kernel can leave out, in both directions and over both versions
//! of IP. The switches under ipv4/ hold for IPv6, too.

use std::io::{Read, Write};
use std::net::IpAddr;

use hopwise_core::endpoint::ListenOptions;
use hopwise_core::tcp::Info;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::world::{KERNELS, KERNELS_V6, OURS, OURS_V6, World, within_patience};

/// A size beyond a window without scaling: agreed scales are then used.
const BYTES: usize = 300_000;

#[derive(Clone, Copy, Debug)]
struct Offered {
    timestamps: bool,
    sack: bool,
    ecn: bool,
    window_scaling: bool,
}

impl Offered {
    fn all() -> impl Iterator<Item = Offered> {
        (0..16_u32).map(|bits| Offered {
            timestamps: bits & 1 != 0,
            sack: bits & 2 != 0,
            ecn: bits & 4 != 0,
            window_scaling: bits & 8 != 0,
        })
    }

    fn tell(self, world: &World) {
        for (key, is_on) in [
            ("ipv4/tcp_timestamps", self.timestamps),
            ("ipv4/tcp_sack", self.sack),
            ("ipv4/tcp_ecn", self.ecn),
            ("ipv4/tcp_window_scaling", self.window_scaling),
        ] {
            world.namespace.sysctl(key, if is_on { "1" } else { "0" });
        }
    }

    fn check(self, info: &Info) {
        let agreed = (info.has_timestamps, info.has_sack, info.has_ecn, info.window_scales.is_some());
        assert_eq!(agreed, (self.timestamps, self.sack, self.ecn, self.window_scaling), "{self:?}");
    }
}

fn we_begin(world: &World, offered: Offered, to: IpAddr) {
    let (listener, address) = world.kernel_listener(to);
    let echo = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        let mut data = vec![0; BYTES];
        stream.read_exact(&mut data)?;
        stream.write_all(&data)
    });
    within_patience(async {
        let mut stream = world.connect(address).await;
        offered.check(&stream.info().expect("it is open"));
        stream.write_all(&[7; BYTES]).await.expect("the connection holds");
        let mut back = vec![0; BYTES];
        stream.read_exact(&mut back).await.expect("all of it comes back");
        assert!(back.iter().all(|byte| *byte == 7), "{to} {offered:?}");
    });
    echo.join().expect("the echo ends").expect("the kernel reads and writes");
}

fn the_kernel_begins(world: &World, offered: Offered, to: IpAddr) {
    let listener = world.stack.listen(Some(to), 7, ListenOptions::default()).expect("the port is free");
    let mut stream = world.kernel_connects((to, 7).into()).expect("we listen");
    let kernel = std::thread::spawn(move || {
        stream.write_all(&[9; BYTES])?;
        let mut back = vec![0; BYTES];
        stream.read_exact(&mut back).map(|()| back)
    });
    within_patience(async {
        let mut stream = listener.accept().await.expect("the stack lives");
        offered.check(&stream.info().expect("it is open"));
        let mut data = vec![0; BYTES];
        stream.read_exact(&mut data).await.expect("all of it comes");
        stream.write_all(&data).await.expect("the connection holds");
    });
    let back = kernel.join().expect("the kernel's end ends").expect("the kernel reads and writes");
    assert!(back.iter().all(|byte| *byte == 9), "{to} {offered:?}");
}

#[test]
fn a_handshake_that_we_begin_agrees_on_what_the_kernel_has() {
    needs![];
    let world = World::new();
    for offered in Offered::all() {
        offered.tell(&world);
        for to in [KERNELS, KERNELS_V6] {
            we_begin(&world, offered, to);
        }
    }
}

#[test]
fn a_handshake_that_the_kernel_begins_agrees_on_what_it_offers() {
    needs![];
    let world = World::new();
    for offered in Offered::all() {
        offered.tell(&world);
        for to in [OURS, OURS_V6] {
            the_kernel_begins(&world, offered, to);
        }
    }
}
