//! Runs nft, and makes tables that belong to a process: the kernel removes such a table when its owner ends.
//!
//! The owner is an `nft -i` that we start and that ends with its standard input. A shell writes our script there and
//! holds it open until we end, for any reason. An attacker who takes over this process can end the table, but cannot
//! command nft. Both programs run with this thread's ambient capabilities alone, unless this thread is root. They
//! ignore the signals that end a daemon: a service manager may send these to each process, and we still need the table
//! then.
//!
//! An nft that does not answer is ended, and the error says so ([`io::ErrorKind::TimedOut`]). No table is left then:
//! nft makes a table whole or not at all, and the kernel removes one whose owner was ended.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd;
use std::process::{ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::poller::wait_to_read;
use crate::running::{RunningTool, WITHIN, memory, run, silent, whole};

/// The program, as errors name it.
const NAME: &str = "nft (package nftables)";
/// Attempts while a table's owner, left by a killed process, is still ending.
const TRIES: u32 = 60;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);
/// Makes a shell, and the program that it becomes, ignore the signals that end a daemon.
pub(crate) const DEAF: &str = "trap '' HUP INT QUIT TERM;";

#[derive(Debug)]
pub(crate) struct OwnedTable {
    nft: RunningTool,
    /// The errors of nft.
    complaints: File,
    holder: RunningTool,
    /// When it closes, by us or at our end, the holder ends, and nft with it.
    input: Option<ChildStdin>,
}

impl OwnedTable {
    /// Makes the table, such as `netdev hopwise_x`, with these chains, each `chain NAME { … }`. A table of that name
    /// that a crash left is removed first.
    #[expect(clippy::disallowed_methods, reason = "nothing is driven yet")]
    pub(crate) fn set(table: &str, chains: &str) -> io::Result<OwnedTable> {
        let mut tries = 0;
        // Made before it is deleted, so that there is one to delete.
        while let Err(error) = nft(&format!("table {table} {{}}\ndelete table {table}\n")) {
            tries += 1;
            if tries == TRIES || matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::TimedOut) {
                return Err(error);
            }
            thread::sleep(BETWEEN_TRIES);
        }
        // One line, because nft runs each line as a step of its own.
        let script = format!("table {table} {{ flags owner; {chains}}}\nlist table {table}\n");
        let mut made = OwnedTable::start(&script)?;
        match made.hear(&format!("table {table}")) {
            Ok(()) => Ok(made),
            Err(error) => Err(made.give_up(error)),
        }
    }

    fn start(script: &str) -> io::Result<OwnedTable> {
        let complaints = memory()?;
        let mut holder = Command::new("sh");
        holder.args(["-c", &format!("{DEAF} printf %s \"$1\"; read -r _"), "sh", script]);
        holder.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut holder = RunningTool::start(&mut holder)?;
        let (input, script) = (holder.child.stdin.take(), holder.child.stdout.take());
        let script = script.map_or_else(Stdio::null, Stdio::from);
        let mut nft = Command::new("sh");
        nft.args(["-c", &format!("{DEAF} exec nft -i")]);
        nft.stdin(script).stdout(Stdio::piped()).stderr(complaints.try_clone()?);
        // Without nft the holder's next line has no reader.
        let nft = RunningTool::start(&mut nft).inspect_err(|_| holder.kill())?;
        Ok(OwnedTable { nft, complaints, holder, input })
    }

    /// Waits until nft lists the table that it should have made.
    fn hear(&mut self, wanted: &str) -> io::Result<()> {
        let Some(output) = &mut self.nft.child.stdout else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let (mut said, mut buffer) = (String::new(), [0; 4096]);
        while !said.contains(wanted) {
            wait_to_read(output.as_fd(), WITHIN)?;
            match output.read(&mut buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                bytes => said.push_str(&String::from_utf8_lossy(&buffer[..bytes])),
            }
        }
        Ok(())
    }

    /// The error that nft prints in place of the table, or that it does not answer.
    fn give_up(mut self, error: io::Error) -> io::Error {
        self.holder.let_go(self.input.take());
        if error.kind() == io::ErrorKind::TimedOut || self.nft.end_within(WITHIN).is_err() {
            self.nft.kill();
            self.holder.kill();
            return silent(NAME, WITHIN);
        }
        match whole(&mut self.complaints) {
            Ok(said) => {
                let error = failure(&said);
                io::Error::new(error.kind(), format!("{NAME}: {error}"))
            }
            Err(error) => error,
        }
    }

    /// Returns whether the table still exists.
    pub(crate) fn stands(&mut self) -> bool {
        self.nft.is_running()
    }
}

impl Drop for OwnedTable {
    fn drop(&mut self) {
        self.holder.let_go(self.input.take());
        for process in [&mut self.holder, &mut self.nft] {
            if process.end_within(WITHIN).is_err() {
                process.kill();
                tracing::warn!("{NAME} does not end: its table may still be there");
            }
        }
    }
}

/// A device as part of a name in nft. A character that nft does not allow, and `_`, becomes `_` and two digits a byte.
/// Different devices therefore get different names.
pub(crate) fn in_a_name(device: &str) -> String {
    let mut name = String::new();
    for byte in device.bytes() {
        if byte.is_ascii_alphanumeric() {
            name.push(char::from(byte));
        } else {
            // Writing to a String does not fail.
            let _ = write!(name, "_{byte:02x}");
        }
    }
    name
}

pub(crate) fn nft(script: &str) -> io::Result<()> {
    feed(Command::new("nft").args(["-f", "-"]), script)
}

/// The rules of a family, or of all, as nft prints them.
pub(crate) fn ruleset(family: Option<&str>) -> io::Result<String> {
    listed(["ruleset"].into_iter().chain(family))
}

/// The families and names of all tables.
pub(crate) fn tables() -> io::Result<String> {
    listed(["tables"])
}

fn listed<'a>(what: impl IntoIterator<Item = &'a str>) -> io::Result<String> {
    let done = run(Command::new("nft").arg("list").args(what), "")?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    Err(failure(&done.stderr))
}

/// Runs a program with `script` on its standard input. If it fails, the first line of its standard error is the error.
pub(crate) fn feed(program: &mut Command, script: &str) -> io::Result<()> {
    let done = run(program, script)?;
    if done.status.success() { Ok(()) } else { Err(failure(&done.stderr)) }
}

fn failure(said: &[u8]) -> io::Error {
    let said = String::from_utf8_lossy(said);
    io::Error::new(kind_of(&said), said.lines().next().unwrap_or("it failed").to_owned())
}

fn kind_of(said: &str) -> io::ErrorKind {
    if said.contains("Operation not permitted") {
        io::ErrorKind::PermissionDenied
    } else {
        io::ErrorKind::Other
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_table_goes_although_a_child_of_a_fork_has_the_pipe_too() {
        let table = OwnedTable::start("").expect("there is a shell");
        let pipe = table.input.as_ref().map(|input| input.as_fd().try_clone_to_owned());
        let childs = pipe.expect("it stands").expect("a descriptor is free");
        let (ended, end) = mpsc::channel();
        thread::spawn(move || {
            drop(table);
            ended.send(())
        });
        end.recv_timeout(WITHIN / 3).expect("it waits for the pipe's last holder");
        drop(childs);
    }
}
