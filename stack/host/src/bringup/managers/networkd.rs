//! systemd-networkd: it leaves an interface alone by a file of its own format, below /run.
//!
//! No command tells it so. An interface that it leaves alone becomes its own with another type: systemd ships a file
//! that takes each ad hoc network. Every interface of a mesh therefore gets the file, also one that networkd leaves
//! alone now.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{runs_here, said};
use crate::netlink::KernelRefusal;

const FOLDER: &str = "/run/systemd/network";
/// The kernel keeps fifteen letters of a process's name.
const PROCESS: &str = "systemd-network";

/// The file of an interface. It has its number: one that is gone, or renamed, leaves no file behind.
fn file(index: u32) -> PathBuf {
    // The first file that matches counts, and the system's files begin at 10 or later.
    Path::new(FOLDER).join(format!("05-hopwise-{index}.network"))
}

/// Returns whether it runs, and may take this interface.
pub(super) fn holds(index: u32) -> bool {
    runs_here(PROCESS) && !file(index).exists()
}

/// Takes the interface away from it.
pub(super) fn take(index: u32, interface: &str) -> Result<(), KernelRefusal> {
    // It runs as a user of its own, and has to read them whatever mask root has.
    if !Path::new(FOLDER).exists() {
        fs::create_dir_all(FOLDER)?;
        fs::set_permissions(FOLDER, Permissions::from_mode(0o755))?;
    }
    let text = format!("# By `hopwise mesh up`.\n[Match]\nName={interface}\n\n[Link]\nUnmanaged=yes\n");
    fs::write(file(index), text)?;
    fs::set_permissions(file(index), Permissions::from_mode(0o644))?;
    reload()
}

/// Gives the interface back. One that has ended meanwhile will find no file.
pub(in super::super) fn give(index: u32) -> Result<(), KernelRefusal> {
    match fs::remove_file(file(index)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
        Ok(()) if runs_here(PROCESS) => reload(),
        Ok(()) => Ok(()),
    }
}

fn reload() -> Result<(), KernelRefusal> {
    said("networkctl", &["reload"]).map(drop)
}
