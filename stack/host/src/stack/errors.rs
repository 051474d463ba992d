//! Reasons why a stack did not start, or a connection was not established.

use std::error::Error;
use std::fmt;
use std::io;

use hopwise_core::LinkId;
use hopwise_core::endpoint::ListenError;
use hopwise_core::tcp::CloseReason;

/// The reason why a stack did not start.
#[derive(Debug)]
pub enum StackError {
    /// The endpoint's configuration and the links that were given do not agree.
    Links {
        /// The number of links that were given.
        given: usize,
        /// The links of the endpoint's configuration.
        described: Vec<LinkId>,
    },
    /// A rule names agents that do not exist.
    Agents(Box<dyn Error + Send + Sync>),
    /// The stack should run in the caller's runtime, and there is none, or none with I/O.
    NoRuntime,
    /// A call to the system failed.
    System(io::Error),
}

impl fmt::Display for StackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StackError::Links { given, described } => write!(
                f,
                "{given} links were given and {} described: describe each in order, numbered from 0",
                described.len()
            ),
            StackError::Agents(error) => write!(f, "{error}"),
            StackError::NoRuntime => {
                f.write_str("a stack that a runtime drives is started inside of one with I/O")
            }
            StackError::System(error) => write!(f, "the poll loop could not be set up: {error}"),
        }
    }
}

impl Error for StackError {}

/// The reason why there is no connection.
#[derive(Debug)]
pub enum ConnectError {
    /// No SYN was sent.
    Refused(hopwise_core::endpoint::ConnectError),
    /// The attempt failed.
    Failed(CloseReason),
    /// The stack has been stopped.
    Stopped,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Refused(error) => write!(f, "{error}"),
            ConnectError::Failed(CloseReason::Refused) => f.write_str("the peer refused the connection"),
            ConnectError::Failed(CloseReason::TimedOut) => f.write_str("the peer did not answer"),
            ConnectError::Failed(CloseReason::Unreachable) => f.write_str("the peer cannot be reached"),
            ConnectError::Failed(reason) => write!(f, "the connection ended before it stood: {reason:?}"),
            ConnectError::Stopped => f.write_str("the stack has been stopped"),
        }
    }
}

impl Error for ConnectError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ConnectError::Refused(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ConnectError> for io::Error {
    fn from(error: ConnectError) -> io::Error {
        let kind = match &error {
            ConnectError::Failed(reason) => kind_of(*reason),
            ConnectError::Refused(refused) => kind_of_refusal(refused),
            ConnectError::Stopped => io::ErrorKind::NotConnected,
        };
        io::Error::new(kind, error)
    }
}

/// The error of a socket that refuses to connect.
fn kind_of_refusal(refused: &hopwise_core::endpoint::ConnectError) -> io::ErrorKind {
    use hopwise_core::endpoint::ConnectError as Refused;
    match refused {
        Refused::NoRoute(_) => io::ErrorKind::NetworkUnreachable,
        Refused::InUse(_) => io::ErrorKind::AddrInUse,
        Refused::NoLocalAddress | Refused::NoFreePort => io::ErrorKind::AddrNotAvailable,
        Refused::TableFull { .. } => io::ErrorKind::OutOfMemory,
        Refused::NotUnicast(_) | Refused::SourceRouteNeedsIpv4 | Refused::Agents(_) => {
            io::ErrorKind::InvalidInput
        }
    }
}

/// The error of a socket that refuses to listen.
pub(crate) fn kind_of_no_listener(error: &ListenError) -> io::ErrorKind {
    match error {
        ListenError::PortInUse(_) => io::ErrorKind::AddrInUse,
        ListenError::NotOurs(_) => io::ErrorKind::AddrNotAvailable,
        ListenError::PortZero | ListenError::Agents(_) => io::ErrorKind::InvalidInput,
    }
}

/// The error that a socket would return.
pub(crate) fn kind_of(reason: CloseReason) -> io::ErrorKind {
    match reason {
        CloseReason::Reset => io::ErrorKind::ConnectionReset,
        CloseReason::Refused => io::ErrorKind::ConnectionRefused,
        CloseReason::TimedOut => io::ErrorKind::TimedOut,
        CloseReason::Aborted | CloseReason::GaveWay => io::ErrorKind::ConnectionAborted,
        CloseReason::Unreachable => io::ErrorKind::HostUnreachable,
        CloseReason::Finished => io::ErrorKind::BrokenPipe,
    }
}
