//! A netfilter queue over netlink: packets that the kernel holds, and their verdicts.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::netlink::NETFILTER;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::thread::{CapabilitySet, capabilities};

use crate::netlink::ask::{ask, open};
use crate::netlink::message::{NetlinkMessage, REQUEST, attribute, messages};
use crate::sys;

/// The subsystem of queues, and its messages (linux/netfilter/nfnetlink_queue.h).
const SUBSYSTEM: u16 = 3 << 8;
const PACKET: u16 = SUBSYSTEM;
const VERDICT: u16 = SUBSYSTEM | 1;
const CONFIGURE: u16 = SUBSYSTEM | 2;
const COMMAND: u16 = 1;
const BIND: u8 = 1;
const PARAMETERS: u16 = 2;
const COPY_PACKET: u8 = 2;
const MOST_QUEUED: u16 = 3;
const MASK: u16 = 4;
const FLAGS: u16 = 5;
/// A full queue lets packets go on, and drops none.
const FAIL_OPEN: u32 = 1;
/// Data that the device will cut comes in one packet, as the kernel has it.
const GSO: u32 = 4;
const PACKET_HEADER: u16 = 1;
const VERDICT_HEADER: u16 = 2;
const MARK: u16 = 3;
const INTERFACE: u16 = 5;
const LEAVES_BY: u16 = 6;
const PORT: u16 = 7;
const SENDER: u16 = 9;
const PAYLOAD: u16 = 10;
/// Since Linux 5.18.
const PRIORITY: u16 = 21;
/// The length of netfilter's own header: family, version, and the queue's number.
const HEADER: usize = 4;
const BUFFER: usize = 80 << 10;
const RECEIVE_BUFFER: libc::c_int = 8 << 20;
/// Packets that the kernel holds while we are busy.
const QUEUED: u32 = 4_096;
const NO_OVERRUN_ERRORS: (libc::c_int, libc::c_int) = (libc::SOL_NETLINK, libc::NETLINK_NO_ENOBUFS);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueVerdict {
    Drop,
    Accept,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueuedPacket<'a> {
    pub(crate) id: u32,
    /// 0 if it has none.
    pub(crate) mark: u32,
    /// The number of the interface by which it came; 0 if it came by none.
    pub(crate) interface: u32,
    /// The number of the interface by which it leaves; 0 before the kernel knows it.
    pub(crate) leaves_by: u32,
    /// The number of the bridge's port by which it came; 0 if it came by none.
    pub(crate) port: u32,
    /// The priority that the machine gave it, such as from a VLAN's tag; 0 if it has none.
    pub(crate) priority: u32,
    /// The sender's address on the link, with its length; empty if the link has none.
    pub(crate) sender: &'a [u8],
    pub(crate) packet: &'a [u8],
}

/// What comes of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copies {
    /// Bytes of it at the most.
    pub(crate) most: u32,
    /// Data that a device will cut comes uncut, and its checksum unfinished.
    pub(crate) whole_trains: bool,
}

#[derive(Debug)]
pub(crate) struct NetfilterQueue {
    socket: Arc<OwnedFd>,
    number: u16,
    buffer: Vec<u8>,
}

const NO_QUEUES: &str = "this kernel has no netfilter queues: it needs CONFIG_NETFILTER_NETLINK_QUEUE, often the \
                         module nfnetlink_queue";
const NO_ADMIN: &str = "a netfilter queue takes CAP_NET_ADMIN, which is missing: start as root, or with it";

fn is_admin() -> bool {
    capabilities(None).is_ok_and(|has| has.effective.contains(CapabilitySet::NET_ADMIN))
}

/// Names what a kernel lacks that has no netlink of netfilter, or no queues behind it.
fn or_lacking(error: io::Error) -> io::Error {
    let lacks = matches!(error.raw_os_error(), Some(libc::EPROTONOSUPPORT | libc::EINVAL));
    if lacks { io::Error::new(io::ErrorKind::Unsupported, NO_QUEUES) } else { error }
}

fn message(kind: u16, flags: u16, queue: u16) -> NetlinkMessage {
    let [high, low] = queue.to_be_bytes();
    NetlinkMessage::new(kind, flags, 1).fixed(&[0, 0, high, low])
}

