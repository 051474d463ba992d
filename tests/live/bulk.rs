//! Whole transfers, checked by their SHA-256.

use hopwise_core::endpoint::ListenOptions;
use tokio::io::AsyncWriteExt;

use crate::namespace::can_run;
use crate::stream::{read_all, receive_all, send_all, write_all};
use crate::world::{KERNELS, OURS, World, within_patience};

const BYTES: u64 = 20_000_000;

#[test]
fn what_we_send_the_kernel_receives() {
    if !can_run("what_we_send_the_kernel_receives", &[]) {
        return;
    }
    let world = World::new();
    let (listener, address) = world.kernel_listener(KERNELS);
    let reader = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        read_all(&mut stream)
    });
    let sent = within_patience(async {
        let mut stream = world.connect(address).await;
        let sent = send_all(&mut stream, 1, BYTES).await.expect("the connection holds");
        stream.shutdown().await.expect("the connection holds");
        sent
    });
    let received = reader.join().expect("the reader ends").expect("the kernel reads");
    assert_eq!(received, (BYTES, sent));
}

#[test]
fn what_the_kernel_sends_we_receive() {
    if !can_run("what_the_kernel_sends_we_receive", &[]) {
        return;
    }
    let world = World::new();
    let listener = world.stack.listen(None, 80, ListenOptions::default()).expect("the port is free");
    let mut stream = world.kernel_connects((OURS, 80).into()).expect("we listen");
    let writer = std::thread::spawn(move || write_all(&mut stream, 2, BYTES));
    let received = within_patience(async {
        let mut stream = listener.accept().await.expect("the stack lives");
        receive_all(&mut stream).await.expect("the connection holds")
    });
    let sent = writer.join().expect("the writer ends").expect("the kernel writes");
    assert_eq!(received, (BYTES, sent));
}
