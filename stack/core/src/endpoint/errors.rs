//! Errors of refused calls: small enums with a text that names the remedy.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};

use crate::named::errors;

errors! {
    /// The reasons why nothing was sent.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    SendError {
        NoConnection = "there is no such connection any more: it was closed or aborted by this side",
        NotOpen = "this side has closed, or the connection is over: open another one to send",
    }
    /// The reasons why nothing was read.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    RecvError {
        NoConnection = "there is no such connection any more: it was closed or aborted by this side",
        Finished = "the peer has closed and everything was read",
        Over = "the connection is over and everything was read: its Closed event says why",
    }
    /// The reasons why a connection was not aborted, closed or asked.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    AbortError {
        NoConnection = "there is no such connection any more: it was closed or aborted by this side",
    }
    /// The reasons why no connection was opened.
    #[derive(Debug)]
    ConnectError {
        /// No link and no route leads to the address.
        NoRoute(to: IpAddr) = "no route to {to}: add one, or an address in its subnet",
        /// The local address is not ours, or the link has no address of the peer's family.
        NoLocalAddress = "no local address to connect from: give the link one of the peer's family",
        /// Broadcast, multicast, unspecified, or port 0 (MUST-46).
        NotUnicast(to: SocketAddr) = "{to} is not one host's address and port",
        /// The pair of sockets already has a connection.
        InUse(local: SocketAddr) = "{local} is connected to that peer already: choose another port, or none",
        /// No port of [`EndpointConfig::ports`](super::EndpointConfig::ports) is free towards this peer.
        NoFreePort = "every port to that peer is in use: close connections, or widen `ports`",
        /// The table is full, and no TIME-WAIT could make room.
        TableFull {
            /// [`EndpointConfig::most_connections`](super::EndpointConfig::most_connections).
            most: usize
        } = "{most} connections are open: close some, or raise `most_connections`",
        /// A source route to an IPv6 peer.
        SourceRouteNeedsIpv4 = "source routes exist in IPv4 only",
        /// [`ConnectOptions::agents`](super::ConnectOptions::agents) has a spec that the maker cannot read.
        Agents(error: Box<dyn Error + Send + Sync>) = "{error}",
    }
    /// The reasons why there is no listener.
    #[derive(Debug)]
    ListenError {
        /// A listener already has this port with the same address, or likewise without one.
        PortInUse(port: u16) = "port {port} has a listener already: close it, or choose another port",
        /// No port is chosen for a listener: the caller must name one.
        PortZero = "port 0 cannot be listened on: choose one from 1 to 65535",
        /// The address is not ours.
        NotOurs(address: IpAddr)
            = "{address} is no address of ours: give it to a link, or listen on every address",
        /// [`ListenOptions::agents`](super::ListenOptions::agents) has a spec that the maker cannot read.
        Agents(error: Box<dyn Error + Send + Sync>) = "{error}",
    }
}
