//! Options of opening a connection, and of listening.

use std::net::IpAddr;
use std::sync::Arc;

use super::rules::AgentChoice;
use crate::tcp::TcpConfig;
use crate::wire::SourceRoute;

/// Options of opening a connection; everything has a default.
#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    /// Our address and port; an absent one is chosen.
    pub local_ip: Option<IpAddr>,
    /// 0 counts as absent.
    pub local_port: Option<u16>,
    /// Agents for this connection alone, before every rule.
    pub agents: AgentChoice,
    /// None takes [`EndpointConfig::tcp`](super::EndpointConfig::tcp).
    pub tcp: Option<Arc<TcpConfig>>,
    /// Overrides the route of the peer's packets (RFC 9293 MUST-51, MUST-52). IPv4 only.
    pub source_route: Option<SourceRoute>,
}

impl From<AgentChoice> for ConnectOptions {
    fn from(agents: AgentChoice) -> ConnectOptions {
        ConnectOptions { agents, ..ConnectOptions::default() }
    }
}

impl From<AgentChoice> for ListenOptions {
    fn from(agents: AgentChoice) -> ListenOptions {
        ListenOptions { agents, ..ListenOptions::default() }
    }
}

/// Options of a listener. Agents and TCP settings hold for each of its connections.
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// Connections that may wait to be accepted.
    pub backlog: usize,
    /// Unfinished handshakes that are kept (the SYN backlog); beyond them SYN cookies are sent, or SYNs dropped.
    pub half_open: usize,
    /// A handshake by cookie loses the agents' notes and, without timestamps, all options but MSS (RFC 4987 §3.6).
    pub cookies: Cookies,
    /// They come before every rule.
    pub agents: AgentChoice,
    /// None takes [`EndpointConfig::tcp`](super::EndpointConfig::tcp).
    pub tcp: Option<Arc<TcpConfig>>,
    /// The time of the SYN-ACK. The program may decide on each SYN.
    pub syn_ack: SynAck,
}

/// The time at which a listener's SYN-ACK leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SynAck {
    /// At once: the program accepts established connections.
    #[default]
    AtOnce,
    /// With [`Endpoint::answer`](super::Endpoint::answer): the program accepts SYNs, and no cookie is sent.
    OnDemand,
}

impl Default for ListenOptions {
    fn default() -> ListenOptions {
        ListenOptions {
            backlog: 4096,
            half_open: 4096,
            cookies: Cookies::WhenFull,
            agents: AgentChoice::default(),
            tcp: None,
            syn_ack: SynAck::AtOnce,
        }
    }
}

/// The cases in which a listener answers a SYN without keeping state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cookies {
    /// A SYN for which [`ListenOptions::half_open`] leaves no room is dropped.
    Never,
    /// Only beyond [`ListenOptions::half_open`], if no handshake is old enough to give way.
    WhenFull,
    /// For every SYN, even while there is room.
    Always,
}
