//! Lets SYNs go on in place of a node that hangs.
//!
//! It shares the socket of the node's queue, to which alone the kernel tells packets, and from which alone it takes
//! verdicts. A hang therefore takes no setting up, and its end no putting back. A SYN that the node has read is not
//! seen here. Its host sends it again.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};

use super::HELD;
use crate::nfqueue::socket::Queue;

/// The queue of a node that may hang.
#[derive(Debug)]
pub struct Bypass(Queue);

impl Bypass {
    /// `socket` is that of the node's queue with this number.
    pub fn new(socket: OwnedFd, queue: u16) -> Bypass {
        Bypass(Queue::bound(socket, queue))
    }

    /// Lets SYNs go until something can be read from `node`, or its other end is closed. Returns their number.
    pub fn let_go_until(&mut self, node: BorrowedFd<'_>) -> io::Result<u64> {
        let mut gone = 0;
        loop {
            let mut fds = [
                PollFd::new(&node, PollFlags::IN),
                PollFd::from_borrowed_fd(self.0.descriptor(), PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => continue,
                done => done?,
            };
            if !fds[0].revents().is_empty() {
                return Ok(gone);
            }
            let judge = self.0.judge();
            while let Some(syn) = self.0.next()? {
                judge.accept_with(syn.id, syn.mark & !HELD)?;
                gone += 1;
            }
        }
    }
}
