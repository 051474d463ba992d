//! Lists the machine's interfaces, by rtnetlink (linux/rtnetlink.h).

use std::io;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

use super::message::{DONE, DUMP, Heard, Message, REQUEST, messages};

pub(super) const NEW_LINK: u16 = 16;
pub(super) const GET_LINK: u16 = 18;
/// A struct ifinfomsg.
pub(crate) const HEADER: usize = 16;
/// The bound of one read of a dump.
const BUFFER: usize = 64 << 10;

/// Hands over the kernel's message about each interface.
pub(crate) fn each_link(mut sink: impl FnMut(&Heard<'_>)) -> io::Result<()> {
    // Protocol 0 is rtnetlink.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let question = Message::new(GET_LINK, REQUEST | DUMP, 1).fixed(&[0; HEADER]);
    send(&socket, &question.finish(), SendFlags::empty())?;
    let mut buffer = vec![0; BUFFER];
    loop {
        let (bytes, _) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        for heard in messages(&buffer[..bytes]) {
            if heard.kind == NEW_LINK {
                sink(&heard);
            } else if heard.kind == DONE {
                return Ok(());
            } else if let Some(code) = heard.errno().filter(|code| *code != 0) {
                return Err(io::Error::from_raw_os_error(code));
            }
        }
        if bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}
