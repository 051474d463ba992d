//! The two sides of a relay. A clean end on one side is a clean end on the other, and a reset is a reset.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_linger, set_socket_oobinline, set_socket_timeout};
use rustix::net::{SendFlags, send};
use rustix::process::Signal;

use crate::field::{Field, text};
use crate::namespace::Namespace;
use crate::world::{PATIENCE, is_long, until, within_patience};

/// One of a node's services that relay bytes for programs.
struct Way {
    config: &'static str,
    clients: fn(&Field) -> &Namespace,
    at: &'static str,
    /// The client's first bytes, and the length of the answer to them.
    asks: &'static [u8],
    answer_bytes: usize,
    servers: fn(&Field) -> &Namespace,
    serves: &'static str,
    open: &'static str,
}

const WAYS: [Way; 3] = [
    Way {
        config: "socks5: { listen: 127.0.0.1:1080, connections: 3 }",
        clients: |field| &field.node,
        at: "127.0.0.1:1080",
        asks: &[5, 1, 0, 5, 1, 0, 1, 10, 9, 0, 2, 0, 80],
        answer_bytes: 12,
        servers: |field| &field.web,
        serves: "0.0.0.0:80",
        open: "socks5-open",
    },
    Way {
        config: "forwards: [{ listen: 127.0.0.1:8080, to: mesh:10.9.0.2:80, connections: 3 }]",
        clients: |field| &field.node,
        at: "127.0.0.1:8080",
        asks: &[],
        answer_bytes: 0,
        servers: |field| &field.web,
        serves: "0.0.0.0:80",
        open: "forwards-open",
    },
    Way {
        config: "forwards: [{ listen: mesh:8022, to: 127.0.0.1:8000, connections: 3 }]",
        clients: |field| &field.web,
        at: "10.7.0.2:8022",
        asks: &[],
        answer_bytes: 0,
        servers: |field| &field.node,
        serves: "127.0.0.1:8000",
        open: "forwards-open",
    },
];

/// A client, and the server's end of its connection.
struct Pair {
    client: TcpStream,
    served: TcpStream,
}

impl Way {
    fn listener(&self, field: &Field) -> TcpListener {
        let listener =
            (self.servers)(field).run(|| TcpListener::bind(self.serves)).expect("nobody has the port");
        // The wait for a connection that never comes has an end.
        set_socket_timeout(&listener, Timeout::Recv, Some(PATIENCE)).expect("a timeout can be set");
        listener
    }

    fn pair(&self, field: &Field, listener: &TcpListener) -> Pair {
        let mut client = (self.clients)(field).run(|| TcpStream::connect(self.at)).expect("the node listens");
        client.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        client.write_all(self.asks).expect("it is open");
        client.read_exact(&mut vec![0; self.answer_bytes]).expect("it is served");
        let (served, _) = listener.accept().expect("it is connected");
        served.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        Pair { client, served }
    }
}

fn count(field: &Field, what: &str) -> u64 {
    field.status()["relays"][what].as_u64().expect("it is counted")
}

fn break_off(stream: TcpStream) {
    set_socket_linger(&stream, Some(Duration::ZERO)).expect("it is open");
    drop(stream);
}

/// Uploads without end, until it is refused.
fn uploading(client: &TcpStream) -> JoinHandle<()> {
    let mut client = client.try_clone().expect("a descriptor");
    thread::spawn(move || while client.write_all(&[7; 4096]).is_ok() {})
}

/// Sends urgent data amid other data, and compares what comes. Its octets are part of the stream (RFC 6093 §4).
pub(crate) fn send_urgently(from: &mut TcpStream, to: &mut TcpStream) {
    set_socket_oobinline(&*to, true).expect("it is a socket");
    from.write_all(b"abc").expect("it is open");
    send(&*from, b"U", SendFlags::OOB).expect("it is open");
    from.write_all(b"def").expect("it is open");
    let mut come = [0; 7];
    to.read_exact(&mut come).expect("all of it comes");
    assert_eq!(come, *b"abcUdef");
}

