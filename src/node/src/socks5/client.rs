//! A client of a node's server, for `hopwise exec`. It may ask for agents, which SOCKS5 has no words for: an
//! authentication method of our own carries them.

use std::io;
use std::net::SocketAddr;

use hopwise_core::endpoint::AgentChoice;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::protocol::{self, Method, SocksReply, VERSION};

/// The longest name, password or spec.
pub(crate) const LONGEST_WORD: usize = 255;

/// The login of a client and the agents of its connections.
#[derive(Clone, Default)]
pub(crate) struct ClientWishes {
    pub(crate) login: Option<(String, String)>,
    pub(crate) agents: AgentChoice,
}

hopwise_core::shown!(ClientWishes: agents);

/// Why a server connects nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerProblem {
    #[error("{0}")]
    Broken(#[from] io::Error),
    /// It is another server, or a node of an older version.
    #[error(
        "what answers there is no node of this version: expected the `socks5` address of a `hopwise node`"
    )]
    NoNode,
    #[error("the node asks for another login: expected --login FILE with NAME:PASSWORD")]
    Login,
    #[error("the node does not know these agents: `hopwise agents` lists those of this version")]
    Agents,
    #[error("the node has no route there")]
    NoRoute,
    #[error("the destination refused")]
    Refused,
    #[error("the node's `allow` has no such target")]
    NotAllowed,
    #[error("the node could not connect")]
    Other,
}

/// Says who asks, and what for.
pub(crate) async fn greet<S>(stream: &mut S, wishes: &ClientWishes) -> Result<(), ServerProblem>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(&protocol::offer(Method::Agents)).await?;
    let mut answer = [0; 2];
    stream.read_exact(&mut answer).await?;
    if answer != protocol::greeted(Method::Agents) {
        return Err(ServerProblem::NoNode);
    }
    stream.write_all(&protocol::wish(wishes.login.as_ref(), &wishes.agents)).await?;
    stream.read_exact(&mut answer).await?;
    match answer {
        [_, protocol::GRANTED] => Ok(()),
        [_, protocol::AGENTS_UNKNOWN] => Err(ServerProblem::Agents),
        _ => Err(ServerProblem::Login),
    }
}

/// Asks for a connection, and waits until it stands.
pub(crate) async fn connect<S>(stream: &mut S, to: SocketAddr) -> Result<(), ServerProblem>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(&protocol::ask(to)).await?;
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    let bound = match head[3] {
        protocol::IPV6 => 16,
        _ => 4,
    };
    stream.read_exact(&mut [0; 18][..bound + 2]).await?;
    match head {
        [VERSION, reply, ..] if reply == SocksReply::Succeeded as u8 => Ok(()),
        [_, reply, ..] if reply == SocksReply::NetworkUnreachable as u8 => Err(ServerProblem::NoRoute),
        [_, reply, ..] if reply == SocksReply::Refused as u8 => Err(ServerProblem::Refused),
        [_, reply, ..] if reply == SocksReply::NotAllowed as u8 => Err(ServerProblem::NotAllowed),
        _ => Err(ServerProblem::Other),
    }
}
