//! The medium of mac80211_hwsim in user space (drivers/net/wireless/mac80211_hwsim.h): makes radios, receives each
//! frame that they send, hands frames to the radios that receive them, and says what became of each.
//!
//! The kernel removes the radios when the socket is closed. While it is open, no frame goes any other way.

pub(crate) mod wire;

use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::{fmt, io};

use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::{RecvFlags, SendFlags, bind, recv, send};

use super::ask::{ask, open};
use super::message::{NetlinkMessage, messages};
use crate::nl80211;
use crate::sys;
pub use wire::{
    Frame, Mac, RadioMessage, ReceivedFrame, SenderFate, Status, legacy_rate, radio_message, received, status,
};

/// The module takes the close of any netlink socket with the port of ours for the end of ours, whatever its protocol
/// and namespace. Ports that the kernel gives are numbers of processes, or above these.
const OWN_PORTS: u32 = 1 << 30;
/// Frames come in bursts, and the medium may be a scheduling round late.
const QUEUED_BYTES: libc::c_int = 8 << 20;
const RECEIVE_BUFFER: (libc::c_int, libc::c_int) = (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE);
/// A message has one frame.
const BUFFER: usize = 16 << 10;

/// The reasons why there is no medium.
#[derive(Debug, thiserror::Error)]
pub enum HwsimError {
    /// The module is not loaded.
    #[error("mac80211_hwsim is not loaded: expected `modprobe mac80211_hwsim radios=0` before")]
    NoModule,
    /// Another program is the medium.
    #[error("another program is the medium of mac80211_hwsim: end that one first, such as wmediumd")]
    Taken,
    /// A call to the system failed.
    #[error("{doing}: {error}")]
    System {
        /// The attempt, in a few words.
        doing: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

fn system(doing: &'static str) -> impl Fn(io::Error) -> HwsimError {
    move |error| HwsimError::System { doing, error }
}

/// The numbers of messages that the kernel did not take, and that it could not hand over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// A radio that is down, or on another channel, refuses frames.
    pub refused: u64,
    /// Times when the socket was full, with frames lost.
    pub overruns: u64,
}

impl Refusals {
    /// Those that came after `earlier`.
    pub fn since(self, earlier: Refusals) -> Refusals {
        Refusals { refused: self.refused - earlier.refused, overruns: self.overruns - earlier.overruns }
    }
}

/// Radios that kernels drive, which send frames and receive them.
pub trait KernelRadios: AsFd + fmt::Debug {
    /// Hands over the frames that radios have sent so far, without waiting. The descriptor is readable when there may
    /// be some.
    fn read(&self, sink: &mut dyn FnMut(&Frame<'_>)) -> io::Result<()>;
    /// Hands a frame to a radio. A refusal comes with the frames of a later [`read`](Self::read).
    fn receive(&self, received: &ReceivedFrame<'_>) -> io::Result<()>;
    /// Says what became of a frame; it comes after the frame has been received.
    fn report(&self, status: &Status) -> io::Result<()>;
}

/// The radios of mac80211_hwsim, and the medium between them.
#[derive(Debug)]
pub struct Hwsim {
    socket: OwnedFd,
    family: u16,
    refusals: Cell<Refusals>,
}

impl Hwsim {
    /// Becomes the medium of this network namespace.
    pub fn open() -> Result<Hwsim, HwsimError> {
        let socket = open(Some(GENERIC)).map_err(system("open a netlink socket"))?;
        bind(&socket, &SocketAddrNetlink::new(OWN_PORTS | std::process::id(), 0))
            .map_err(|error| system("bind a netlink socket")(error.into()))?;
        sys::set_option(socket.as_fd(), RECEIVE_BUFFER, QUEUED_BYTES)
            .map_err(system("enlarge a netlink socket"))?;
        let family = match nl80211::family_named(&socket, b"MAC80211_HWSIM\0") {
            Ok((family, _)) => family,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(HwsimError::NoModule),
            Err(error) => return Err(system("find mac80211_hwsim")(error)),
        };
        let hwsim = Hwsim { socket, family, refusals: Cell::default() };
        hwsim.ask(wire::register(family), "become the medium of mac80211_hwsim")?;
        Ok(hwsim)
    }

    /// Makes a radio with that address and name, which lives as long as the socket.
    pub fn make_radio(&self, name: &str, mac: Mac) -> Result<(), HwsimError> {
        self.ask(wire::new_radio(self.family, name, mac), "make a radio")
    }

    fn ask(&self, question: NetlinkMessage, doing: &'static str) -> Result<(), HwsimError> {
        match ask(&self.socket, question, |_| {}) {
            Ok(()) => Ok(()),
            // The acknowledgement of a new radio has its number in place of an error.
            Err(error) if error.raw_os_error().is_some_and(|code| code < 0) => Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Err(HwsimError::Taken),
            Err(error) => Err(system(doing)(error)),
        }
    }

    /// The counts of refusals and overruns until now.
    pub fn refusals(&self) -> Refusals {
        self.refusals.get()
    }

    fn count(&self, add: impl FnOnce(&mut Refusals)) {
        let mut refusals = self.refusals.get();
        add(&mut refusals);
        self.refusals.set(refusals);
    }

    /// The kernel handles a message before `send` returns; one that it refuses is no error here.
    fn tell(&self, message: &[u8]) -> io::Result<()> {
        send(&self.socket, message, SendFlags::empty())?;
        Ok(())
    }
}

impl KernelRadios for Hwsim {
    fn read(&self, sink: &mut dyn FnMut(&Frame<'_>)) -> io::Result<()> {
        let mut buffer = [0_u8; BUFFER];
        loop {
            let bytes = match recv(&self.socket, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((bytes, _)) => bytes,
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(rustix::io::Errno::NOBUFS) => {
                    self.count(|refusals| refusals.overruns += 1);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            for heard in messages(&buffer[..bytes]) {
                match heard.errno() {
                    Some(0) => {}
                    Some(_) => self.count(|refusals| refusals.refused += 1),
                    None if heard.kind == self.family => {
                        if let Some(frame) = wire::frame(heard.body) {
                            sink(&frame);
                        }
                    }
                    None => {}
                }
            }
        }
    }

    fn receive(&self, received: &ReceivedFrame<'_>) -> io::Result<()> {
        self.tell(&wire::received(self.family, received))
    }

    fn report(&self, status: &Status) -> io::Result<()> {
        self.tell(&wire::status(self.family, status))
    }
}

impl AsFd for Hwsim {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
