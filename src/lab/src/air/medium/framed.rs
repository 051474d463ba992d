//! Messages on a socket, whose headers end with the length of what follows, and descriptors that come with them.

use std::io::IoSliceMut;
use std::mem::{MaybeUninit, take};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::clients::Ended;

/// The most descriptors of a message: one for each region of memory that vhost-user has room for.
const MOST_FDS: usize = 8;

/// A message with its header, and its descriptors.
type FramedMessage = (Vec<u8>, Vec<OwnedFd>);

#[derive(Debug)]
pub(super) struct FramedSocket {
    pub(super) socket: UnixStream,
    header: usize,
    most: usize,
    begun: Vec<u8>,
    fds: Vec<OwnedFd>,
}

impl FramedSocket {
    /// With the bytes of a header, and at most this number behind it.
    pub(super) fn new(socket: UnixStream, header: usize, most: usize) -> FramedSocket {
        FramedSocket { socket, header, most, begun: Vec::new(), fds: Vec::new() }
    }

    /// The next message, if all of it has come. It reads no byte of a later one, whose descriptors come
    /// with the first byte.
    pub(super) fn next(&mut self) -> Result<Option<FramedMessage>, Ended> {
        loop {
            let length = self.begun.get(self.header - 4..).and_then(|rest| rest.first_chunk());
            let length = length.map_or(0, |word| u32::from_ne_bytes(*word) as usize);
            if length > self.most {
                return Err(format!("a message of {length} bytes, expected at most {}", self.most).into());
            }
            let had = self.begun.len();
            if had == self.header + length {
                return Ok(Some((take(&mut self.begun), take(&mut self.fds))));
            }
            self.begun.resize(self.header + length, 0);
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut slices = [IoSliceMut::new(&mut self.begun[had..])];
            let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
            let come = recvmsg(&self.socket, &mut slices, &mut control, flags);
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(fds) = message {
                    self.fds.extend(fds);
                }
            }
            self.begun.truncate(had + come.as_ref().map_or(0, |come| come.bytes));
            match come {
                Ok(_) if self.fds.len() > MOST_FDS => {
                    return Err("too many descriptors".into());
                }
                Ok(come) if come.bytes == 0 => return Err("it has closed its socket".into()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn told(length: u32, body: &[u8]) -> Vec<u8> {
        [&7_u32.to_ne_bytes()[..], &length.to_ne_bytes(), body].concat()
    }

    #[test]
    fn messages_come_whole_however_they_were_cut() {
        let (mut theirs, ours) = UnixStream::pair().expect("two sockets");
        let mut framed = FramedSocket::new(ours, 8, 100);
        let all = [told(3, b"abc"), told(0, b""), told(2, b"de")].concat();
        let mut read = Vec::new();
        for byte in &all {
            theirs.write_all(&[*byte]).expect("room");
            while let Some((message, _)) = framed.next().expect("it is sound") {
                read.push(message[8..].to_vec());
            }
        }
        assert_eq!(read, [&b"abc"[..], b"", b"de"]);
        drop(theirs);
        assert_eq!(framed.next().expect_err("an end").to_string(), "it has closed its socket");
    }

    #[test]
    fn a_length_beyond_the_longest_is_refused_before_room_is_made() {
        let (mut theirs, ours) = UnixStream::pair().expect("two sockets");
        theirs.write_all(&told(u32::MAX, b"x")).expect("room");
        let refused = FramedSocket::new(ours, 8, 100).next().expect_err("too long").to_string();
        assert_eq!(refused, "a message of 4294967295 bytes, expected at most 100");
    }
}
