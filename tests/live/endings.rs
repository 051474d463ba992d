//! The endings of connections: half-closed, reset, with a peer that was killed, with a stack that stops.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use hopwise_core::endpoint::{ConnectOptions, ListenOptions};
use hopwise_host::ConnectError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::world::{KERNELS, OURS, PATIENCE, World, within_patience};

#[test]
fn after_our_half_close_the_kernel_still_sends() {
    needs![];
    let world = World::new();
    let (listener, address) = world.kernel_listener(KERNELS);
    let kernel = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        let mut question = String::new();
        stream.read_to_string(&mut question)?;
        stream.write_all(question.to_uppercase().as_bytes())
    });
    within_patience(async {
        let mut stream = world.connect(address).await;
        stream.write_all(b"half").await.expect("the connection holds");
        stream.shutdown().await.expect("the connection holds");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("the kernel answers");
        assert_eq!(answer, "HALF");
    });
    kernel.join().expect("the kernel's end ends").expect("the kernel reads and writes");
}

#[test]
fn after_the_kernels_half_close_we_still_send() {
    needs![];
    let world = World::new();
    let listener = world.stack.listen(None, 9, ListenOptions::default()).expect("the port is free");
    let mut stream = world.kernel_connects((OURS, 9).into()).expect("we listen");
    let kernel = std::thread::spawn(move || {
        stream.write_all(b"half")?;
        stream.shutdown(Shutdown::Write)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map(|_| answer)
    });
    within_patience(async {
        let (mut reader, mut writer) = listener.accept().await.expect("the stack lives").into_split();
        let mut question = String::new();
        reader.read_to_string(&mut question).await.expect("the kernel asks");
        writer.write_all(question.to_uppercase().as_bytes()).await.expect("the connection holds");
    });
    assert_eq!(kernel.join().expect("the kernel's end ends").expect("we answer"), "HALF");
}

#[test]
fn our_abort_resets_the_kernels_end() {
    needs![];
    let world = World::new();
    let (listener, address) = world.kernel_listener(KERNELS);
    let stream = within_patience(world.connect(address));
    let (mut kernel, _) = listener.accept().expect("we connected");
    stream.abort();
    kernel.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    let told = kernel.read(&mut [0; 1]).map_err(|error| error.kind());
    assert_eq!(told, Err(ErrorKind::ConnectionReset));
}

#[test]
fn a_kernel_process_that_is_killed_resets_us() {
    needs!["python3"];
    let world = World::new();
    let listener = world.stack.listen(None, 9, ListenOptions::default()).expect("the port is free");
    // It leaves our bytes unread: its death is then a reset and not a FIN.
    let program = "import socket, time; s = socket.create_connection(('10.7.0.1', 9)); time.sleep(600)";
    let peer = world.namespace.start(&["python3", "-c", program]);
    within_patience(async {
        let mut stream = listener.accept().await.expect("the stack lives");
        stream.write_all(b"you will not read this").await.expect("the connection holds");
        let mut flushed = stream.info().expect("it is open").stats.bytes_acked;
        while flushed == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            flushed = stream.info().expect("it is open").stats.bytes_acked;
        }
        drop(peer);
        let told = stream.read(&mut [0; 1]).await.map_err(|error| error.kind());
        assert_eq!(told, Err(ErrorKind::ConnectionReset));
    });
}

#[test]
fn a_closed_port_of_the_kernels_refuses_us_and_ours_refuses_the_kernel() {
    needs![];
    let world = World::new();
    let refused =
        within_patience(world.stack.connect((KERNELS, 9).into(), &ConnectOptions::default())).map(drop);
    assert!(matches!(refused, Err(ConnectError::Failed(hopwise_core::tcp::CloseReason::Refused))));
    let refused = world.kernel_connects((OURS, 9).into()).map(drop).map_err(|error| error.kind());
    assert_eq!(refused, Err(ErrorKind::ConnectionRefused));
}

#[test]
fn a_stack_that_stops_delivers_what_was_written_and_resets_who_does_not_end() {
    needs![];
    let world = World::new();
    let (listener, address) = world.kernel_listener(KERNELS);
    let (mut ends, stays) =
        within_patience(async { (world.connect(address).await, world.connect(address).await) });
    let (mut kernel_ends, _) = listener.accept().expect("we connected");
    let (mut kernel_stays, _) = listener.accept().expect("we connected");
    within_patience(ends.write_all(b"the last words")).expect("the connection holds");
    let reader = std::thread::spawn(move || {
        let mut words = String::new();
        kernel_ends.read_to_string(&mut words).map(|_| words)
    });
    let World { stack, namespace } = world;
    // The reader closes when it has read to the end, and may be held up before that.
    let stopped = stack.stop(Duration::from_secs(3));
    assert_eq!(stopped.reset, 1, "the one whose peer does not close");
    assert_eq!(reader.join().expect("the reader ends").expect("the kernel reads"), "the last words");
    // After our FIN the kernel reports the reset to a writer.
    let told = kernel_stays.write_all(b"still here").map_err(|error| error.kind());
    assert_eq!(told, Err(ErrorKind::BrokenPipe));
    drop((ends, stays, namespace));
}
