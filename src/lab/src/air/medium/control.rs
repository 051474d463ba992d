//! A program that speaks wmediumd's control protocol: messages of a type, a length and data.

use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream;

use hopwise_core::narrow::as_u32;
use hopwise_host::netlink::hwsim::radio_message;

use super::clients::{Ended, MOST_AT_ONCE};
use super::framed::FramedSocket;

const HEADER: usize = 8;
const LONGEST: usize = 64 << 10;
/// The types of its messages that both sides send: a refusal, an acknowledgement, and a message of netlink.
const INVALID: u32 = 0;
const ACK: u32 = 1;
pub(super) const NETLINK: u32 = 4;
/// The flags of a control message: to hear when a transmission begins, and to get the frames of all radios.
const TELLS_STARTS: u8 = 1;
const HEARS_ALL: u8 = 2;
/// The bytes that may wait until the program reads them.
const MOST_UNREAD: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct MediumProgram {
    framed: FramedSocket,
    unread: Vec<u8>,
    /// It asked for frames of its radios, and for those of all radios.
    pub(super) is_registered: bool,
    pub(super) hears_all: bool,
}

impl MediumProgram {
    pub(super) fn new(socket: UnixStream) -> MediumProgram {
        let framed = FramedSocket::new(socket, HEADER, LONGEST);
        MediumProgram { framed, unread: Vec::new(), is_registered: false, hears_all: false }
    }

    /// Answers what has come. Messages of netlink go into the sink.
    pub(super) fn read(&mut self, sink: &mut dyn FnMut(Vec<u8>)) -> Result<(), Ended> {
        for _ in 0..MOST_AT_ONCE {
            let Some((mut message, _)) = self.framed.next()? else { break };
            let data = message.split_off(HEADER);
            let kind = message.first_chunk().map_or(INVALID, |word| u32::from_ne_bytes(*word));
            let is_sound = match kind {
                // It has read a message: there may be room for the next one.
                ACK => continue,
                // REGISTER and UNREGISTER
                2 | 3 => std::mem::replace(&mut self.is_registered, kind == 2) != (kind == 2),
                NETLINK => radio_message(&data).is_some(),
                // SET_CONTROL
                5 => {
                    // A message without flags has none of them.
                    let flags = data.first().copied().unwrap_or(0);
                    self.hears_all = flags & HEARS_ALL != 0;
                    flags & TELLS_STARTS == 0
                }
                _ => false,
            };
            if is_sound && kind == NETLINK {
                sink(data);
            }
            self.hand(if is_sound { ACK } else { INVALID }, &[])?;
        }
        self.write()
    }

    /// Hands over a message of that type.
    pub(super) fn hand(&mut self, kind: u32, data: &[u8]) -> Result<(), Ended> {
        self.unread.extend_from_slice([kind, as_u32(data.len())].map(u32::to_ne_bytes).as_flattened());
        self.unread.extend_from_slice(data);
        self.write()
    }

    /// Writes what the socket has room for.
    fn write(&mut self) -> Result<(), Ended> {
        while !self.unread.is_empty() {
            match (&self.framed.socket).write(&self.unread) {
                Ok(bytes) => drop(self.unread.drain(..bytes)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        match self.unread.len() {
            0..=MOST_UNREAD => Ok(()),
            bytes => Err(format!("it has not read {bytes} bytes, expected at most {MOST_UNREAD}").into()),
        }
    }
}
