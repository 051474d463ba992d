//! wmediumd's control socket, and a program that speaks with it: messages of a type, a length and data.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;

use hopwise_core::narrow::as_u32;
use hopwise_host::netlink::hwsim::radio_message;

use super::clients::{Ended, MOST_AT_ONCE};
use super::framed::{FramedSocket, Header};

const HEADER: Header = Header { bytes: 8, length_at: 4, most: 64 << 10 };
/// The types of its messages.
const INVALID: u32 = 0;
const ACK: u32 = 1;
const REGISTER: u32 = 2;
const UNREGISTER: u32 = 3;
const NETLINK: u32 = 4;
const SET_CONTROL: u32 = 5;
/// The flags of a control message: to hear when a transmission begins, and to get the frames of all radios.
const TELLS_STARTS: u32 = 1;
const HEARS_ALL: u32 = 2;
/// The bytes that may wait until the program reads them.
const MOST_UNREAD: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct MediumProgram {
    pub(super) framed: FramedSocket,
    unread: Vec<u8>,
    /// It asked for frames of its radios.
    pub(super) is_registered: bool,
    /// It asked for frames of all radios.
    pub(super) hears_all: bool,
}

impl MediumProgram {
    pub(super) fn new(socket: UnixStream) -> MediumProgram {
        let framed = FramedSocket::new(socket, HEADER);
        MediumProgram { framed, unread: Vec::new(), is_registered: false, hears_all: false }
    }

    /// Answers what has come. Messages of netlink go into the sink.
    pub(super) fn read(&mut self, sink: &mut dyn FnMut(Vec<u8>)) -> Result<(), Ended> {
        for _ in 0..MOST_AT_ONCE {
            let Some((mut message, _)) = self.framed.next()? else { break };
            let data = message.split_off(HEADER.bytes);
            let kind = message.first_chunk().map_or(INVALID, |word| u32::from_ne_bytes(*word));
            if kind != ACK {
                let is_sound = self.is_sound(kind, &data);
                if is_sound && kind == NETLINK {
                    sink(data);
                }
                self.tell(if is_sound { ACK } else { INVALID }, &[]);
            }
        }
        self.write()
    }

    /// Does what it asks for. False if it is not asked for in this way, or now.
    fn is_sound(&mut self, kind: u32, data: &[u8]) -> bool {
        match kind {
            REGISTER | UNREGISTER => {
                let is_news = self.is_registered == (kind == UNREGISTER);
                self.is_registered = kind == REGISTER;
                is_news
            }
            NETLINK => radio_message(data).is_some(),
            SET_CONTROL => {
                // A shorter message has zeros in place of the rest.
                let mut flags = [0; 4];
                flags.iter_mut().zip(data).for_each(|(place, byte)| *place = *byte);
                let flags = u32::from_ne_bytes(flags);
                self.hears_all = flags & HEARS_ALL != 0;
                flags & TELLS_STARTS == 0
            }
            _ => false,
        }
    }

    /// Hands over a message of netlink.
    pub(super) fn hand(&mut self, message: &[u8]) -> Result<(), Ended> {
        self.tell(NETLINK, message);
        self.write()
    }

    fn tell(&mut self, kind: u32, data: &[u8]) {
        self.unread.extend_from_slice(&kind.to_ne_bytes());
        self.unread.extend_from_slice(&as_u32(data.len()).to_ne_bytes());
        self.unread.extend_from_slice(data);
    }

    /// Messages wait for room in the socket.
    pub(super) fn waits_for_room(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Writes what the socket has room for.
    fn write(&mut self) -> Result<(), Ended> {
        while !self.unread.is_empty() {
            match (&self.framed.socket).write(&self.unread) {
                Ok(bytes) => drop(self.unread.drain(..bytes)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(format!("write to its socket: {error}")),
            }
        }
        match self.unread.len() {
            0..=MOST_UNREAD => Ok(()),
            bytes => Err(format!("it has not read {bytes} bytes, expected at most {MOST_UNREAD}")),
        }
    }
}
