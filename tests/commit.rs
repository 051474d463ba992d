//! The commit that a build finds in a clone, from git's files alone.

#[path = "../build/commit.rs"]
mod commit;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A clone: its name, its files, and the file that changes when another commit is checked out.
type Clone<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

const HASH: &str = "0123456789abcdef0123456789abcdef01234567";

fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("commit").join(name);
    let _ = fs::remove_dir_all(&folder);
    for (place, text) in files {
        let file = folder.join(place);
        fs::create_dir_all(file.parent().expect("a folder")).expect("it can be made");
        fs::write(file, text).expect("it can be written");
    }
    folder
}

#[test]
fn a_commit_is_found_on_a_branch_packed_detached_and_in_a_worktree() {
    let line = format!("{HASH}\n");
    let packed = format!("# pack-refs with: peeled\n{HASH} refs/heads/main\n");
    let clones: [Clone<'_>; 4] = [
        (
            "loose",
            &[(".git/HEAD", "ref: refs/heads/main\n"), (".git/refs/heads/main", &line)],
            "refs/heads/main",
        ),
        ("packed", &[(".git/HEAD", "ref: refs/heads/main\n"), (".git/packed-refs", &packed)], "packed-refs"),
        ("detached", &[(".git/HEAD", &line)], "HEAD"),
        (
            "worktree",
            &[
                (".git", "gitdir: clone/worktrees/w\n"),
                ("clone/worktrees/w/HEAD", "ref: refs/heads/main\n"),
                ("clone/worktrees/w/commondir", "../..\n"),
                ("clone/refs/heads/main", &line),
            ],
            "refs/heads/main",
        ),
    ];
    for (name, files, changes) in clones {
        let found = commit::of(&folder(name, files).join(".git"));
        assert_eq!(found.hash.as_deref(), Some(&HASH[..12]), "{name}");
        assert!(found.watched.iter().any(|path| path.ends_with(changes)), "{name}: {found:?}");
        assert!(found.watched.iter().all(|path| path.exists()), "{name}: {found:?}");
    }
}

#[test]
fn outside_a_clone_there_is_no_commit_and_nothing_to_watch() {
    let found = commit::of(&folder("none", &[("README.md", "")]).join(".git"));
    assert_eq!((found.hash, found.watched.len()), (None, 0));
}

#[test]
fn the_program_tells_the_commit_that_it_was_built_from() {
    let told =
        Command::new(env!("CARGO_BIN_EXE_hopwise")).arg("--version").output().expect("it starts").stdout;
    let told = String::from_utf8(told).expect("UTF-8");
    assert!(told.contains(hopwise_lab::VERSION), "{told}");
    let found = commit::of(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".git"));
    match found.hash {
        Some(hash) => {
            assert!(told.trim_end().ends_with(&format!("(commit {hash})")), "{told}, and not {hash}");
        }
        None => assert!(!told.contains("commit"), "{told}"),
    }
}
