//! Ephemeral ports by double hashing (RFC 6056 §3.3.4).

use std::net::{IpAddr, SocketAddr};

use super::{Secrets, hash_flow};
use crate::narrow::low_u32;

/// RFC 6056 uses a table of ten. In a larger table, fewer destinations share a counter, so one destination learns less
/// about connections to others.
const COUNTERS: usize = 1024;

/// The ports for sockets without a port of their own; both ends are included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl PortRange {
    /// Takes the ends in either order. Port 0 is excluded: it means "none".
    pub fn new(a: u16, b: u16) -> PortRange {
        let first = a.min(b).max(1);
        PortRange { first, last: a.max(b).max(first) }
    }

    fn len(self) -> u32 {
        u32::from(self.last - self.first) + 1
    }
}

/// The dynamic ports of RFC 6335 §6.
impl Default for PortRange {
    fn default() -> PortRange {
        PortRange::new(49_152, 65_535)
    }
}

/// The use of a port towards one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortUse {
    /// No connection to the destination has it, and no listener.
    Free,
    /// A connection that may make way for another one.
    MakesWay,
    /// A connection to the destination has it, or a listener.
    Taken,
}

/// The ports that are tried for a free one after one that would make way. With nearly all ports in use, a full search
/// would cost more than the connection.
const LOOKS: u32 = 64;

/// Ports for active opens. For each destination they count up from a secret start, so that a port repeats as late as
/// possible. One destination's start reveals nothing about another's.
#[derive(Clone, Debug)]
pub(crate) struct PortPicker {
    range: PortRange,
    /// Made when the first port is wanted: many hosts only listen, and their secret values take time.
    counters: Box<[u32]>,
}

impl PortPicker {
    pub(crate) fn new(range: PortRange) -> PortPicker {
        PortPicker { range, counters: Box::default() }
    }

    /// The next free port for a connection from `local` to `remote`, else one that makes way; `None` if all are taken.
    /// Always give it the same secrets.
    pub(crate) fn next(
        &mut self,
        secrets: &Secrets,
        local: IpAddr,
        remote: SocketAddr,
        port_use: &dyn Fn(u16) -> PortUse,
    ) -> Option<u16> {
        // The local port is the result, so the hash leaves it out.
        let local = SocketAddr::new(local, 0);
        let offset = low_u32(hash_flow(&secrets.port_offset, local, remote, &[]));
        let index = low_u32(hash_flow(&secrets.port_counter, local, remote, &[])) as usize % COUNTERS;
        if self.counters.is_empty() {
            self.counters = secret_starts(secrets);
        }
        let counter = &mut self.counters[index];
        let (mut looks, mut makes_way) = (self.range.len(), None);
        while looks > 0 {
            looks -= 1;
            let place = offset.wrapping_add(*counter) % self.range.len();
            *counter = counter.wrapping_add(1);
            let port = self.range.first + u16::try_from(place).expect("less than the number of ports");
            match port_use(port) {
                PortUse::Free => return Some(port),
                PortUse::MakesWay if makes_way.is_none() => {
                    makes_way = Some((port, *counter));
                    looks = looks.min(LOOKS);
                }
                PortUse::MakesWay | PortUse::Taken => {}
            }
        }
        let (port, after) = makes_way?;
        *counter = after;
        Some(port)
    }
}

/// Counters that begin at secret values.
#[cold]
fn secret_starts(secrets: &Secrets) -> Box<[u32]> {
    (0..COUNTERS as u64).map(|index| low_u32(secrets.port_counter.hash(&index.to_be_bytes()))).collect()
}

#[cfg(test)]
mod tests;
