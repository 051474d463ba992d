//! Recognises this machine's own addresses, and lists its interfaces, by rtnetlink (linux/rtnetlink.h).

use std::io;
use std::net::IpAddr;

use hopwise_core::narrow::as_u8;

use super::ask::{ask, open};
use super::message::{DUMP, NetlinkMessage, NetlinkReply, word};
use super::way::{family, octets};

/// A struct rtmsg, and the offset of the route's type. These types lead to the machine itself: addresses of its own,
/// broadcasts of its links, and IPv6's addresses for any router.
const ROUTE_TYPE: usize = 7;
const HERE: [u8; 3] = [2, 3, 4];
/// The offset of the interface's number in a struct ifinfomsg.
const INDEX: usize = 4;

/// Returns whether packets to an address lead to this machine itself, also if they lead to further machines. They may,
/// where the kernel cannot be asked.
pub fn is_own_address(address: IpAddr) -> bool {
    owns_address(address).unwrap_or(true)
}

/// The same. An error is a lack of descriptors or memory, for which the kernel could not be asked.
pub fn owns_address(address: IpAddr) -> io::Result<bool> {
    let address = address.to_canonical();
    if address.is_loopback() {
        return Ok(true);
    }
    match leads_here(address) {
        Err(error) if is_for_lack(&error) => Err(error),
        answered => Ok(answered.unwrap_or(false)),
    }
}

/// Returns whether a question failed for lack of descriptors or memory: it was not answered.
fn is_for_lack(error: &io::Error) -> bool {
    let code = error.raw_os_error().unwrap_or(0);
    [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::ENOBUFS].contains(&code)
}

fn leads_here(address: IpAddr) -> io::Result<bool> {
    let bytes = octets(address);
    let mut header = [0; 12];
    (header[0], header[1]) = (family(address), as_u8(bytes.len() * 8));
    let question =
        NetlinkMessage::new(libc::RTM_GETROUTE, 0, 0).fixed(&header).attribute(libc::RTA_DST, &bytes);
    let mut is_local = false;
    ask(open(None)?, question, |heard| {
        is_local |= heard.kind == libc::RTM_NEWROUTE
            && heard.body.get(ROUTE_TYPE).is_some_and(|kind| HERE.contains(kind));
    })?;
    Ok(is_local)
}

/// The numbers of all interfaces. The loopback usually has the smallest number, and comes first.
pub(crate) fn interfaces() -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    each_link(|heard| found.extend(word(heard.body, INDEX)))?;
    found.sort_unstable();
    Ok(found)
}

/// A struct ifinfomsg.
pub(crate) const HEADER: usize = 16;

/// Hands over the kernel's message about each interface.
pub(crate) fn each_link(mut sink: impl FnMut(&NetlinkReply<'_>)) -> io::Result<()> {
    ask(open(None)?, NetlinkMessage::new(libc::RTM_GETLINK, DUMP, 0).fixed(&[0; HEADER]), |heard| {
        if heard.kind == libc::RTM_NEWLINK {
            sink(heard);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_an_interface_and_its_addresses_are_ours() {
        let is_own = |text: &str| is_own_address(text.parse().expect("an address"));
        assert!(is_own("127.9.9.9") && is_own("::1") && is_own("::ffff:127.0.0.1"));
        assert!(!is_own("192.0.2.1") && !is_own("2001:db8::1"));
        let unanswered = |code| is_for_lack(&io::Error::from_raw_os_error(code));
        assert!(unanswered(libc::EMFILE) && !unanswered(libc::ENETUNREACH));
        assert!(leads_here("127.9.9.9".parse().expect("an address")).expect("the kernel answers"));
        let of_loopback = rustix::fs::stat("/sys/class/net/lo").is_ok();
        assert!(!of_loopback || interfaces().expect("the kernel answers").first() == Some(&1));
    }
}
