//! Sockets of programs without a runtime, over a wire within the program.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
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
        far.shutdown(Shutdown::Write)
    });
    (&near).write_all(&data).expect("the connection holds");
    near.shutdown(Shutdown::Write).expect("the connection holds");
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

#[test]
fn a_connect_that_does_not_wait_turns_its_descriptor_writable_at_the_end() {
    let world = world();
    let begin = |to: &str| {
        let to = to.parse().expect("it is an address");
        TcpStream::begin_connect(&world.here, to, &ConnectOptions::default()).expect("there is a route")
    };
    let kind = |done: std::io::Result<()>| done.map_err(|error| error.kind());

    let near = begin(SERVER);
    let far = world.listener.accept().expect("one has come");
    wait(&near, Interest::Room);
    assert_eq!(kind(near.connected()), Ok(()));
    far.send(b"news").expect("there is room");
    wait(&near, Interest::Read);
    assert_eq!(near.recv(&mut [0; 8]).expect("it has come"), 4);
    assert_eq!(near.recv(&mut [0; 8]).map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));

    let refused = begin("10.7.0.2:9");
    wait(&refused, Interest::Room);
    assert!(polled(&refused).0, "a read would fail, too");
    assert_eq!(kind(refused.peer_addr().map(drop)), Err(ErrorKind::NotConnected));
    assert_eq!(kind(refused.connected()), Err(ErrorKind::ConnectionRefused));
    assert_eq!(kind(refused.connected()), Err(ErrorKind::NotConnected), "it is told once");

    let silent = begin("10.7.0.9:80");
    assert_eq!(polled(&silent), (false, false));
    assert_eq!(kind(silent.connected()), Err(ErrorKind::WouldBlock));
    assert_eq!(silent.send(b"early").map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
    silent.set_nonblocking(false);
    silent.set_timeout(Some(Duration::from_millis(1)));
    assert_eq!(silent.send(b"early").map_err(|error| error.kind()), Err(ErrorKind::TimedOut));
}

#[test]
fn a_shutdown_of_the_reading_side_ends_a_read_that_waits() {
    let world = world();
    let (near, far) = world.connection();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| near.recv(&mut [0; 8]));
        near.shutdown(Shutdown::Read).expect("the connection holds");
        assert_eq!(waiting.join().expect("it ends").expect("it is an end"), 0);
    });
    assert_eq!(polled(&near), (true, true));
    near.send(b"still").expect("the other side goes on");
    assert_eq!(far.recv(&mut [0; 8]).expect("it has come"), 5);
}
