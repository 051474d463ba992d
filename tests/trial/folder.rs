//! A folder of a test's own, with a small scenario in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub(crate) const SCENARIO: &str = "\
title: A small trial
topology: { kind: chain, hops: 2 }
channel: { loss: 1% }
traffic:
  - { from: first, to: last, kind: bulk }
arms:
  every: { receiver: immediate, sender: [newreno] }
  delayed: { receiver: delayed, sender: [newreno] }
  dca: { receiver: dca, sender: [newreno, tell-cwnd] }
run: { duration: 10s, warmup: 2s, seeds: 4 }
";

pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("hopwise-trial-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        fs::write(path.join("small.yaml"), SCENARIO).expect("a scenario");
        Folder(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a file");
    }

    /// `hopwise trial small.yaml WORDS…`, in this folder.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        self.hopwise(&[&["trial", "small.yaml"], words].concat())
    }

    /// `hopwise WORDS…`, in this folder.
    pub(crate) fn hopwise(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hopwise"));
        command.args(words).current_dir(&self.0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn trial(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("the command was built with the tests")
    }

    /// The same command, which must succeed. Returns its standard output.
    pub(crate) fn done(&self, words: &[&str]) -> String {
        let done = self.trial(words);
        assert_eq!(done.status.code(), Some(0), "{words:?}: {}", text(&done.stderr));
        text(&done.stdout)
    }

    /// Every file below a trial's folder, without files about hosts and costs.
    pub(crate) fn files(&self, out: &str) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        collect(&self.path(out), "", &mut files);
        files.retain(|name, _| !name.starts_with("cost") && name != "lock");
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn collect(folder: &Path, before: &str, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
        let name = format!("{before}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            collect(&entry.path(), &format!("{name}/"), files);
        } else {
            files.insert(name, fs::read(entry.path()).expect("a file"));
        }
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
