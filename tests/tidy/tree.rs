//! The files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// A text file; `path` is written from the repository's root, with slashes.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    pub(crate) fn is_manifest(&self) -> bool {
        self.path == "Cargo.toml" || self.path.ends_with("/Cargo.toml")
    }

    /// The fuzz targets are a workspace of their own, since they need another compiler.
    pub(crate) fn is_fuzz(&self) -> bool {
        self.path.starts_with("fuzz/")
    }

    pub(crate) fn is_script(&self) -> bool {
        self.path.starts_with("scripts/") || self.path.starts_with(".ci/")
    }

    /// A file that holds nothing but tests.
    pub(crate) fn is_test(&self) -> bool {
        let inside = self.path.split('/').any(|part| part == "tests" || part == "tests.rs");
        self.is_rust() && inside
    }

    /// Its lines, counted from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(before, line)| (before + 1, line))
    }
}

/// Folders of one machine, and folders that builds, runs and fuzzers leave behind.
const SKIPPED: [&str; 6] = [".git", "target", "results", "artifacts", "coverage", "proptest-regressions"];

/// All text files, in the order of their paths.
pub(crate) fn files() -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut found, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(root.join(&folder)).expect("a folder of the repository can be read");
        for entry in entries {
            let entry = entry.expect("an entry of the repository can be read");
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = folder.join(&name);
            if SKIPPED.contains(&name.as_str()) {
                continue;
            }
            if entry.file_type().expect("an entry has a type").is_dir() {
                folders.push(path);
            } else if let Ok(text) = fs::read_to_string(root.join(&path)) {
                found.push(File { path: path.to_string_lossy().replace('\\', "/"), text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}
