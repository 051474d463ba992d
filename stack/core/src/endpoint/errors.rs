//! Errors of refused calls: small enums with a text that names the remedy.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

macro_rules! errors {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal),+ $(,)? })+) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $(#[doc = $text] $variant),+ }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($name::$variant => $text),+ })
            }
        }

        impl Error for $name {}
    )+ };
}

errors! {
    /// The reasons why nothing was sent.
    SendError {
        NoConnection = "there is no such connection any more: it was closed or aborted by this side",
        NotOpen = "this side has closed, or the connection is over: open another one to send",
    }
    /// The reasons why nothing was read.
    RecvError {
        NoConnection = "there is no such connection any more: it was closed or aborted by this side",
        Finished = "the peer has closed and everything was read",
        Over = "the connection is over and everything was read: its Closed event says why",
    }
    /// The reasons why a connection was not aborted, closed or asked.
    AbortError {
        NoConnection = "there is no such connection any more: it was closed or aborted by this side",
    }
}

/// The reasons why no connection was opened.
#[derive(Debug)]
pub enum ConnectError {
    /// No link and no route leads to the address.
    NoRoute(IpAddr),
    /// The local address is not ours, or the link has no address of the peer's family.
    NoLocalAddress,
    /// Broadcast, multicast, unspecified, or port 0 (MUST-46).
    NotUnicast(SocketAddr),
    /// The pair of sockets already has a connection.
    InUse(SocketAddr),
    /// No port of [`EndpointConfig::ports`](super::EndpointConfig::ports) is free towards this peer.
    NoFreePort,
    /// The table is full, and no TIME-WAIT could make room.
    TableFull {
        /// [`EndpointConfig::most_connections`](super::EndpointConfig::most_connections).
        most: usize,
    },
    /// A source route to an IPv6 peer.
    SourceRouteNeedsIpv4,
    /// [`ConnectOptions::agents`](super::ConnectOptions::agents) has a spec that the maker cannot read.
    Agents(Box<dyn Error + Send + Sync>),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::NoRoute(to) => write!(f, "no route to {to}: add one, or an address in its subnet"),
            ConnectError::NoLocalAddress => {
                f.write_str("no local address to connect from: give the link one of the peer's family")
            }
            ConnectError::NotUnicast(to) => write!(f, "{to} is not one host's address and port"),
            ConnectError::InUse(local) => {
                write!(f, "{local} is connected to that peer already: choose another port, or none")
            }
            ConnectError::NoFreePort => {
                f.write_str("every port to that peer is in use: close connections, or widen `ports`")
            }
            ConnectError::TableFull { most } => {
                write!(f, "{most} connections are open: close some, or raise `most_connections`")
            }
            ConnectError::SourceRouteNeedsIpv4 => f.write_str("source routes exist in IPv4 only"),
            ConnectError::Agents(error) => write!(f, "{error}"),
        }
    }
}

impl Error for ConnectError {}

/// The reasons why there is no listener.
#[derive(Debug)]
pub enum ListenError {
    /// A listener already has this port with the same address, or likewise without one.
    PortInUse(u16),
    /// No port is chosen for a listener: the caller must name one.
    PortZero,
    /// The address is not ours.
    NotOurs(IpAddr),
    /// [`ListenOptions::agents`](super::ListenOptions::agents) has a spec that the maker cannot read.
    Agents(Box<dyn Error + Send + Sync>),
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenError::PortInUse(port) => {
                write!(f, "port {port} has a listener already: close it, or choose another port")
            }
            ListenError::PortZero => f.write_str("port 0 cannot be listened on: choose one from 1 to 65535"),
            ListenError::NotOurs(address) => {
                write!(f, "{address} is no address of ours: give it to a link, or listen on every address")
            }
            ListenError::Agents(error) => write!(f, "{error}"),
        }
    }
}

impl Error for ListenError {}
