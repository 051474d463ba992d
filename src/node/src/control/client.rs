//! Sends requests to a daemon over its control socket.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use hopwise_lab::plain;

use super::{Request, Response};
use hopwise_daemon::control;
use hopwise_daemon::failure::Failure;

/// The usual folder of daemons' sockets.
const FOLDER: &str = "/run/hopwise";

/// Which daemon to ask.
#[derive(Args, Clone, Debug)]
pub struct Control {
    /// Control socket of the daemon (default: the only socket in /run/hopwise)
    #[arg(long, value_name = "SOCKET", global = true)]
    control: Option<PathBuf>,
}

impl Control {
    pub fn at(socket: PathBuf) -> Control {
        Control { control: Some(socket) }
    }

    /// The socket that the caller names.
    pub fn named(&self) -> Option<&Path> {
        self.control.as_deref()
    }

    /// Sends a request; a refusal is a failure.
    pub fn ask(&self, request: &Request) -> Result<Response, Failure> {
        let path = self.path()?;
        let answered = control::ask(&path, request).map_err(|error| {
            let hint = match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => ": is `hopwise node` running?",
                io::ErrorKind::PermissionDenied => ": only root and the daemon's user may ask",
                _ => "",
            };
            Failure::failed("ask the daemon", format_args!("{}: {error}{hint}", path.display()))
        })?;
        match answered {
            Response::Refused { problem } => {
                Err(Failure::failed("the daemon refused", plain::line(&problem)))
            }
            response => Ok(response),
        }
    }

    /// The socket of the daemon to ask.
    pub fn path(&self) -> Result<PathBuf, Failure> {
        if let Some(path) = &self.control {
            return Ok(path.clone());
        }
        let sockets = sockets();
        match &sockets[..] {
            [only] => Ok(only.clone()),
            [] => {
                let problem = format_args!(
                    "no node is running here (no socket in {FOLDER}): start one with `hopwise node FILE`, or name its \
                     socket with --control"
                );
                Err(Failure::refused("ask the daemon", problem))
            }
            several => {
                let names: Vec<_> = several.iter().map(|path| path.display().to_string()).collect();
                Err(Failure::refused("--control", format_args!("expected one of {}", names.join(", "))))
            }
        }
    }
}

/// The sockets of all daemons that use the usual folder.
pub fn sockets() -> Vec<PathBuf> {
    sockets_in(Path::new(FOLDER))
}

/// The sockets of a folder on which a daemon listens.
fn sockets_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sockets = entries.map(|entry| entry.path()).filter(|path| path.extension() == Some("sock".as_ref()));
    sockets.filter(|path| !control::is_left_behind(path)).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_socket_that_was_left_behind_hides_no_daemon() {
        let folder = std::env::temp_dir().join(format!("hopwise-sockets-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("it can be made");
        let [left, served] = ["left.sock", "served.sock"].map(|name| folder.join(name));
        drop(UnixListener::bind(&left).expect("it is bound"));
        let _daemon = UnixListener::bind(&served).expect("it is bound");
        assert!(left.exists());
        assert_eq!(sockets_in(&folder), [served]);
        std::fs::remove_dir_all(&folder).expect("it is there");
    }
}
