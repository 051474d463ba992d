//! Reasons why a stack did not start, or a connection was not established.

use std::error::Error;
use std::io;

use hopwise_core::LinkId;
use hopwise_core::endpoint::ListenError;
use hopwise_core::tcp::CloseReason;

/// The reason why a stack did not start.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    /// The endpoint's configuration and the links that were given do not agree.
    #[error("{given} links were given and {} described: describe each in order, numbered from 0", .described.len())]
    Links {
        /// The number of links that were given.
        given: usize,
        /// The links of the endpoint's configuration.
        described: Vec<LinkId>,
    },
    /// A rule names agents that do not exist.
    #[error("{0}")]
    Agents(Box<dyn Error + Send + Sync>),
    /// The stack should run in the caller's runtime, and there is none, or none with I/O.
    #[error("a stack that a runtime drives is started inside of one with I/O")]
    NoRuntime,
    /// A call to the system failed.
    #[error("the poll loop could not be set up: {0}")]
    System(io::Error),
}

/// The reason why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No SYN was sent.
    #[error("{0}")]
    Refused(#[source] hopwise_core::endpoint::ConnectError),
    /// The attempt failed.
    #[error("{}", why_failed(*.0))]
    Failed(CloseReason),
    /// The stack has been stopped.
    #[error("the stack has been stopped")]
    Stopped,
}

fn why_failed(reason: CloseReason) -> String {
    match reason {
        CloseReason::Refused => "the peer refused the connection".to_owned(),
        CloseReason::TimedOut => "the peer did not answer".to_owned(),
        CloseReason::Unreachable => "the peer cannot be reached".to_owned(),
        _ => format!("the connection ended before it stood: {reason:?}"),
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
