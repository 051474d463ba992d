//! Asks a daemon over its control socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use super::{Request, Response};
use crate::failure::Failure;

const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// A snapshot of 1,000 connections is below this.
const LONGEST_ANSWER: u64 = 16 << 20;
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
        let question = serde_json::to_string(request).map_err(|error| Failure::failed("ask", error))?;
        let answered = ask_line(&path, &question).map_err(|error| {
            let hint = match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => ": is `hopwise node` running?",
                io::ErrorKind::PermissionDenied => ": only root and the daemon's user may ask",
                io::ErrorKind::UnexpectedEof => ": it hung up; only root and the daemon's user may ask",
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

pub(crate) fn ask_line(path: &Path, question: &str) -> io::Result<Response> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.set_write_timeout(Some(ANSWER_WITHIN))?;
    stream.write_all(format!("{question}\n").as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream).take(LONGEST_ANSWER).read_line(&mut answer)?;
    if answer.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_str(&answer).map_err(io::Error::other)
}
