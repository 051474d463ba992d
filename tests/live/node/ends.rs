//! A daemon that is told to end: its clients, their peers, and systemd.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use rustix::process::Signal;

use crate::field::{Field, PAGE, SOCKS5, THROUGH, text};
use crate::world::{PATIENCE, until, within_patience};

#[test]
fn a_daemon_that_is_told_to_end_leaves_nothing_behind() {
    needs!["curl", "python3"];
    let field = Field::new("end");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let mut daemon = field.daemon(SOCKS5);
    let page = field.curl(&[&THROUGH[..], &["http://10.9.0.2/"]].concat());
    assert_eq!(text(&page.stdout), PAGE, "{}", text(&page.stderr));
    daemon.tell(Signal::TERM);
    assert_eq!(daemon.ended(), Some(0), "{}", field.log());
    assert!(!field.folder.join("control.sock").exists());
    let device = field.node.output(&["ip", "link", "show", "hw0"]);
    assert!(!device.status.success(), "{}", text(&device.stdout));
    // A crash leaves a socket, and the next start clears it.
    let killed = field.daemon(SOCKS5);
    killed.tell(Signal::KILL);
    drop(killed);
    assert!(field.folder.join("control.sock").exists());
    let _again = field.daemon(SOCKS5);
    let page = field.curl(&[&THROUGH[..], &["http://10.9.0.2/"]].concat());
    assert_eq!(text(&page.stdout), PAGE, "{}", text(&page.stderr));
}

/// A client of a forward that reads a large file; its first byte has come.
fn reader_of(field: &Field, file: &str) -> TcpStream {
    let mut client = field.node.run(|| TcpStream::connect("127.0.0.1:8080").expect("it listens"));
    client.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    client.write_all(format!("GET /{file} HTTP/1.0\r\n\r\n").as_bytes()).expect("it is open");
    client.read_exact(&mut [0]).expect("it comes");
    client
}

const FORWARD: &str = "forwards: [{ listen: 127.0.0.1:8080, to: mesh:10.9.0.2:80 }]";

#[test]
fn who_is_served_when_the_daemon_is_told_to_end_is_served_to_the_end() {
    needs!["python3"];
    const BYTES: usize = 30_000_000;
    let field = Field::new("finishes");
    fs::write(field.path("www/large"), vec![7; BYTES]).expect("the folder can be written");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let mut daemon = field.daemon(&format!("{FORWARD}\nstop_within: 100s"));
    let mut client = reader_of(&field, "large");
    daemon.tell(Signal::TERM);
    let refused = || field.node.run(|| TcpStream::connect("127.0.0.1:8080").is_err());
    within_patience(until(refused));
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).expect("it is served");
    assert!(rest.len() > BYTES && rest.ends_with(&[7; 1000]), "{} bytes came", rest.len());
    drop(client);
    assert_eq!(daemon.ended(), Some(0), "{}", field.log());
    assert!(field.log().contains("ended in order"), "{}", field.log());
}

#[test]
fn who_does_not_end_in_time_is_reset_and_so_is_its_peer() {
    needs!["python3"];
    const BYTES: u64 = 1 << 30;
    let field = Field::new("resets");
    let large = fs::File::create(field.path("www/large")).expect("the folder can be written");
    large.set_len(BYTES).expect("it is a hole");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let mut daemon = field.daemon(&format!("{FORWARD}\nstop_within: 300ms"));
    let mut client = reader_of(&field, "large");
    let of_peer = || text(&field.web.output(&["ss", "-Htn", "state", "connected", "dst", "10.7.0.2"]).stdout);
    assert!(of_peer().contains("10.7.0.2"), "{}", of_peer());
    daemon.tell(Signal::TERM);
    assert_eq!(daemon.ended(), Some(0), "{}", field.log());
    // The daemon has gone, and its RST has ended the connection of the peer.
    assert_eq!(of_peer(), "");
    let heard = std::io::copy(&mut client, &mut std::io::sink()).map_err(|error| error.kind());
    assert_eq!(heard, Err(ErrorKind::ConnectionReset));
    assert!(field.log().contains("reset at the deadline clients=1"), "{}", field.log());
}

