//! The socket between the two processes. The inner one says once what it has made, and waits for one byte.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use super::{EnclosureError, Kind, make};
use crate::sys;

const IS_TUN: u8 = b'T';
const IS_PAIR: u8 = b'P';
const IS_ERROR: u8 = b'E';
/// The longest message: an error's text.
const LONGEST: usize = 4096;

/// A device that the inner process has handed out.
#[derive(Debug)]
pub struct Given {
    pub(super) fd: OwnedFd,
    pub(super) kind: Kind,
}

/// The outer end of the socket.
#[derive(Debug)]
pub struct Outer(UnixStream);

/// The inner end, which the inner process inherits.
#[derive(Debug)]
pub struct InnerEnd(UnixStream);

/// The two ends.
pub fn pair() -> io::Result<(Outer, InnerEnd)> {
    let (outer, inner) = UnixStream::pair()?;
    fcntl_setfd(&inner, FdFlags::empty())?;
    Ok((Outer(outer), InnerEnd(inner)))
}

/// The end that this process has inherited with that number.
pub fn inner(number: RawFd) -> io::Result<InnerEnd> {
    let fd = sys::inherited(number)?;
    // The command must not have it: the outer side takes its end for a sign.
    fcntl_setfd(&fd, FdFlags::CLOEXEC)?;
    Ok(InnerEnd(fd.into()))
}

impl Outer {
    /// Waits for the device.
    pub fn take(&self) -> Result<Given, EnclosureError> {
        let failed = EnclosureError::step("hear from the command's namespace");
        let (bytes, fd) = receive(self.0.as_fd()).map_err(failed)?;
        let text = || String::from_utf8_lossy(bytes.get(1..).unwrap_or_default()).into_owned();
        match (bytes.first(), fd) {
            (Some(&IS_TUN), Some(fd)) => Ok(Given { fd, kind: Kind::Tun }),
            (Some(&IS_PAIR), Some(fd)) => Ok(Given { fd, kind: Kind::Pair }),
            (Some(&IS_ERROR), _) => Err(EnclosureError::Said(text())),
            _ => Err(EnclosureError::Said("its process ended before it had a device".to_owned())),
        }
    }

    /// Lets the command begin.
    pub fn go(mut self) -> io::Result<()> {
        self.0.write_all(&[1])
    }
}

impl InnerEnd {
    /// The number of the descriptor, for the inner process.
    pub fn number(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Makes the device in the namespace of this process, and hands it out.
    pub fn make_and_give(&self) -> Result<(), EnclosureError> {
        let (fd, kind) = make()?;
        let said = if kind == Kind::Tun { IS_TUN } else { IS_PAIR };
        let held = [fd.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&held));
        let sent = sendmsg(&self.0, &[IoSlice::new(&[said])], &mut control, SendFlags::NOSIGNAL);
        sent.map_err(|error| EnclosureError::Step { doing: "hand the device out", error: error.into() })?;
        Ok(())
    }

    /// Tells the outer side why there is no device.
    pub fn refuse(mut self, error: &EnclosureError) {
        let text = error.to_string();
        // An outer side that has gone needs no reason.
        let _ = self.0.write_all(&[&[IS_ERROR], text.as_bytes()].concat());
    }

    /// Waits until the command may begin; an error if the outer side is gone.
    pub fn wait(mut self) -> io::Result<()> {
        self.0.read_exact(&mut [0])
    }
}

fn receive(socket: BorrowedFd<'_>) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let mut bytes = vec![0; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let read = recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut fd = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            fd = fds.last().or(fd);
        }
    }
    bytes.truncate(read.bytes);
    Ok((bytes, fd))
}
