//! The TCP that leaves by some interfaces, and the SYNs that arrive by them for this host, through a netfilter queue
//! that copies headers alone. The kernel keeps each packet until its verdict.
//!
//! It fails open. Without a listener packets go on, and so do packets that find the queue full. The rules that lead
//! here go with this process. The kernel drops the packets that it keeps when the queue's socket closes, and the
//! connections send again what matters.
//!
//! An interface has one queue of this kind. Its owner holds an abstract Unix socket that is named after the interface,
//! in the interface's own network namespace, so that a second owner learns the number of the first one's process.

mod rules;

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, socket_with,
};
use rustix::process::geteuid;

use super::socket::{Copies, NetfilterQueue, QueueVerdict};
use crate::netlink;
use crate::poller::wait_for;

use rules::AckRules;

/// The longest headers: IPv6 and TCP with all options. IPv4's are shorter without options, and with options the packet
/// is of no use here.
const HEADERS: u32 = 128;
/// The beginning of the names of the owners' sockets. The interface's name follows.
const CLAIM: &str = "hopwise-thin-";
/// Those who ask who the owner is, until the owner looks.
const ASKERS: i32 = 128;
/// While rules are removed, the end is looked for so often.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The queue, with the rules that lead there.
#[derive(Debug)]
pub struct AckQueue {
    /// First, so that no packet comes any more when the queue closes.
    rules: Option<AckRules>,
    queue: NetfilterQueue,
    claims: Vec<OwnedFd>,
}

impl AckQueue {
    /// Takes the TCP that leaves by these interfaces: what this host sends, and what it forwards.
    pub fn open(interfaces: &BTreeSet<String>, number: u16) -> io::Result<AckQueue> {
        for name in interfaces {
            let missing = |_| format!("no interface is called `{name}` here; name one that `ip link` shows");
            netlink::index_of(name).map_err(missing).map_err(io::Error::other)?;
        }
        let claims = interfaces.iter().filter_map(|name| claim(name).transpose());
        let claims = claims.collect::<io::Result<_>>()?;
        let copies = Copies { most: HEADERS, whole_trains: true };
        let queue = NetfilterQueue::bind_with(number, copies).map_err(|error| match error.kind() {
            io::ErrorKind::ResourceBusy => io::Error::other(format!(
                "another program has the netfilter queue {number}; name a free one with --queue"
            )),
            _ => error,
        })?;
        let rules = AckRules::set(interfaces, number).map_err(|error| {
            io::Error::other(format!(
                "the rules that lead ACKs into a queue: {error}; nft with CONFIG_NFT_QUEUE in the kernel, or iptables \
                 with CONFIG_NETFILTER_XT_TARGET_NFQUEUE, is needed"
            ))
        })?;
        Ok(AckQueue { rules: Some(rules), queue, claims })
    }

    /// Becomes readable with a packet.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.queue.descriptor()
    }

    /// The next packet's number, the number of the interface by which it leaves, and its headers. A SYN that arrives
    /// leaves by no interface (0).
    pub fn read(&mut self) -> io::Result<Option<(u32, u32, &[u8])>> {
        Ok(self.queue.next()?.map(|queued| (queued.id, queued.leaves_by, queued.packet)))
    }

    /// Lets a packet go on, or drops it.
    pub fn judge(&self, id: u32, passes: bool) -> io::Result<()> {
        self.queue.judge().say(id, if passes { QueueVerdict::Accept } else { QueueVerdict::Drop })
    }

    /// Makes room for further programs that ask who the owner is. Their connection alone has told them.
    pub fn drop_askers(&self) {
        self.claims.iter().for_each(|claim| while accept_with(claim, SocketFlags::CLOEXEC).is_ok() {});
    }

    /// Returns whether the rules are there still.
    pub fn stands(&mut self) -> bool {
        self.rules.as_mut().is_some_and(AckRules::stand)
    }

    /// Removes the rules. That may take long: what comes meanwhile goes on, and `beat` is called over and over. Packets
    /// that wait for a verdict must have it before.
    pub fn close(mut self, mut beat: impl FnMut()) {
        let rules = self.rules.take();
        // Without a thread the rules go before `spawn` returns.
        let removing = thread::Builder::new().spawn(move || drop(rules)).ok();
        loop {
            let is_over = removing.as_ref().is_none_or(JoinHandle::is_finished);
            match self.read().map(|next| next.map(|(id, ..)| id)) {
                // Without its verdict, the kernel drops it with the queue.
                Ok(Some(id)) => drop(self.judge(id, true)),
                _ if is_over => return,
                _ => drop(wait_for(
                    &mut [PollFd::from_borrowed_fd(self.descriptor(), PollFlags::IN)],
                    LOOK_EVERY,
                )),
            }
            beat();
        }
    }
}

/// Holds the interface's name until the descriptor is closed. `None`: a stranger holds the name, who may do so without
/// any rights, and owns no ACKs.
fn claim(interface: &str) -> io::Result<Option<OwnedFd>> {
    let name = SocketAddrUnix::new_abstract_name(format!("{CLAIM}{interface}").as_bytes())?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = || socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    let ours = socket()?;
    match bind(&ours, &name) {
        Ok(()) => Ok(listen(&ours, ASKERS).map(|()| Some(ours))?),
        Err(Errno::ADDRINUSE) => {
            let asks = socket()?;
            match connect(&asks, &name).and_then(|()| socket_peercred(&asks)) {
                Ok(owner) if owner.uid.is_root() || owner.uid == geteuid() => {
                    let process = owner.pid.as_raw_nonzero().get();
                    let taken = "has its ACKs already; end that one first";
                    Err(io::Error::other(format!("{interface}: the process {process} {taken}")))
                }
                owner => {
                    tracing::warn!(?owner, interface, "a stranger has the name of its owner's socket");
                    Ok(None)
                }
            }
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_owner_of_an_interface_learns_the_first_one() {
        let first = claim("no-such-device").expect("nobody has it");
        assert!(first.is_some());
        for _ in 0..4 {
            let said = claim("no-such-device").expect_err("it is taken").to_string();
            assert!(said.contains(&format!("the process {} has its ACKs", std::process::id())), "{said}");
        }
        drop(first);
        claim("no-such-device").expect("it is free again");
    }

    #[test]
    fn a_name_whose_holder_does_not_answer_blocks_nobody() {
        let name = SocketAddrUnix::new_abstract_name(b"hopwise-thin-blocked").expect("a name");
        let socket = || socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None);
        let stranger = socket().expect("a socket");
        bind(&stranger, &name).and_then(|()| listen(&stranger, 0)).expect("it is free");
        let full = socket().expect("a socket");
        connect(&full, &name).expect("the only one that waits");
        assert!(claim("blocked").expect("it goes on").is_none());
    }

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        let said = AckQueue::open(&["no-such-device".to_owned()].into(), 7300).expect_err("none").to_string();
        assert!(said.contains("`no-such-device`") && said.contains("ip link"), "{said}");
    }
}
