//! Failures of a subcommand and their exit status.

use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;

use hopwise_lab::located::{LoadError, Refusal};
use hopwise_lab::store::StoreError;
use miette::{Diagnostic as _, MietteHandler, MietteHandlerOpts};
use serde::Serialize;
use textwrap::{WordSeparator, WordSplitter};

use crate::log;

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The input is at fault: its place, the problem, and what would be accepted.
    #[error("{place}: {problem}")]
    Refused { place: String, problem: String },
    /// A file is at fault, and its text can be shown.
    #[error("{0}")]
    Located(Box<Refusal>),
    /// The file is sound, but this machine lacks something that it needs there.
    #[error("{place}: {problem}")]
    Unmet { place: String, problem: String },
    /// An address to listen at cannot be had, and the key that names it is not known yet.
    #[error("listen: {address}: {error}")]
    Unbound { address: SocketAddr, error: io::Error },
    /// The input was fine, but the work could not be done.
    #[error("{doing}: {problem}")]
    Failed { doing: &'static str, problem: String },
}

impl Failure {
    pub fn refused(place: impl Into<String>, problem: impl fmt::Display) -> Failure {
        Failure::Refused { place: place.into(), problem: problem.to_string() }
    }

    pub fn failed(doing: &'static str, problem: impl fmt::Display) -> Failure {
        Failure::Failed { doing, problem: problem.to_string() }
    }

    /// Makes a failure of any error of a step.
    pub fn during<E: fmt::Display>(doing: &'static str) -> impl Fn(E) -> Failure + Copy {
        move |error| Failure::failed(doing, error)
    }

    /// The accepted input that a refusal names, for logs: these show one line and no file.
    pub fn accepted(&self) -> Option<String> {
        if let Failure::Located(refusal) = self { refusal.help().map(|help| help.to_string()) } else { None }
    }

    /// Prints it on standard error.
    pub fn print(self) {
        match self {
            Failure::Located(refusal) => {
                // A process prints one refusal; a hook that is set already is this one.
                let _ = miette::set_hook(Box::new(|_| Box::new(at_spaces_alone())));
                log::tell(&format!("{:?}\n", miette::Report::new(*refusal)));
            }
            other => remark(&other.to_string()),
        }
    }

    pub fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Refused { .. } | Failure::Located(_) => ExitCode::from(2),
            Failure::Unmet { .. } | Failure::Unbound { .. } | Failure::Failed { .. } => ExitCode::from(1),
        }
    }
}

/// Breaks lines at spaces: a name such as `ofdm-12mbps` in two parts cannot be copied.
fn at_spaces_alone() -> MietteHandler {
    MietteHandlerOpts::new()
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .build()
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Failure {
        match error {
            LoadError::Unreadable { name, problem } => Failure::refused(name, problem),
            LoadError::Refused(refusal) => Failure::Located(refusal),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        match error {
            StoreError::Refused { folder, problem } => {
                Failure::refused(folder.display().to_string(), problem)
            }
            StoreError::Failed { path, error } => {
                let problem =
                    format!("{}: {error}; what is written stays whole, and --resume goes on", path.display());
                Failure::failed("writing records", problem)
            }
        }
    }
}

/// A remark on standard error.
pub fn remark(line: &str) {
    log::tell(&format!("hopwise: {}\n", hopwise_lab::plain::text(&line.replace('\n', " "))));
}

/// A result for a program, as one line of JSON.
pub fn json(result: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(result).map_err(Failure::during("write JSON"))
}

/// One line on standard output.
pub fn say(line: &str) -> Result<(), Failure> {
    let mut out = hopwise_lab::plain::out();
    printed(out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()))
}

/// Prints text on standard output, from a task. Other tasks go on however slow the reader is, and a dropped future
/// waits no more.
pub async fn print(text: String) -> Result<(), Failure> {
    let write = move || {
        let mut out = hopwise_lab::plain::out();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    };
    printed(tokio::task::spawn_blocking(write).await.unwrap_or_else(|error| Err(io::Error::other(error))))
}

/// A reader that has enough, such as `head`, closes the pipe; that is no failure.
pub fn printed(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed("writing to standard output", error))
        }
        _ => Ok(()),
    }
}
