//! Errors of calls on a UDP socket, with their remedies.

use std::net::IpAddr;

use crate::named::errors;

errors! {
    /// The reasons why a call on a UDP socket failed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    UdpError {
        /// No port is chosen for a socket: the caller must name one.
        PortZero = "port 0 cannot be bound: name the protocol's port",
        /// A socket already has this port with the same address, or likewise without one.
        PortInUse {
            /// The port of the call.
            port: u16
        } = "port {port} is bound already at this address: close that socket or take another port",
        /// The local address names no single host, such as a group or 0.0.0.0.
        LocalNotUnicast = "a socket is bound to an address of one host: name groups in the options instead",
        /// No link has the local address.
        NotOurs {
            /// The local address of the call.
            address: IpAddr
        } = "{address} is no address of ours: give it to a link, or bind without an address",
        /// [`UdpOptions::groups`](super::UdpOptions::groups) is too long.
        TooManyGroups {
            /// [`UdpLimits::groups_per_socket`](super::UdpLimits::groups_per_socket).
            most: usize
        } = "a socket joins at most {most} groups: bind another socket for the rest",
        /// Another socket must be closed first.
        TooManySockets {
            /// [`UdpLimits::sockets`](super::UdpLimits::sockets).
            most: usize
        } = "there are {most} UDP sockets already: close one, or raise the limit",
        /// No socket has that id, or it has been closed.
        Closed = "this UDP socket is closed: bind a new one",
        /// The destination's port is 0, or its address is unspecified.
        NoDestination = "the destination has no address or no port: name both",
        /// The socket is bound to an address of the other IP version.
        OtherFamily = "the socket's address is of the other IP version: bind one of the destination's",
        /// The payload does not fit even the largest IP packet.
        TooLong {
            /// In bytes: 65,507 over IPv4, 65,527 over IPv6.
            most: usize
        } = "a datagram carries at most {most} bytes there: send less at once",
        /// The socket's datagrams wait for room on a link, up to the limits of [`UdpLimits`](super::UdpLimits).
        QueueFull = "too many datagrams wait to leave: send again after the next poll",
    }
}
