//! Ephemeral ports by double hashing (RFC 6056 §3.3.4).

use std::net::{IpAddr, SocketAddr};

use super::{Secrets, hash_flow};

/// RFC 6056 shows a table of ten. The larger it is, the less one destination learns from its own ports about
/// connections to others that share a counter.
const COUNTERS: usize = 1024;

/// The ports that are given to whoever asks for any; both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl PortRange {
    /// Ends in either order. Port 0 is left out: it means "none".
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

/// State of a port towards one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortUse {
    Free,
    /// A connection that may make way for another one.
    MakesWay,
    Taken,
}

/// Ports that are looked at for a free one after one was found that would make way: where nearly all are in use, a
/// search through all would cost more than the connection.
const LOOKS: u32 = 64;

/// Ports for active opens. To each destination they go up one by one from a secret place, so that a port
/// comes again as late as possible; and each destination's place says nothing about another's.
#[derive(Clone, Debug)]
pub struct PortPicker {
    range: PortRange,
    counters: Box<[u32]>,
}

impl PortPicker {
    pub fn new(secrets: &Secrets, range: PortRange) -> PortPicker {
        let counters =
            (0..COUNTERS as u64).map(|index| secrets.port_counter.hash(&index.to_be_bytes()) as u32);
        PortPicker { range, counters: counters.collect() }
    }

    /// The next port for a connection from `local` to `remote` that is free, else one that makes way; `None` when all
    /// are taken.
    pub fn next(
        &mut self,
        secrets: &Secrets,
        local: IpAddr,
        remote: SocketAddr,
        port_use: &dyn Fn(u16) -> PortUse,
    ) -> Option<u16> {
        // The local port is what is looked for, so it takes no part.
        let local = SocketAddr::new(local, 0);
        let offset = hash_flow(&secrets.port_offset, local, remote, &[]) as u32;
        let index = hash_flow(&secrets.port_counter, local, remote, &[]) as usize % COUNTERS;
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

#[cfg(test)]
mod tests;
