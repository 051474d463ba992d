//! The abstract names that sockets of this network namespace have, and their users (linux/unix_diag.h).

use std::fs;
use std::io;

use rustix::net::netlink::SOCK_DIAG;

use super::ask::{ask, open};
use super::message::{DUMP, NetlinkMessage, attribute, word};
use super::sockets::BY_FAMILY;
use hopwise_core::narrow::as_u8;

/// The requested facts about each socket (UDIAG_SHOW_NAME, UDIAG_SHOW_UID).
const SHOW: u32 = 0x41;
/// Attributes of a reply, after a struct unix_diag_msg. Kernels before 5.3 leave out the user.
const NAME: u16 = 0;
const SHUT: u16 = 6;
const USER: u16 = 7;
const ANSWER: usize = 16;
/// The offset in that struct.
const TYPE: usize = 1;
/// The same names in text, without their users.
const TEXT: &str = "/proc/thread-self/net/unix";

/// A name that a stream socket is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BoundName {
    pub(crate) name: String,
    /// The user that made the socket, if the kernel reports it.
    pub(crate) user: Option<u32>,
}

/// The names that begin with `prefix`, of sockets that nobody has shut.
pub(crate) fn names_with(prefix: &str) -> io::Result<Vec<BoundName>> {
    // A kernel may be built without this family.
    let mut names = asked().or_else(|_| read())?;
    names.retain(|named| named.name.starts_with(prefix));
    Ok(names)
}

fn asked() -> io::Result<Vec<BoundName>> {
    // A struct unix_diag_req: a socket in any state, with any number and cookie.
    let question = NetlinkMessage::new(BY_FAMILY, DUMP, 0)
        .fixed(&[as_u8(libc::AF_UNIX as usize), 0, 0, 0])
        .fixed(&u32::MAX.to_ne_bytes())
        .fixed(&[0; 4])
        .fixed(&SHOW.to_ne_bytes())
        .fixed(&[0; 8]);
    let mut names = Vec::new();
    ask(open(Some(SOCK_DIAG))?, question, |heard| {
        if heard.kind == BY_FAMILY {
            names.extend(read_answer(heard.body));
        }
    })?;
    Ok(names)
}

pub(crate) fn read_answer(body: &[u8]) -> Option<BoundName> {
    if *body.get(TYPE)? != as_u8(libc::SOCK_STREAM as usize) {
        return None;
    }
    let attributes = body.get(ANSWER..)?;
    // A program that is about to start may still hold what its owner has shut.
    if attribute(attributes, SHUT).is_some_and(|shut| shut != [0]) {
        return None;
    }
    // An abstract name begins with a zero.
    let name = attribute(attributes, NAME)?.strip_prefix(&[0])?;
    let user = attribute(attributes, USER).and_then(|user| word(user, 0));
    Some(BoundName { name: String::from_utf8_lossy(name).into_owned(), user })
}

fn read() -> io::Result<Vec<BoundName>> {
    // Others name their sockets as they like.
    let sockets = String::from_utf8_lossy(&fs::read(TEXT)?).into_owned();
    let names = sockets.lines().filter_map(|line| Some(line.split_once('@')?.1.to_owned()));
    Ok(names.map(|name| BoundName { name, user: None }).collect())
}

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    use super::*;

    #[test]
    fn a_name_is_found_with_its_user_and_in_the_text_without() {
        let name = format!("hopwise-names-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let listener = UnixListener::bind_addr(&address).expect("it is free");
        let own = rustix::process::geteuid().as_raw();
        let found = names_with(&name).expect("they can be asked for");
        assert_eq!(found, [BoundName { name: name.clone(), user: Some(own) }]);
        assert!(read().expect("the text").contains(&BoundName { name: name.clone(), user: None }));
        drop(listener);
        assert!(names_with(&name).expect("they can be asked for").is_empty());
    }
}
