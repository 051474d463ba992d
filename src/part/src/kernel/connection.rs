//! A connection of the kernel's TCP, as the programs of a live run see it.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use hopwise_core::Instant;
use hopwise_core::endpoint::EventKind;
use hopwise_core::tcp::{CloseReason, TcpConfig};
use hopwise_host::Interest;
use rustix::net::{RecvFlags, sockopt};

use super::{MOST_WAITING, PATIENCE};

#[derive(Debug)]
pub(super) struct KernelConnection {
    pub(super) fd: OwnedFd,
    pub peer: SocketAddr,
    /// Its settings, while it is being opened from here.
    pub(super) opens_with: Option<Arc<TcpConfig>>,
    /// The time of the next attempt to open it.
    pub(super) again_at: Option<Instant>,
    pub(super) is_open: bool,
    /// Bytes that the program has not consumed.
    pub(super) waiting: Vec<u8>,
    pub(super) has_end: bool,
    /// It has failed, and the poller does not know it any more.
    pub(super) has_failed: bool,
    /// The last send did not fit.
    pub(super) wants_room: bool,
    pub(super) interest: Interest,
}

impl KernelConnection {
    pub(super) fn wanted(&self) -> Interest {
        let wants_data = !self.has_end && self.waiting.len() < MOST_WAITING;
        match (wants_data && self.is_open, self.wants_room || !self.is_open) {
            (true, true) => Interest::ReadAndRoom,
            (true, false) => Interest::Read,
            (false, true) => Interest::Room,
            (false, false) => Interest::Nothing,
        }
    }

    pub(super) fn on_ready(&mut self, now: Instant, mut tell: impl FnMut(EventKind)) {
        if self.has_end && !self.wants_room {
            // Both sides have ended, or it has failed: it would always be ready, and there is nothing to read.
            self.has_failed = true;
            return;
        }
        if !self.is_open {
            match sockopt::socket_error(&self.fd) {
                Ok(Ok(())) => {
                    self.is_open = true;
                    tell(EventKind::Connected);
                }
                _ => {
                    (self.again_at, self.has_failed) = (Some(now + PATIENCE), true);
                    return;
                }
            }
        }
        if std::mem::take(&mut self.wants_room) {
            tell(EventKind::Writable);
        }
        self.read(&mut tell);
    }

    fn fail(&mut self, reason: CloseReason, tell: &mut impl FnMut(EventKind)) {
        (self.has_end, self.has_failed) = (true, true);
        tell(EventKind::Closed(reason));
    }

    fn read(&mut self, tell: &mut impl FnMut(EventKind)) {
        let before = self.waiting.len();
        let mut chunk = [0; 1 << 16];
        while !self.has_end && self.waiting.len() < MOST_WAITING {
            match rustix::net::recv(&self.fd, &mut chunk[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => self.has_end = true,
                Ok((bytes, _)) => self.waiting.extend_from_slice(&chunk[..bytes]),
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => break,
                Err(_) => return self.fail(CloseReason::Reset, tell),
            }
        }
        if self.waiting.len() > before {
            tell(EventKind::Readable);
        }
        if self.has_end {
            tell(EventKind::PeerClosed);
        }
    }
}
