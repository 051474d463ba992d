//! Clients that keep their seats at the proxy or at a forward, and do not read their bytes.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};

use crate::crowd::allow_descriptors;
use crate::field::{Field, HOPWISE, PAGE, SOCKS5, THROUGH, text};
use crate::namespace::Namespace;
use crate::world::{PATIENCE, until, within_patience};

/// More than may be about to name a target.
const SLOW: u64 = 1_200;

/// Each client holds a connection to the proxy and sends hardly any bytes.
#[test]
fn slow_clients_of_the_proxy_keep_nobody_out() {
    needs!["curl", "python3"];
    allow_descriptors();
    let field = Field::new("slow");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    // A client that is not slow may be held up for a while, too.
    let _daemon = field.daemon("socks5: { listen: 127.0.0.1:1080, handshake_within: 4s }");
    let slow: Vec<_> = field.node.run(|| {
        let connect = |_| {
            let mut client = TcpStream::connect("127.0.0.1:1080").expect("the proxy listens");
            client.write_all(&[5]).expect("it is open");
            client
        };
        (0..SLOW).map(connect).collect()
    });
    let page = field.curl(&[&THROUGH[..], &["http://10.9.0.2/"]].concat());
    assert_eq!(text(&page.stdout), PAGE, "{}", text(&page.stderr));
    let count = |what: &str| field.status()["relays"][what].as_u64().expect("it is counted");
    within_patience(until(|| count("socks5-too-slow") == SLOW));
    assert_eq!((slow.len() as u64, count("socks5-accepted")), (SLOW, SLOW + 1));
}

/// Each takes milliseconds, and all come at once.
#[test]
fn a_burst_of_honest_clients_of_the_proxy_is_served() {
    const BURST: usize = 300;
    needs![];
    allow_descriptors();
    let field = Field::new("burst");
    let server = field.web.run(|| TcpListener::bind("0.0.0.0:80")).expect("nobody has the port");
    rustix::net::listen(&server, BURST as i32).expect("it can be bound again");
    let _daemon = field.daemon(SOCKS5);
    let connect = |_| TcpStream::connect("127.0.0.1:1080").expect("the proxy listens");
    let mut clients: Vec<_> = field.node.run(|| (0..BURST).map(connect).collect());
    for client in &mut clients {
        client.write_all(&[5, 1, 0, 5, 1, 0, 1, 10, 9, 0, 2, 0, 80]).expect("it is open");
    }
    for client in &mut clients {
        client.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        let mut answer = [0; 12];
        client.read_exact(&mut answer).expect("it is served");
        assert_eq!(answer[..4], [5, 0, 5, 0]);
    }
}

/// The port is one of the node's, so that the kernel would be asked whether the address is the machine's own.
#[test]
fn a_client_is_told_of_a_failure_where_descriptors_are_spent_and_the_log_says_it_once() {
    needs![];
    let field = Field::new("spent");
    let config = field.config("socks5: { listen: 127.0.0.1:1080, handshake_within: 1h }");
    let few = "ulimit -n 64 && exec \"$0\" node \"$1\"";
    let _daemon = field.spawn_as(&["sh", "-c", few, HOPWISE, &config]);
    let connect = |_| TcpStream::connect("127.0.0.1:1080").expect("the proxy listens");
    let mut clients: Vec<_> = field.node.run(|| (0..100).map(connect).collect());
    within_patience(until(|| field.log().contains("a client was not accepted")));
    let first = &mut clients[0];
    let [high, low] = 1080_u16.to_be_bytes();
    first.write_all(&[5, 1, 0, 5, 1, 0, 1, 10, 9, 0, 2, high, low]).expect("it is open");
    first.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    let mut answer = [0; 12];
    first.read_exact(&mut answer).expect("it is answered");
    assert_eq!(answer[..4], [5, 0, 5, 1], "a general failure");
    assert_eq!(field.log().matches("a client was not accepted").count(), 1, "{}", field.log());
}

/// Sends a request to a service, which answers without end, and reads nothing of that.
fn slow_reader(at: &str, says: &[u8]) -> TcpStream {
    let mut client = TcpStream::connect(at).expect("it listens");
    client.write_all(says).expect("it is open");
    client
}

