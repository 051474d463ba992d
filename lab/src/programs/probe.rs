//! A probe during the load: small datagrams at intervals, each of which the other end sends back.

use std::collections::VecDeque;

use hopwise_core::Instant;
use serde::{Deserialize, Serialize};

use super::datagrams::{ON_ITS_WAY, TimedSocket};
use super::delays::Amount;
use super::delays::{Delays, Spread};
use super::sockets::{Platform, Sockets};

/// A probe begins with its number.
pub(crate) const NUMBER_BYTES: usize = 8;

/// The probes of the counted time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probed {
    /// Those that were answered, or had the time for it.
    pub sent: u64,
    /// Those whose answers came back.
    pub answered: u64,
    /// The round trips of answered probes.
    pub spread: Option<Spread>,
}

#[derive(Debug)]
pub(super) struct ProbeProgram<S: Sockets> {
    pub(super) timed: TimedSocket<S>,
    every: Amount,
    counts_from: Instant,
    payload: Vec<u8>,
    /// The numbers of probes without an echo, and when they left.
    open: VecDeque<(u64, Instant)>,
    round_trips: Delays,
}

impl<S: Sockets> ProbeProgram<S> {
    pub(super) fn new(
        timed: TimedSocket<S>,
        bytes: u16,
        every: Amount,
        counts_from: Instant,
    ) -> ProbeProgram<S> {
        ProbeProgram {
            timed,
            every,
            counts_from,
            payload: vec![0; usize::from(bytes).max(NUMBER_BYTES)],
            open: VecDeque::new(),
            round_trips: Delays::default(),
        }
    }

    pub(super) fn begin<P: Platform<Sockets = S>>(&mut self, now: Instant, node: &mut P) {
        let is_due = self.timed.goes_on(now, Some(self.every));
        let Some(socket) = self.timed.socket.filter(|_| is_due) else { return };
        self.timed.stamp(self.timed.sent, now, &mut self.payload);
        self.open.push_back((self.timed.sent, now));
        self.timed.sent += 1;
        // One that finds no room is lost, as anywhere else on its way.
        node.with(now, |sockets| sockets.udp_send(socket, self.timed.to, &self.payload));
    }

    pub(super) fn read<P: Platform<Sockets = S>>(&mut self, now: Instant, node: &mut P) {
        let Some(socket) = self.timed.socket else { return };
        let mut number = [0; NUMBER_BYTES];
        while let Some(bytes) = node.with(now, |sockets| sockets.udp_recv(socket, &mut number)) {
            let number = u64::from_be_bytes(number);
            let place = self.open.binary_search_by_key(&number, |(number, _)| *number);
            // A copy of an echo finds no open probe.
            let found =
                place.ok().filter(|_| bytes >= NUMBER_BYTES).and_then(|place| self.open.remove(place));
            if let Some((_, at)) = found.filter(|(_, at)| *at >= self.counts_from) {
                self.round_trips.add(now.since(at));
            }
        }
    }

    pub(super) fn probed(&self, now: Instant) -> Probed {
        // A later one counts if its echo came.
        let had_time = |at: Instant| at >= self.counts_from && at + ON_ITS_WAY <= now;
        let lost = self.open.iter().filter(|(_, at)| had_time(*at)).count() as u64;
        let answered = self.round_trips.count();
        Probed { sent: answered + lost, answered, spread: self.round_trips.spread() }
    }
}
