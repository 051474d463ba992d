//! Files of our own in folders where other users may write, and names of sockets as locks.
//!
//! A lock admits one user of a device in each network namespace. The kernel frees the name of a socket when its process
//! ends, also by a crash.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::process::geteuid;

use crate::link::LinkError;

/// The folder of a file.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Opens a file, follows no link and never waits. It refuses a file with a second name, and anything but a regular
/// file. It also refuses a file that another user may have put there.
pub fn open_own(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = open(path, options)?;
    let facts = file.metadata()?;
    // A file without a name was removed meanwhile, by whoever may do so.
    if !facts.is_file() || facts.nlink() > 1 || !is_trusted(path, &facts)? {
        return Err(of_somebody_else());
    }
    Ok(file)
}

/// Opens a file to write it anew, or makes it with this mode. The old content goes only if the file is our own or
/// root's: in a folder of another user, files are that user's to keep. A character device such as /dev/full is written
/// as it is.
pub fn begin_own(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(mode);
    if fs::symlink_metadata(path).is_ok_and(|facts| facts.file_type().is_char_device()) {
        return open(path, &mut options);
    }
    let file = open_own(path, &mut options)?;
    if !is_of(&file.metadata()?, geteuid().as_raw()) {
        return Err(of_somebody_else());
    }
    file.set_len(0)?;
    Ok(file)
}

/// Returns whether a file of ours may take this name. It may if nothing, or our own file, stands there, or if no other
/// user can have put it there.
pub(crate) fn gives_way(path: &Path) -> bool {
    let Ok(facts) = fs::symlink_metadata(path) else { return true };
    let own = geteuid().as_raw();
    let is_closed = |folder: Metadata| [0, own].contains(&folder.uid()) && folder.mode() & 0o022 == 0;
    facts.uid() == own || fs::metadata(folder_of(path)).is_ok_and(is_closed)
}

fn of_somebody_else() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "this file belongs to somebody else")
}

/// Returns whether a file is this user's or root's.
fn is_of(file: &Metadata, user: u32) -> bool {
    [0, user].contains(&file.uid())
}

/// The same as [`open_own`] without the checks.
pub(crate) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32).open(path)
}

/// Returns whether the file is ours or root's, or its owner can be trusted. This takes a folder that is root's, ours or
/// the owner's, and in which no other user may write. A daemon that root started has a user of its own.
fn is_trusted(path: &Path, file: &Metadata) -> io::Result<bool> {
    let own = geteuid().as_raw();
    if is_of(file, own) {
        return Ok(true);
    }
    let folder = fs::metadata(folder_of(path))?;
    Ok([0, own, file.uid()].contains(&folder.uid()) && folder.mode() & 0o022 == 0)
}

/// The name as the kernel shows it in /proc/net/unix, after an `@`.
pub(crate) fn lock_name(kind: &str, device: &str) -> String {
    format!("hopwise-{kind}-{device}")
}

/// Held as long as the device is used.
#[derive(Debug)]
pub(crate) struct NameLock {
    // The kernel keeps the name while this is open.
    _name: UnixListener,
}

impl NameLock {
    /// Locks a device. It may have users of different kinds at a time, but one of each.
    pub(crate) fn of(kind: &str, device: &str) -> Result<NameLock, LinkError> {
        let name = SocketAddr::from_abstract_name(lock_name(kind, device));
        let bound = name.and_then(|name| UnixListener::bind_addr(&name));
        bound.map(|bound| NameLock { _name: bound }).map_err(|error| {
            let is_held = error.kind() == io::ErrorKind::AddrInUse;
            let kind = if is_held { io::ErrorKind::ResourceBusy } else { error.kind() };
            LinkError::system("claim it", device, io::Error::new(kind, error))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_removed_while_it_is_opened_is_no_other_users() {
        let path = std::env::temp_dir().join(format!("hopwise-removed-{}", std::process::id()));
        let open = || open_own(&path, OpenOptions::new().write(true).create(true));
        std::thread::scope(|scope| {
            let remover = scope.spawn(|| (0..20_000).for_each(|_| drop(fs::remove_file(&path))));
            while !remover.is_finished() {
                open().expect("it is ours, whether its name is left or not");
            }
        });
        drop(fs::remove_file(path));
    }

    #[test]
    fn a_file_of_another_user_is_read_in_that_user_s_folder_and_never_written_anew() {
        if !geteuid().is_root() {
            println!("skipped: a file of another user: only root can make one");
            return;
        }
        let folder = std::env::temp_dir().join(format!("hopwise-own-file-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("run.pcapng");
        fs::write(&path, "precious").expect("a file");
        for theirs in [&folder, &path] {
            std::os::unix::fs::chown(theirs, Some(1234), None).expect("root may");
        }
        assert!(open_own(&path, OpenOptions::new().read(true)).is_ok(), "such as a daemon's state");
        let refused = begin_own(&path, 0o600).expect_err("it is user 1234's");
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(fs::read_to_string(&path).expect("a file"), "precious");
        begin_own(&folder.join("new.pcapng"), 0o600).expect("a new one is ours");
        fs::remove_dir_all(folder).expect("it is there");
    }
}
