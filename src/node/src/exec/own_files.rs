//! Files of the machine that the command sees in another form.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::{resolver, ssh};
use hopwise_daemon::failure::Failure;
use hopwise_daemon::own_files::OwnFolder;

/// They last as long as this does.
#[derive(Debug)]
pub(super) struct OwnFiles {
    /// The server that the far end's port 53 stands for.
    pub(super) server: Option<SocketAddr>,
    pub(super) resolver: Option<PathBuf>,
    /// Each copy, and the file whose place it takes.
    pub(super) copies: Vec<(PathBuf, PathBuf)>,
    _folder: Option<OwnFolder>,
}

impl OwnFiles {
    /// Reads the machine's files, and writes the command's.
    pub(super) fn of_machine() -> Result<OwnFiles, Failure> {
        let (server, text) = resolver::for_command().unzip();
        // Root stays root, and root's files with it.
        let included = if geteuid().is_root() { Default::default() } else { ssh::included() };
        let mut own = OwnFiles { server, resolver: None, copies: Vec::new(), _folder: None };
        if text.is_none() && included.is_empty() {
            return Ok(own);
        }
        let folder = match OwnFolder::make("hopwise-exec-") {
            Ok(folder) => folder,
            // ssh says itself what it refuses.
            Err(_) if text.is_none() => return Ok(own),
            Err(error) => return Err(failed(error)),
        };
        if let Some(text) = text {
            let path = folder.path().join("resolv.conf");
            write(&path, text.as_bytes()).map_err(failed)?;
            own.resolver = Some(path);
        }
        for (nth, (file, text)) in included.into_iter().enumerate() {
            let path = folder.path().join(format!("ssh-{nth}"));
            if write(&path, &text).is_ok() {
                own.copies.push((path, file));
            }
        }
        own._folder = Some(folder);
        Ok(own)
    }
}

fn failed(error: io::Error) -> Failure {
    Failure::failed("write a resolv.conf for the command", error)
}

/// Others have no right to it, whatever the user's mask is.
fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text)
}
