//! A file that a process has for itself.

use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};

use rustix::fs::{FlockOperation, flock};

/// A file under an exclusive lock.
///
/// The lock ends when this is dropped. To close the file would not do: a process that another thread is about to start
/// has the file open, too, until it runs its program.
#[derive(Debug)]
pub(super) struct Locked(File);

impl Locked {
    /// Fails with `ResourceBusy` while another process has the lock.
    pub(super) fn new(file: File) -> io::Result<Locked> {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Locked(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                Err(io::Error::new(io::ErrorKind::ResourceBusy, "another daemon runs"))
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_the_file_open_too_does_not_keep_the_lock() {
        let path = std::env::temp_dir().join(format!("hopwise-locked-{}", std::process::id()));
        let file = File::create(&path).expect("it can be made");
        // As a process between its start and its program has it.
        let inherited = file.try_clone().expect("a descriptor is free");
        let locked = Locked::new(file).expect("nobody has it");
        let again = || Locked::new(File::open(&path)?);
        assert_eq!(again().map(drop).expect_err("it is locked").kind(), io::ErrorKind::ResourceBusy);
        drop(locked);
        assert!(again().is_ok());
        drop(inherited);
        std::fs::remove_file(path).expect("it is there");
    }
}
