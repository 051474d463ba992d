//! Carriers of interfaces, and news of links: the kernel says when an interface comes, changes or goes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{RecvFlags, SendFlags, bind, recv, send};

use super::ask::open;
use super::message::{NetlinkMessage, NetlinkReply, REQUEST, attribute, messages, word};
use super::own::HEADER;
use super::{NetlinkError, NetlinkResult, index_of};
use crate::poller::wait_for;

/// The interface may carry packets (IFF_RUNNING), and the layer below it is up (IFF_LOWER_UP).
const RUNNING: u32 = 0x40 | 0x1_0000;

/// Listens for the carrier of one interface, by its name: it may be removed and made anew.
#[derive(Debug)]
pub struct CarrierWatch {
    news: CarrierSocket,
    device: String,
    /// The last news. Without any, the interface counts as up.
    is_up: bool,
}

impl CarrierWatch {
    /// Watches an interface, and asks for its state now.
    pub fn open(device: &str) -> NetlinkResult<CarrierWatch> {
        index_of(device)?;
        let system = |doing| move |error| NetlinkError::System { doing, error };
        let news = CarrierSocket::listen().map_err(system("listen for links"))?;
        let watch = CarrierWatch { news, device: device.to_owned(), is_up: true };
        watch.ask().map_err(system("ask for a carrier"))?;
        Ok(watch)
    }

    /// The answer comes among the news.
    fn ask(&self) -> io::Result<()> {
        let name = [self.device.as_bytes(), &[0]].concat();
        let question = NetlinkMessage::new(libc::RTM_GETLINK, REQUEST, 1)
            .fixed(&[0; HEADER])
            .attribute(libc::IFLA_IFNAME, &name);
        send(&self.news, &question.finish(), SendFlags::empty())?;
        Ok(())
    }

    /// Waits for a change, for `most_ms` at the longest. Returns `None` if there was none.
    pub fn wait(&mut self, most_ms: u32) -> io::Result<Option<bool>> {
        let mut ready = [PollFd::new(&self.news, PollFlags::IN)];
        if wait_for(&mut ready, Duration::from_millis(most_ms.into()))? == 0 {
            return Ok(None);
        }
        let mut buffer = [0_u8; 16 << 10];
        let bytes = match recv(&self.news, &mut buffer[..], RecvFlags::empty()) {
            Ok((bytes, _)) => bytes,
            // There was more news than the socket had room for, perhaps of this interface. Until the socket is empty it
            // has no room for an answer either. The answer is newer than all of that.
            Err(Errno::NOBUFS) => {
                self.news.empty()?;
                self.ask()?;
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let Some(is_up) = carrier_of(&buffer[..bytes], &self.device) else { return Ok(None) };
        let is_new = self.is_up != is_up;
        self.is_up = is_up;
        Ok(is_new.then_some(is_up))
    }
}

impl AsFd for CarrierWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }
}

/// The last word about that interface, among the messages of one read.
pub(crate) fn carrier_of(bytes: &[u8], device: &str) -> Option<bool> {
    messages(bytes).filter_map(|heard| carrier(&heard, device)).last()
}

fn carrier(heard: &NetlinkReply<'_>, device: &str) -> Option<bool> {
    // The answer to a question for an interface that is not there.
    if heard.errno() == Some(libc::ENODEV) {
        return Some(false);
    }
    let name = attribute(heard.body.get(HEADER..)?, libc::IFLA_IFNAME)?;
    if name.strip_suffix(&[0]).unwrap_or(name) != device.as_bytes() {
        return None;
    }
    match heard.kind {
        libc::RTM_NEWLINK => word(heard.body, 8).map(|flags| flags & RUNNING == RUNNING),
        libc::RTM_DELLINK => Some(false),
        _ => None,
    }
}

/// The group of messages about links (RTMGRP_LINK).
const GROUP: u32 = 1;
/// Messages that are dropped at once. A stream without an end must not hold the proxy up.
const MOST: usize = 10_000;

#[derive(Debug)]
pub(crate) struct CarrierSocket(OwnedFd);

impl CarrierSocket {
    pub(crate) fn listen() -> io::Result<CarrierSocket> {
        let socket = open(None)?;
        bind(&socket, &SocketAddrNetlink::new(0, GROUP))?;
        Ok(CarrierSocket(socket))
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

impl AsFd for CarrierSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::ERROR;
    use super::*;

    fn message(kind: u16, device: &str, flags: u32) -> Vec<u8> {
        let header = [&[0; 8][..], &flags.to_ne_bytes(), &[0; 4]].concat();
        let name = [device.as_bytes(), &[0]].concat();
        NetlinkMessage::new(kind, 0, 0).fixed(&header).attribute(libc::IFLA_IFNAME, &name).finish()
    }

    #[test]
    fn the_last_word_about_the_interface_counts() {
        let both = [message(libc::RTM_NEWLINK, "radio", RUNNING), message(libc::RTM_NEWLINK, "radio", 0x40)]
            .concat();
        assert_eq!(carrier_of(&both, "radio"), Some(false));
        assert_eq!(carrier_of(&message(libc::RTM_NEWLINK, "radio", RUNNING | 1), "radio"), Some(true));
        assert_eq!(carrier_of(&both, "radio2"), None);
        assert_eq!(carrier_of(&message(libc::RTM_GETLINK, "radio", RUNNING), "radio"), None);
    }

    #[test]
    fn an_interface_that_is_removed_has_no_carrier_and_one_made_anew_has_its_own() {
        assert_eq!(carrier_of(&message(libc::RTM_DELLINK, "radio", RUNNING), "radio"), Some(false));
        let missing = NetlinkMessage::new(ERROR, 0, 1).fixed(&(-libc::ENODEV).to_ne_bytes()).finish();
        assert_eq!(carrier_of(&missing, "radio"), Some(false));
        let anew =
            [message(libc::RTM_DELLINK, "radio", 0), message(libc::RTM_NEWLINK, "radio", RUNNING)].concat();
        assert_eq!(carrier_of(&anew, "radio"), Some(true));
    }

    #[test]
    fn what_is_cut_off_says_nothing() {
        let whole = message(libc::RTM_NEWLINK, "radio", RUNNING);
        for len in 0..whole.len() {
            assert_eq!(carrier_of(&whole[..len], "radio"), None, "{len}");
        }
        let mut endless = whole;
        endless[..4].copy_from_slice(&0_u32.to_ne_bytes());
        assert_eq!(carrier_of(&endless, "radio"), None);
    }
}
