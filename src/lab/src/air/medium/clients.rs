//! The machines and programs whose radios the medium serves: who has which station, and what goes to whom.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use hopwise_core::StationAddress;
use hopwise_daemon::control::BoundSocket;
use hopwise_host::netlink::hwsim::{
    Frame, KernelRadios, Mac, RadioMessage, ReceivedFrame, Refusals, Status, radio_message, received, status,
};
use hopwise_host::{Clock, Interest, Poller};

use super::control::{MediumProgram, NETLINK};
use super::machine::VirtualMachine;

/// The reason why a client is one no more.
pub(super) type Ended = Box<dyn std::error::Error>;

/// The messages of a client that are read in a row. Other clients wait meanwhile.
pub(super) const MOST_AT_ONCE: usize = 64;
/// The clients that are served, and the addresses of unknown radios that are told.
const MOST_CLIENTS: usize = 64;
/// A client has this number of indexes for the poller: its socket, and two queues. The first indexes are those of our
/// own sockets.
const INDEXES: usize = 4;
const KICKS: usize = 1;
/// The bit that Linux sets in the address of a radio of its own, of which the interface has the plain form.
const RADIO_BIT: u8 = 0x40;
/// The family of netlink's messages, which has a number in kernels alone.
const FAMILY: u16 = 0;

#[derive(Debug)]
enum MediumClient {
    Machine(Box<VirtualMachine>),
    Program(MediumProgram),
}

#[derive(Debug)]
struct AllClients {
    poller: Poller,
    clock: Clock,
    /// For virtual machines, and for programs.
    sockets: [Option<BoundSocket>; 2],
    /// By number, from 1.
    all: BTreeMap<usize, MediumClient>,
    last: usize,
    /// By address: the client that has the station's radio, and the radio's address there.
    stations: BTreeMap<Mac, Option<(usize, Mac)>>,
    unknown: BTreeSet<Mac>,
    refusals: Refusals,
}

/// All clients, as the radios of a medium.
#[derive(Debug)]
pub(super) struct MediumClients {
    descriptor: OwnedFd,
    inner: RefCell<AllClients>,
}

impl MediumClients {
    pub(super) fn new(sockets: [Option<BoundSocket>; 2], macs: &[Mac]) -> io::Result<MediumClients> {
        let poller = Poller::new()?;
        for (nth, socket) in sockets.iter().enumerate() {
            if let Some(BoundSocket { listener, .. }) = socket {
                listener.set_nonblocking(true)?;
                poller.add(listener.as_fd(), nth, Interest::Read)?;
            }
        }
        let descriptor = poller.descriptor()?;
        let inner = AllClients {
            poller,
            clock: Clock::start(),
            sockets,
            all: BTreeMap::new(),
            last: 0,
            stations: macs.iter().map(|mac| (*mac, None)).collect(),
            unknown: BTreeSet::new(),
            refusals: Refusals::default(),
        };
        Ok(MediumClients { descriptor, inner: RefCell::new(inner) })
    }

    /// The frames of unknown radios, and the messages that a machine had no room for.
    pub(super) fn refusals(&self) -> Refusals {
        self.inner.borrow().refusals
    }
}

impl AsFd for MediumClients {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl KernelRadios for MediumClients {
    fn read(&self, sink: &mut dyn FnMut(&Frame<'_>)) -> io::Result<()> {
        let told = self.inner.borrow_mut().collect()?;
        for (client, message) in told {
            let frame = self.inner.borrow_mut().sent(client, &message);
            // The sink may answer at once.
            frame.iter().for_each(&mut *sink);
        }
        Ok(())
    }

    fn receive(&self, frame: &ReceivedFrame<'_>) -> io::Result<()> {
        let clients = &mut *self.inner.borrow_mut();
        // A radio that has said no word may be with any client that has no other radio, and have Linux's address.
        let owner = clients.stations.get(&frame.radio).copied().flatten();
        let mut radio = frame.radio;
        radio[0] |= RADIO_BIT;
        let radio = owner.map_or(radio, |(_, radio)| radio);
        let hears = |(number, client): (&usize, &MediumClient)| {
            let has_radio = || clients.stations.values().flatten().any(|(owner, _)| owner == number);
            let is_owner = owner.map_or_else(|| !has_radio(), |(owner, _)| owner == *number);
            match client {
                MediumClient::Machine(_) => is_owner,
                MediumClient::Program(program) => program.is_registered && (is_owner || program.hears_all),
            }
        };
        let all: Vec<_> =
            clients.all.iter().filter(|it| hears((it.0, it.1))).map(|(number, _)| *number).collect();
        let message = received(FAMILY, &ReceivedFrame { radio, ..*frame });
        all.into_iter().for_each(|number| clients.hand(number, &message, owner.is_some()));
        Ok(())
    }

    fn report(&self, told: &Status) -> io::Result<()> {
        let clients = &mut *self.inner.borrow_mut();
        if let Some((number, radio)) = clients.stations.get(&told.radio).copied().flatten() {
            clients.hand(number, &status(FAMILY, &Status { radio, ..*told }), true);
        }
        Ok(())
    }
}

impl AllClients {
    /// Serves what is ready without waiting, and returns the messages of clients with their numbers.
    fn collect(&mut self) -> io::Result<Vec<(usize, Vec<u8>)>> {
        let (mut ready, mut told) = (Vec::new(), Vec::new());
        self.poller.wait(&self.clock, Some(self.clock.now()), &mut ready)?;
        for index in ready {
            let number = index / INDEXES;
            let sink = &mut |message| told.push((number, message));
            let done = match (self.all.get_mut(&number), index % INDEXES) {
                (None, nth) if number == 0 => self.accept(nth),
                (None, _) => Ok(()),
                (Some(MediumClient::Machine(machine)), 0) => machine.read(&self.poller, sink),
                (Some(MediumClient::Machine(machine)), part) => machine.on_kick(part - KICKS, sink),
                (Some(MediumClient::Program(program)), _) => program.read(sink),
            };
            self.settle(number, done);
        }
        Ok(told)
    }

