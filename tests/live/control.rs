//! A node's control socket: its permitted users, and its requests.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::field::{Field, HOPWISE, text};

/// A user whom no daemon of the tests runs as.
const SOMEBODY: u32 = 54_321;

/// The file's permissions keep them out as well, unless root changes the permissions.
#[test]
fn who_may_not_ask_is_told_who_may() {
    needs![];
    let field = Field::new("who-asks");
    let _daemon = field.daemon("");
    let (socket, command) = (field.path("control.sock"), field.path("hopwise"));
    // The command may lie where no other user gets to. A program cannot start while a process has it open for writing.
    // A process that another test starts holds this one's open files until it becomes its command.
    let copied = Command::new("cp").args([HOPWISE, &command]).status();
    assert!(copied.is_ok_and(|status| status.success()), "the folder can be written");
    let asks = || {
        let asked = Command::new(&command).args(["status", "--control", &socket]).uid(SOMEBODY).output();
        let asked = asked.expect("it runs");
        assert_eq!(asked.status.code(), Some(1));
        text(&asked.stderr)
    };
    let kept_out = asks();
    assert!(kept_out.contains("only root and the daemon's user may ask"), "{kept_out}");
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).expect("it is root's");
    for _ in 0..20 {
        assert_eq!(asks(), "hopwise: the daemon refused: only root and the daemon's user may ask\n");
    }
    assert_eq!(field.status()["node"], "n2");
}

#[test]
fn a_capture_whose_files_hold_no_packet_is_refused() {
    needs![];
    let field = Field::new("rotates");
    let _daemon = field.daemon("");
    let ask = |rotate_bytes: u64, files: u32| {
        let file = field.path("a.pcapng");
        let question = serde_json::json!({
            "ask": "capture-start", "file": file, "links": [], "rotate_bytes": rotate_bytes,
            "files": files,
        });
        let mut socket = UnixStream::connect(field.path("control.sock")).expect("it listens");
        socket.write_all(format!("{question}\n").as_bytes()).expect("it is open");
        let mut answer = String::new();
        BufReader::new(socket).read_line(&mut answer).expect("it answers");
        answer
    };
    let refused = ask((64 << 10) - 1, 2);
    assert!(refused.contains("rotate: too small for a file: expected 64KiB or more"), "{refused}");
    let refused = ask(64 << 10, 0);
    assert!(refused.contains("files: no file would stay: expected 1 or more"), "{refused}");
    let taken = ask(64 << 10, 1);
    assert!(taken.contains("\"answer\":\"capture\""), "{taken}");
}
