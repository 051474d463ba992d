//! Errors of calls on a UDP socket, with their remedies.

use std::fmt;
use std::net::IpAddr;

/// The reasons why a call on a UDP socket failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpError {
    /// No port is chosen for a socket: the caller must name one.
    PortZero,
    /// A socket already has this port with the same address, or likewise without one.
    PortInUse {
        /// The port of the call.
        port: u16,
    },
    /// The local address names no single host, such as a group or 0.0.0.0.
    LocalNotUnicast,
    /// No link has the local address.
    NotOurs {
        /// The local address of the call.
        address: IpAddr,
    },
    /// [`UdpOptions::groups`](super::UdpOptions::groups) is too long.
    TooManyGroups {
        /// [`UdpLimits::groups_per_socket`](super::UdpLimits::groups_per_socket).
        most: usize,
    },
    /// Another socket must be closed first.
    TooManySockets {
        /// [`UdpLimits::sockets`](super::UdpLimits::sockets).
        most: usize,
    },
    /// No socket has that id, or it has been closed.
    Closed,
    /// The destination's port is 0, or its address is unspecified.
    NoDestination,
    /// The socket is bound to an address of the other IP version.
    OtherFamily,
    /// The payload does not fit even the largest IP packet.
    TooLong {
        /// In bytes: 65,507 over IPv4, 65,527 over IPv6.
        most: usize,
    },
    /// The socket's datagrams wait for room on a link, up to the limits of [`UdpLimits`](super::UdpLimits).
    QueueFull,
}

impl fmt::Display for UdpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UdpError::PortZero => f.write_str("port 0 cannot be bound: name the protocol's port"),
            UdpError::PortInUse { port } => {
                write!(
                    f,
                    "port {port} is bound already at this address: close that socket or take another port"
                )
            }
            UdpError::LocalNotUnicast => {
                f.write_str("a socket is bound to an address of one host: name groups in the options instead")
            }
            UdpError::NotOurs { address } => {
                write!(f, "{address} is no address of ours: give it to a link, or bind without an address")
            }
            UdpError::TooManyGroups { most } => {
                write!(f, "a socket joins at most {most} groups: bind another socket for the rest")
            }
            UdpError::TooManySockets { most } => {
                write!(f, "there are {most} UDP sockets already: close one, or raise the limit")
            }
            UdpError::Closed => f.write_str("this UDP socket is closed: bind a new one"),
            UdpError::NoDestination => f.write_str("the destination has no address or no port: name both"),
            UdpError::OtherFamily => {
                f.write_str("the socket's address is of the other IP version: bind one of the destination's")
            }
            UdpError::TooLong { most } => {
                write!(f, "a datagram carries at most {most} bytes there: send less at once")
            }
            UdpError::QueueFull => {
                f.write_str("too many datagrams wait to leave: send again after the next poll")
            }
        }
    }
}

impl std::error::Error for UdpError {}
