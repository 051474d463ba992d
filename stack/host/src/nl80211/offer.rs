//! The stations of a device that is no Wi-Fi for the kernel, as the program that makes its radio offers them.
//!
//! They come in nl80211's own messages, from a socket whose abstract name belongs to the device's network namespace.
//! The program tells all readers each time, and waits for none. Only root is believed.

use std::io;
use std::os::fd::OwnedFd;

use hopwise_core::{Instant, LinkFacts};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect,
    listen, recv, send, socket_with,
};

use super::station::{message, station};
use crate::netlink::message::{NetlinkMessage, messages};
use crate::own_file::lock_name;

/// The most readers of a device, and the most that wait to be accepted.
const MOST_READERS: usize = 8;
const MOST_WAITING: i32 = 8;
const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);
/// The facts of some 300 stations.
const BUFFER: usize = 64 << 10;

/// Tells the facts of one device in this process's network namespace.
#[derive(Debug)]
pub struct StationOffer {
    listener: OwnedFd,
    /// With their users.
    readers: Vec<(OwnedFd, u32)>,
}

impl StationOffer {
    /// Begins in the network namespace of the calling thread.
    pub fn open(device: &str) -> io::Result<StationOffer> {
        let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, FLAGS, None)?;
        bind(&listener, &address(device)?)?;
        listen(&listener, MOST_WAITING)?;
        Ok(StationOffer { listener, readers: Vec::new() })
    }

    /// Tells all readers, if there are any. A reader that has not read the facts before misses these.
    pub fn tell(&mut self, facts: impl FnOnce() -> Vec<LinkFacts>) {
        while let Ok(reader) = accept_with(&self.listener, FLAGS) {
            let Ok(peer) = socket_peercred(&reader) else { continue };
            self.seat(reader, peer.uid.as_raw());
        }
        if self.readers.is_empty() {
            return;
        }
        // Without a station this message stands alone: an empty one would read as an end.
        let mut told = NetlinkMessage::new(0, 0, 0).finish();
        facts().iter().for_each(|facts| told.extend(message(facts).finish()));
        self.readers.retain(|(reader, _)| {
            let sent = send(reader, &told, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
            sent.is_ok() || sent == Err(Errno::AGAIN)
        });
    }

    /// Gives a reader of that user a place. If there is none left, one of the readers loses its own.
    fn seat(&mut self, reader: OwnedFd, user: u32) {
        self.readers.push((reader, user));
        if self.readers.len() > MOST_READERS {
            let users: Vec<_> = self.readers.iter().map(|(_, user)| *user).collect();
            self.readers.remove(goes(&users));
        }
    }
}

/// Reads the facts of a device.
#[derive(Debug)]
pub(super) struct OfferReader(OwnedFd);

impl OfferReader {
    /// Fails with `ConnectionRefused` if no program offers them in this network namespace.
    pub(super) fn open(device: &str) -> io::Result<OfferReader> {
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, FLAGS, None)?;
        connect(&socket, &address(device)?)?;
        if !socket_peercred(&socket)?.uid.is_root() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "its stations are offered by a user",
            ));
        }
        Ok(OfferReader(socket))
    }

    /// The newest facts since the last call. Fails once the program has ended.
    pub(super) fn read(&self, at: Instant) -> io::Result<Option<Vec<LinkFacts>>> {
        let mut buffer = [0_u8; BUFFER];
        let mut newest = None;
        loop {
            match recv(&self.0, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok((bytes, _)) => {
                    let heard = messages(&buffer[..bytes]);
                    newest = Some(heard.filter_map(|heard| station(heard.body, at)).collect());
                }
                Err(Errno::AGAIN) => return Ok(newest),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The reader that has no place: the newest of the user with the most, so that no user keeps other users out.
fn goes(users: &[u32]) -> usize {
    let readers_of = |user: u32| users.iter().filter(|other| **other == user).count();
    let newest = users.iter().enumerate().max_by_key(|(_, user)| readers_of(**user));
    newest.map_or(0, |(nth, _)| nth)
}

fn address(device: &str) -> io::Result<SocketAddrUnix> {
    Ok(SocketAddrUnix::new_abstract_name(lock_name("stations", device).as_bytes())?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hopwise_core::StationAddress;
    use rustix::net::socketpair;

    use super::*;

    fn facts(last: u8) -> LinkFacts {
        LinkFacts {
            inactive: Some(Duration::from_millis(7)),
            tx_failed: Some(3),
            ..LinkFacts::new(StationAddress([2, 0, 0, 0, 0, last]), Instant::ZERO)
        }
    }

    #[test]
    fn a_reader_gets_the_newest_facts_of_each_station_and_learns_of_the_end() {
        let device = format!("offer{}", std::process::id());
        let Ok(mut offer) = StationOffer::open(&device) else { panic!("the name is free") };
        offer.tell(|| unreachable!("no reader"));
        let reader = match OfferReader::open(&device) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return println!("skipped: a_reader_gets_the_newest_facts: only root is believed");
            }
            opened => opened.expect("it is offered"),
        };
        let at = Instant::from_millis(9);
        assert_eq!(reader.read(at).expect("it lives"), None);
        offer.tell(|| vec![facts(1)]);
        offer.tell(|| vec![facts(1), facts(2)]);
        let wanted = [facts(1), facts(2)].map(|facts| LinkFacts { at, ..facts });
        assert_eq!(reader.read(at).expect("it lives"), Some(wanted.to_vec()));
        offer.tell(Vec::new);
        assert_eq!(reader.read(at).expect("it lives"), Some(Vec::new()), "it has no station any more");
        drop(offer);
        assert!(reader.read(at).is_err() && OfferReader::open(&device).is_err());
    }

    #[test]
    fn a_user_that_takes_every_place_keeps_no_other_out() {
        assert_eq!(goes(&[7, 7, 7, 7, 7, 7, 7, 7, 0]), 7);
        assert_eq!(goes(&[7, 7, 7, 7, 7, 7, 7, 0, 7]), 8);
        assert_eq!(goes(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), 8, "the newest, where all have one");

        let mut offer =
            StationOffer::open(&format!("greed{}", std::process::id())).expect("the name is free");
        let mut seat = |user| {
            let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, FLAGS, None);
            let (reader, other) = pair.expect("two sockets");
            offer.seat(reader, user);
            OfferReader(other)
        };
        let greedy: Vec<_> = (0..=MOST_READERS).map(|_| seat(7)).collect();
        let other = seat(0);
        let more: Vec<_> = (0..MOST_READERS).map(|_| seat(7)).collect();
        offer.tell(|| vec![facts(1)]);
        let is_told =
            |reader: &OfferReader| matches!(reader.read(Instant::ZERO), Ok(Some(told)) if told.len() == 1);
        assert!(is_told(&other));
        let told: Vec<_> = greedy.iter().chain(&more).map(is_told).collect();
        assert_eq!(told.iter().filter(|is_told| **is_told).count(), MOST_READERS - 1);
        assert!(told[..MOST_READERS - 1].iter().all(|is_told| *is_told), "the first ones keep their places");
    }

    #[test]
    fn a_reader_that_never_reads_holds_nothing_up() {
        let device = format!("stuck{}", std::process::id());
        let mut offer = StationOffer::open(&device).expect("the name is free");
        let readers: Vec<_> = (0..=MOST_READERS).map(|_| OfferReader::open(&device)).collect();
        (0..5_000).for_each(|_| offer.tell(|| vec![facts(1)]));
        assert!(offer.readers.len() <= MOST_READERS);
        drop(readers);
        offer.tell(|| vec![facts(1)]);
        assert!(offer.readers.is_empty());
    }
}
