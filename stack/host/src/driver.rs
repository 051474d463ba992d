//! The body of the poll loop: one mutation, then the packets that links have room for, then the trace.
//!
//! Invariants
//! - D1: after every mutation each link is filled until it is full, the machine has no more packets for it, or its turn
//!   is over. In the last case its next deadline has come. Packets read in a row count as one mutation, as many
//!   as [`Answers`] says.
//! - D2: a packet that a full link refused is kept, with the rest of its bundle. It is the first to leave when there is
//!   room.

mod outgoing;
mod sending;
mod shown;
mod watching;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hopwise_core::{Instant, LinkId, Machine, Rx};

use crate::clock::Clock;
use crate::counters::LinkCounters;
use crate::link::{Arrived, Link, MAX_PACKET, Received};
use crate::observer::Observer;
use crate::poller::{Interest, Poller};

use outgoing::Outgoing;

/// Packets read from one link before the other links, and programs, are served. The endpoint has room for this number
/// of answers that belong to no connection. Each ACK makes the kernel's TCP send, on our time. With a sender that keeps
/// the queue full, 64 cost both ends a tenth to a fifth more time.
const MOST_AT_ONCE: usize = 500;

/// Bytes after which an iteration ends as well: 64 of the largest bundles. More would leave every cache before they are
/// read.
const MOST_BYTES_AT_ONCE: usize = 4 << 20;

/// The time after which an iteration reads no more from a link: a processor that is busy with other programs needs long
/// for few packets, and whoever watches the caller waits for a sign of life.
const LONGEST_READ: Duration = Duration::from_millis(20);

/// Packets that leave by one link before commands and other work are served. This is more than one read leads to, so
/// that only packets that had gathered before wait for another turn.
const MOST_SENT_AT_ONCE: usize = 1_000;

/// Packets read in a row from a link that share one arrival time, while no capture has them, and whose answers leave
/// together. Reading the clock costs as much as the sum over a header. A connection keeps as many ACKs apart until they
/// leave.
const AT_ONE_TIME: usize = 8;

/// Drives one machine. It does not know what the machine is, and allocates nothing per packet.
pub struct Driver<M: Machine> {
    machine: M,
    ports: Vec<Port>,
    observers: Vec<Box<dyn Observer>>,
    /// The observers' last answer.
    is_watched: bool,
    /// An observer takes the time of each packet that comes.
    times_each: bool,
    clock: Clock,
    /// The time that the clock showed last. Steps of one turn share it, since each look at the clock costs as much as a
    /// small part of a segment.
    now: Instant,
    poller: Arc<Poller>,
    buffer: Box<[u8]>,
    packets_in: u64,
    packets_out: u64,
    answers: Answers,
    /// Packets were read, and answers to them may still wait in the machine.
    owes_answers: bool,
    /// Packets read since the last [rest](Driver::rest).
    without_rest: u32,
}

/// When the driver fetches the answers to packets that were read in a row: code that stays in the cache is faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// After eight packets, and after the last: none goes into another for want of room.
    EachFew,
    /// After all that one iteration reads from a link: several packets may need fewer answers together.
    EachIteration,
}

/// A link, and the packets that wait for it.
struct Port {
    id: LinkId,
    link: Box<dyn Link>,
    outgoing: Outgoing,
    /// The link refused the next packet (D2).
    is_full: bool,
    /// Packets that may still leave in this turn.
    left: usize,
    /// The end of a turn that more packets may have followed.
    stopped_at: Option<Instant>,
    /// The poller's current interest in it.
    interest: Interest,
    is_gone: bool,
}

impl Port {
    fn new(id: LinkId, link: Box<dyn Link>) -> Port {
        let (outgoing, interest) = (Outgoing::new(), Interest::Read);
        let (is_full, left, stopped_at, is_gone) = (false, MOST_SENT_AT_ONCE, None, false);
        Port { id, link, outgoing, is_full, left, stopped_at, interest, is_gone }
    }

    fn deadline(&self) -> Option<Instant> {
        self.stopped_at.into_iter().chain(self.link.poll_timeout()).min()
    }
}

/// The result of an iteration: whether more can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Iteration {
    /// All links have been read to their ends.
    Idle,
    /// A link may have more packets: run another iteration, without a wait.
    MoreToRead,
}