    fn accept(&mut self, nth: usize) -> Result<(), Ended> {
        let come = self.sockets[nth].as_ref().and_then(|socket| socket.listener.accept().ok());
        let Some((socket, _)) = come else { return Ok(()) };
        if self.all.len() >= MOST_CLIENTS {
            return Err(format!("there are {MOST_CLIENTS} clients already").into());
        }
        let number = self.last + 1;
        let at = number * INDEXES;
        socket.set_nonblocking(true)?;
        self.poller.add(socket.as_fd(), at, Interest::Read)?;
        let (kind, client) = match nth {
            0 => ("machine", MediumClient::Machine(Box::new(VirtualMachine::new(socket, at + KICKS)?))),
            _ => ("program", MediumClient::Program(MediumProgram::new(socket))),
        };
        tracing::info!(client = number, "a {kind} has come");
        self.all.insert(number, client);
        self.last = number;
        Ok(())
    }

    /// Ends a client that has a reason to end.
    fn settle(&mut self, number: usize, done: Result<(), Ended>) {
        let Err(problem) = done else { return };
        tracing::warn!(client = number, "a client has ended: {problem}");
        if let Some(MediumClient::Machine(mut machine)) = self.all.remove(&number) {
            machine.end(&self.poller);
        }
        let left = |owner: &&mut Option<(usize, Mac)>| owner.is_some_and(|(owner, _)| owner == number);
        self.stations.values_mut().filter(left).for_each(|owner| *owner = None);
    }

    /// The frame of a client's message, by the station that the client's radio is.
    fn sent<'a>(&mut self, number: usize, message: &'a [u8]) -> Option<Frame<'a>> {
        self.all.get(&number)?;
        match radio_message(message)? {
            RadioMessage::Frame(frame) => {
                let sender = frame.content.get(10..).and_then(|rest| rest.first_chunk()).copied();
                let radio = self.station(number, frame.radio, sender)?;
                Some(Frame { radio, ..frame })
            }
            RadioMessage::Interface(radio, address) => self.station(number, radio, Some(address)).and(None),
            RadioMessage::Other => None,
        }
    }

    /// The station that a client's radio is: by the sender of its frame, by the radio's address, or by that of the
    /// radio's first interface.
    fn station(&mut self, number: usize, radio: Mac, sender: Option<Mac>) -> Option<Mac> {
        let mut plain = radio;
        plain[0] &= !RADIO_BIT;
        let by = |mac: Mac| {
            let owner = self.stations.get(&mac)?;
            owner.is_none_or(|(owner, _)| owner == number).then_some(mac)
        };
        let known = || self.stations.iter().find(|it| *it.1 == Some((number, radio))).map(|(mac, _)| *mac);
        let found = sender.and_then(by).or_else(known).or_else(|| by(radio)).or_else(|| by(plain));
        let address = StationAddress(radio);
        let Some(mac) = found else {
            self.refusals.refused += 1;
            if self.unknown.len() < MOST_CLIENTS && self.unknown.insert(radio) {
                tracing::warn!(client = number, radio = %address, "no station has this address, or it is taken");
            }
            return None;
        };
        if self.stations.insert(mac, Some((number, radio))) != Some(Some((number, radio))) {
            tracing::info!(client = number, radio = %address, station = %StationAddress(mac), "a radio");
        }
        Some(mac)
    }

    /// Hands a message to a client. A message that is lost counts, unless it was for nobody in particular.
    fn hand(&mut self, number: usize, message: &[u8], counts: bool) {
        let done = match self.all.get_mut(&number) {
            None => Ok(()),
            Some(MediumClient::Program(program)) => program.hand(NETLINK, message),
            Some(MediumClient::Machine(machine)) => machine.hand(message.to_vec()).map(|is_handed| {
                self.refusals.overruns += u64::from(counts && !is_handed);
            }),
        };
        self.settle(number, done);
    }
}
