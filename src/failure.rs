//! How a subcommand ends when it does not end well.

use std::fmt;
use std::process::ExitCode;

#[derive(Debug)]
pub(crate) enum Failure {
    /// The input is at fault: where, and what would be accepted.
    Refused { place: String, problem: String },
    /// The input was fine, but the work could not be done.
    Failed { doing: &'static str, problem: String },
}

impl Failure {
    pub(crate) fn refused(place: impl Into<String>, problem: impl fmt::Display) -> Failure {
        Failure::Refused { place: place.into(), problem: problem.to_string() }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Refused { .. } => ExitCode::from(2),
            Failure::Failed { .. } => ExitCode::from(1),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Refused { place, problem } => write!(f, "{place}: {problem}"),
            Failure::Failed { doing, problem } => write!(f, "{doing}: {problem}"),
        }
    }
}

impl std::error::Error for Failure {}
