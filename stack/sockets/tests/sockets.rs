//! Sockets as programs use them, over a wire within the program.

use std::future::Future;
use std::io::ErrorKind;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hopwise_sockets::{AgentChoice, ConnectOptions, ListenOptions, Network, TcpListener, TcpStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};

const SERVER: &str = "10.7.0.2:80";
/// The longest wait for a single thing, on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(300);

fn pair() -> (Network, Network) {
    Network::pair("10.7.0.1/24", "10.7.0.2/24").expect("a pair needs no rights")
}

/// A connection from the first network to the second.
async fn connection(here: &Network, there: &Network) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(there, SERVER).await.expect("the port is free");
    let near = TcpStream::connect(here, SERVER).await.expect("it listens");
    let far = listener.accept().await.expect("one has come");
    (near, far)
}

/// Returns whether a wait is not over at once.
fn waits<T>(wait: impl Future<Output = T>) -> bool {
    matches!(pin!(wait).poll(&mut Context::from_waker(Waker::noop())), Poll::Pending)
}

#[tokio::test]
async fn bytes_pass_both_ways_and_each_side_ends_by_itself() {
    let (here, there) = pair();
    let (mut near, mut far) = connection(&here, &there).await;
    let data: Vec<u8> = (0..3_000_000_u32).map(|nth| (nth % 251) as u8).collect();
    let echo = tokio::spawn(async move {
        let mut all = Vec::new();
        far.read_to_end(&mut all).await?;
        far.write_all(&all).await?;
        far.shutdown().await
    });
    near.write_all(&data).await.expect("the connection holds");
    near.shutdown().await.expect("the connection holds");
    let mut back = Vec::new();
    near.read_to_end(&mut back).await.expect("the connection holds");
    assert!(back == data, "{} bytes of {} came back", back.len(), data.len());
    echo.await.expect("the task ends").expect("the connection holds");
    drop(near);
    assert_eq!(here.close(Duration::from_secs(60)).reset, 0);
}

#[tokio::test]
async fn a_stream_is_ready_to_read_when_data_or_the_end_has_come() {
    let (here, there) = pair();
    let (near, mut far) = connection(&here, &there).await;
    let mut buffer = [0; 8];
    assert_eq!(near.try_read(&mut buffer).expect_err("nothing has come").kind(), ErrorKind::WouldBlock);
    assert!(waits(near.readable()));
    far.write_all(b"four").await.expect("the connection holds");
    near.readable().await.expect("the connection holds");
    assert_eq!(near.try_read(&mut buffer[..3]).expect("data is there"), 3);
    assert!(!waits(near.readable()), "a byte is left");
    assert_eq!(near.try_read(&mut buffer).expect("data is there"), 1);
    assert!(waits(near.readable()));
    far.shutdown().await.expect("the connection holds");
    let ready = near.ready(Interest::READABLE).await.expect("the connection holds");
    assert!(ready.is_readable() && !ready.is_writable());
    assert_eq!(near.try_read(&mut buffer).expect("the end is no error"), 0);
}

#[tokio::test]
async fn a_stream_that_was_filled_to_the_last_byte_is_ready_to_write_after_a_read_of_the_peer() {
    let (here, there) = pair();
    let (near, mut far) = connection(&here, &there).await;
    let both = near.ready(Interest::READABLE | Interest::WRITABLE).await.expect("the connection holds");
    assert!(both.is_writable() && !both.is_readable());
    // The last write fills the last byte of room, and no write has failed for want of it.
    let (chunk, mut written) = (vec![7; 1 << 16], 0);
    loop {
        let room = near.stack().with(|_, endpoint| endpoint.writable(near.id())) as usize;
        if room == 0 {
            break;
        }
        written += near.try_write(&chunk[..chunk.len().min(room)]).expect("there is room");
    }
    let writer = tokio::spawn(async move { near.writable().await.map(|()| near) });
    far.read_exact(&mut vec![0; written]).await.expect("the connection holds");
    let writer = tokio::time::timeout(PATIENCE, writer).await.expect("there is room at once");
    let near = writer.expect("the task ends").expect("the connection holds");
    assert!(near.try_write(&chunk).expect("there is room") > 0);
}

#[tokio::test]
async fn nagles_algorithm_is_on_until_it_is_turned_off() {
    let (here, there) = pair();
    let (near, _far) = connection(&here, &there).await;
    assert!(!near.nodelay().expect("the connection holds"));
    near.set_nodelay(true).expect("the connection holds");
    assert!(near.nodelay().expect("the connection holds"));
    near.set_nodelay(false).expect("the connection holds");
    assert!(!near.nodelay().expect("the connection holds"));
}

