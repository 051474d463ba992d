//! Asks whether chains of nftables still have their rules. The kernel answers, not a program: a confined process may
//! run none.

use std::io;

use rustix::net::netlink::NETFILTER;

use crate::netlink::ask::{ask, open};
use crate::netlink::message::{Message, attribute};

/// The subsystem of nftables, and its messages (linux/netfilter/nf_tables.h).
pub(crate) const SUBSYSTEM: u16 = 10 << 8;
const NEW_CHAIN: u16 = SUBSYSTEM | 3;
const GET_CHAIN: u16 = SUBSYSTEM | 4;
const TABLE: u16 = 1;
const NAME: u16 = 3;
const USES: u16 = 6;
/// The header of a netfilter message: family, version, and a number without a meaning here.
const HEADER: usize = 4;

/// Families as netfilter numbers them.
pub(crate) const INET: u8 = 1;
pub(super) const IPV4: u8 = 2;
pub(super) const IPV6: u8 = 10;

/// A chain, by its family, its table and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) family: u8,
    pub(super) table: String,
    pub(super) name: String,
}

/// Chains, each with the number of its rules and of those that lead to it, as they were made.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing(Vec<(Chain, u32)>);

impl Standing {
    /// Those of the chains that nftables knows; of others nothing can be told.
    pub(super) fn of(chains: impl IntoIterator<Item = Chain>) -> Standing {
        let known = |chain: Chain| uses(&chain).ok().flatten().map(|uses| (chain, uses));
        Standing(chains.into_iter().filter_map(known).collect())
    }

    /// False once one of them has gone, or has lost a rule. A kernel that does not answer has removed none.
    pub(super) fn holds(&self) -> bool {
        self.0.iter().all(|(chain, before)| match uses(chain) {
            Ok(now) => now.is_some_and(|now| now >= *before),
            Err(_) => true,
        })
    }
}

/// A name as netfilter takes it.
pub(crate) fn terminated(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

/// `None`: there is no such chain.
fn uses(chain: &Chain) -> io::Result<Option<u32>> {
    let question = Message::new(GET_CHAIN, 0, 0)
        .fixed(&[chain.family, 0, 0, 0])
        .attribute(TABLE, &terminated(&chain.table))
        .attribute(NAME, &terminated(&chain.name));
    let mut found = None;
    let asked = ask(open(Some(NETFILTER))?, question, |heard| {
        if heard.kind == NEW_CHAIN {
            found = read(heard.body);
        }
    });
    match asked {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
        Ok(()) => found.map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into()),
    }
}

/// The number of a chain's uses, by its description.
pub(crate) fn read(body: &[u8]) -> Option<u32> {
    let uses = attribute(body.get(HEADER..)?, USES)?;
    uses.try_into().ok().map(u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::message::messages;

    #[test]
    fn a_description_tells_the_uses_of_a_chain() {
        let chain = Message::new(NEW_CHAIN, 0, 1).fixed(&[2, 0, 0, 0]).attribute(NAME, b"forwarded\0");
        let bytes = chain.attribute(USES, &5_u32.to_be_bytes()).finish();
        let body = messages(&bytes).next().expect("it is whole").body;
        assert_eq!(read(body), Some(5));
        assert!((0..body.len()).all(|len| read(&body[..len]).is_none()));
    }
}
