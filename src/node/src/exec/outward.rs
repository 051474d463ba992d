//! The way out of the command's network: sockets of the kernel, or a node's SOCKS5 server.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::resolver::LoopbackEnd;
use crate::relay;
use crate::socks5_client::{self, ClientWishes, ServerProblem};
use hopwise_daemon::failure::Failure;

/// A node on this machine answers at once.
const NODE_WITHIN: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) enum Outward {
    Kernel,
    Node(CommandNode),
}

#[derive(Debug)]
pub(super) struct CommandNode {
    pub address: SocketAddr,
    pub(super) wishes: ClientWishes,
}

/// Why there is no connection, in the way in which the command hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotReached {
    /// A reset, as of a port without a listener.
    Refused,
    NoNetwork,
    NoHost,
    Prohibited,
}

impl NotReached {
    /// The code of ICMP or ICMPv6 "destination unreachable"; `None` for a reset (RFC 792, RFC 4443 §3.1).
    pub(super) fn code(self, to: IpAddr) -> Option<u8> {
        match (self, to.is_ipv4()) {
            (NotReached::Refused, _) => None,
            (NotReached::NoNetwork, _) => Some(0),
            (NotReached::NoHost, true) => Some(1),
            (NotReached::NoHost, false) => Some(3),
            (NotReached::Prohibited, true) => Some(13),
            (NotReached::Prohibited, false) => Some(1),
        }
    }
}

impl From<io::Error> for NotReached {
    fn from(error: io::Error) -> NotReached {
        match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => NotReached::Refused,
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::AddrNotAvailable => NotReached::NoNetwork,
            io::ErrorKind::PermissionDenied => NotReached::Prohibited,
            _ => NotReached::NoHost,
        }
    }
}

impl Outward {
    /// Asks the node before the command begins: a wrong address or login fails here, and not in each connection.
    pub(super) async fn check(&self) -> Result<(), Failure> {
        let Outward::Node(node) = self else { return Ok(()) };
        let greeted = timeout(NODE_WITHIN, async {
            let mut stream = TcpStream::connect(node.address).await?;
            socks5_client::greet(&mut stream, &node.wishes).await
        });
        let problem = match greeted.await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(ServerProblem::Broken(error))) if error.kind() == io::ErrorKind::ConnectionRefused => {
                "no node has a SOCKS5 server there: start one as root (`hopwise node FILE`, with `socks5` in the \
                 file), name its address with --node, or leave out --sender, --receiver, --login and --node: the \
                 kernel's sockets then carry the command"
                    .to_owned()
            }
            Ok(Err(problem)) => problem.to_string(),
            Err(_) => "nothing answers there in time".to_owned(),
        };
        Err(Failure::failed("reach the node", format_args!("{}: {problem}", node.address)))
    }

    /// Opens a connection to where the command wants to go.
    pub(super) async fn connect(
        &self,
        to: SocketAddr,
        outside: LoopbackEnd,
    ) -> Result<TcpStream, NotReached> {
        if let Some(here) = outside.here(to) {
            return Ok(TcpStream::connect(here).await?);
        }
        if let Outward::Node(node) = self {
            match node.connect(to).await {
                Err(NotReached::NoNetwork) => {}
                reached => return reached,
            }
        }
        Ok(TcpStream::connect(to).await?)
    }
}

impl CommandNode {
    /// `NoNetwork` if the node has no route to the address.
    async fn connect(&self, to: SocketAddr) -> Result<TcpStream, NotReached> {
        let mut stream = TcpStream::connect(self.address).await?;
        // Data that the node does not take yet waits in the command's own socket.
        relay::bound_send_buffer(&stream);
        let asked = async {
            socks5_client::greet(&mut stream, &self.wishes).await?;
            socks5_client::connect(&mut stream, to).await
        };
        match asked.await {
            Ok(()) => Ok(stream),
            Err(ServerProblem::NoRoute) => Err(NotReached::NoNetwork),
            Err(ServerProblem::Refused) => Err(NotReached::Refused),
            Err(ServerProblem::NotAllowed) => Err(NotReached::Prohibited),
            Err(_) => Err(NotReached::NoHost),
        }
    }
}
