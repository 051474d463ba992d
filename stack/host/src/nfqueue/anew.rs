//! Sends packets of one side anew, through raw sockets. It never waits: it tells when there is no room, and its
//! descriptor tells when there is.
//!
//! The kernel holds a packet to an absent neighbour for seconds. The packet takes room of its socket until then. Any
//! host can cause segments with SYN to absent neighbours. These have a socket of their own, and those without room are
//! dropped: otherwise they would keep the segments of connections waiting.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use hopwise_core::wire::{Flags, IpView, protocol};

use crate::poller::{Interest, Poller};
use crate::routing::Resender;

/// Room for some thousand segments without data.
const ROOM_FOR_SYNS: libc::c_int = 4 << 20;
/// The place of the flags in a TCP header (RFC 9293 §3.1).
const FLAGS_AT: usize = 13;
/// Numbers for the poller.
const QUEUE: usize = 0;
const SOCKET: usize = 1;

#[derive(Debug)]
pub(super) struct Anew {
    segments: Resender,
    syns: Resender,
    poller: Poller,
    /// Readable when the queue has a packet, or a full socket has room again.
    watched: OwnedFd,
    /// A destination whose version of IP has no room.
    full_for: Option<IpAddr>,
}

impl Anew {
    /// `queue` is watched too.
    pub(super) fn open(device: &str, queue: BorrowedFd<'_>) -> io::Result<Anew> {
        let (segments, syns) = (Resender::open(device)?, Resender::open(device)?);
        syns.make_room(ROOM_FOR_SYNS);
        let poller = Poller::new()?;
        poller.add(queue, QUEUE, Interest::Read)?;
        let watched = poller.descriptor()?;
        Ok(Anew { segments, syns, poller, watched, full_for: None })
    }

    /// Marks all packets that leave.
    pub(super) fn set_mark(&self, mark: libc::c_int) -> io::Result<()> {
        self.segments.set_mark(mark)?;
        self.syns.set_mark(mark)
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.watched.as_fd()
    }

    pub(super) fn has_device(&self) -> bool {
        self.segments.has_device()
    }

    /// Returns false if there will be room later, which the descriptor tells.
    pub(super) fn send(&mut self, ip: &IpView<'_>, packet: &[u8]) -> io::Result<bool> {
        if has_syn(ip) {
            return self.syns.send(ip.dst, packet).map(|()| true);
        }
        if let Some(socket) = self.full_for.take().and_then(|dst| self.segments.socket(dst)) {
            // It may have been removed with its device.
            let _ = self.poller.remove(socket);
        }
        match self.segments.send(ip.dst, packet) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let Some(socket) = self.segments.socket(ip.dst) else { return Err(error) };
                self.poller.add(socket, SOCKET, Interest::Room)?;
                self.full_for = Some(ip.dst);
                Ok(false)
            }
            done => done.map(|()| true),
        }
    }
}

fn has_syn(ip: &IpView<'_>) -> bool {
    let flags = ip.payload.get(FLAGS_AT).filter(|_| ip.protocol == protocol::TCP);
    flags.is_some_and(|flags| Flags(*flags).contains(Flags::SYN))
}