#[test]
fn urgent_octets_come_in_their_place_either_way() {
    needs![];
    for (nth, way) in WAYS.iter().enumerate() {
        let field = Field::new(&format!("urgent-{nth}"));
        let _daemon = field.daemon(way.config);
        let listener = way.listener(&field);
        let Pair { mut client, mut served } = way.pair(&field, &listener);
        send_urgently(&mut client, &mut served);
        send_urgently(&mut served, &mut client);
    }
}

/// Half a file that ends as if it were whole is worse than none.
#[test]
fn a_side_that_breaks_off_breaks_the_other_off() {
    needs![];
    for (nth, way) in WAYS.iter().enumerate() {
        let field = Field::new(&format!("breaks-{nth}"));
        let _daemon = field.daemon(way.config);
        let listener = way.listener(&field);
        let ends = [|pair: Pair| (pair.client, pair.served), |pair: Pair| (pair.served, pair.client)];
        for (broken, end) in (1..).zip(ends) {
            let (mut breaks, mut hears) = end(way.pair(&field, &listener));
            breaks.write_all(&[7; 1000]).expect("it is open");
            hears.read_exact(&mut [0; 1000]).expect("what was written comes");
            break_off(breaks);
            let heard = hears.read(&mut [0; 1]).map_err(|error| error.kind());
            assert_eq!(heard, Err(ErrorKind::ConnectionReset), "{}, {broken}", way.at);
            within_patience(until(|| count(&field, "broke-off") == broken));
        }
        within_patience(until(|| count(&field, way.open) == 0));
    }
}

/// The kernel closes the sockets of a killed process, which it would take for an end in order.
#[test]
fn a_node_that_is_killed_breaks_its_own_machines_programs_off() {
    needs![];
    for (nth, way) in WAYS.iter().enumerate() {
        let field = Field::new(&format!("killed-{nth}"));
        let mut daemon = field.daemon(way.config);
        let listener = way.listener(&field);
        let Pair { mut client, mut served } = way.pair(&field, &listener);
        let (sends, reads) = if nth == 2 { (&mut client, &mut served) } else { (&mut served, &mut client) };
        sends.write_all(&[7; 1000]).expect("it is open");
        reads.read_exact(&mut [0; 1000]).expect("what was written comes");
        daemon.tell(Signal::KILL);
        assert_eq!(daemon.ended(), None, "a signal ended it");
        let heard = reads.read(&mut [0; 1]).map_err(|error| error.kind());
        assert_eq!(heard, Err(ErrorKind::ConnectionReset), "{}", way.at);
    }
}

#[test]
fn a_connection_that_carries_nothing_is_reset_after_its_time() {
    needs![];
    for (nth, way) in WAYS.iter().enumerate() {
        let field = Field::new(&format!("idle-{nth}"));
        let _daemon = field.daemon(&way.config.replace("connections: 3", "connections: 3, idle: 1s"));
        let listener = way.listener(&field);
        let mut pair = way.pair(&field, &listener);
        for end in [&mut pair.client, &mut pair.served] {
            let heard = end.read(&mut [0; 1]).map_err(|error| error.kind());
            assert_eq!(heard, Err(ErrorKind::ConnectionReset), "{}", way.at);
        }
        let idle = way.open.replace("open", "idle");
        within_patience(until(|| (count(&field, &idle), count(&field, way.open)) == (1, 0)));
    }
}

#[test]
fn a_client_whose_service_is_not_there_hears_no_clean_end() {
    needs![];
    for (nth, way) in WAYS.iter().enumerate().filter(|(_, way)| way.asks.is_empty()) {
        let field = Field::new(&format!("not-there-{nth}"));
        let _daemon = field.daemon(way.config);
        // If the reset comes before the program looks, a kernel reports it as an error of the connecting.
        let heard = (way.clients)(&field).run(|| TcpStream::connect(way.at)).and_then(|mut client| {
            client.set_read_timeout(Some(PATIENCE))?;
            client.read(&mut [0; 1])
        });
        let heard = heard.map_err(|error| error.kind());
        assert_eq!(heard, Err(ErrorKind::ConnectionReset), "{}", way.at);
    }
}

