//! The machines and programs whose radios the medium serves: who has which station, and what goes to whom.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

use hopwise_core::StationAddress;
use hopwise_host::netlink::hwsim::{
    Frame, Mac, RadioMessage, ReceivedFrame, Refusals, Status, radio_message, received, status,
};
use hopwise_host::{Clock, Interest, Poller};

use super::control::MediumProgram;
use super::machine::VirtualMachine;
use crate::air::hwsim::KernelRadios;

/// The reason why a client is one no more.
pub(super) type Ended = String;

/// The messages of a client that are read in a row. Other clients wait meanwhile.
pub(super) const MOST_AT_ONCE: usize = 64;
const MOST_CLIENTS: usize = 64;
const MOST_UNKNOWN: usize = 64;
/// A client has this number of indexes for the poller: its socket, and two queues. The first indexes are those of the
/// listeners.
const INDEXES: usize = 4;
const SOCKET: usize = 0;
const KICKS: usize = 1;
/// The bit that Linux sets in the address of a radio of its own, of which the interface has the plain form.
const RADIO_BIT: u8 = 0x40;

/// Sockets for virtual machines, and for programs.
pub(super) type Listeners = [Option<UnixListener>; 2];
const MACHINES: usize = 0;

#[derive(Debug)]
enum ClientWay {
    Machine(Box<VirtualMachine>),
    Program(MediumProgram),
}

#[derive(Debug)]
struct MediumClient {
    way: ClientWay,
    /// The number of netlink's family in its kernel.
    family: u16,
}

/// A station of the medium, and the client that has its radio.
#[derive(Debug)]
struct ServedStation {
    mac: Mac,
    /// With the radio's own address there.
    owner: Option<(usize, Mac)>,
    /// The frames of this owner that have no status yet.
    open: BTreeSet<u64>,
}

#[derive(Debug)]
struct AllClients {
    poller: Poller,
    clock: Clock,
    listeners: Listeners,
    /// By number, from 1.
    all: BTreeMap<usize, MediumClient>,
    last: usize,
    stations: Vec<ServedStation>,
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
    pub(super) fn new(listeners: Listeners, macs: &[Mac]) -> io::Result<MediumClients> {
        let poller = Poller::new()?;
        for (nth, listener) in listeners.iter().enumerate() {
            if let Some(listener) = listener {
                listener.set_nonblocking(true)?;
                poller.add(listener.as_fd(), nth, Interest::Read)?;
            }
        }
        let station = |mac: &Mac| ServedStation { mac: *mac, owner: None, open: BTreeSet::new() };
        let inner = AllClients {
            clock: Clock::start(),
            listeners,
            all: BTreeMap::new(),
            last: 0,
            stations: macs.iter().map(station).collect(),
            unknown: BTreeSet::new(),
            refusals: Refusals::default(),
            poller,
        };
        Ok(MediumClients { descriptor: inner.poller.descriptor()?, inner: RefCell::new(inner) })
    }

    /// The frames of unknown radios, and the messages that a client had no room for.
    pub(super) fn refusals(&self) -> Refusals {
        self.inner.borrow().refusals
    }
}

impl KernelRadios for MediumClients {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    fn read(&self, sink: &mut dyn FnMut(&Frame<'_>)) -> io::Result<()> {
        let told = self.inner.borrow_mut().collect()?;
        for (client, message) in told {
            let frame = self.inner.borrow_mut().sent(client, &message);
            // The sink may answer at once.
            if let Some(frame) = frame {
                sink(&frame);
            }
        }
        Ok(())
    }

    fn receive(&self, received: &ReceivedFrame<'_>) -> io::Result<()> {
        self.inner.borrow_mut().receive(received);
        Ok(())
    }

    fn report(&self, status: &Status) -> io::Result<()> {
        self.inner.borrow_mut().report(status);
        Ok(())
    }
}

impl AllClients {
    /// Serves what is ready without waiting, and returns the messages of clients with their numbers.
    fn collect(&mut self) -> io::Result<Vec<(usize, Vec<u8>)>> {
        let (mut ready, mut told) = (Vec::new(), Vec::new());
        self.poller.wait(&self.clock, Some(self.clock.now()), &mut ready)?;
        for index in ready {
            if index < INDEXES {
                self.accept(index);
                continue;
            }
            let number = index / INDEXES;
            let Some(client) = self.all.get_mut(&number) else { continue };
            let sink = &mut |message| told.push((number, message));
            let done = match (&mut client.way, index % INDEXES) {
                (ClientWay::Machine(machine), SOCKET) => machine.read(&self.poller, sink),
                (ClientWay::Machine(machine), part) => machine.on_kick(part - KICKS, sink),
                (ClientWay::Program(program), _) => program.read(sink),
            };
            self.settle(number, done);
        }
        Ok(told)
    }

    fn accept(&mut self, nth: usize) {
        let Some(Ok((socket, _))) = self.listeners[nth].as_ref().map(UnixListener::accept) else { return };
        if self.all.len() >= MOST_CLIENTS {
            tracing::warn!("a client more than {MOST_CLIENTS}, which is not served");
            return;
        }
        let number = self.last + 1;
        match self.begin(socket, nth, number) {
            Ok(way) => {
                self.last = number;
                self.all.insert(number, MediumClient { way, family: 0 });
                let kind = if nth == MACHINES { "virtual machine" } else { "program" };
                tracing::info!(client = number, "a {kind} has come");
            }
            Err(problem) => tracing::warn!("a client could not be served: {problem}"),
        }
    }