impl NetfilterQueue {
    /// Binds a queue of whole packets, which has one user. It fails with `ResourceBusy` if another program has it.
    pub(crate) fn bind(number: u16) -> io::Result<NetfilterQueue> {
        NetfilterQueue::bind_with(number, Copies { most: 0xffff, whole_trains: false })
    }

    pub(crate) fn bind_with(number: u16, copies: Copies) -> io::Result<NetfilterQueue> {
        let socket = open(Some(NETFILTER)).map_err(or_lacking)?;
        sys::set_option(socket.as_fd(), NO_OVERRUN_ERRORS, 1)?;
        // A smaller buffer works, too.
        let _ = sys::set_option(socket.as_fd(), (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE), RECEIVE_BUFFER);
        let queue = NetfilterQueue::bound(socket, number);
        let configure = || message(CONFIGURE, 0, number);
        queue.ask(configure().attribute(COMMAND, &[BIND, 0, 0, 0]))?;
        let parameters = [&copies.most.to_be_bytes()[..], &[COPY_PACKET]].concat();
        queue.ask(configure().attribute(PARAMETERS, &parameters))?;
        queue.ask(configure().attribute(MOST_QUEUED, &QUEUED.to_be_bytes()))?;
        let flags = if copies.whole_trains { FAIL_OPEN | GSO } else { FAIL_OPEN }.to_be_bytes();
        queue.ask(configure().attribute(FLAGS, &flags).attribute(MASK, &flags))?;
        rustix::io::ioctl_fionbio(&*queue.socket, true)?;
        Ok(queue)
    }

    /// A queue that another process has bound, by its socket.
    pub(crate) fn bound(socket: OwnedFd, number: u16) -> NetfilterQueue {
        NetfilterQueue { socket: Arc::new(socket), number, buffer: vec![0; BUFFER] }
    }

    /// Sends a request. It may skip packets, but there are none: no rule leads to the queue yet.
    fn ask(&self, question: NetlinkMessage) -> io::Result<()> {
        ask(&*self.socket, question, |_| {}).map_err(|error| match error.raw_os_error() {
            // Another program has the queue.
            Some(libc::EPERM) if is_admin() => io::ErrorKind::ResourceBusy.into(),
            Some(libc::EPERM) => io::Error::new(io::ErrorKind::PermissionDenied, NO_ADMIN),
            _ => or_lacking(error),
        })
    }

