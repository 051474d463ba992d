//! Asks the kernel a question over netlink, and hands on the replies.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

use super::message::{HEADER, NetlinkMessage, NetlinkReply, attribute, messages};
use crate::poller::wait_to_read;
use crate::sys::set_option;

/// The limit for each reply. The kernel usually replies before `send` returns.
const WITHIN: Duration = Duration::from_secs(2);
/// The bound of one reply, or of one part of a dump.
const BUFFER: usize = 64 << 10;

/// The number of the last question. Replies repeat it.
static ASKED: AtomicU32 = AtomicU32::new(0);

/// A socket of a family of netlink. `None` means rtnetlink, which is protocol 0.
pub(crate) fn open(family: Option<Protocol>) -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, family)?)
}

/// The same, and refusals come with the kernel's words, if it has some.
pub(crate) fn open_for_words(family: Option<Protocol>) -> io::Result<OwnedFd> {
    let socket = open(family)?;
    for option in [libc::NETLINK_CAP_ACK, libc::NETLINK_EXT_ACK] {
        set_option(socket.as_fd(), (libc::SOL_NETLINK, option), 1)?;
    }
    Ok(socket)
}

/// The kernel's refusal of a request.
#[derive(Debug, thiserror::Error)]
#[error("{error}{}", .said.as_ref().map(|said| format!(": {said}")).unwrap_or_default())]
pub struct KernelRefusal {
    /// The kernel's error.
    pub error: io::Error,
    /// The words of the kernel or of a driver.
    pub said: Option<String>,
}

impl KernelRefusal {
    /// Returns whether the error has one of these numbers.
    pub(crate) fn is_one_of(&self, codes: &[i32]) -> bool {
        self.error.raw_os_error().is_some_and(|code| codes.contains(&code))
    }
}

impl From<io::Error> for KernelRefusal {
    fn from(error: io::Error) -> KernelRefusal {
        KernelRefusal { error, said: None }
    }
}

/// Sends a question and hands on its replies until they end. Replies to an earlier question are skipped.
pub(crate) fn ask(
    socket: impl AsFd,
    question: NetlinkMessage,
    sink: impl FnMut(&NetlinkReply<'_>),
) -> io::Result<()> {
    request(socket, question, sink).map_err(|refused| refused.error)
}

/// The same on a socket of [`open_for_words`].
pub(crate) fn request(
    socket: impl AsFd,
    question: NetlinkMessage,
    mut sink: impl FnMut(&NetlinkReply<'_>),
) -> Result<(), KernelRefusal> {
    let number = ASKED.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    send(&socket, &question.asking(number), SendFlags::empty()).map_err(io::Error::from)?;
    let mut buffer = vec![0; BUFFER];
    loop {
        wait_to_read(socket.as_fd(), WITHIN)?;
        let (bytes, _) = recv(&socket, &mut buffer[..], RecvFlags::DONTWAIT).map_err(io::Error::from)?;
        for heard in messages(&buffer[..bytes]).filter(|heard| heard.number == number) {
            match heard.errno() {
                Some(0) => return Ok(()),
                Some(code) => {
                    return Err(KernelRefusal {
                        error: io::Error::from_raw_os_error(code),
                        said: words(&heard),
                    });
                }
                None => sink(&heard),
            }
        }
    }
}

/// The words behind an error: an attribute (NLMSGERR_ATTR_MSG) after the number and the header of the question.
fn words(refusal: &NetlinkReply<'_>) -> Option<String> {
    const MESSAGE: u16 = 1;
    let said = attribute(refusal.body.get(4 + HEADER..)?, MESSAGE)?;
    let said = String::from_utf8_lossy(said).trim_end_matches('\0').trim().to_owned();
    (!said.is_empty()).then_some(said)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;
    use std::thread;

    use super::super::message::{DONE, ERROR};
    use super::*;

    const KIND: u16 = 77;

    /// Answers one question with the messages that `replies` makes of its number.
    fn answer(replies: impl FnOnce(u32) -> Vec<NetlinkMessage> + Send + 'static) -> io::Result<Vec<u8>> {
        let (ours, kernel) = UnixDatagram::pair().expect("two sockets");
        let answers = thread::spawn(move || {
            let mut question = [0; 64];
            let bytes = kernel.recv(&mut question).expect("a question");
            let number = messages(&question[..bytes]).next().expect("it is whole").number;
            for reply in replies(number) {
                kernel.send(&reply.finish()).expect("it is read");
            }
            kernel
        });
        let mut heard = Vec::new();
        let asked = ask(&ours, NetlinkMessage::new(KIND, 0, 0), |reply| heard.extend_from_slice(reply.body));
        answers.join().expect("it has answered");
        asked.map(|()| heard)
    }

    fn end(number: u32, code: i32) -> NetlinkMessage {
        NetlinkMessage::new(ERROR, 0, number).fixed(&(-code).to_ne_bytes())
    }

    #[test]
    fn replies_to_an_earlier_question_are_skipped() {
        let late = |number: u32| number.wrapping_sub(1);
        let heard = answer(move |number| {
            let (of_late, ours) =
                (NetlinkMessage::new(KIND, 0, late(number)), NetlinkMessage::new(KIND, 0, number));
            vec![of_late.fixed(b"late"), end(late(number), 0), ours.fixed(b"ours"), end(number, 0)]
        });
        assert_eq!(heard.expect("an answer"), b"ours");
    }

    #[test]
    fn an_error_is_handed_on_and_the_end_of_a_dump_ends_it() {
        let refused = answer(|number| vec![end(number, libc::EPERM)]).expect_err("an error");
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
        let dump = |code: i32| {
            answer(move |number| {
                let part = |text| NetlinkMessage::new(KIND, 0, number).fixed(text);
                let done = NetlinkMessage::new(DONE, 0, number).fixed(&(-code).to_ne_bytes());
                vec![part(b"one "), part(b"two "), done]
            })
        };
        assert_eq!(dump(0).expect("an answer"), b"one two ");
        // The kernel may find an error in the middle of a dump.
        assert_eq!(dump(libc::ENOENT).expect_err("an error").raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn a_kernel_that_does_not_reply_is_not_waited_for_without_end() {
        let silent = answer(|_| Vec::new()).expect_err("no answer");
        assert_eq!(silent.kind(), io::ErrorKind::TimedOut);
    }
}