    fn begin(&self, socket: UnixStream, nth: usize, number: usize) -> Result<ClientWay, Ended> {
        let at = number * INDEXES;
        let watched = socket
            .set_nonblocking(true)
            .and_then(|()| self.poller.add(socket.as_fd(), at + SOCKET, Interest::Read));
        watched.map_err(|error| error.to_string())?;
        Ok(match nth {
            MACHINES => ClientWay::Machine(Box::new(VirtualMachine::new(socket, at + KICKS)?)),
            _ => ClientWay::Program(MediumProgram::new(socket)),
        })
    }

    /// Ends a client that has a reason to end, and watches for room in the socket of another one.
    fn settle(&mut self, number: usize, done: Result<(), Ended>) {
        let Some(client) = self.all.get_mut(&number) else { return };
        let problem = match (done, &client.way) {
            (Err(problem), _) => problem,
            (Ok(()), ClientWay::Machine(_)) => return,
            (Ok(()), ClientWay::Program(program)) => {
                let interest =
                    if program.waits_for_room() { Interest::ReadAndRoom } else { Interest::Read };
                let socket = program.framed.socket.as_fd();
                match self.poller.change(socket, number * INDEXES + SOCKET, interest) {
                    Ok(()) => return,
                    Err(error) => error.to_string(),
                }
            }
        };
        tracing::warn!(client = number, "a client has ended: {problem}");
        if let Some(MediumClient { way: ClientWay::Machine(mut machine), .. }) = self.all.remove(&number) {
            machine.end(&self.poller);
        }
        for station in &mut self.stations {
            if station.owner.is_some_and(|(owner, _)| owner == number) {
                (station.owner, station.open) = (None, BTreeSet::new());
            }
        }
    }

    /// The frame of a client's message, by the station that the client's radio is.
    fn sent<'a>(&mut self, number: usize, message: &'a [u8]) -> Option<Frame<'a>> {
        let client = self.all.get_mut(&number)?;
        let (family, told) = radio_message(message)?;
        client.family = family;
        match told {
            RadioMessage::Frame(frame) => {
                let sender = frame.content.get(10..).and_then(|rest| rest.first_chunk()).copied();
                let station = self.station(number, frame.radio, sender)?;
                station.open.insert(frame.cookie);
                Some(Frame { radio: station.mac, ..frame })
            }
            RadioMessage::Interface(radio) => {
                self.station(number, radio, None);
                None
            }
            RadioMessage::Other => None,
        }
    }

    /// The station that a client's radio is: by the radio's address, by that of its first interface, or by the sender
    /// of its frame.
    fn station(&mut self, number: usize, radio: Mac, sender: Option<Mac>) -> Option<&mut ServedStation> {
        let mut plain = radio;
        plain[0] &= !RADIO_BIT;
        let is_free = |station: &ServedStation| station.owner.is_none_or(|(owner, _)| owner == number);
        let by = |mac| self.stations.iter().position(|it| it.mac == mac && is_free(it));
        let known = self.stations.iter().position(|station| station.owner == Some((number, radio)));
        let found = known.or_else(|| by(radio)).or_else(|| by(plain)).or_else(|| by(sender?));
        let address = StationAddress(radio);
        match found {
            None => {
                self.refusals.refused += u64::from(sender.is_some());
                if sender.is_some() && self.unknown.len() < MOST_UNKNOWN && self.unknown.insert(radio) {
                    tracing::warn!(client = number, radio = %address, "no station has this address, or it is taken");
                }
                None
            }
            Some(nth) => {
                if known.is_none() {
                    tracing::info!(client = number, radio = %address, station = nth, "a radio");
                    self.stations[nth].open.clear();
                }
                self.stations[nth].owner = Some((number, radio));
                Some(&mut self.stations[nth])
            }
        }
    }

    fn receive(&mut self, frame: &ReceivedFrame<'_>) {
        let Some(station) = self.stations.iter().find(|station| station.mac == frame.radio) else { return };
        let owner = station.owner;
        let mut radio = frame.radio;
        radio[0] |= RADIO_BIT;
        let (owner, radio) = owner.map_or((None, radio), |(owner, radio)| (Some(owner), radio));
        // The radio may be with anybody until it says a word.
        let hears = |(number, client): (&usize, &MediumClient)| match &client.way {
            ClientWay::Machine(_) => owner.is_none_or(|owner| owner == *number),
            ClientWay::Program(MediumProgram { is_registered, hears_all, .. }) => {
                *is_registered && (*hears_all || owner.is_none_or(|owner| owner == *number))
            }
        };
        let all: Vec<_> = self.all.iter().filter(|it| hears((it.0, it.1))).map(|(number, _)| *number).collect();
        for number in all {
            self.hand(number, |family| received(family, &ReceivedFrame { radio, ..*frame }), owner.is_some());
        }
    }

    fn report(&mut self, told: &Status) {
        let Some(station) = self.stations.iter_mut().find(|station| station.mac == told.radio) else { return };
        // An earlier client's frames are not the owner's.
        let is_open = station.open.remove(&told.cookie);
        if let Some((number, radio)) = station.owner.filter(|_| is_open) {
            self.hand(number, |family| status(family, &Status { radio, ..*told }), true);
        }
    }

    /// Hands a message to a client. One that is lost counts, unless it was for nobody in particular.
    fn hand(&mut self, number: usize, message: impl FnOnce(u16) -> Vec<u8>, counts: bool) {
        let Some(client) = self.all.get_mut(&number) else { return };
        let message = message(client.family);
        let done = match &mut client.way {
            ClientWay::Program(program) => program.hand(&message),
            ClientWay::Machine(machine) => machine.hand(message).map(|is_handed| {
                self.refusals.overruns += u64::from(counts && !is_handed);
            }),
        };
        self.settle(number, done);
    }
}
