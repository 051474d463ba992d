//! The header is what cbindgen makes, and a program in C carries bytes by it.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use sha2::{Digest, Sha256};

const ROOM: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn the_header_is_the_one_that_cbindgen_makes() {
    let room = Path::new(ROOM);
    let config = cbindgen::Config::from_file(room.join("cbindgen.toml")).expect("the configuration is read");
    let made = cbindgen::Builder::new().with_config(config).with_src(room.join("src/calls.rs")).generate();
    let mut header = Vec::new();
    made.expect("the calls are read").write(&mut header);
    let (path, header) = (room.join("include/hopwise.h"), String::from_utf8(header).expect("it is text"));
    if std::env::var_os("HOPWISE_WRITE_DOCS").is_some() {
        fs::write(&path, &header).expect("it can be written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == header,
        "{} is not what the calls say: HOPWISE_WRITE_DOCS=1 writes it",
        path.display()
    );
}

/// A new folder of the test's own.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("it can be made");
    folder
}

/// Copies the library, which cargo builds with these tests.
fn copy_library(to: &Path) {
    let program = std::env::current_exe().expect("it runs");
    let built = program.parent().expect("it is in a folder").join("libhopwise_c.so");
    fs::copy(&built, to).expect("cargo builds it with this test");
}

/// The library under the names that C finds it by, in a folder of the test's own.
fn installed(test: &str) -> PathBuf {
    let folder = folder(test);
    copy_library(&folder.join("libhopwise.so.0"));
    symlink("libhopwise.so.0", folder.join("libhopwise.so")).expect("it can be made");
    folder
}

fn has_compiler(test: &str) -> bool {
    let has = Command::new("cc").arg("--version").output().is_ok();
    if !has {
        println!("skipped: {test}: the command cc is not installed");
    }
    has
}

/// A program in C that is linked with the library; None, after a line that says why, where there is no compiler.
fn compiled(test: &str, source: &str) -> Option<PathBuf> {
    if !has_compiler(test) {
        return None;
    }
    let (room, folder) = (Path::new(ROOM), installed(test));
    let program = folder.join("program");
    let compiled = Command::new("cc")
        .args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"])
        .arg(room.join("include"))
        .arg(room.join(source))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(&folder)
        .arg("-lhopwise")
        .arg(format!("-Wl,-rpath,{}", folder.display()))
        .output()
        .expect("cc runs");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    Some(program)
}

/// Compiles a program in C that says itself what is not as it should be, and runs it.
fn check(test: &str, source: &str) {
    let Some(program) = compiled(test, source) else { return };
    let done = Command::new(&program).output().expect("it runs");
    print!("{}", String::from_utf8_lossy(&done.stdout));
    assert!(done.status.success(), "{}: {}", done.status, String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_connect_in_c_need_not_wait() {
    check("a_connect_in_c_need_not_wait", "tests/connect.c");
}

#[test]
fn a_forked_child_does_nothing_to_the_connections_of_its_parent() {
    check("a_forked_child_does_nothing_to_the_connections_of_its_parent", "tests/fork.c");
}

#[test]
fn calls_write_what_they_say_and_leave_other_memory_as_it_is() {
    check("calls_write_what_they_say_and_leave_other_memory_as_it_is", "tests/memory.c");
}

#[test]
fn a_signal_ends_a_wait_unless_handlers_ask_for_a_restart() {
    check("a_signal_ends_a_wait_unless_handlers_ask_for_a_restart", "tests/signals.c");
}

#[test]
fn a_handler_that_forks_leaves_the_child_no_call_of_its_parent() {
    check("a_handler_that_forks_leaves_the_child_no_call_of_its_parent", "tests/handlers.c");
}

#[test]
fn the_example_is_built_and_run_by_the_lines_at_its_head() {
    let test = "the_example_is_built_and_run_by_the_lines_at_its_head";
    if !has_compiler(test) {
        return;
    }
    let (clone, room) = (folder(test), Path::new(ROOM));
    symlink(room, clone.join("c")).expect("it can be made");
    fs::write(clone.join("README.md"), "what is sent\n").expect("it can be written");
    let built = clone.join("target/release");
    fs::create_dir_all(&built).expect("it can be made");
    copy_library(&built.join("libhopwise_c.so"));
    let source = fs::read_to_string(room.join("examples/fetch.c")).expect("it can be read");
    let head = source.split("\n *\n").nth(1).expect("lines between two empty ones");
    let (of_cargo, lines): (Vec<_>, Vec<_>) =
        head.lines().map(|line| line.trim_start_matches(" * ")).partition(|line| line.starts_with("cargo"));
    assert_eq!(of_cargo, ["cargo build --release -p hopwise-c"], "{head}");
    let run =
        Command::new("sh").args(["-ec", &lines.join("\n")]).current_dir(&clone).output().expect("it runs");
    assert!(run.status.success(), "{}: {}", run.status, String::from_utf8_lossy(&run.stderr));
    assert_eq!(String::from_utf8_lossy(&run.stdout), "what is sent\n");
}

#[test]
fn a_program_in_c_returns_the_bytes_that_it_was_given() {
    let name = "a_program_in_c_returns_the_bytes_that_it_was_given";
    let Some(program) = compiled(name, "examples/fetch.c") else { return };
    let data: Vec<u8> =
        (0..5_000_000_u32).flat_map(|nth| nth.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let sent = Sha256::digest(&data);
    let mut running = Command::new(&program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut stdin = running.stdin.take().expect("it is piped");
    let writer = thread::spawn(move || stdin.write_all(&data));
    let mut got = Vec::new();
    running.stdout.take().expect("it is piped").read_to_end(&mut got).expect("it can be read");
    let ended = running.wait_with_output().expect("it ends");
    assert!(ended.status.success(), "{}: {}", ended.status, String::from_utf8_lossy(&ended.stderr));
    writer.join().expect("it ends").expect("all was taken");
    assert_eq!(Sha256::digest(&got), sent, "{} bytes came back", got.len());
}