fn resident_bytes(process: u32) -> u64 {
    let statm = fs::read_to_string(format!("/proc/{process}/statm")).expect("it lives");
    let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("the second field");
    pages * 4096
}

const READERS: u64 = 30;
const SEATS: &str = "connections: 30, reads_within: 500ms";
const LARGE: &[u8] = b"GET /large HTTP/1.0\r\n\r\n";

/// A service of a node, its clients, and the counters of them.
struct Service<'a> {
    config: &'a str,
    /// The namespace of its clients.
    clients: fn(&Field) -> &Namespace,
    at: &'a str,
    asks: Vec<u8>,
    /// The command that reads beside them.
    reads: &'a [&'a str],
    counts: [&'a str; 3],
}

impl Service<'_> {
    /// Their bytes wait in bounded buffers, and clients that read get their seats.
    fn readers_that_do_not_read_cost_little_and_keep_nobody_out(&self, test: &str) {
        let Service { config, clients, at, asks, reads, counts: [open, moved, gave_way] } = self;
        let field = Field::new(test);
        let large = fs::File::create(field.path("www/large")).expect("the folder can be written");
        large.set_len(1 << 30).expect("it is a hole");
        let _there = field.serve(&field.web, "10.9.0.2", "80");
        let _here = field.serve(&field.node, "127.0.0.1", "8000");
        let buffers = "tcp: { send_buffer: 256KiB, recv_buffer: 256KiB }";
        let daemon = field.daemon(&format!("{config}\n{buffers}"));
        let before = resident_bytes(daemon.0.id());
        let place = clients(&field);
        let slow: Vec<_> = place.run(|| (0..READERS).map(|_| slow_reader(at, asks)).collect());
        let count = |what: &str| field.status()["relays"][what].as_u64().expect("it is counted");
        within_patience(until(|| count(open) == READERS));
        let mut came = 0;
        within_patience(until(|| {
            let before = std::mem::replace(&mut came, count(moved));
            came > 0 && came == before
        }));
        // Without a bound in the file a buffer may grow to megabytes. Its growth depends on the load of the machine.
        let each = resident_bytes(daemon.0.id()).saturating_sub(before) / READERS;
        let counted = field.status()["bounds"]["held"]["memory"].as_u64().expect("it is counted") / READERS;
        assert!(
            each < 1 << 20 && counted <= 512 << 10,
            "{each} bytes for each, {counted} of them in buffers"
        );
        within_patience(until(|| {
            let page = place.output(&[&["curl", "-sS", "--max-time", "60"], *reads].concat());
            text(&page.stdout) == PAGE
        }));
        assert!((1..READERS).contains(&count(gave_way)), "{}", field.status());
        drop(slow);
    }
}

#[test]
fn readers_of_the_proxy_that_do_not_read_cost_little_and_keep_nobody_out() {
    needs!["curl", "python3"];
    let service = Service {
        config: &format!("socks5: {{ listen: 127.0.0.1:1080, {SEATS} }}"),
        clients: |field| &field.node,
        at: "127.0.0.1:1080",
        asks: [&[5, 1, 0][..], &[5, 1, 0, 1, 10, 9, 0, 2, 0, 80], LARGE].concat(),
        reads: &[&THROUGH[..], &["http://10.9.0.2/"]].concat(),
        counts: ["socks5-open", "bytes-from-mesh", "socks5-gave-way"],
    };
    service.readers_that_do_not_read_cost_little_and_keep_nobody_out("readers");
}

#[test]
fn readers_of_a_forward_that_do_not_read_cost_little_and_keep_nobody_out() {
    needs!["curl", "python3"];
    let service = Service {
        config: &format!("forwards: [{{ listen: 127.0.0.1:8080, to: mesh:10.9.0.2:80, {SEATS} }}]"),
        clients: |field| &field.node,
        at: "127.0.0.1:8080",
        asks: LARGE.to_vec(),
        reads: &["http://127.0.0.1:8080/"],
        counts: ["forwards-open", "bytes-from-mesh", "forwards-gave-way"],
    };
    service.readers_that_do_not_read_cost_little_and_keep_nobody_out("readers-out");
}

