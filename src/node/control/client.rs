//! Asks a daemon over its control socket.

use std::io;
use std::path::PathBuf;

use clap::Args;

use super::{Request, Response};
use crate::daemon::control;
use crate::failure::Failure;

/// Where daemons put their sockets by custom.
const FOLDER: &str = "/run/hopwise";

/// Which daemon to ask.
#[derive(Args, Clone, Debug)]
pub(crate) struct Control {
    /// The daemon's control socket; unless given, the only one in /run/hopwise
    #[arg(long, value_name = "SOCKET", global = true)]
    control: Option<PathBuf>,
}

impl Control {
    /// Asks, and tells a refusal as a failure.
    pub(crate) fn ask(&self, request: &Request) -> Result<Response, Failure> {
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
            Response::Refused { problem } => Err(Failure::failed("the daemon refused", problem)),
            response => Ok(response),
        }
    }

    fn path(&self) -> Result<PathBuf, Failure> {
        if let Some(path) = &self.control {
            return Ok(path.clone());
        }
        let mut sockets: Vec<PathBuf> = std::fs::read_dir(FOLDER)
            .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
            .unwrap_or_default();
        sockets.retain(|path| path.extension().is_some_and(|extension| extension == "sock"));
        match &sockets[..] {
            [only] => Ok(only.clone()),
            [] => {
                Err(Failure::refused("--control", format_args!("no socket in {FOLDER}: name the daemon's")))
            }
            several => {
                let names: Vec<_> = several.iter().map(|path| path.display().to_string()).collect();
                Err(Failure::refused("--control", format_args!("expected one of {}", names.join(", "))))
            }
        }
    }
}
