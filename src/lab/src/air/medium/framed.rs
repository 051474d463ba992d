//! Messages with a header that tells their length, on a socket, and descriptors that come with them.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::clients::Ended;

/// The most descriptors of a message: one for each region of memory that vhost-user has room for.
pub(super) const MOST_FDS: usize = 8;

/// Where a header tells the bytes behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) bytes: usize,
    pub(super) length_at: usize,
    /// The longest message behind it.
    pub(super) most: usize,
}

#[derive(Debug)]
pub(super) struct FramedSocket {
    pub(super) socket: UnixStream,
    header: Header,
    begun: Vec<u8>,
    fds: Vec<OwnedFd>,
}

impl FramedSocket {
    pub(super) fn new(socket: UnixStream, header: Header) -> FramedSocket {
        FramedSocket { socket, header, begun: Vec::new(), fds: Vec::new() }
    }

    /// The next message with its header, if all of it has come. It reads no byte of a later one, whose descriptors come
    /// with the first byte.
    pub(super) fn next(&mut self) -> Result<Option<(Vec<u8>, Vec<OwnedFd>)>, Ended> {
        loop {
            let Header { bytes, most, .. } = self.header;
            let wanted = match self.length() {
                Some(length) if length > most => {
                    return Err(format!("a message of {length} bytes, expected at most {most}"));
                }
                Some(length) if self.begun.len() == bytes + length => {
                    return Ok(Some((std::mem::take(&mut self.begun), std::mem::take(&mut self.fds))));
                }
                Some(length) => bytes + length,
                None => bytes,
            };
            if !self.read(wanted)? {
                return Ok(None);
            }
        }
    }

    /// The length that a whole header tells.
    fn length(&self) -> Option<usize> {
        let header = self.begun.get(..self.header.bytes)?;
        let word = header.get(self.header.length_at..)?.first_chunk()?;
        Some(u32::from_ne_bytes(*word) as usize)
    }

    /// Reads up to that number of bytes in all. False if nothing has come.
    fn read(&mut self, wanted: usize) -> Result<bool, Ended> {
        let had = self.begun.len();
        self.begun.resize(wanted, 0);
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
            Ok(_) if self.fds.len() > MOST_FDS => Err(format!("more than {MOST_FDS} descriptors")),
            Ok(come) if come.bytes == 0 => Err("it has closed its socket".to_owned()),
            Ok(_) => Ok(true),
            Err(Errno::AGAIN) => Ok(false),
            Err(Errno::INTR) => Ok(true),
            Err(error) => Err(format!("read its socket: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const HEADER: Header = Header { bytes: 8, length_at: 4, most: 100 };

    fn told(length: u32, body: &[u8]) -> Vec<u8> {
        [&7_u32.to_ne_bytes()[..], &length.to_ne_bytes(), body].concat()
    }

    #[test]
    fn messages_come_whole_however_they_were_cut() {
        let (mut theirs, ours) = UnixStream::pair().expect("two sockets");
        let mut framed = FramedSocket::new(ours, HEADER);
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
        assert_eq!(framed.next().expect_err("an end"), "it has closed its socket");
    }

    #[test]
    fn a_length_beyond_the_longest_is_refused_before_room_is_made() {
        let (mut theirs, ours) = UnixStream::pair().expect("two sockets");
        theirs.write_all(&told(u32::MAX, b"x")).expect("room");
        let refused = FramedSocket::new(ours, HEADER).next().expect_err("too long");
        assert_eq!(refused, "a message of 4294967295 bytes, expected at most 100");
    }
}
