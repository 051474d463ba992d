//! The reasons why a network did not open.

use std::error::Error;
use std::fmt;
use std::io;

use hopwise_host::{LinkError, StackError};

/// The reason why a network did not open, or did not take a setting.
#[derive(Debug)]
pub enum NetworkError {
    /// A setting that cannot work.
    Setting {
        /// The setting, such as `kernel`.
        name: &'static str,
        /// The value that was given.
        given: String,
        /// The fault, and what would be accepted.
        problem: String,
    },
    /// A spec that names no agent, or gives one a value that it does not take.
    Agents(Box<dyn Error + Send + Sync>),
    /// The device could not be opened.
    Link(LinkError),
    /// The stack could not be started.
    Stack(StackError),
    /// A call to the system failed.
    System(io::Error),
}

impl NetworkError {
    /// The kind of the same error of a socket.
    fn kind(&self) -> io::ErrorKind {
        match self {
            NetworkError::Setting { .. } | NetworkError::Agents(_) => io::ErrorKind::InvalidInput,
            NetworkError::Link(error) if error.is_forbidden() => io::ErrorKind::PermissionDenied,
            NetworkError::Link(LinkError::Setting { .. }) => io::ErrorKind::InvalidInput,
            NetworkError::Link(LinkError::System { error, .. }) | NetworkError::System(error) => error.kind(),
            NetworkError::Stack(StackError::Agents(_)) => io::ErrorKind::InvalidInput,
            NetworkError::Link(_) | NetworkError::Stack(_) => io::ErrorKind::Other,
        }
    }
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetworkError::Setting { name, given, problem } => write!(f, "{name} {given:?}: {problem}"),
            NetworkError::Agents(error) => write!(f, "{error}"),
            NetworkError::Link(error) => write!(f, "{error}"),
            NetworkError::Stack(error) => write!(f, "{error}"),
            NetworkError::System(error) => write!(f, "{error}"),
        }
    }
}

impl Error for NetworkError {}

impl From<NetworkError> for io::Error {
    fn from(error: NetworkError) -> io::Error {
        io::Error::new(error.kind(), error)
    }
}
