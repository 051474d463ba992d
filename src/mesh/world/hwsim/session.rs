//! A guest that a trial speaks with, line by line.

use std::os::fd::OwnedFd;
use std::path::Path;

use super::guest::{Guest, Up};
use super::image::Image;
use super::qemu::Accelerator;
use super::{MEMORY_MIB, program_in_guest, shares};
use crate::failure::Failure;

/// Dropping it ends the guest.
#[derive(Debug)]
pub(crate) struct Session {
    up: Up,
}

impl Session {
    /// Boots a guest in which this program runs that subcommand. It sees the current folder, and `out` for results.
    /// The kernel ends it with this thread.
    pub(crate) fn start(out: &Path, subcommand: &str, ends: &OwnedFd) -> Result<Session, Failure> {
        let image = Image::prepare(Some(ends))?;
        let guest = Guest {
            image: &image,
            memory_mib: MEMORY_MIB,
            // Its clock is its own: the load of this machine does not reach the figures of a run.
            accelerator: Accelerator::Counted,
            limit: None,
            has_terminal: false,
            shares: shares(Path::new("."), out)?,
        };
        let words = [program_in_guest()?, subcommand.to_owned(), "/out".to_owned()];
        let up = guest.start(&words, ends)?;
        up.carry_errors().map_err(|error| Failure::failed("start a thread", error))?;
        Ok(Session { up })
    }

    /// Says a line, and waits for the answer. A signal ends the wait, and then the guest is of no more use.
    pub(crate) fn ask(&mut self, line: &str, ends: &OwnedFd) -> Result<String, Failure> {
        self.up.ask(line, ends)
    }
}
