//! The measuring commands print for a reader that may stop reading.

use std::fs;
use std::io::PipeReader;
use std::net::TcpStream;
use std::process::{Child, Stdio};

use rustix::process::Signal;

use crate::field::{Daemon, Field, HOPWISE};
use crate::namespace::Namespace;
use crate::unread::full_pipe;
use crate::world::{until, within_patience};

/// A command whose standard output is a pipe that is full, and that pipe's other end.
fn into_a_full_pipe(namespace: &Namespace, words: &[&str]) -> (Daemon, PipeReader) {
    let (reader, writer) = full_pipe();
    let mut command = namespace.command(&[&[HOPWISE], words].concat());
    command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::null());
    (Daemon(command.spawn().expect("ip netns exec runs")), reader)
}

/// Returns whether one of its threads is in a system call with standard output.
fn prints(process: &Child) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", process.id())) else { return false };
    let calls = threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("syscall")).ok());
    let mut arguments = calls.filter_map(|call| call.split(' ').nth(1).map(str::to_owned));
    arguments.any(|first| first == "0x1")
}

fn ends_on_sigterm(mut daemon: Daemon, status: i32) {
    within_patience(until(|| prints(&daemon.0)));
    daemon.tell(Signal::TERM);
    assert_eq!(daemon.ended(), Some(status));
}

#[test]
fn a_measurement_that_nobody_reads_is_ended_by_a_signal() {
    needs![];
    let field = Field::new("unread");
    let (waits, _unread) = into_a_full_pipe(&field.web, &["recv", "--kernel-tcp", "--port", "5202"]);
    ends_on_sigterm(waits, 0);
    let (tells, _unread) = into_a_full_pipe(&field.web, &["recv", "--kernel-tcp", "--json"]);
    within_patience(until(|| field.web.run(|| TcpStream::connect(("10.9.0.2", 5201)).is_ok())));
    let send = ["send", "10.9.0.2", "--kernel-tcp"];
    let sent = field.node.output(&[&[HOPWISE], &send[..], &["--bytes", "1B"]].concat());
    assert!(sent.status.success());
    ends_on_sigterm(tells, 0);
    let _there = field.web.start(&[HOPWISE, "recv", "--kernel-tcp"]);
    within_patience(until(|| field.web.run(|| TcpStream::connect(("10.9.0.2", 5201)).is_ok())));
    for words in [&["--time", "600s"][..], &["--json", "--bytes", "1B"]] {
        let (sends, _unread) = into_a_full_pipe(&field.node, &[&send[..], words].concat());
        ends_on_sigterm(sends, 1);
    }
}

/// Connecting may take half a minute.
#[test]
fn who_is_not_answered_at_once_says_so() {
    needs![];
    let field = Field::new("unanswered");
    let said = field.path("said");
    let place = ["send", "10.9.0.99", "--address", "10.7.0.2/24", "--kernel", "10.7.0.1/24", "--json"];
    let mut command = field.node.command(&[&[HOPWISE], &place[..]].concat());
    let to = fs::File::create(&said).expect("the folder can be written");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(to);
    let mut waits = Daemon(command.spawn().expect("ip netns exec runs"));
    let says = || fs::read_to_string(&said).unwrap_or_default();
    within_patience(until(|| says().contains("10.9.0.99:5201 does not answer yet; it may take 30 s")));
    waits.tell(Signal::TERM);
    assert_eq!(waits.ended(), Some(1), "{}", says());
}