/// The client is gone before its service is connected to, and its bytes are not.
#[test]
fn a_client_that_says_something_and_goes_is_heard() {
    needs![];
    let way = &WAYS[1];
    let field = Field::new("goes");
    let _daemon = field.daemon(way.config);
    let listener = way.listener(&field);
    for nth in 0..30 {
        let mut client = field.node.run(|| TcpStream::connect(way.at)).expect("the node listens");
        client.write_all(b"a number").expect("it is open");
        drop(client);
        let (mut served, _) = listener.accept().expect("it is connected");
        served.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        let mut heard = Vec::new();
        served.read_to_end(&mut heard).expect("its end comes");
        assert_eq!(text(&heard), "a number", "{nth}");
    }
}

/// A server that refuses an upload answers, and closes with most of it unread, which resets.
#[test]
fn an_answer_before_a_reset_is_heard() {
    needs![];
    for (nth, way) in WAYS.iter().enumerate() {
        let field = Field::new(&format!("early-{nth}"));
        let _daemon = field.daemon(way.config);
        let listener = way.listener(&field);
        // A node gets all bytes of its own machine's service at once; another's kernel keeps some when it resets.
        let bytes = if nth == 2 { 60_000 } else { 300 };
        for time in 0..20 {
            let Pair { mut client, mut served } = way.pair(&field, &listener);
            let uploading = uploading(&client);
            served.read_exact(&mut [0; 1000]).expect("it comes");
            served.write_all(&vec![b'a'; bytes]).expect("it is open");
            served.peek(&mut [0; 1]).expect("more comes");
            drop(served);
            let mut answer = Vec::new();
            let _ = client.read_to_end(&mut answer);
            assert_eq!(answer.len(), bytes, "{} {time}", way.at);
            uploading.join().expect("it ends");
        }
    }
}

/// A server may also close in order when it has answered, and read no more.
#[test]
fn an_answer_that_has_ended_is_heard_though_what_comes_after_it_is_refused() {
    needs![];
    const BYTES: usize = 180_000;
    for (nth, way) in WAYS.iter().enumerate() {
        let field = Field::new(&format!("ended-{nth}"));
        let _daemon = field.daemon(way.config);
        let listener = way.listener(&field);
        let Pair { mut client, mut served } = way.pair(&field, &listener);
        let uploading = uploading(&client);
        served.write_all(&[b'a'; BYTES]).expect("buffers take that much");
        served.shutdown(Shutdown::Write).expect("it is open");
        served.peek(&mut [0; 1]).expect("more comes");
        // A kernel that resets discards bytes that the node has not received yet.
        let ended = ["ss", "-Htn", "state", "fin-wait-2"];
        within_patience(until(|| !(way.servers)(&field).output(&ended).stdout.is_empty()));
        drop(served);
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer);
        assert_eq!(answer.len(), BYTES, "{}", way.at);
        uploading.join().expect("it ends");
    }
}

/// The kernel reports the reset to a writer first; a later reader gets only the end.
#[test]
fn a_reset_that_is_found_by_writing_is_no_clean_end_either() {
    needs![];
    let way = &WAYS[2];
    let field = Field::new("by-writing");
    let _daemon = field.daemon(way.config);
    let listener = way.listener(&field);
    for time in 0..20 {
        let Pair { mut client, mut served } = way.pair(&field, &listener);
        client.write_all(&[7; 4096]).expect("it is open");
        served.read_exact(&mut [0; 1000]).expect("it comes");
        served.write_all(&[b'a'; 300]).expect("it is open");
        client.read_exact(&mut [0; 300]).expect("half a file");
        // With some bytes of the request unread it is a reset.
        served.peek(&mut [0; 1]).expect("more comes");
        drop(served);
        // If the reset is there by now, this client's kernel reports it here, and the read below gives an end.
        let written = client.write_all(&[7; 4096]);
        let heard = client.read(&mut [0; 1]).map_err(|error| error.kind());
        assert!(written.is_err() || heard != Ok(0), "{time}: a clean end");
    }
}

