//! Watches whether an interface has its carrier: the kernel reports each change.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

use super::message::{Heard, messages, word};
use super::{NetlinkError, index_of};
use crate::poller::wait_for;

/// The group of messages about links (RTMGRP_LINK).
const GROUP_LINK: u32 = 1;
const NEW_LINK: u16 = 16;
/// The interface may carry packets (IFF_RUNNING), and the layer below it is up (IFF_LOWER_UP).
const RUNNING: u32 = 0x40 | 0x1_0000;

/// Watches the carrier of one interface.
#[derive(Debug)]
pub struct CarrierWatch {
    socket: OwnedFd,
    index: u32,
    /// The last state that was reported.
    is_up: Option<bool>,
}

impl CarrierWatch {
    pub fn open(device: &str) -> Result<CarrierWatch, NetlinkError> {
        let index = index_of(device)?;
        let system =
            |doing| move |error: rustix::io::Errno| NetlinkError::System { doing, error: error.into() };
        // NETLINK_ROUTE is protocol 0.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)
            .map_err(system("open a netlink socket"))?;
        bind(&socket, &SocketAddrNetlink::new(0, GROUP_LINK)).map_err(system("listen for links"))?;
        Ok(CarrierWatch { socket, index, is_up: None })
    }

    /// Waits for a change, for `most_ms` at the longest. Returns `None` if there was none.
    pub fn wait(&mut self, most_ms: u32) -> io::Result<Option<bool>> {
        let mut ready = [PollFd::new(&self.socket, PollFlags::IN)];
        if wait_for(&mut ready, Duration::from_millis(most_ms.into()))? == 0 {
            return Ok(None);
        }
        let mut buffer = [0_u8; 16 << 10];
        let (bytes, _) = recv(&self.socket, &mut buffer[..], RecvFlags::empty())?;
        let Some(is_up) = carrier_of(&buffer[..bytes], self.index) else { return Ok(None) };
        let is_new = self.is_up != Some(is_up);
        self.is_up = Some(is_up);
        Ok(is_new.then_some(is_up))
    }
}

impl AsFd for CarrierWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The carrier by the last message of one read that is about the interface.
fn carrier_of(bytes: &[u8], index: u32) -> Option<bool> {
    let is_about_it = |heard: &Heard<'_>| heard.kind == NEW_LINK && word(heard.body, 4) == Some(index);
    let last = messages(bytes).filter(is_about_it).last()?;
    word(last.body, 8).map(|flags| flags & RUNNING == RUNNING)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, index: u32, flags: u32) -> Vec<u8> {
        let mut message = Vec::new();
        message.extend_from_slice(&32_u32.to_ne_bytes());
        message.extend_from_slice(&kind.to_ne_bytes());
        message.extend_from_slice(&[0; 10]);
        message.extend_from_slice(&[0; 4]);
        message.extend_from_slice(&index.to_ne_bytes());
        message.extend_from_slice(&flags.to_ne_bytes());
        message.extend_from_slice(&[0; 4]);
        message
    }

    #[test]
    fn the_last_word_about_the_interface_counts() {
        let both = [message(NEW_LINK, 3, RUNNING), message(NEW_LINK, 3, 0x40)].concat();
        assert_eq!(carrier_of(&both, 3), Some(false));
        assert_eq!(carrier_of(&message(NEW_LINK, 3, RUNNING | 1), 3), Some(true));
        assert_eq!(carrier_of(&both, 4), None);
        assert_eq!(carrier_of(&message(17, 3, RUNNING), 3), None);
    }

    #[test]
    fn what_is_cut_off_says_nothing() {
        let whole = message(NEW_LINK, 3, RUNNING);
        for len in 0..whole.len() {
            assert_eq!(carrier_of(&whole[..len], 3), None, "{len}");
        }
        let mut endless = whole;
        endless[..4].copy_from_slice(&0_u32.to_ne_bytes());
        assert_eq!(carrier_of(&endless, 3), None);
    }
}
