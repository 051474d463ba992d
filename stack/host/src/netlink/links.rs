//! Lists the machine's interfaces, by rtnetlink (linux/rtnetlink.h).

use std::io;

use super::ask::{ask, open};
use super::message::{DUMP, Heard, Message};

pub(super) const NEW_LINK: u16 = 16;
pub(super) const GET_LINK: u16 = 18;
/// A struct ifinfomsg.
pub(crate) const HEADER: usize = 16;

/// Hands over the kernel's message about each interface.
pub(crate) fn each_link(mut sink: impl FnMut(&Heard<'_>)) -> io::Result<()> {
    ask(open(None)?, Message::new(GET_LINK, DUMP, 0).fixed(&[0; HEADER]), |heard| {
        if heard.kind == NEW_LINK {
            sink(heard);
        }
    })
}
