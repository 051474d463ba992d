//! Sockets of programs without a runtime, over a wire within the program.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use hopwise_host::{Interest, wait_until};
use hopwise_sockets::blocking::{TcpListener, TcpStream};
use hopwise_sockets::{ConnectOptions, ListenOptions, Network};

const SERVER: &str = "10.7.0.2:80";

struct World {
    here: Network,
    listener: TcpListener,
}

fn world() -> World {
    let (here, there) = Network::pair("10.7.0.1/24", "10.7.0.2/24").expect("a pair needs no rights");
    let listener = TcpListener::bind(&there, SERVER, &ListenOptions::default()).expect("the port is free");
    World { here, listener }
}

impl World {
    fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.here, SERVER, &ConnectOptions::default(), None).expect("it listens")
    }

    fn connection(&self) -> (TcpStream, TcpStream) {
        let near = self.connect();
        (near, self.listener.accept().expect("one has come"))
    }
}

/// Returns whether the descriptor is readable, and whether it is writable, by `poll`.
fn polled(socket: &impl AsFd) -> (bool, bool) {
    let is = |interest| wait_until(socket.as_fd(), interest, Some(Duration::ZERO)).is_ok();
    (is(Interest::Read), is(Interest::Room))
}

fn wait(socket: &impl AsFd, interest: Interest) {
    wait_until(socket.as_fd(), interest, None).expect("it becomes ready");
}

#[test]
fn bytes_pass_both_ways_between_threads_that_block() {
    let world = world();
    let data: Vec<u8> = (0..3_000_000_u32).map(|nth| (nth % 251) as u8).collect();
    let (near, mut far) = world.connection();
    let echo = thread::spawn(move || {
        let mut all = Vec::new();
        far.read_to_end(&mut all)?;
        far.write_all(&all)?;
        far.shutdown()
    });
    (&near).write_all(&data).expect("the connection holds");
    near.shutdown().expect("the connection holds");
    let mut back = Vec::new();
    (&near).read_to_end(&mut back).expect("the connection holds");
    assert!(back == data, "{} bytes of {} came back", back.len(), data.len());
    echo.join().expect("it ends").expect("the connection holds");
}

#[test]
fn a_descriptor_tells_poll_what_a_call_would_not_wait_for() {
    let world = world();
    assert_eq!(polled(&world.listener), (false, false));
    let near = world.connect();
    wait(&world.listener, Interest::Read);
    let far = world.listener.accept().expect("one has come");
    assert_eq!(polled(&world.listener), (false, false), "nobody else waits");
    assert_eq!((polled(&near), polled(&far)), ((false, true), (false, true)));

    far.send(b"news").expect("there is room");
    wait(&near, Interest::Read);
    assert_eq!(near.recv(&mut [0; 3]).expect("it has come"), 3);
    assert_eq!(polled(&near), (true, true), "a byte is left");
    assert_eq!(near.recv(&mut [0; 3]).expect("it has come"), 1);
    assert_eq!(polled(&near), (false, true), "a blocking read would wait");

    near.set_nonblocking(true);
    let mut sent = 0;
    let error = loop {
        match near.send(&[7; 1 << 16]) {
            Ok(bytes) => sent += bytes,
            Err(error) => break error,
        }
    };
    assert_eq!((error.kind(), polled(&near)), (ErrorKind::WouldBlock, (false, false)));
    let mut buffer = vec![0; sent];
    (&far).read_exact(&mut buffer).expect("the connection holds");
    wait(&near, Interest::Room);
    assert!(near.send(&[7]).is_ok());

    drop(far);
    wait(&near, Interest::Read);
    // It depends on who was first whether this is an end or a reset.
    assert!(near.recv(&mut buffer).map_err(|error| error.kind()) != Err(ErrorKind::WouldBlock));
}

#[test]
fn calls_wait_as_long_as_they_are_told_and_no_longer() {
    let world = world();
    let (near, _far) = world.connection();
    let kind = |error: std::io::Error| error.kind();
    near.set_timeout(Some(Duration::from_millis(1)));
    assert_eq!(near.recv(&mut [0]).map_err(kind), Err(ErrorKind::TimedOut));
    near.set_nonblocking(true);
    assert_eq!(near.recv(&mut [0]).map_err(kind), Err(ErrorKind::WouldBlock));
    world.listener.set_timeout(Some(Duration::from_millis(1)));
    assert_eq!(world.listener.accept().map_err(kind).err(), Some(ErrorKind::TimedOut));
    world.listener.set_nonblocking(true);
    assert_eq!(world.listener.accept().map_err(kind).err(), Some(ErrorKind::WouldBlock));
    let connect = |to: &str, within| {
        TcpStream::connect(&world.here, to, &ConnectOptions::default(), within).map_err(kind).err()
    };
    assert_eq!(connect("10.7.0.9:80", Some(Duration::from_millis(1))), Some(ErrorKind::TimedOut));
    assert_eq!(connect("10.7.0.2:9", None), Some(ErrorKind::ConnectionRefused));
}
