//! Namespaces of `hopwise air` that stay, and namespaces that go.

use std::fs;
use std::path::Path;

use rustix::process::Signal;

use super::{Air, HOPWISE, PORT, address};
use crate::namespace::prefix;
use crate::unread::full_pipe;
use crate::world::{until, within_patience};

/// The namespaces whose names begin with `prefix`.
fn names(prefix: &str) -> Vec<String> {
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(prefix)).collect()
}

#[test]
fn nothing_stays_when_it_ends_and_what_a_killed_one_left_the_next_one_removes() {
    needs!["ip"];
    let prefix = prefix("left");
    let mut air = Air::with_prefix(&prefix, 2, &[]);
    assert_eq!(names(&prefix).len(), 3);
    // Only one `hopwise air` may have the names.
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/chain.yaml");
    let mut second = std::process::Command::new(HOPWISE);
    let output =
        second.args(["air", "netns"]).arg(&scenario).args(["--prefix", &prefix]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--prefix"), "{output:?}");
    air.tell(Signal::KILL);
    let _ = air.process.wait();
    // The next one is this one, or that of a test beside it.
    let air = Air::with_prefix(&prefix, 1, &[]);
    assert_eq!(names(&prefix).len(), 2);
    air.echo(1);
    let socket = air.socket(0);
    within_patience(until(|| {
        socket.send_to(&[0; 100], (address(1), PORT)).is_ok() && socket.recv(&mut [0; 200]).is_ok()
    }));
    drop(air);
    assert_eq!(names(&prefix), Vec::<String>::new());
    assert!(!Path::new("/run/hopwise").join(format!("air-{prefix}.names")).exists());
}

/// A kill between the making of a namespace and its line in the note leaves the name alone.
#[test]
fn a_namespace_that_was_being_made_goes_with_the_next_one() {
    needs!["ip"];
    let prefix = prefix("half");
    let note = Path::new("/run/hopwise").join(format!("air-{prefix}.names"));
    let name = format!("{prefix}-n0");
    let made = std::process::Command::new("ip").args(["netns", "add", &name]).status().expect("it runs");
    assert!(made.success());
    // From here on any other `hopwise air` may remove it, too.
    fs::create_dir_all("/run/hopwise").expect("root may");
    fs::write(&note, format!("{name}\n")).expect("root may");
    let air = Air::with_prefix(&prefix, 1, &[]);
    assert_eq!(names(&prefix).len(), 2);
    drop(air);
    assert_eq!(names(&prefix), Vec::<String>::new());
}

#[test]
fn a_namespace_of_somebody_else_with_one_of_its_names_stays() {
    needs!["ip"];
    let prefix = prefix("theirs");
    let ip = |verb: &str, name: &str| {
        let done = std::process::Command::new("ip").args(["netns", verb, name]).status().expect("it runs");
        assert!(done.success(), "ip netns {verb} {name}");
    };
    let mut air = Air::with_prefix(&prefix, 1, &[]);
    let replaced = names(&prefix).into_iter().min().expect("it has two");
    // While it runs.
    ip("del", &replaced);
    ip("add", &replaced);
    air.tell(Signal::TERM);
    within_patience(until(|| air.has_ended()));
    assert_eq!(names(&prefix), std::slice::from_ref(&replaced));
    ip("del", &replaced);
    // After it was killed.
    let mut air = Air::with_prefix(&prefix, 1, &[]);
    air.tell(Signal::KILL);
    let _ = air.process.wait();
    // A `hopwise air` of a test beside this one may have removed it.
    let _ = std::process::Command::new("ip").args(["netns", "del", &replaced]).output().expect("it runs");
    ip("add", &replaced);
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/chain.yaml");
    let mut second = std::process::Command::new(HOPWISE);
    let output =
        second.args(["air", "netns"]).arg(&scenario).args(["--prefix", &prefix]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("is somebody else's"), "{output:?}");
    assert_eq!(names(&prefix), std::slice::from_ref(&replaced));
    ip("del", &replaced);
}

#[test]
fn nothing_stays_when_it_ends_and_nobody_reads_its_report() {
    needs!["ip"];
    let prefix = prefix("unread");
    let (_unread, full) = full_pipe();
    let mut air = Air::printing_to(&prefix, 1, &[], &[], full.into());
    air.tell(Signal::TERM);
    within_patience(until(|| air.has_ended()));
    assert_eq!(names(&prefix), Vec::<String>::new());
}