    pub(super) fn number(&self) -> u16 {
        self.number
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<QueuedPacket<'_>>> {
        loop {
            match recv(&*self.socket, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((bytes, _)) if read(&self.buffer[..bytes]).is_some() => {
                    return Ok(read(&self.buffer[..bytes]));
                }
                Ok(_) => {}
                Err(Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(crate) fn judge(&self) -> Judge {
        Judge { socket: Arc::clone(&self.socket), number: self.number }
    }
}

/// Sends the verdicts of a queue's packets, wherever they were read. The kernel takes them from the queue's own socket
/// alone.
#[derive(Clone, Debug)]
pub(crate) struct Judge {
    socket: Arc<OwnedFd>,
    number: u16,
}

impl Judge {
    pub(crate) fn say(&self, id: u32, verdict: QueueVerdict) -> io::Result<()> {
        self.send(self.verdict(id, verdict))
    }

    /// Lets the packet go on with this mark.
    pub(crate) fn accept_with(&self, id: u32, mark: u32) -> io::Result<()> {
        self.send(self.verdict(id, QueueVerdict::Accept).attribute(MARK, &mark.to_be_bytes()))
    }

    fn verdict(&self, id: u32, verdict: QueueVerdict) -> NetlinkMessage {
        let verdict = u32::from(verdict == QueueVerdict::Accept);
        let header = [verdict.to_be_bytes(), id.to_be_bytes()].concat();
        message(VERDICT, REQUEST, self.number).attribute(VERDICT_HEADER, &header)
    }

    fn send(&self, said: NetlinkMessage) -> io::Result<()> {
        send(&*self.socket, &said.finish(), SendFlags::empty())?;
        Ok(())
    }
}

/// The packet in a message, if it has one.
pub(crate) fn read(bytes: &[u8]) -> Option<QueuedPacket<'_>> {
    let heard = messages(bytes).find(|heard| heard.kind == PACKET)?;
    let attributes = heard.body.get(HEADER..)?;
    let id = attribute(attributes, PACKET_HEADER)?.get(..4)?;
    let id = u32::from_be_bytes(id.try_into().ok()?);
    let number = |kind| {
        attribute(attributes, kind).and_then(|word| word.try_into().ok()).map_or(0, u32::from_be_bytes)
    };
    let [mark, interface, leaves_by, port, priority] =
        [MARK, INTERFACE, LEAVES_BY, PORT, PRIORITY].map(number);
    let sender = attribute(attributes, SENDER).unwrap_or_default();
    Some(QueuedPacket {
        id,
        mark,
        interface,
        leaves_by,
        port,
        priority,
        sender,
        packet: attribute(attributes, PAYLOAD)?,
    })
}

#[cfg(test)]
mod tests {
    use std::thread;

    use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

    use super::*;
    use crate::testing::refuse;

    /// The words with which a queue is refused where the kernel fails a call so.
    fn refused(call: i64, rules: Vec<SeccompRule>, error: i32) -> String {
        let binding = thread::spawn(move || {
            refuse(call, rules, error);
            NetfilterQueue::bind(7300).expect_err("no queue").to_string()
        });
        binding.join().expect("no panic")
    }

    /// The sockets of netfilter, among all calls of `socket`.
    fn of_netfilter() -> Vec<SeccompRule> {
        let is = [(0, libc::AF_NETLINK), (2, libc::NETLINK_NETFILTER)].map(|(nth, value)| {
            let value = u64::from(value.unsigned_abs());
            SeccompCondition::new(nth, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value).expect("an argument")
        });
        vec![SeccompRule::new(is.to_vec()).expect("two conditions")]
    }

    #[test]
    fn a_kernel_without_queues_is_told_from_a_process_without_descriptors() {
        // Without netlink of netfilter there is no such socket, and without its queues the request is unknown.
        for (call, rules, error) in [
            (libc::SYS_socket, of_netfilter(), libc::EPROTONOSUPPORT),
            (libc::SYS_sendto, Vec::new(), libc::EINVAL),
        ] {
            let said = refused(call, rules, error);
            assert!(said.contains("this kernel has no netfilter queues"), "{said}");
            assert!(said.contains("it needs CONFIG_NETFILTER_NETLINK_QUEUE"), "{said}");
        }
        for (error, says) in [(libc::EMFILE, "Too many open files"), (libc::ENFILE, "in system")] {
            let said = refused(libc::SYS_socket, of_netfilter(), error);
            assert!(said.contains(says) && !said.contains("kernel"), "{said}");
        }
    }

    #[test]
    fn a_packet_is_read_with_the_number_that_its_verdict_names() {
        let header = [&7_u32.to_be_bytes()[..], &[8, 0, 2, 0]].concat();
        let written = message(PACKET, 0, 5).attribute(PACKET_HEADER, &header).attribute(MARK, &[4, 0, 0, 1]);
        let written = written.attribute(INTERFACE, &[0, 0, 0, 9]).attribute(PORT, &[0, 0, 0, 8]);
        let written = written.attribute(PRIORITY, &[0, 0, 0, 6]).attribute(LEAVES_BY, &[0, 0, 0, 3]);
        let bytes = written.attribute(SENDER, &[0, 6, 0, 0, 2]).attribute(PAYLOAD, b"packet").finish();
        let (sender, packet) = (&[0, 6, 0, 0, 2][..], &b"packet"[..]);
        let (mark, interface, leaves_by, port, priority) = (0x0400_0001, 9, 3, 8, 6);
        let queued = QueuedPacket { id: 7, mark, interface, leaves_by, port, priority, sender, packet };
        assert_eq!(read(&bytes), Some(queued));
        assert!((0..bytes.len() - 2).all(|len| read(&bytes[..len]).is_none()));
        let other = message(CONFIGURE, 0, 5).attribute(PACKET_HEADER, &header).finish();
        assert_eq!(read(&other), None);
    }
}
