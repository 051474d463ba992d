//! Values that outsiders must not guess: initial sequence numbers, ports, timestamp offsets, SYN cookies and the order
//! of the connection table. All come from one key, without randomness.

mod cookie;
mod ports;

use std::hash::BuildHasher;
use std::net::{IpAddr, SocketAddr};

use siphasher::sip::{SipHasher13, SipHasher24};

pub(crate) use cookie::{COOKIE_LIFE, CookieFlow, CookieOptions, cookie_timestamp};
pub use ports::PortRange;
pub(crate) use ports::{PortPicker, PortUse};

use crate::narrow::low_u32;
use crate::{Instant, Seq};

/// The clock of initial sequence numbers ticks every 4 µs (RFC 9293 §3.4.1).
const ISN_TICK_NS: u64 = 4_000;

/// One key for each purpose, so that one purpose reveals nothing about another.
///
/// The maker of an endpoint must supply a new random key each time. The clock begins at zero again, and the same key
/// would repeat the same sequence numbers.
#[derive(Clone)]
pub struct Secrets {
    table: KeyedState,
    isn: SipHasher24,
    timestamp: SipHasher24,
    port_offset: SipHasher24,
    port_counter: SipHasher24,
    cookie_mask: SipHasher24,
    cookie_mac: SipHasher24,
    syn_name: SipHasher24,
}

impl Secrets {
    /// Derives the keys of all purposes from `key`, which is not kept.
    pub fn new(key: [u8; 32]) -> Secrets {
        let (left, right) = key.split_at(16);
        let halves =
            [left, right].map(|half| SipHasher24::new_with_key(half.try_into().expect("half of 32")));
        let subkey = |purpose: &[u8]| halves.map(|half| half.hash(purpose));
        let hasher = |purpose: &[u8]| {
            let [key0, key1] = subkey(purpose);
            SipHasher24::new_with_keys(key0, key1)
        };
        Secrets {
            table: KeyedState(subkey(b"connection table")),
            isn: hasher(b"initial sequence number"),
            timestamp: hasher(b"timestamp offset"),
            port_offset: hasher(b"port offset"),
            port_counter: hasher(b"port counter"),
            cookie_mask: hasher(b"cookie mask"),
            cookie_mac: hasher(b"cookie mac"),
            syn_name: hasher(b"syn name"),
        }
    }

    /// The hash of maps that peers can fill: they cannot make their keys collide.
    pub(crate) fn keyed_state(&self) -> KeyedState {
        self.table
    }

    /// A clock plus a secret hash of addresses and ports (RFC 6528 §3, RFC 9293 §3.4.1). The next connection of a flow
    /// begins above the previous one, at a number that outsiders cannot predict.
    pub fn isn(&self, now: Instant, local: SocketAddr, remote: SocketAddr) -> Seq {
        let clock = low_u32(now.0 / ISN_TICK_NS);
        Seq(clock) + low_u32(hash_flow(&self.isn, local, remote, &[]))
    }

    /// Added to the clock of timestamps. They then reveal neither uptime nor that two connections come from the same
    /// host (RFC 7323 §5.4). It is the same for each incarnation of a connection, whose timestamps must grow.
    pub(crate) fn ts_offset(&self, local: SocketAddr, remote: SocketAddr) -> u32 {
        low_u32(hash_flow(&self.timestamp, local, remote, &[]))
    }
}

// Keeps the keys out of logs.
crate::shown!(Secrets);

fn hash_flow(keyed: &SipHasher24, local: SocketAddr, remote: SocketAddr, more: &[u8]) -> u64 {
    // Each piece that is written alone costs as much as the hash of a whole flow.
    let mut bytes = [0; 36 + MOST_MORE];
    bytes[..16].copy_from_slice(&octets(local.ip()));
    bytes[16..18].copy_from_slice(&local.port().to_be_bytes());
    bytes[18..34].copy_from_slice(&octets(remote.ip()));
    bytes[34..36].copy_from_slice(&remote.port().to_be_bytes());
    let len = 36 + more.len();
    bytes[36..len].copy_from_slice(more);
    keyed.hash(&bytes[..len])
}

/// The most bytes that are hashed behind a flow: those of a cookie.
const MOST_MORE: usize = 13;

/// Always 16 octets, so that different flows give different bytes. A mapped IPv6 address never gets here, since
/// [`is_valid_source`](crate::ip::is_valid_source) refuses it.
fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

#[cfg(test)]
mod tests;

// The hash of the connection table: keyed, so that peers cannot choose which entries collide.

/// SipHash-1-3: it runs for every packet, and outsiders never see a hash.
#[derive(Clone, Copy)]
pub(crate) struct KeyedState([u64; 2]);

impl BuildHasher for KeyedState {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0[0], self.0[1])
    }
}

// Keeps the keys out of logs.
crate::shown!(KeyedState);
