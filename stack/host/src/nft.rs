//! Runs nft, and makes tables that belong to a process: the kernel removes such a table when its owner ends.
//!
//! The owner is an `nft -i` that we start and that ends with its standard input. A shell writes our script there and
//! holds it open until we end, for any reason. An attacker who takes over this process can end the table, but cannot
//! command nft. Both programs run with this thread's ambient capabilities alone, unless this thread is root. They
//! ignore the signals that end a daemon: a service manager may send these to each process, and we still need the table
//! then.

use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::poller::wait_to_read;

/// The limit for nft's reply; a healthy nft replies at once.
const WITHIN: Duration = Duration::from_secs(3);
/// Attempts while a table's owner, left by a killed process, is still ending.
const TRIES: u32 = 60;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);
/// Makes a shell, and the program that it becomes, ignore the signals that end a daemon.
pub(crate) const DEAF: &str = "trap '' HUP INT QUIT TERM;";

#[derive(Debug)]
pub(crate) struct OwnedTable {
    nft: Child,
    holder: Child,
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
            if tries == TRIES || error.kind() == io::ErrorKind::NotFound {
                return Err(error);
            }
            thread::sleep(BETWEEN_TRIES);
        }
        // One line, because nft runs each line as a step of its own.
        let script = format!("table {table} {{ flags owner; {chains}}}\nlist table {table}\n");
        let mut holder = Command::new("sh")
            .args(["-c", &format!("{DEAF} printf %s \"$1\"; read -r _"), "sh", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // A terminal stops and ends the daemon alone.
            .process_group(0)
            .spawn()?;
        let (input, script) = (holder.stdin.take(), holder.stdout.take());
        let script = script.map_or_else(Stdio::null, Stdio::from);
        let mut nft = Command::new("sh");
        nft.args(["-c", &format!("{DEAF} exec nft -i")]).process_group(0);
        nft.stdin(script).stdout(Stdio::piped()).stderr(Stdio::piped());
        let nft = nft.spawn().inspect_err(|_| {
            // Without nft the holder's next line has no reader.
            let _ = holder.kill();
            let _ = holder.wait();
        })?;
        let mut table_of_ours = OwnedTable { nft, holder, input };
        if table_of_ours.hears(&format!("table {table}")) {
            Ok(table_of_ours)
        } else {
            Err(table_of_ours.problem())
        }
    }

    /// Returns whether nft lists the table that it should have made.
    fn hears(&mut self, wanted: &str) -> bool {
        let Some(output) = &mut self.nft.stdout else { return false };
        let (mut said, mut buffer) = (String::new(), [0; 4096]);
        while !said.contains(wanted) {
            if wait_to_read(output.as_fd(), WITHIN).is_err() {
                return false;
            }
            match output.read(&mut buffer) {
                Ok(bytes @ 1..) => said.push_str(&String::from_utf8_lossy(&buffer[..bytes])),
                _ => return false,
            }
        }
        true
    }

    /// The error that nft prints instead.
    fn problem(mut self) -> io::Error {
        drop(self.input.take());
        let mut said = String::new();
        if let Some(mut errors) = self.nft.stderr.take()
            && let Err(error) = errors.read_to_string(&mut said)
        {
            return error;
        }
        let first = said.lines().next().unwrap_or("it does not answer");
        io::Error::new(kind_of(&said), format!("nft (package nftables): {first}"))
    }

    /// Returns whether the table still exists.
    pub(crate) fn stands(&mut self) -> bool {
        matches!(self.nft.try_wait(), Ok(None))
    }
}

impl Drop for OwnedTable {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.holder.wait();
        let _ = self.nft.wait();
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
    let done = Command::new("nft").arg("list").args(what).stdin(Stdio::null()).output()?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    Err(failure(&done.stderr))
}

/// Runs a program with `script` on its standard input. If it fails, the first line of its standard error is the error.
pub(crate) fn feed(program: &mut Command, script: &str) -> io::Result<()> {
    let mut running = program.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut input) = running.stdin.take() {
        input.write_all(script.as_bytes())?;
    }
    let done = running.wait_with_output()?;
    if done.status.success() {
        return Ok(());
    }
    Err(failure(&done.stderr))
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
