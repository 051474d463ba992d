//! A network namespace by its name: commands and threads inside.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::process::{Command, Output};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The namespace of that name, whichever program made it. It may go and come again.
#[derive(Clone, Debug)]
pub(crate) struct Namespace {
    name: String,
}

impl Namespace {
    pub(crate) fn named(name: &str) -> Namespace {
        Namespace { name: name.to_owned() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).args(words);
        command
    }

    pub(crate) fn output(&self, words: &[&str]) -> io::Result<Output> {
        self.command(words).output()
    }

    /// The output of a command inside.
    pub(crate) fn output_of(&self, words: &[&str]) -> String {
        self.output(words)
            .map_or(String::new(), |output| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs `work` on a thread inside.
    pub(crate) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let inside = || {
                enter(&self.name)?;
                Ok(work())
            };
            let running = thread::Builder::new().spawn_scoped(scope, inside)?;
            running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// The switches of its interfaces, each with its value.
    pub(crate) fn switches(&self) -> Vec<(String, String)> {
        self.inside(|| {
            let mut found = Vec::new();
            for family in ["ipv4", "ipv6"] {
                gather(&format!("/proc/sys/net/{family}/conf"), &mut found);
            }
            gather_one("/proc/sys/net/ipv4/ip_forward", &mut found);
            found.sort();
            found
        })
        .unwrap_or_default()
    }
}

/// Moves this thread there for good.
pub(crate) fn enter(name: &str) -> io::Result<()> {
    let file = File::open(format!("/run/netns/{name}"))?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
    Ok(())
}

fn gather(folder: &str, into: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path().to_string_lossy().into_owned();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            gather(&path, into);
        } else {
            gather_one(&path, into);
        }
    }
}

fn gather_one(path: &str, into: &mut Vec<(String, String)>) {
    if let Ok(value) = fs::read_to_string(path) {
        into.push((path.to_owned(), value.trim().to_owned()));
    }
}
