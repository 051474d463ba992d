//! One TCP of a flow that is cut in two.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use hopwise_core::agent::AgentMaker;
use hopwise_core::endpoint::{ConnId, EndpointConfig, LinkConfig, RecvError, Route};
use hopwise_core::ip::Prefix;
use hopwise_core::tcp::TcpConfig;
use hopwise_core::{Endpoint, Instant, NextHop};

use super::{LINK, MOST_CONNECTIONS, MTU, Making};

/// A TCP that faces one side and stands for the other.
#[derive(Debug)]
pub(super) struct Half {
    pub(super) endpoint: Endpoint,
    pub(super) conn: Option<ConnId>,
    /// The other half has all received data, and the end of it.
    pub(super) has_ended: bool,
}

impl Half {
    /// A half with the address of `of`.
    pub(super) fn new(
        of: IpAddr,
        making: &Making,
        tcp: Arc<TcpConfig>,
        maker: Box<dyn AgentMaker>,
    ) -> Option<Half> {
        let nowhere = match of {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let link = LinkConfig::wire(LINK.0, MTU, vec![Prefix::host(of)]);
        let config = EndpointConfig {
            routes: vec![Route { to: Prefix::new(nowhere, 0).ok()?, link: LINK, via: NextHop::Link }],
            tcp,
            trace_events: 0,
            most_connections: MOST_CONNECTIONS,
            checksums: making.checksums,
            ..EndpointConfig::new(link, making.key)
        };
        let endpoint = Endpoint::new(config, maker).ok()?;
        Some(Half { endpoint, conn: None, has_ended: false })
    }

    pub(super) fn is_at_end(&mut self, now: Instant) -> bool {
        let Some(conn) = self.conn else { return false };
        matches!(self.endpoint.recv(now, conn, &mut []), Err(RecvError::Finished))
    }

    pub(super) fn abort(&mut self, now: Instant) {
        if let Some(conn) = self.conn {
            // It may have ended already.
            let _ = self.endpoint.abort(now, conn);
        }
    }

    /// Closes this half: it continues by itself until all its data has arrived.
    pub(super) fn let_go(&mut self, now: Instant) {
        if let Some(conn) = self.conn {
            // It may have been closed before.
            let _ = self.endpoint.close(now, conn);
        }
    }

    /// Returns whether its connection is gone.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.conn.is_none_or(|conn| self.endpoint.info(now, conn).is_err())
    }
}
