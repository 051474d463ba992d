//! The two sockets of a connection.

use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

/// The local and remote socket that name a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Our address and port.
    pub local: SocketAddr,
    /// The peer's address and port, behind all hops of a source route.
    pub remote: SocketAddr,
}

/// A compact [`Flow`] for connections: a socket address has fields that only a zone needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) local: End,
    pub(crate) remote: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) ip: IpAddr,
    pub(crate) port: u16,
}

/// Hashes whole words, which takes less than bytes.
impl Hash for Ends {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Ends { local, remote } = self;
        match (local.ip, remote.ip) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => {
                state.write_u64(u64::from(local.to_bits()) << 32 | u64::from(remote.to_bits()));
            }
            (local, remote) => {
                [local, remote].map(words).into_iter().flatten().for_each(|word| state.write_u64(word));
            }
        }
        state.write_u32(u32::from(local.port) << 16 | u32::from(remote.port));
    }
}

fn words(address: IpAddr) -> [u64; 2] {
    let v6 = match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    let [a, b, c, d, e, f, g, h, low @ ..] = v6.octets();
    [[a, b, c, d, e, f, g, h], low].map(u64::from_be_bytes)
}

impl End {
    /// The address and port of a packet.
    pub(crate) fn of((ip, port): (&IpAddr, u16)) -> End {
        End { ip: *ip, port }
    }
}

/// Compares with the address and port of a packet.
impl PartialEq<(&IpAddr, u16)> for End {
    fn eq(&self, (ip, port): &(&IpAddr, u16)) -> bool {
        self.port == *port && self.ip == **ip
    }
}

impl From<SocketAddr> for End {
    fn from(socket: SocketAddr) -> End {
        End { ip: socket.ip(), port: socket.port() }
    }
}

impl From<Flow> for Ends {
    fn from(flow: Flow) -> Ends {
        Ends { local: flow.local.into(), remote: flow.remote.into() }
    }
}

impl From<Ends> for Flow {
    fn from(Ends { local, remote }: Ends) -> Flow {
        Flow { local: SocketAddr::new(local.ip, local.port), remote: SocketAddr::new(remote.ip, remote.port) }
    }
}
