//! Whether chains of nftables still have their rules. The kernel is asked, and no program: a confined process may run
//! none.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::netlink::{NETFILTER, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};

use crate::netlink::message::{Message, REQUEST, attribute, messages};
use crate::poller::wait_to_read;

/// The subsystem of nftables, and its messages (linux/netfilter/nf_tables.h).
const SUBSYSTEM: u16 = 10 << 8;
const NEW_CHAIN: u16 = SUBSYSTEM | 3;
const GET_CHAIN: u16 = SUBSYSTEM | 4;
const TABLE: u16 = 1;
const NAME: u16 = 3;
const USES: u16 = 6;
/// Of a message of netfilter's: family, version, and a number that means nothing here.
const HEADER: usize = 4;
const WITHIN: Duration = Duration::from_secs(2);

/// Families as netfilter numbers them.
pub(super) const INET: u8 = 1;
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

/// `None`: there is no such chain.
fn uses(chain: &Chain) -> io::Result<Option<u32>> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(NETFILTER))?;
    bind(&socket, &SocketAddrNetlink::new(0, 0))?;
    let terminated = |text: &str| [text.as_bytes(), &[0]].concat();
    let question = Message::new(GET_CHAIN, REQUEST, 1)
        .fixed(&[chain.family, 0, 0, 0])
        .attribute(TABLE, &terminated(&chain.table))
        .attribute(NAME, &terminated(&chain.name));
    send(&socket, &question.finish(), SendFlags::empty())?;
    let mut buffer = [0_u8; 4 << 10];
    wait_to_read(socket.as_fd(), WITHIN)?;
    let (bytes, _) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
    read(&buffer[..bytes])
}

fn read(bytes: &[u8]) -> io::Result<Option<u32>> {
    for heard in messages(bytes) {
        match heard.errno() {
            Some(libc::ENOENT) => return Ok(None),
            Some(code) if code != 0 => return Err(io::Error::from_raw_os_error(code)),
            _ => {}
        }
        if heard.kind == NEW_CHAIN {
            let uses = heard.body.get(HEADER..).and_then(|attributes| attribute(attributes, USES));
            let uses = uses.and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
            return uses.map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into());
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::message::ERROR;

    #[test]
    fn an_answer_tells_the_uses_of_a_chain_or_that_there_is_none() {
        let told = Message::new(NEW_CHAIN, 0, 1).fixed(&[2, 0, 0, 0]).attribute(NAME, b"forwarded\0");
        let bytes = told.attribute(USES, &5_u32.to_be_bytes()).finish();
        assert_eq!(read(&bytes).expect("an answer"), Some(5));
        assert!((0..bytes.len()).all(|len| read(&bytes[..len]).is_err()));
        let refused = |code: i32| Message::new(ERROR, 0, 1).fixed(&(-code).to_ne_bytes()).finish();
        assert_eq!(read(&refused(libc::ENOENT)).expect("an answer"), None);
        assert!(read(&refused(libc::EPERM)).is_err());
    }
}
