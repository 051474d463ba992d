//! The header is what cbindgen makes, and a program in C carries bytes by it.

use std::fs;
use std::io::{Read, Write};
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

/// The library under the names that C finds it by, in a folder of the test's own.
fn installed(test: &str) -> PathBuf {
    let program = std::env::current_exe().expect("it runs");
    let built = program.parent().expect("it is in a folder").join("libhopwise_c.so");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    fs::create_dir_all(&folder).expect("it can be made");
    fs::copy(&built, folder.join("libhopwise.so.0")).expect("cargo builds it with this test");
    let link = folder.join("libhopwise.so");
    let _ = fs::remove_file(&link);
    std::os::unix::fs::symlink("libhopwise.so.0", link).expect("it can be made");
    folder
}

/// A program in C that is linked with the library; None, after a line that says why, where there is no compiler.
fn compiled(test: &str, source: &str) -> Option<PathBuf> {
    if Command::new("cc").arg("--version").output().is_err() {
        println!("skipped: {test}: the command cc is not installed");
        return None;
    }
    let (room, folder) = (Path::new(ROOM), installed(test));
    let program = folder.join("program");
    let compiled = Command::new("cc")
        .args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-I"])
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

#[test]
fn a_connect_in_c_need_not_wait() {
    let Some(program) = compiled("a_connect_in_c_need_not_wait", "tests/connect.c") else { return };
    let done = Command::new(&program).output().expect("it runs");
    assert!(done.status.success(), "{}: {}", done.status, String::from_utf8_lossy(&done.stderr));
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
