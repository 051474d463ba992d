//! Files that a command line names: pipes with a writer are read, and nothing else without an end is.

use std::fs;
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::folder::{Folder, SCENARIO, text};

/// Commands that read a whole file.
const COMMANDS: &[&[&str]] = &[
    &["run", "FILE"],
    &["trial", "FILE"],
    &["air", "netns", "FILE"],
    &["node", "FILE"],
    &["route", "FILE"],
    &["proxy", "FILE"],
    &["mesh", "up", "FILE", "--check"],
    &["doctor", "--config", "FILE"],
    &["mesh", "status", "--inventory", "FILE"],
    &["exec", "--login", "FILE", "--", "true"],
];

#[test]
fn a_pipe_with_a_writer_is_a_file_like_any_other() {
    let folder = Folder::new("pipes");
    let hopwise = env!("CARGO_BIN_EXE_hopwise");
    let run = "run --arm dca --set run.duration=4s --out r";
    for script in [
        format!("{hopwise} {run} <(cat small.yaml)"),
        format!("{hopwise} {run} <(sleep .2; cat small.yaml)"),
        format!("cat small.yaml | {hopwise} {run} /dev/stdin"),
    ] {
        let mut bash = Command::new("bash");
        bash.args(["-c", &script]).current_dir(folder.path("")).stdin(Stdio::null());
        let done = bash.output().expect("there is a bash");
        assert_eq!(done.status.code(), Some(0), "{script}: {}", text(&done.stderr));
        let _ = fs::remove_dir_all(folder.path("r"));
    }
}

#[test]
fn what_has_no_end_and_no_writer_is_refused() {
    let folder = Folder::new("endless");
    mknodat(CWD, folder.path("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    fs::create_dir(folder.path("folder")).expect("a folder");
    let moved = SCENARIO.replace("{ kind: chain, hops: 2 }", "{ kind: movements, file: FILE }");
    for (file, wanted) in [
        ("/dev/zero", "it is too long: expected at most "),
        ("pipe", "nobody writes to this pipe: expected a file, or a pipe with a writer"),
        ("folder", "it is a folder: expected a file"),
    ] {
        for words in COMMANDS {
            let words: Vec<_> = words.iter().map(|word| if *word == "FILE" { file } else { word }).collect();
            let done = folder.hopwise(&words).output().expect("the command was built with the tests");
            let said = text(&done.stderr);
            assert!(
                !done.status.success() && said.contains(file) && said.contains(wanted),
                "{words:?}: {said}"
            );
        }
        // A file that another file names is a regular one.
        folder.write("moved.yaml", &moved.replace("FILE", file));
        let done = folder.hopwise(&["run", "moved.yaml", "--arm", "dca"]).output().expect("it was built");
        let said = text(&done.stderr);
        // The line is folded behind this.
        let wanted = "it is a folder, a pipe or a device: expected a regular";
        assert!(!done.status.success() && said.contains(wanted), "{file}: {said}");
    }
    // Readers of captures and traces bound each part that they hold.
    for words in [&["capture", "trace", "pipe"][..], &["capture", "why", "pipe", "1"]] {
        let done = folder.hopwise(words).output().expect("the command was built with the tests");
        let said = text(&done.stderr);
        assert!(!done.status.success() && said.contains("nobody writes to this pipe"), "{words:?}: {said}");
    }
}
