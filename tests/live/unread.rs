//! Daemons serve and end in order even if their log cannot be written, or has no reader.

use std::fs::{self, OpenOptions};
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use crate::field::{Daemon, Field, HOPWISE, PAGE, text};
use crate::namespace::Namespace;
use crate::world::{PATIENCE, until, within_patience};

/// Returns whether the pipe has room for a page.
fn has_room(writer: &PipeWriter) -> bool {
    let mut watched = [PollFd::new(writer, PollFlags::OUT)];
    poll(&mut watched, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// A pipe that is full, with its other end.
pub(crate) fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = pipe().expect("a pipe");
    while has_room(&writer) {
        writer.write_all(&[b'.'; 4096]).expect("it is open");
    }
    (reader, writer)
}

/// Logs that take no lines, with the reader that keeps the last one open.
fn logs() -> Vec<(&'static str, Stdio, Option<PipeReader>)> {
    let full_disk = OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let (gone, closed) = pipe().expect("a pipe");
    drop(gone);
    let (unread, full) = full_pipe();
    vec![
        ("full", full_disk.into(), None),
        ("closed", closed.into(), None),
        ("unread", full.into(), Some(unread)),
    ]
}

fn start(namespace: &Namespace, words: &[&str], log: Stdio) -> Daemon {
    let mut command = namespace.command(words);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    Daemon(command.spawn().expect("ip netns exec runs"))
}

/// Returns whether a connection through a forward brings the page.
fn brings_the_page(from: &Namespace, to: &str) -> bool {
    let to: SocketAddr = to.parse().expect("an address");
    let fetched = from.run(|| {
        let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map(|_| answer)
    });
    fetched.is_ok_and(|answer| answer.ends_with(PAGE))
}

#[test]
fn a_node_whose_log_is_full_closed_or_unread_serves_its_clients_and_ends_in_order() {
    needs!["python3"];
    let field = Field::new("unread-log");
    let _web = field.serve(&field.node, "127.0.0.1", "8000");
    let forwards =
        "forwards: [{ listen: mesh:8022, to: 127.0.0.1:8000 }, { listen: mesh:8024, to: 127.0.0.1:9 }]";
    let config = field.config(forwards);
    for (name, log, _unread) in logs() {
        let mut daemon = start(&field.node, &[HOPWISE, "node", &config], log);
        let mut has_ended = || daemon.0.try_wait().is_ok_and(|status| status.is_some());
        within_patience(until(|| has_ended() || field.ask(&["status"]).status.success()));
        assert!(!has_ended(), "{name}: it runs");
        // Each of these is a line in the log.
        for _ in 0..30 {
            let refused = field.web.run(|| {
                let mut stream = TcpStream::connect("10.7.0.2:8024")?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.read(&mut [0; 1])
            });
            assert!(!matches!(refused, Ok(1)), "{name}: nothing listens there");
        }
        assert!(brings_the_page(&field.web, "10.7.0.2:8022"), "{name}: a client is served");
        daemon.tell(Signal::TERM);
        assert_eq!(daemon.ended(), Some(0), "{name}");
    }
}

#[test]
fn a_router_whose_log_is_full_closed_or_unread_routes_and_ends_in_order() {
    needs![];
    let field = Field::new("unread-routes");
    let route = |n: u8| {
        let (config, state) = (field.path(&format!("route{n}.yaml")), field.path(&format!("state{n}")));
        let text = format!(
            "address: 10.77.0.{n}\nnetwork: 10.77.0.0/24\ninterfaces: [wire0]\nstate: {state}\n\
             routing: {{ protocol: aodv }}\n"
        );
        fs::write(&config, text).expect("the folder can be written");
        config
    };
    let (ours, theirs) = (route(1), route(2));
    let _neighbour = start(&field.web, &[HOPWISE, "route", &theirs], Stdio::null());
    for (name, log, _unread) in logs() {
        let mut daemon = start(&field.node, &[HOPWISE, "route", &ours], log);
        let mut has_ended = || daemon.0.try_wait().is_ok_and(|status| status.is_some());
        let routes = || {
            let ping = field.web.output(&["ping", "-c1", "-W1", "10.77.0.1"]);
            ping.status.success() && text(&ping.stdout).contains("bytes from")
        };
        within_patience(until(|| has_ended() || routes()));
        assert!(!has_ended(), "{name}: the neighbour finds it");
        daemon.tell(Signal::TERM);
        assert_eq!(daemon.ended(), Some(0), "{name}");
    }
}

/// A failed start ends the daemon with its own status.
#[test]
fn a_daemon_that_cannot_start_ends_with_its_status_also_where_its_log_takes_nothing() {
    needs![];
    let field = Field::new("unread-end");
    let config = field.config("metrics: { listen: 203.0.113.1:80 }");
    for (name, log, _unread) in logs() {
        let mut daemon = start(&field.node, &[HOPWISE, "node", &config], log);
        assert_eq!(daemon.ended(), Some(1), "{name}");
    }
}