/// The clients are on other hosts, and their unread bytes wait in the stack.
#[test]
fn readers_over_hopwise_that_do_not_read_cost_little_and_keep_nobody_out() {
    needs!["curl", "python3"];
    let service = Service {
        config: &format!("forwards: [{{ listen: mesh:8022, to: 127.0.0.1:8000, {SEATS} }}]"),
        clients: |field| &field.web,
        at: "10.7.0.2:8022",
        asks: LARGE.to_vec(),
        reads: &["http://10.7.0.2:8022/"],
        counts: ["forwards-open", "bytes-to-mesh", "forwards-gave-way"],
    };
    service.readers_that_do_not_read_cost_little_and_keep_nobody_out("readers-in");
}

/// A process gets 1,024 descriptors by default.
#[test]
fn a_node_may_have_as_many_descriptors_as_its_clients_take() {
    needs![];
    let field = Field::new("descriptors");
    let config = field.config("socks5: { listen: 127.0.0.1:1080, connections: 3000 }");
    let few = "ulimit -Sn 1024 && exec \"$0\" node \"$1\"";
    let daemon = field.spawn_as(&["sh", "-c", few, HOPWISE, &config]);
    let limits = fs::read_to_string(format!("/proc/{}/limits", daemon.0.id())).expect("it lives");
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("a limit");
    let soft: u64 = line.split_whitespace().next().and_then(|soft| soft.parse().ok()).expect("a number");
    assert!(soft > 3000, "{limits}");
}

/// Ids of one user: the file assigns them while the node runs and is confined.
#[test]
fn ids_that_a_user_has_besides_its_own_have_one_share_of_seats() {
    const NAME: &str = "ids_that_a_user_has_besides_its_own_have_one_share_of_seats";
    needs!["curl", "python3"];
    if !Path::new("/etc/subuid").exists() {
        println!("skipped: {NAME}: there is no /etc/subuid");
        return;
    }
    let field = Field::new("subordinate");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let forward =
        "forwards: [{ listen: 127.0.0.1:8080, to: mesh:10.9.0.2:80, connections: 4, reads_within: 1h }]";
    let (config, file) = (field.config(forward), field.path("subuid"));
    fs::write(&file, "").expect("the folder can be written");
    let with_file = "mount --bind \"$2\" /etc/subuid && exec \"$0\" node \"$1\"";
    let _daemon = field.spawn_as(&["sh", "-c", with_file, HOPWISE, &config, &file]);
    fs::write(&file, "nobody:100000:65536\n").expect("the folder can be written");
    let of_one_user: Vec<_> = (0..4).map(|nth| client_of(&field, 100_000 + nth)).collect();
    within_patience(until(|| field.status()["relays"]["forwards-open"] == of_one_user.len()));
    let page = field.curl(&["http://127.0.0.1:8080/"]);
    assert_eq!(text(&page.stdout), PAGE, "{} {}", text(&page.stderr), field.log());
    assert_eq!(field.status()["relays"]["forwards-gave-way"], 1);
}

/// A client that a thread of that user connects.
fn client_of(field: &Field, user: u32) -> TcpStream {
    field.node.run(|| {
        rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(user)).expect("root may");
        TcpStream::connect("127.0.0.1:8080").expect("it listens")
    })
}

/// A client's request that is never answered, and the bytes that it receives before that.
struct Asking<'a> {
    config: &'a str,
    at: &'a str,
    asks: Vec<u8>,
    hears: &'a [u8],
}