/// The side that closes first may close altogether, as a web server does: the rest of its bytes is on its way.
#[test]
fn a_service_that_has_said_everything_and_gone_is_heard_to_the_end() {
    needs![];
    const BYTES: usize = 60_000;
    // A node notices at once that its own machine's services have gone.
    let way = &WAYS[2];
    let field = Field::new("said");
    let _daemon = field.daemon(way.config);
    let listener = way.listener(&field);
    let Pair { mut client, mut served } = way.pair(&field, &listener);
    served.write_all(&[7; BYTES]).expect("buffers take that much");
    drop(served);
    within_patience(until(|| count(&field, way.open) == 0));
    let mut heard = Vec::new();
    client.read_to_end(&mut heard).expect("its end comes");
    assert_eq!((heard.len(), count(&field, "broke-off")), (BYTES, 0));
}

/// The client has closed and its bytes are acknowledged: for it everything has arrived, but the reader is slow.
#[test]
fn who_closes_and_then_breaks_off_is_heard_to_the_end() {
    needs![];
    const BYTES: usize = 140_000;
    for (nth, (way, carried)) in [(1, "bytes-to-mesh"), (2, "bytes-from-mesh")].into_iter().enumerate() {
        let way = &WAYS[way];
        let field = Field::new(&format!("slowly-{nth}"));
        let _daemon = field.daemon(way.config);
        let listener = way.listener(&field);
        let Pair { mut client, mut served } = way.pair(&field, &listener);
        client.write_all(&[7; BYTES]).expect("buffers take that much");
        client.shutdown(Shutdown::Write).expect("it is open");
        within_patience(until(|| count(&field, carried) == BYTES as u64));
        break_off(client);
        within_patience(until(|| count(&field, way.open) == 0));
        let mut heard = Vec::new();
        served.read_to_end(&mut heard).expect("its end comes");
        assert_eq!((heard.len(), count(&field, "broke-off")), (BYTES, 1), "{}", way.at);
    }
}

/// The service reads nothing: the node then does not notice that its client has gone.
#[test]
fn a_client_that_breaks_off_while_nothing_is_taken_from_it_leaves_its_seat() {
    needs![];
    for (nth, way) in WAYS.iter().enumerate() {
        let field = Field::new(&format!("stuck-{nth}"));
        let _daemon = field.daemon(way.config);
        let listener = way.listener(&field);
        let Pair { mut client, served } = way.pair(&field, &listener);
        client.set_write_timeout(Some(Duration::from_millis(500))).expect("a timeout can be set");
        while client.write_all(&[7; 4096]).is_ok() {}
        break_off(client);
        within_patience(until(|| count(&field, way.open) == 0));
        assert_eq!(count(&field, "broke-off"), 1, "{}", way.at);
        drop(served);
    }
}

/// The service never ends, as no client is there to notice. Another client has closed for writing alone, and stays.
#[test]
fn a_client_that_has_gone_leaves_its_seat_and_one_that_reads_keeps_it() {
    needs![];
    // Other hosts' kernels forget the connection after a while, and a node takes a minute to notice.
    let ways = if is_long() { &WAYS[..] } else { &WAYS[..2] };
    for (nth, way) in ways.iter().enumerate() {
        let field = Field::new(&format!("gone-{nth}"));
        field.web.sysctl("ipv4/tcp_fin_timeout", "1");
        let _daemon = field.daemon(way.config);
        let listener = way.listener(&field);
        let mut stays = way.pair(&field, &listener);
        stays.client.shutdown(Shutdown::Write).expect("it is open");
        let gone: Vec<_> = (0..2)
            .map(|_| {
                let Pair { client, served } = way.pair(&field, &listener);
                drop(client);
                served
            })
            .collect();
        within_patience(until(|| count(&field, way.open) == 1));
        // Another host's kernel sends a reset, as the client is gone.
        let resets = if nth == 2 { 2 } else { 0 };
        assert_eq!(count(&field, "broke-off"), resets, "{}", field.status());
        let mut last = way.pair(&field, &listener);
        for served in [&mut stays.served, &mut last.served] {
            served.write_all(b"answer").expect("it is open");
            served.shutdown(Shutdown::Write).expect("it is open");
        }
        let mut heard = Vec::new();
        stays.client.read_to_end(&mut heard).expect("its end comes");
        assert_eq!(text(&heard), "answer");
        drop(gone);
    }
}
