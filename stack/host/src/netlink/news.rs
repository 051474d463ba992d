//! News of links: the kernel says when an interface comes, changes or goes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{RecvFlags, bind, recv};

use super::ask::open;

/// The group of messages about links (RTMGRP_LINK).
const GROUP: u32 = 1;
/// Messages that are dropped at once. A stream without an end must not hold the proxy up.
const MOST: usize = 10_000;

#[derive(Debug)]
pub(crate) struct LinkNews(OwnedFd);

impl LinkNews {
    pub(crate) fn listen() -> io::Result<LinkNews> {
        let socket = open(None)?;
        bind(&socket, &SocketAddrNetlink::new(0, GROUP))?;
        Ok(LinkNews(socket))
    }

    /// Drops the news that waits, and returns whether there was any, also if some was lost.
    pub(crate) fn empty(&self) -> io::Result<bool> {
        // The kernel cuts each message to it.
        let mut buffer = [0; 16];
        let mut had_any = false;
        for _ in 0..MOST {
            match recv(&self.0, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok(_) | Err(Errno::NOBUFS) => had_any = true,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(had_any)
    }
}

impl AsFd for LinkNews {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