impl Asking<'_> {
    fn of_the_proxy() -> Asking<'static> {
        let asks = [&[5, 1, 0][..], &[5, 1, 0, 1, 10, 9, 0, 99, 0, 80]].concat();
        Asking { config: SOCKS5, at: "127.0.0.1:1080", asks, hears: &[5, 0] }
    }

    fn of_a_forward() -> Asking<'static> {
        let config = "forwards: [{ listen: 127.0.0.1:8080, to: mesh:10.9.0.99:80 }]";
        Asking { config, at: "127.0.0.1:8080", asks: Vec::new(), hears: &[] }
    }

    fn client(&self, field: &Field) -> TcpStream {
        let mut client = field.node.run(|| slow_reader(self.at, &self.asks));
        client.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        let mut heard = vec![0; self.hears.len()];
        // With unread bytes its close would be a reset.
        client.read_exact(&mut heard).expect("the node serves");
        assert_eq!(heard, self.hears);
        client
    }

    /// Otherwise it would keep its seat until the other end has been silent for long enough.
    fn who_hangs_up_is_not_connected_for_any_longer(&self, test: &str) {
        let field = Field::new(test);
        let _daemon = field.daemon(self.config);
        let mut stays = self.client(&field);
        within_patience(until(|| connections(&field) == 1));
        let leaves = self.client(&field);
        within_patience(until(|| connections(&field) == 2));
        drop(leaves);
        within_patience(until(|| connections(&field) == 1));
        // The client before it, which waits, has received nothing of its connection.
        stays.set_nonblocking(true).expect("it is open");
        let more = stays.read(&mut [0; 64]).map_err(|error| error.kind());
        assert_eq!(more, Err(std::io::ErrorKind::WouldBlock));
    }

    /// The client may have nothing to send, and still want to read.
    fn who_writes_no_more_is_connected_all_the_same(&self, test: &str, answer_bytes: usize) {
        let field = Field::new(test);
        let _daemon = field.daemon(self.config);
        let mut reads = self.client(&field);
        reads.shutdown(Shutdown::Write).expect("it is open");
        within_patience(until(|| connections(&field) == 1));
        let leaves = self.client(&field);
        within_patience(until(|| connections(&field) == 2));
        drop(leaves);
        // The node notices the second one only after it has looked at the first one as well.
        within_patience(until(|| connections(&field) == 1));
        let listener = field.web.run(|| TcpListener::bind("0.0.0.0:80")).expect("nobody has the port");
        // The wait for a connection that never comes has an end.
        set_socket_timeout(&listener, Timeout::Recv, Some(PATIENCE)).expect("a timeout can be set");
        field.web.ip(&["addr", "add", "10.9.0.99/24", "dev", "wire0"]);
        let (mut served, _) = listener.accept().expect("it is connected");
        served.write_all(PAGE.as_bytes()).expect("it is open");
        drop(served);
        let mut heard = Vec::new();
        reads.read_to_end(&mut heard).expect("it is served");
        let (answer, page) = heard.split_at(answer_bytes);
        // The second byte of SOCKS5's answer is 0 on success.
        assert_eq!((answer.get(1).unwrap_or(&0), text(page)), (&0, PAGE.to_owned()));
    }
}

fn connections(field: &Field) -> u64 {
    field.status()["connections_open"].as_u64().expect("it is counted")
}

#[test]
fn who_hangs_up_is_not_connected_for_any_longer() {
    needs![];
    Asking::of_the_proxy().who_hangs_up_is_not_connected_for_any_longer("hangs-up");
    Asking::of_a_forward().who_hangs_up_is_not_connected_for_any_longer("hangs-up-forward");
}

#[test]
fn who_writes_no_more_is_connected_all_the_same() {
    needs![];
    Asking::of_the_proxy().who_writes_no_more_is_connected_all_the_same("half", 10);
    Asking::of_a_forward().who_writes_no_more_is_connected_all_the_same("half-forward", 0);
}

/// Clients over Hopwise may close for writing unnoticed, but not break off. The service has a queue that is full.
#[test]
fn who_breaks_off_over_hopwise_is_not_connected_for_any_longer() {
    needs![];
    let field = Field::new("breaks-off");
    let service = field.node.run(|| TcpListener::bind("127.0.0.1:8000")).expect("nobody has the port");
    rustix::net::listen(&service, 0).expect("it can be bound again");
    let _first = field.node.run(|| TcpStream::connect("127.0.0.1:8000")).expect("the queue takes one");
    let _daemon = field.daemon("forwards: [{ listen: mesh:8022, to: 127.0.0.1:8000 }]");
    let count = |what: &str| field.status()["relays"][what].as_u64().expect("it is counted");
    let come = |nth: u64| {
        let client = field.web.run(|| TcpStream::connect("10.7.0.2:8022")).expect("it listens");
        within_patience(until(|| count("forwards-accepted") == nth));
        client
    };
    let (mut stays, leaves) = (come(1), come(2));
    rustix::net::sockopt::set_socket_linger(&leaves, Some(Duration::ZERO)).expect("it is open");
    drop(leaves);
    within_patience(until(|| count("forwards-not-connected") == 1));
    stays.set_nonblocking(true).expect("it is open");
    let more = stays.read(&mut [0; 1]).map_err(|error| error.kind());
    assert_eq!(more, Err(std::io::ErrorKind::WouldBlock));
}
