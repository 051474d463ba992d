//! Looks in a table of routing for a route over a device, by rtnetlink (linux/rtnetlink.h).

use std::io;
use std::os::fd::AsFd;

use super::ask::{ask, open};
use super::message::{DUMP, Message, attribute, word};
use super::own::{GET_ROUTE, NEW_ROUTE};
use crate::sys;
use hopwise_core::narrow::as_u8;

/// A struct rtmsg, and the attributes of a route.
const HEADER: usize = 12;
const OUTPUT: u16 = 4;
const TABLE: u16 = 15;
/// Makes the kernel choose the routes of a dump by the question's attributes.
const STRICT: (libc::c_int, libc::c_int) = (libc::SOL_NETLINK, libc::NETLINK_GET_STRICT_CHK);

/// Returns whether this table of IPv4, or of IPv6, has a route over the device with that number.
pub(super) fn leads_to(table: u32, is_v6: bool, device: u32) -> io::Result<bool> {
    let socket = open(None)?;
    sys::set_option(socket.as_fd(), STRICT, 1)?;
    let mut header = [0; HEADER];
    header[0] = as_u8(if is_v6 { libc::AF_INET6 } else { libc::AF_INET } as usize);
    let question = Message::new(GET_ROUTE, DUMP, 0).fixed(&header).attribute(TABLE, &table.to_ne_bytes());
    let mut is_there = false;
    let asked = ask(&socket, question, |heard| {
        let attributes = heard.body.get(HEADER..).unwrap_or_default();
        let is = |kind, wanted| attribute(attributes, kind).and_then(|value| word(value, 0)) == Some(wanted);
        is_there |= heard.kind == NEW_ROUTE && is(TABLE, table) && is(OUTPUT, device);
    });
    match asked {
        // There is no such table.
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
        asked => asked.map(|()| is_there),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_routes_that_the_kernel_lists() {
        // Each namespace whose loopback is up has its addresses in the table `local`.
        let is_up = super::super::is_own_address([127, 9, 9, 9].into())
            && std::fs::read_to_string("/sys/class/net/lo/operstate")
                .is_ok_and(|state| state.trim() != "down");
        let loopback = super::super::index_of("lo").expect("it is there");
        assert_eq!(leads_to(255, false, loopback).expect("the kernel answers"), is_up);
        assert!(!leads_to(255, false, u32::MAX).expect("the kernel answers"));
        assert!(!leads_to(87_654_321, false, loopback).expect("the kernel answers"));
    }
}
