//! The kernel's file systems and the programs of a machine; another folder in tests, with recorded files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A machine by its files.
#[derive(Debug)]
pub(super) struct System {
    root: PathBuf,
}

impl System {
    pub(super) fn at(root: &Path) -> System {
        System { root: root.to_owned() }
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// A file's text without its newline. Names in it may be any bytes that a user of the machine chooses.
    pub(super) fn read(&self, path: &str) -> Option<String> {
        let bytes = fs::read(self.path(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// The names in a folder, in their order; none if it is not there.
    pub(super) fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// The output of a program, or the reason why there is none.
    pub(super) fn run(&self, program: &str, words: &[&str]) -> io::Result<String> {
        let output = Command::new(self.path(program)).args(words).output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() {
            return Ok(text(&output.stdout));
        }
        let said = text(&[output.stderr, output.stdout].concat());
        Err(io::Error::other(if said.is_empty() { output.status.to_string() } else { said }))
    }
}
