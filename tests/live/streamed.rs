//! Captures as streams: `hopwise capture live`, and Wireshark's interfaces (extcap).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::field::{Field, HOPWISE, SOCKS5, THROUGH, text};
use crate::mesh::fleet::{make_keys, start_server};
use crate::namespace::{Running, found};
use crate::world::{until, within_patience};

#[test]
fn a_capture_as_a_stream_has_what_the_file_would_have_and_leaves_nothing() {
    needs!["curl", "python3", "tshark"];
    let field = Field::new("streamed");
    fs::write(field.path("www/big"), vec![7; 3_000_000]).expect("the folder can be written");
    let _server = field.serve(&field.web, "10.9.0.2", "80");
    let _daemon = field.daemon(SOCKS5);
    let stream = field.path("stream.pcapng");
    let control = field.path("control.sock");
    let words = [HOPWISE, "capture", "live", "--control", &control, "-o", &stream];
    let mut live = field.node.start(&words);
    within_patience(until(|| fs::metadata(&stream).is_ok_and(|facts| facts.len() > 0)));
    let second = field.ask(&["capture", "live", "-o", "/dev/null"]);
    assert!(text(&second.stderr).contains("the daemon refused"), "{}", text(&second.stderr));
    let page = field.curl(&[&THROUGH[..], &["http://10.9.0.2/big", "-o", "/dev/null"]].concat());
    assert!(page.status.success(), "{}", text(&page.stderr));
    let written = field.status()["capture"]["packets_written"].as_u64().expect("a count");
    // All that was written before comes with the next look.
    let frames = || comments_of(&stream).split('\n').count() as u64;
    within_patience(until(|| frames() > written));
    assert_eq!(live.ended_by(Signal::TERM), Some(0));
    assert!(field.status()["capture"].is_null(), "the capture has ended");
    let folder = fs::read_dir(Path::new(&control).parent().expect("a folder")).expect("it is there");
    let left: Vec<_> = folder.flatten().map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("live-")), "{left:?}");
    let why = field.node.output(&[HOPWISE, "capture", "why", &stream, "--summary"]);
    assert!(text(&why.stdout).contains("delayed"), "{} {}", text(&why.stdout), text(&why.stderr));
}

/// The end of the daemon ends the stream.
#[test]
fn a_stream_ends_with_its_node() {
    needs!["python3"];
    let field = Field::new("streams-end");
    let mut daemon = field.daemon(SOCKS5);
    let stream = field.path("stream.pcapng");
    let words = [HOPWISE, "capture", "live", "--control", &field.path("control.sock"), "-o", &stream];
    let mut live = field.node.start(&words);
    within_patience(until(|| fs::metadata(&stream).is_ok_and(|facts| facts.len() > 0)));
    daemon.tell(Signal::TERM);
    assert_eq!(daemon.ended(), Some(0));
    within_patience(until(|| live.0.try_wait().is_ok_and(|ended| ended.is_some())));
}

/// The script that Wireshark calls.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/wireshark/hopwise-extcap");

/// The folder of this build's program.
fn programs() -> String {
    Path::new(HOPWISE).parent().expect("a folder").to_string_lossy().into_owned()
}

/// The call of that script, with this build's program.
fn extcap(words: &[&str]) -> Command {
    let path = format!("{}:{}", programs(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(SCRIPT);
    command.env("PATH", path).args(words);
    command
}

#[test]
fn wireshark_is_told_of_interfaces_and_their_settings() {
    let told = |words: &[&str]| text(&extcap(words).output().expect("it runs").stdout);
    let listed = told(&["--extcap-interfaces", "--extcap-version=4.0"]);
    assert!(listed.contains("interface {value=hopwise-ssh}"), "{listed}");
    let settings = told(&["--extcap-interface", "hopwise-ssh", "--extcap-config"]);
    assert!(settings.starts_with("arg {number=0}{call=--host}"), "{settings}");
}

/// A server of ssh on a node's machine, whose shell finds this build's program. Returns the folder with an `ssh` for
/// it, and the server.
fn ssh_to(field: &Field) -> (String, Running) {
    make_keys(&field.folder, &[]);
    let forced = format!("ForceCommand PATH={}:$PATH; eval \"$SSH_ORIGINAL_COMMAND\"\n", programs());
    let settings = fs::read_to_string(field.path("sshd_config")).expect("it is there") + &forced;
    fs::write(field.path("sshd_config"), settings).expect("the folder can be written");
    let server = start_server(&field.folder, &field.node);
    within_patience(until(|| field.node.has_listener(22)));
    let wrapper = format!("#!/bin/sh\nexec {} -F {} \"$@\"\n", found("ssh"), field.path("ssh_config"));
    fs::create_dir(field.path("bin")).expect("the folder can be written");
    fs::write(field.path("bin/ssh"), wrapper).expect("the folder can be written");
    fs::set_permissions(field.path("bin/ssh"), fs::Permissions::from_mode(0o755)).expect("it is ours");
    (field.path("bin"), server)
}

#[test]
fn a_live_node_of_another_machine_is_an_interface_of_wireshark_by_ssh() {
    needs!["curl", "python3", "tshark", "mkfifo", "ssh", "sshd", "ssh-keygen"];
    let field = Field::new("extcapssh");
    let _web = field.serve(&field.web, "10.9.0.2", "80");
    let _daemon = field.daemon(SOCKS5);
    let (client, _server) = ssh_to(&field);
    let (fifo, stream) = (field.path("pipe"), field.path("stream.pcapng"));
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("it runs").success());
    let path = format!("PATH={client}:{}:{}", programs(), std::env::var("PATH").unwrap_or_default());
    let control = field.path("control.sock");
    let asked = ["env", &path, SCRIPT, "--extcap-interface", "hopwise-ssh", "--capture", "--fifo", &fifo];
    let settings = ["--host", "10.9.0.1", "--control", &control, "--link", ""];
    let mut capture = field.web.start(&[&asked[..], &settings].concat());
    let copied = fs::File::create(&stream).expect("the folder can be written");
    let _reader = Running(Command::new("cat").arg(&fifo).stdout(copied).spawn().expect("it runs"));
    within_patience(until(|| fs::metadata(&stream).is_ok_and(|facts| facts.len() > 0)));
    let page = field.curl(&[&THROUGH[..], &["http://10.9.0.2/", "-o", "/dev/null"]].concat());
    assert!(page.status.success(), "{}", text(&page.stderr));
    within_patience(until(|| comments_of(&stream).contains("delayed")));
    assert_eq!(capture.ended_by(Signal::TERM), Some(0));
}

fn comments_of(stream: &str) -> String {
    let words = ["-r", stream, "-T", "fields", "-e", "frame.comment"];
    text(&Command::new("tshark").args(words).output().expect("tshark runs").stdout)
}