/// The other end never answers, and the daemon ends before that is known.
#[test]
fn who_is_not_connected_in_time_hears_no_clean_end() {
    needs![];
    let field = Field::new("unconnected");
    // Otherwise the kernel reports after some seconds that the neighbour is missing.
    field.node.ip(&["neigh", "add", "10.9.0.99", "lladdr", "02:00:00:00:00:99", "dev", "wire0"]);
    let forward = "forwards: [{ listen: 127.0.0.1:8080, to: mesh:10.9.0.99:80 }]";
    let mut daemon = field.daemon(&format!("{forward}\nstop_within: 300ms"));
    let mut client = field.node.run(|| TcpStream::connect("127.0.0.1:8080").expect("it listens"));
    client.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    within_patience(until(|| field.status()["connections_open"] == 1));
    daemon.tell(Signal::TERM);
    assert_eq!(daemon.ended(), Some(0), "{}", field.log());
    let heard = client.read(&mut [0; 1]).map_err(|error| error.kind());
    assert_eq!(heard, Err(ErrorKind::ConnectionReset));
    assert!(field.log().contains("reset at the deadline clients=1"), "{}", field.log());
}

/// A socket like systemd's own: a daemon is no longer root when it reports ready.
pub(crate) fn systemd(path: impl AsRef<Path>) -> UnixDatagram {
    let systemd = UnixDatagram::bind(&path).expect("the folder can be written");
    let anybody = fs::Permissions::from_mode(0o777);
    fs::set_permissions(path, anybody).expect("it is ours");
    systemd.set_read_timeout(Some(PATIENCE)).expect("it can wait");
    systemd
}

/// The kernel queues a daemon's notifications, and the queue is full here.
#[test]
fn a_systemd_that_reads_nothing_holds_up_no_daemon() {
    needs![];
    let field = Field::new("deaf");
    let _deaf = systemd(field.path("notify"));
    let other = UnixDatagram::unbound().expect("a socket");
    other.set_nonblocking(true).expect("it is open");
    let full = std::iter::repeat_with(|| other.send_to(b"STATUS=busy", field.path("notify")));
    let full = full.take(1 << 20).find_map(Result::err).expect("a queue has an end");
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    let mut daemon = field.daemon("");
    assert_eq!(field.status()["connections_open"], 0);
    daemon.tell(Signal::TERM);
    assert_eq!(daemon.ended(), Some(0), "{}", field.log());
    assert_eq!(field.log().matches("systemd was not told").count(), 2, "{}", field.log());
}

#[test]
fn systemd_is_told_when_the_daemon_is_ready_and_when_it_ends() {
    needs![];
    let field = Field::new("notify");
    let systemd = systemd(field.path("notify"));
    let heard = || {
        let mut told = [0; 64];
        // A process that was stopped meanwhile has to call again: the kernel does not resume a call with a timeout.
        let mut answers = std::iter::repeat_with(|| systemd.recv(&mut told));
        let heard =
            answers.find(|heard| !matches!(heard, Err(error) if error.kind() == ErrorKind::Interrupted));
        let bytes = heard.expect("it never ends").expect("it is told");
        text(&told[..bytes])
    };
    let mut daemon = field.daemon("stop_within: 7min");
    assert_eq!(heard().trim(), "READY=1");
    assert_eq!(heard().trim(), "WATCHDOG=1", "it says again and again that it lives");
    daemon.tell(Signal::TERM);
    let last = std::iter::repeat_with(heard).find(|told| told.trim() != "WATCHDOG=1");
    // A unit allows 90 seconds unless it is told that relays may take longer.
    assert_eq!(last.as_deref().map(str::trim), Some("STOPPING=1\nEXTEND_TIMEOUT_USEC=423500000"));
    assert_eq!(daemon.ended(), Some(0), "{}", field.log());
}
