//! Readers that do not read: the window closes, stays closed, and opens again.

use std::io::{Read, Write};
use std::time::Duration;

use hopwise_core::endpoint::ListenOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::stream::{Stream, read_all, receive_all, send_all, write_all};
use crate::world::{KERNELS, OURS, World, is_long, within_patience};

/// A size beyond both ends' buffers together.
const BYTES: u64 = 30_000_000;

/// The time without a reader.
fn pause() -> Duration {
    if is_long() { Duration::from_secs(60) } else { Duration::from_secs(2) }
}

#[test]
fn a_window_of_the_kernels_that_stays_closed_is_probed_until_it_opens() {
    needs![];
    let world = World::new();
    let (listener, address) = world.kernel_listener(KERNELS);
    let (open, opened) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        // The wait ends when the other side hangs up.
        let _ = opened.recv();
        read_all(&mut stream)
    });
    let (sent, probes) = within_patience(async {
        let mut stream = world.connect(address).await;
        let id = stream.id();
        let sending = async {
            let sent = send_all(&mut stream, 6, BYTES).await.expect("the connection holds");
            stream.shutdown().await.expect("the connection holds");
            sent
        };
        let opening = async {
            let is_closed = || world.stack.info(id).is_some_and(|info| info.snd_wnd < info.snd_mss);
            while !is_closed() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            tokio::time::sleep(pause()).await;
            assert!(is_closed(), "nobody has read");
            let probes = world.stack.info(id).expect("it is open").stats.window_probes;
            open.send(()).expect("the reader waits");
            probes
        };
        tokio::join!(sending, opening)
    });
    assert!(probes > 0);
    assert_eq!(reader.join().expect("the reader ends").expect("the kernel reads"), (BYTES, sent));
}

#[test]
fn a_window_of_ours_that_stays_closed_opens_for_the_kernel() {
    needs![];
    let world = World::new();
    let listener = world.stack.listen(None, 80, ListenOptions::default()).expect("the port is free");
    let mut stream = world.kernel_connects((OURS, 80).into()).expect("we listen");
    let writer = std::thread::spawn(move || write_all(&mut stream, 7, BYTES));
    let received = within_patience(async {
        let mut stream = listener.accept().await.expect("the stack lives");
        while stream.info().expect("it is open").rcv_wnd > 1500 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(pause()).await;
        receive_all(&mut stream).await.expect("the connection holds")
    });
    let sent = writer.join().expect("the writer ends").expect("the kernel writes");
    assert_eq!(received, (BYTES, sent));
}

#[test]
fn a_reader_that_takes_little_at_a_time_gets_everything() {
    needs![];
    const LITTLE: u64 = 200_000;
    let world = World::new();
    let listener = world.stack.listen(None, 80, ListenOptions::default()).expect("the port is free");
    let mut kernel = world.kernel_connects((OURS, 80).into()).expect("we listen");
    let mut expected = vec![0; LITTLE as usize];
    Stream::new(8, LITTLE).next(&mut expected);
    let sends = expected.clone();
    let echo = std::thread::spawn(move || {
        kernel.write_all(&sends)?;
        let mut back = Vec::new();
        kernel.read_to_end(&mut back).map(|_| back)
    });
    within_patience(async {
        let mut stream = listener.accept().await.expect("the stack lives");
        let mut bytes = [0; 7];
        for _ in 0..LITTLE / 7 {
            stream.read_exact(&mut bytes).await.expect("the connection holds");
            stream.write_all(&bytes).await.expect("the connection holds");
        }
        let mut rest = [0; (LITTLE % 7) as usize];
        stream.read_exact(&mut rest).await.expect("the connection holds");
        stream.write_all(&rest).await.expect("the connection holds");
    });
    let back = echo.join().expect("the kernel's end ends").expect("the kernel reads");
    assert!(back == expected, "{} bytes came back", back.len());
}
