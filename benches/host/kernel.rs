//! The kernel's end of everything: threads with blocking sockets.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hopwise_host::Clock;

use crate::place::{BEYOND, Other};

const CHUNK: usize = 256 << 10;

/// Reads `count` connections to their ends.
pub(crate) fn sink(at: IpAddr, count: usize) -> (SocketAddr, JoinHandle<u64>) {
    let listener = TcpListener::bind((at, 0)).expect("the address is the kernel's");
    let address = listener.local_addr().expect("it is bound");
    (address, sink_of(listener, count))
}

/// A sink of one connection at the other end of the wire.
pub(crate) fn sink_in(other: &Other) -> (SocketAddr, JoinHandle<u64>) {
    thread::scope(|scope| {
        let listening = scope.spawn(|| {
            other.enter();
            sink(BEYOND, 1)
        });
        listening.join().expect("it listens")
    })
}

/// Reads the first `count` connections of a listener to their ends.
pub(crate) fn sink_of(listener: TcpListener, count: usize) -> JoinHandle<u64> {
    thread::spawn(move || {
        let readers: Vec<_> = (0..count)
            .map(|_| {
                let (stream, _) = listener.accept().expect("someone connects");
                thread::spawn(move || drain(stream))
            })
            .collect();
        readers.into_iter().map(|reader| reader.join().expect("it reads")).sum()
    })
}

/// Sends received bytes back, on one connection after the other.
pub(crate) fn echo(listener: &TcpListener) {
    let mut buffer = [0; 64];
    loop {
        let (mut stream, _) = listener.accept().expect("the listener lives");
        stream.set_nodelay(true).expect("it can be set");
        while let Ok(read @ 1..) = stream.read(&mut buffer) {
            stream.write_all(&buffer[..read]).expect("the connection holds");
        }
    }
}

fn drain(mut stream: TcpStream) -> u64 {
    // A stack that dies takes its device along, and sends no RST.
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("it can be set");
    let (mut buffer, mut bytes) = (vec![0; CHUNK], 0);
    loop {
        match stream.read(&mut buffer).expect("the connection holds") {
            0 => return bytes,
            read => bytes += read as u64,
        }
    }
}

/// Opens `count` connections and writes `bytes_each` to each.
pub(crate) fn source(to: SocketAddr, count: usize, bytes_each: u64) -> JoinHandle<()> {
    thread::spawn(move || {
        let writers: Vec<_> = (0..count)
            .map(|_| {
                let stream = TcpStream::connect(to).expect("someone listens");
                thread::spawn(move || fill(stream, bytes_each))
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().expect("it writes"));
    })
}

fn fill(mut stream: TcpStream, bytes: u64) {
    let (chunk, mut rest) = (vec![0; CHUNK], bytes);
    while rest > 0 {
        let length = rest.min(CHUNK as u64) as usize;
        stream.write_all(&chunk[..length]).expect("the connection holds");
        rest -= length as u64;
    }
    // The reader closes when it has everything; a reset in place of its FIN is no news here.
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let _ = stream.read(&mut [0; 1]);
}

/// Sends one byte there and back, `times` times, over one connection.
pub(crate) fn ping_pong(to: SocketAddr, times: u64) {
    timed_ping_pong(to, times);
}

/// The same, with the time of each round trip in nanoseconds.
pub(crate) fn timed_ping_pong(to: SocketAddr, times: u64) -> Vec<u64> {
    let mut stream = TcpStream::connect(to).expect("someone listens");
    stream.set_nodelay(true).expect("it can be set");
    let (clock, mut byte) = (Clock::start(), [7]);
    let mut one = || {
        let began = clock.now();
        stream.write_all(&byte).expect("the connection holds");
        stream.read_exact(&mut byte).expect("the connection holds");
        clock.now().since(began).as_nanos() as u64
    };
    (0..times).map(|_| one()).collect()
}

/// Opens connections one after the other; each carries a byte both ways and is closed.
pub(crate) fn open_and_close(to: SocketAddr, times: u64) {
    for _ in 0..times {
        let mut stream = TcpStream::connect(to).expect("someone listens");
        let mut byte = [7];
        stream.write_all(&byte).expect("the connection holds");
        stream.read_exact(&mut byte).expect("the connection holds");
    }
}

/// Opens connections that stay idle.
pub(crate) fn idle(to: SocketAddr, count: usize) -> Vec<TcpStream> {
    (0..count).map(|_| TcpStream::connect(to).expect("someone listens")).collect()
}
