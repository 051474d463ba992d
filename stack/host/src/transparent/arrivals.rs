//! The caught SYNs that have come in: our table of nft keeps them in sets, behind all `input` chains of the firewall.
//!
//! A caught SYN that is in no set was dropped on its way through this machine. The firewall has nothing to do with the
//! end of a SYN that is in a set, such as a reset from its host. The kernel answers, not a program: a confined process
//! may run none.

use std::io;
use std::net::{IpAddr, SocketAddr};

use rustix::net::netlink::NETFILTER;

use super::chains::{self, arrivals_of};
use crate::netlink::ask::{ask, open};
use crate::netlink::message::Message;
use crate::nfqueue::standing::{INET, SUBSYSTEM, terminated};

/// A question for an element of a set, and its attributes (linux/netfilter/nf_tables.h).
const GET_ELEMENT: u16 = SUBSYSTEM | 13;
const TABLE: u16 = 1;
const SET: u16 = 2;
const ELEMENTS: u16 = 3;
const ELEMENT: u16 = 1;
const KEY: u16 = 1;
const VALUE: u16 = 1;

/// The sets of a table.
#[derive(Clone, Debug)]
pub struct Arrivals {
    table: String,
}

impl Arrivals {
    pub(super) fn of(table: u32) -> Arrivals {
        Arrivals { table: chains::name(table) }
    }

    /// Returns whether a caught SYN of the connection from a host to a server has come in within the last seconds.
    pub fn has(&self, (host, server): (SocketAddr, SocketAddr)) -> io::Result<bool> {
        let key = [field(host), field(server)].concat();
        let question = Message::new(GET_ELEMENT, 0, 0)
            .fixed(&[INET, 0, 0, 0])
            .attribute(TABLE, &terminated(&self.table))
            .attribute(SET, &terminated(arrivals_of(host.ip())))
            .nest(ELEMENTS, |list| {
                list.nest(ELEMENT, |element| element.nest(KEY, |data| data.attribute(VALUE, &key)))
            });
        match ask(open(Some(NETFILTER))?, question, |_| {}) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
            asked => asked.map(|()| true),
        }
    }
}

/// An address and a port in a key: each part fills words of four bytes.
fn field(end: SocketAddr) -> Vec<u8> {
    let mut bytes = match end.ip() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    bytes.extend_from_slice(&end.port().to_be_bytes());
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_a_key_fills_its_words() {
        assert_eq!(field(SocketAddr::from(([10, 1, 0, 2], 0x1234))), [10, 1, 0, 2, 0x12, 0x34, 0, 0]);
        assert_eq!(field("[fd01::2]:80".parse().expect("an address")).len(), 20);
    }
}