/// The receiver agent and the sender agents of a stream.
fn agents(stream: &TcpStream) -> (String, String) {
    stream.info().map(|info| (info.receiver, info.senders)).expect("the connection is there")
}

#[tokio::test]
async fn agents_are_chosen_by_network_by_listener_and_by_connection() {
    let (here, there) = pair();
    here.set_agents(&AgentChoice::default().with_receiver("delayed:d=3")).expect("it is an agent");
    let options = ListenOptions::from(AgentChoice::default().with_senders("[newreno]"));
    let listener = TcpListener::bind_with(&there, SERVER, options).await.expect("the port is free");
    let first = TcpStream::connect(&here, SERVER).await.expect("it listens");
    let own = ConnectOptions::from(AgentChoice::default().with_receiver("immediate"));
    let second = TcpStream::connect_with(&here, SERVER, &own).await.expect("it listens");
    let accepted = listener.accept().await.expect("one has come");
    assert_eq!(agents(&first).0, "delayed:d=3");
    assert_eq!(agents(&second).0, "immediate");
    assert_eq!(agents(&accepted).1, "[newreno]");
    let unknown = AgentChoice::default().with_receiver("dcaa");
    let error = here.set_agents(&unknown).expect_err("there is no such agent").to_string();
    assert!(error.contains("dcaa") && error.contains("dca"), "{error}");
    let error = TcpStream::connect_with(&here, SERVER, &unknown.into()).await.expect_err("no such agent");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("dcaa"), "{error}");
}

#[tokio::test]
async fn errors_have_the_kinds_of_sockets() {
    let (here, there) = pair();
    let listener = TcpListener::bind(&there, "0.0.0.0:0").await.expect("some port is free");
    assert!(listener.port() >= 49_152 && listener.local_addr().ip().is_unspecified());
    let kind = |at: String| {
        let there = &there;
        async move { TcpListener::bind(there, at).await.expect_err("it is refused").kind() }
    };
    assert_eq!(kind(format!("0.0.0.0:{}", listener.port())).await, ErrorKind::AddrInUse);
    assert_eq!(kind("10.7.0.9:80".to_owned()).await, ErrorKind::AddrNotAvailable);
    let refused = TcpStream::connect(&here, "10.7.0.2:9").await.expect_err("nothing listens");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    let no_host = TcpStream::connect(&here, "255.255.255.255:9").await.expect_err("that is not a host");
    assert_eq!(no_host.kind(), ErrorKind::InvalidInput);
}

#[test]
fn settings_that_cannot_work_are_refused_before_a_device_is_opened() {
    let refused = [
        (Network::tun("10.7.0.1"), "address", "10.7.0.1/24"),
        (Network::tun("10.7.0.1/24").address("x/9"), "address", "10.7.0.1/24"),
        (Network::tun("10.7.0.1/24").kernel("10.7.0.1/24"), "kernel", "another address"),
        (Network::tun("10.7.0.1/24").kernel("10.8.0.1/24"), "kernel", "in no subnet"),
        (Network::tun("10.7.0.1/24").gateway("10.7.0.2"), "gateway", "no gateway"),
        (Network::device("eth0", "10.7.0.1/24").kernel("10.7.0.2/24"), "kernel", "expected none"),
        (Network::device("eth0", "10.7.0.1/24").mtu(1400), "mtu", "expected none"),
        (Network::device("eth0", "10.7.0.1/24").name("hop0"), "name", "expected none"),
        (Network::device("eth0", "10.7.0.1/24").gateway("10.8.0.1"), "gateway", "in no subnet"),
        (Network::device("eth0", "10.7.0.1/24").gateway("router"), "gateway", "address of a router"),
    ];
    for (network, name, problem) in refused {
        let error = network.open().expect_err("it is refused");
        let text = error.to_string();
        assert!(text.starts_with(name) && text.contains(problem), "{text}");
        assert_eq!(std::io::Error::from(error).kind(), ErrorKind::InvalidInput);
    }
    // One address would be at both ends of the wire, whatever its subnet.
    for others in ["10.7.0.1/24", "10.7.0.1/16"] {
        let error = Network::pair("10.7.0.1/24", others).expect_err("it is refused");
        let text = error.to_string();
        assert!(text.contains(others) && text.contains("expected an address of its own"), "{text}");
    }
}
