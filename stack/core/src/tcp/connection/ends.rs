//! The two sockets of a connection.

use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

/// The local and remote socket that name a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Our address and port.
    pub local: SocketAddr,
    /// The peer's address and port, behind all hops of a source route.
    pub remote: SocketAddr,
}

/// Hashes all bytes in one piece, since each packet needs a lookup.
impl Hash for Flow {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (local, remote) = (self.local.port().to_be_bytes(), self.remote.port().to_be_bytes());
        let mut bytes = [0; 36];
        bytes[..2].copy_from_slice(&local);
        bytes[2..4].copy_from_slice(&remote);
        match (self.local.ip(), self.remote.ip()) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => {
                bytes[4..8].copy_from_slice(&local.octets());
                bytes[8..12].copy_from_slice(&remote.octets());
                state.write(&bytes[..12]);
            }
            (local, remote) => {
                bytes[4..20].copy_from_slice(&octets(local));
                bytes[20..].copy_from_slice(&octets(remote));
                state.write(&bytes);
            }
        }
    }
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// A compact [`Flow`] for connections: a socket address has fields that only a zone needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) local: End,
    pub(crate) remote: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    ip: IpAddr,
    port: u16,
}

impl End {
    #[inline]
    pub(crate) fn ip(&self) -> IpAddr {
        self.ip
    }

    #[inline]
    pub(crate) fn is_ipv4(&self) -> bool {
        self.ip.is_ipv4()
    }

    #[inline]
    pub(crate) fn is_ipv6(&self) -> bool {
        self.ip.is_ipv6()
    }

    #[inline]
    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

/// Compares with the address and port of a packet.
impl PartialEq<(&IpAddr, u16)> for End {
    #[inline]
    fn eq(&self, (ip, port): &(&IpAddr, u16)) -> bool {
        self.port == *port && self.ip == **ip
    }
}

impl From<Flow> for Ends {
    fn from(flow: Flow) -> Ends {
        let [local, remote] = [flow.local, flow.remote].map(|end| End { ip: end.ip(), port: end.port() });
        Ends { local, remote }
    }
}

impl From<Ends> for Flow {
    fn from(Ends { local, remote }: Ends) -> Flow {
        Flow { local: SocketAddr::new(local.ip, local.port), remote: SocketAddr::new(remote.ip, remote.port) }
    }
}