impl<M: Machine> Driver<M> {
    /// Links are numbered in order, from `LinkId(0)`.
    pub fn new(
        machine: M,
        links: Vec<Box<dyn Link>>,
        observers: Vec<Box<dyn Observer>>,
    ) -> io::Result<Driver<M>> {
        let poller = Poller::new()?;
        let mut ports = Vec::with_capacity(links.len());
        for (id, link) in (0..).map(LinkId).zip(links) {
            if let Some(fd) = link.descriptor() {
                poller.add(fd, usize::from(id.0), Interest::Read)?;
            }
            ports.push(Port::new(id, link));
        }
        let mut driver = Driver {
            machine,
            ports,
            observers,
            is_watched: true,
            times_each: false,
            clock: Clock::start(),
            now: Instant::ZERO,
            poller: Arc::new(poller),
            buffer: vec![0; MAX_PACKET].into_boxed_slice(),
            packets_in: 0,
            packets_out: 0,
            answers: Answers::EachFew,
            owes_answers: false,
            without_rest: 0,
        };
        driver.ask_observers();
        Ok(driver)
    }

    /// The same driver, which fetches answers at these times.
    pub fn with_answers(mut self, answers: Answers) -> Driver<M> {
        self.answers = answers;
        self
    }

    /// Uses another clock from here on. Several drivers may share one.
    pub fn with_clock(mut self, clock: Clock) -> Driver<M> {
        self.set_clock(clock);
        self
    }

    /// The same.
    pub fn set_clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    /// The clock by which the machine lives.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The poller wakes a thread in [`wait`](Driver::wait).
    pub fn poller(&self) -> Arc<Poller> {
        Arc::clone(&self.poller)
    }

    /// The machine, to look at.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// The time of the last step.
    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    fn look_at_clock(&mut self) -> Instant {
        self.now = self.clock.now();
        self.now
    }

    /// The machine, to take its events. Observers see nothing of that, and are not asked.
    pub(crate) fn machine_with_events(&mut self) -> &mut M {
        &mut self.machine
    }

    /// For changes that lead to no packet; everything else goes through [`act`](Driver::act).
    pub fn machine_mut(&mut self) -> &mut M {
        self.ask_observers();
        &mut self.machine
    }

    /// The counters of the links, in the order of their numbers.
    pub fn counters(&self) -> Vec<LinkCounters> {
        self.ports.iter().map(|port| port.link.counters()).collect()
    }

    pub(crate) fn link(&self, id: LinkId) -> Option<&dyn Link> {
        self.ports.get(usize::from(id.0)).map(|port| &*port.link)
    }

    /// Runs one mutation of the machine for a program, and sends the resulting packets.
    pub fn act<R>(&mut self, act: impl FnOnce(Instant, &mut M) -> R) -> R {
        self.ask_observers();
        self.look_at_clock();
        self.act_in_turn(act)
    }

    /// The same at the time of the last step, which came just before.
    pub(crate) fn act_in_turn<R>(&mut self, act: impl FnOnce(Instant, &mut M) -> R) -> R {
        let done = act(self.now, &mut self.machine);
        self.begin_turn();
        self.pump(self.now);
        done
    }

    fn ask_observers(&mut self) {
        let (mut is_watched, mut times_each) = (false, false);
        for observer in self.observers.iter().filter(|observer| observer.is_watching()) {
            is_watched = true;
            times_each |= observer.takes_times();
        }
        if is_watched != self.is_watched {
            self.is_watched = is_watched;
            self.machine.keep_trace(is_watched);
            for port in &mut self.ports {
                port.link.keep_frames(is_watched);
            }
            // Earlier events have no observer.
            self.machine.drain_trace(&mut |_| {});
        }
        self.times_each = times_each;
    }

    /// Reads the links that are ready, runs the timers that are due, and sends the resulting packets.
    pub fn iterate(&mut self, ready: &[usize]) -> Iteration {
        let iteration = self.listen(|index| ready.contains(&index));
        self.stay_awake();
        self.act_in_turn(|_, _| ());
        iteration
    }

    /// The first half of [`iterate`](Driver::iterate): D1 holds after the second. Links that are not watched are always
    /// read, since the poller does not report them.
    pub fn listen(&mut self, is_ready: impl Fn(usize) -> bool) -> Iteration {
        self.ask_observers();
        let mut iteration = Iteration::Idle;
        self.look_at_clock();
        for index in 0..self.ports.len() {
            if !is_ready(index) && self.ports[index].interest != Interest::Nothing {
                continue;
            }
            if index > 0 {
                self.look_at_clock();
            }
            if self.read(index) == Iteration::MoreToRead {
                iteration = Iteration::MoreToRead;
            }
        }
        let mut now = self.now;
        for index in 0..self.ports.len() {
            let link = &mut self.ports[index].link;
            if link.poll_timeout().is_some_and(|at| at <= now) {
                link.handle_timeout(now);
                if self.read(index) == Iteration::MoreToRead {
                    iteration = Iteration::MoreToRead;
                }
                now = self.look_at_clock();
            }
        }
        if self.machine.poll_timeout().is_some_and(|at| at <= now) {
            self.machine.handle_timeout(now);
        }
        iteration
    }

    /// The number of packets that have left.
    pub fn packets_out(&self) -> u64 {
        self.packets_out
    }

