//! The TCP that leaves by some interfaces, through a netfilter queue that copies headers alone. The kernel keeps each
//! packet until its verdict.
//!
//! It fails open. Without a listener packets go on, and so do packets that find the queue full. The rules that lead
//! here go with this process. The kernel drops the packets that it keeps when the queue's socket closes, and the
//! connections send again what matters.
//!
//! An interface has one queue of this kind. Its owner holds an abstract Unix socket that is named after the interface,
//! in the interface's own network namespace, so that a second owner learns the number of the first one's process.

mod rules;

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

use super::socket::{Copies, NetfilterQueue, QueueVerdict};
use crate::netlink;

use rules::AckRules;

/// The longest headers: IPv6 and TCP with all options. IPv4's are shorter without options, and with options the packet
/// is of no use here.
const HEADERS: u32 = 128;
/// The beginning of the names of the owners' sockets. The interface's name follows.
const CLAIM: &str = "hopwise-thin-";

/// Why the ACKs of an interface cannot be had.
#[derive(Debug)]
pub enum AckQueueError {
    /// No interface has this name.
    NoInterface(String),
    /// A process, with its number if the kernel tells it, has the ACKs of this interface.
    Taken(String, Option<i32>),
    /// Another program has the queue of this number.
    QueueInUse(u16),
    /// The kernel has no queues of netfilter.
    NoQueues(io::Error),
    /// nft and iptables are missing, or the rules are refused.
    NoRules(io::Error),
    /// A call of the kernel has failed.
    System(io::Error),
}

impl fmt::Display for AckQueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AckQueueError::NoInterface(name) => {
                write!(f, "no interface is called `{name}` here; name one that `ip link` shows")
            }
            AckQueueError::Taken(name, Some(process)) => {
                write!(f, "{name}: the process {process} has its ACKs already; end that one first")
            }
            AckQueueError::Taken(name, None) => {
                write!(f, "{name}: another process has its ACKs already; end that one first")
            }
            AckQueueError::QueueInUse(number) => {
                write!(f, "another program has the netfilter queue {number}; name a free one with --queue")
            }
            AckQueueError::NoQueues(error) => write!(
                f,
                "this kernel has no netfilter queues ({error}): it needs CONFIG_NETFILTER_NETLINK_QUEUE, often the \
                 module nfnetlink_queue"
            ),
            AckQueueError::NoRules(error) => write!(
                f,
                "the rules that lead ACKs into a queue: {error}; nft with CONFIG_NFT_QUEUE in the kernel, or iptables \
                 with CONFIG_NETFILTER_XT_TARGET_NFQUEUE, is needed"
            ),
            AckQueueError::System(error) => error.fmt(f),
        }
    }
}

/// The queue, with the rules that lead there.
#[derive(Debug)]
pub struct AckQueue {
    /// First, so that no packet comes any more when the queue closes.
    rules: Option<AckRules>,
    queue: NetfilterQueue,
    _claims: Vec<OwnedFd>,
}

impl AckQueue {
    /// Takes the TCP that leaves by these interfaces: what this host sends, and what it forwards.
    pub fn open(interfaces: &BTreeSet<String>, number: u16) -> Result<AckQueue, AckQueueError> {
        for name in interfaces {
            netlink::index_of(name).map_err(|_| AckQueueError::NoInterface(name.clone()))?;
        }
        let claims = interfaces.iter().map(|name| claim(name)).collect::<Result<Vec<_>, _>>()?;
        let copies = Copies { most: HEADERS, whole_trains: true };
        let queue = NetfilterQueue::bind_with(number, copies).map_err(|error| match error.kind() {
            io::ErrorKind::ResourceBusy => AckQueueError::QueueInUse(number),
            io::ErrorKind::PermissionDenied => AckQueueError::System(error),
            _ => AckQueueError::NoQueues(error),
        })?;
        let rules = AckRules::set(interfaces, number).map_err(AckQueueError::NoRules)?;
        Ok(AckQueue { rules: Some(rules), queue, _claims: claims })
    }

    /// Becomes readable with a packet.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.queue.descriptor()
    }

    /// The next packet's number, and its headers.
    pub fn read(&mut self) -> io::Result<Option<(u32, &[u8])>> {
        Ok(self.queue.next()?.map(|queued| (queued.id, queued.packet)))
    }

    /// Lets a packet go on, or drops it.
    pub fn judge(&self, id: u32, passes: bool) -> io::Result<()> {
        self.queue.judge().say(id, if passes { QueueVerdict::Accept } else { QueueVerdict::Drop })
    }

    /// Returns whether the rules are there still.
    pub fn stands(&mut self) -> bool {
        self.rules.as_mut().is_some_and(AckRules::stand)
    }

    /// Removes the rules, and lets go on what has come meanwhile. Packets that wait for a verdict must have it before.
    pub fn close(mut self) {
        drop(self.rules.take());
        while let Ok(Some((id, _))) = self.read() {
            // The kernel drops the rest with the queue.
            let _ = self.judge(id, true);
        }
    }
}

/// Holds the interface's name until the descriptor is closed.
fn claim(interface: &str) -> Result<OwnedFd, AckQueueError> {
    let system = |error: Errno| AckQueueError::System(error.into());
    let name = SocketAddrUnix::new_abstract_name(format!("{CLAIM}{interface}").as_bytes()).map_err(system)?;
    let socket = || socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let ours = socket().map_err(system)?;
    match bind(&ours, &name) {
        Ok(()) => listen(&ours, 1).map(|()| ours).map_err(system),
        Err(Errno::ADDRINUSE) => {
            let asks = socket().map_err(system)?;
            let owner = connect(&asks, &name).and_then(|()| socket_peercred(&asks));
            let process = owner.ok().map(|owner| owner.pid.as_raw_nonzero().get());
            Err(AckQueueError::Taken(interface.to_owned(), process))
        }
        Err(error) => Err(system(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_owner_of_an_interface_learns_the_first_one() {
        let first = claim("no-such-device").expect("nobody has it");
        let said = claim("no-such-device").expect_err("it is taken").to_string();
        assert!(said.contains(&format!("the process {} has its ACKs", std::process::id())), "{said}");
        drop(first);
        claim("no-such-device").expect("it is free again");
    }

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        let said = AckQueue::open(&["no-such-device".to_owned()].into(), 7300).expect_err("none").to_string();
        assert!(said.contains("`no-such-device`") && said.contains("ip link"), "{said}");
    }
}