    /// The second half of [`iterate`](Driver::iterate): sends the packets that [`listen`](Driver::listen) led to.
    pub fn answer(&mut self) {
        let now = self.look_at_clock();
        self.begin_turn();
        self.pump(now);
    }

    /// Sends all packets of the machine, though not later than `until`, and reads none.
    pub fn finish(&mut self, until: Instant) -> io::Result<()> {
        loop {
            self.begin_turn();
            let now = self.look_at_clock();
            for index in 0..self.ports.len() {
                self.send(now, index);
            }
            self.drain_trace();
            let may_send = |port: &Port| !port.is_gone && (port.is_full || port.stopped_at.is_some());
            if now >= until || !self.ports.iter().any(may_send) {
                return Ok(());
            }
            let links = self.ports.iter().filter_map(Port::deadline);
            self.poller.wait(&self.clock, links.chain([until]).min(), &mut Vec::new())?;
        }
    }

    /// The number of packets that have arrived.
    pub fn packets_in(&self) -> u64 {
        self.packets_in
    }

    /// The number of links.
    pub fn links(&self) -> usize {
        self.ports.len()
    }

    /// The next deadline of the links and the machine.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let links = self.ports.iter().filter_map(Port::deadline);
        links.chain(self.machine.poll_timeout()).min()
    }

    /// Waits for packets, room, the next deadline, or a wake. The caller then calls [`iterate`](Driver::iterate) with
    /// `ready`.
    pub fn wait(&mut self, ready: &mut Vec<usize>) -> io::Result<()> {
        self.rest();
        self.poller.wait(&self.clock, self.poll_timeout(), ready)
    }

    fn read(&mut self, index: usize) -> Iteration {
        let Some(port) = self.ports.get(index).filter(|port| !port.is_gone) else { return Iteration::Idle };
        let is_full = port.is_full;
        let mut now = self.now;
        self.begin_turn();
        if is_full {
            self.send(now, index);
        }
        if self.owes_answers || self.ports.iter().any(|port| port.stopped_at.is_some()) {
            // The machine has room for the answers to one read.
            self.pump(now);
            now = self.look_at_clock();
        }
        let (mut bytes, began) = (0, now);
        for count in 0..MOST_AT_ONCE {
            if count > 0 && count % AT_ONE_TIME == 0 {
                if self.answers == Answers::EachFew {
                    self.pump(now);
                }
                if !self.times_each {
                    now = self.look_at_clock();
                }
            }
            match self.ports[index].link.receive(now, &mut self.buffer) {
                Received::Packet(arrived) => {
                    if self.times_each {
                        now = self.look_at_clock();
                    }
                    self.deliver(now, index, &arrived);
                    bytes += arrived.bytes;
                    if bytes >= MOST_BYTES_AT_ONCE || now.since(began) >= LONGEST_READ {
                        break;
                    }
                }
                Received::Dropped => {}
                Received::Nothing => {
                    self.show_frames(index);
                    self.hear(now, index);
                    return Iteration::Idle;
                }
                Received::Gone => {
                    self.on_gone(index);
                    return Iteration::Idle;
                }
            }
        }
        Iteration::MoreToRead
    }

    fn deliver(&mut self, now: Instant, index: usize, arrived: &Arrived) {
        self.packets_in += 1;
        self.without_rest = self.without_rest.saturating_add(1);
        self.show_arrived(now, index, arrived);
        let (link, packet) = (self.ports[index].id, &self.buffer[..arrived.bytes]);
        let Arrived { from, cast, segment_bytes, .. } = *arrived;
        self.machine.handle_packet(now, &Rx { link, from, cast, segment_bytes, packet });
        self.owes_answers = true;
        self.drain_trace();
    }

    /// Hands the link layer's events to the machine.
    fn hear(&mut self, now: Instant, index: usize) {
        let Driver { machine, ports, .. } = self;
        let port = &mut ports[index];
        let mut heard = false;
        port.link.drain_events(&mut |event| {
            heard = true;
            machine.handle_link_event(now, port.id, event);
        });
        if heard {
            self.pump(now);
        }
    }

    fn on_gone(&mut self, index: usize) {
        let port = &mut self.ports[index];
        if !std::mem::replace(&mut port.is_gone, true) {
            tracing::warn!(link = port.link.tally().name(), "the device is gone");
            if let Some(fd) = port.link.descriptor() {
                // A descriptor without a device would always be ready. It may be unwatched already.
                let _ = self.poller.remove(fd);
            }
        }
    }

    fn begin_turn(&mut self) {
        self.ports.iter_mut().for_each(|port| port.left = MOST_SENT_AT_ONCE);
    }
}

impl<M: Machine> fmt::Debug for Driver<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("links", &self.ports.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
