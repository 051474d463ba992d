//! The program at one side of a connection. Events and its own alarm wake it, and it checks the bytes that it reads.

use std::fmt;
use std::time::Duration;

use hopwise_core::endpoint::{AbortError, ConnId, EventKind, RecvError, SendError};
use hopwise_core::tcp::{CloseReason, KeepAlive, Options};
use hopwise_core::{Endpoint, Instant};

use super::scenario::{Dialogue, Ending, ReadHow, Setting, SidePlan};
use super::stream::{Stream, Wrong};

/// The most reads and writes of one visit; more of them would be a loop.
const MOST_CALLS: u32 = 100_000;

#[derive(Debug)]
pub(super) struct Side {
    plan: SidePlan,
    outgoing: Stream,
    incoming: Stream,
    phase: Phase,
    pub(super) sent: u64,
    pub(super) received: u64,
    /// The peer's end was read.
    pub(super) has_end: bool,
    has_shut: bool,
    has_paused: bool,
    is_connected: bool,
    is_over: Option<CloseReason>,
    writes_again_at: Instant,
    reads_again_at: Instant,
    settings_left: usize,
    writes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    NotOpen,
    Open(ConnId),
    Done(Outcome),
}

/// The end of a connection, as its program sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The program sent everything and read the peer's end.
    Complete,
    /// The program left before the end, as planned.
    Left,
    Failed(CloseReason),
    /// The connection never began, since the one it was to follow had failed.
    Skipped,
    /// The other side had gone silently, and this one stopped waiting.
    GaveUp,
}

/// Faults that an endpoint must never show a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    WrongByte {
        at: u64,
    },
    TookTooMuch {
        taken: usize,
        offered: usize,
    },
    Refused {
        call: &'static str,
        error: AbortError,
    },
    NoSuchConnection {
        call: &'static str,
    },
    /// A call gave or took without end.
    NoEnd {
        call: &'static str,
    },
    UrgentAfterTheEnd {
        bytes: u32,
    },
    PeekAndReadableDiffer,
    OptionNotKept,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::WrongByte { at } => write!(f, "byte {at} is not what was sent"),
            Violation::TookTooMuch { taken, offered } => write!(f, "{taken} bytes of {offered} were taken"),
            Violation::Refused { call, error } => write!(f, "{call}: {error}"),
            Violation::NoSuchConnection { call } => write!(f, "{call} does not know an open connection"),
            Violation::NoEnd { call } => write!(f, "{call} goes on for ever"),
            Violation::UrgentAfterTheEnd { bytes } => {
                write!(f, "{bytes} urgent bytes are left after the end")
            }
            Violation::PeekAndReadableDiffer => f.write_str("peek shows something else than readable says"),
            Violation::OptionNotKept => f.write_str("an option did not stay as it was set"),
        }
    }
}

impl From<Wrong> for Violation {
    fn from(wrong: Wrong) -> Violation {
        Violation::WrongByte { at: wrong.at }
    }
}

fn refused(call: &'static str) -> impl FnOnce(AbortError) -> Violation {
    move |error| Violation::Refused { call, error }
}

impl Side {
    pub(super) fn new(plan: SidePlan, outgoing: Stream, incoming: Stream) -> Side {
        Side {
            settings_left: plan.settings.len(),
            plan,
            outgoing,
            incoming,
            phase: Phase::NotOpen,
            sent: 0,
            received: 0,
            has_end: false,
            has_shut: false,
            has_paused: false,
            is_connected: false,
            is_over: None,
            writes_again_at: Instant::ZERO,
            reads_again_at: Instant::ZERO,
            writes: 0,
        }
    }

    pub(super) fn opens(&mut self, id: ConnId) {
        self.phase = Phase::Open(id);
    }

    pub(super) fn is_accepted(&mut self, id: ConnId) {
        self.phase = Phase::Open(id);
        self.is_connected = true;
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    pub(super) fn outcome(&self) -> Option<Outcome> {
        match self.phase {
            Phase::Done(outcome) => Some(outcome),
            _ => None,
        }
    }

    pub(super) fn end(&mut self, outcome: Outcome) {
        self.phase = Phase::Done(outcome);
    }

    /// The time of the next visit, even if no event happens.
    pub(super) fn alarm(&self, now: Instant) -> Option<Instant> {
        let Phase::Open(_) = self.phase else { return None };
        [self.writes_again_at, self.reads_again_at].into_iter().filter(|at| *at > now).min()
    }

    pub(super) fn hear(&mut self, kind: EventKind) {
        match kind {
            EventKind::Connected => self.is_connected = true,
            EventKind::Closed(reason) => self.is_over = Some(reason),
            _ => {}
        }
    }

    /// Does all that is possible now.
    pub(super) fn visit(&mut self, now: Instant, endpoint: &mut Endpoint) -> Result<(), Violation> {
        let Phase::Open(id) = self.phase else { return Ok(()) };
        self.change_a_setting(now, endpoint, id)?;
        self.read(now, endpoint, id)?;
        self.write(now, endpoint, id)?;
        self.read(now, endpoint, id)?;
        self.perhaps_end(now, endpoint, id)
    }

    fn write(&mut self, now: Instant, endpoint: &mut Endpoint, id: ConnId) -> Result<(), Violation> {
        let mut data = [0; 4096];
        for _ in 0..MOST_CALLS {
            if self.is_done_writing() || self.writes_again_at > now || !self.has_turn() || self.leaves_now() {
                return Ok(());
            }
            let in_write = self.plan.write_bytes - self.sent % self.plan.write_bytes;
            let wanted = in_write.min(self.plan.send_bytes - self.sent).min(data.len() as u64) as usize;
            self.outgoing.fill(self.sent, &mut data[..wanted]);
            let is_urgent = self.plan.urgent_every > 0 && self.writes.is_multiple_of(self.plan.urgent_every);
            let taken = if is_urgent {
                endpoint.send_urgent(now, id, &data[..wanted])
            } else {
                endpoint.send(now, id, &data[..wanted])
            };
            match taken {
                Ok(taken) if taken <= wanted => self.sent += taken as u64,
                Ok(taken) => return Err(Violation::TookTooMuch { taken, offered: wanted }),
                Err(SendError::NotOpen) => return Ok(()), // It is over, and an event will say so.
                Err(SendError::NoConnection) => return Err(Violation::NoSuchConnection { call: "send" }),
            }
            if taken.unwrap_or(0) < wanted {
                return Ok(());
            }
            if self.sent.is_multiple_of(self.plan.write_bytes) {
                self.writes += 1;
                self.writes_again_at = now + self.plan.think;
            }
        }
        Err(Violation::NoEnd { call: "send" })
    }

    fn is_done_writing(&self) -> bool {
        self.sent == self.plan.send_bytes || self.has_shut
    }

    fn has_turn(&self) -> bool {
        match self.plan.dialogue {
            Dialogue::Free => true,
            Dialogue::Alternate { lead, bytes } => {
                self.received >= (self.sent / self.plan.write_bytes + lead) * bytes
            }
        }
    }

    fn read(&mut self, now: Instant, endpoint: &mut Endpoint, id: ConnId) -> Result<(), Violation> {
        for _ in 0..MOST_CALLS {
            // Bytes that came before a connection broke off may still be read.
            let is_busy = self.pauses(now) && self.is_over.is_none();
            if self.has_end || is_busy || self.leaves_now() {
                return Ok(());
            }
            let read = match self.plan.read.how {
                ReadHow::Copy => self.read_copy(now, endpoint, id)?,
                ReadHow::InPlace => self.read_in_place(now, endpoint, id)?,
            };
            match read {
                Some(0) => return Ok(()),
                Some(bytes) => self.received += bytes as u64,
                None => {
                    self.has_end = true;
                    let bytes = endpoint.urgent_unread(id);
                    return if bytes == 0 { Ok(()) } else { Err(Violation::UrgentAfterTheEnd { bytes }) };
                }
            }
        }
        Err(Violation::NoEnd { call: "recv" })
    }

    fn pauses(&mut self, now: Instant) -> bool {
        let read = self.plan.read;
        if !self.has_paused && self.received >= read.pause_at && read.pause > Duration::ZERO {
            self.has_paused = true;
            self.reads_again_at = now + read.pause;
        }
        self.reads_again_at > now
    }

    /// `None` at the peer's end.
    fn read_copy(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        id: ConnId,
    ) -> Result<Option<usize>, Violation> {
        let mut buffer = [0; 16 << 10];
        let wanted = self.plan.read.bytes.min(buffer.len());
        match endpoint.recv(now, id, &mut buffer[..wanted]) {
            Ok(bytes) => {
                self.check(&buffer[..bytes])?;
                Ok(Some(bytes))
            }
            Err(RecvError::Finished) => Ok(None),
            Err(RecvError::Over) => Ok(Some(0)),
            Err(RecvError::NoConnection) => Err(Violation::NoSuchConnection { call: "recv" }),
        }
    }

    fn read_in_place(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        id: ConnId,
    ) -> Result<Option<usize>, Violation> {
        let (head, tail) = endpoint.peek(id);
        if (head.len() + tail.len()) as u32 != endpoint.readable(id) {
            return Err(Violation::PeekAndReadableDiffer);
        }
        let bytes = (head.len() + tail.len()).min(self.plan.read.bytes);
        if bytes == 0 {
            return self.read_copy(now, endpoint, id);
        }
        let first = bytes.min(head.len());
        self.check(&head[..first])?;
        self.check_at(self.received + first as u64, &tail[..bytes - first])?;
        endpoint.consume(now, id, bytes as u32).map_err(refused("consume"))?;
        Ok(Some(bytes))
    }

    fn check(&self, data: &[u8]) -> Result<(), Violation> {
        self.check_at(self.received, data)
    }

    fn check_at(&self, at: u64, data: &[u8]) -> Result<(), Violation> {
        Ok(self.incoming.check(at, data)?)
    }

    fn leaves_now(&self) -> bool {
        match self.plan.ending {
            Ending::Abort { after } | Ending::LeaveEarly { after } => self.sent + self.received >= after,
            _ => false,
        }
    }

    fn perhaps_end(&mut self, now: Instant, endpoint: &mut Endpoint, id: ConnId) -> Result<(), Violation> {
        if let Some(reason) = self.is_over.filter(|reason| *reason != CloseReason::Finished) {
            return self.let_go(now, endpoint, id, Outcome::Failed(reason));
        }
        if self.leaves_now() {
            let ended = match self.plan.ending {
                Ending::Abort { .. } => endpoint.abort(now, id),
                _ => endpoint.close(now, id),
            };
            self.end(Outcome::Left);
            return ended.map_err(refused("leave"));
        }
        let has_written = self.sent == self.plan.send_bytes;
        if !has_written || self.plan.ending.is_rude() {
            return Ok(());
        }
        // Before the handshake is over, letting go would discard the written bytes (RFC 9293 §3.10.4).
        if self.plan.ending == Ending::WriteAndGo {
            return if self.is_connected { self.let_go(now, endpoint, id, Outcome::Left) } else { Ok(()) };
        }
        let waits_for_peer = self.plan.ending == Ending::AfterPeer && !self.has_end;
        if !self.has_shut && !waits_for_peer {
            self.has_shut = true;
            endpoint.shutdown(now, id).map_err(refused("shutdown"))?;
        }
        let is_heard = self.plan.ending != Ending::HalfClose || self.is_over.is_some();
        if self.is_complete() && is_heard {
            return self.let_go(now, endpoint, id, Outcome::Complete);
        }
        Ok(())
    }

    /// Returns whether the peer may read to the end of the sent bytes.
    pub(super) fn has_made_an_end(&self) -> bool {
        let has_left =
            self.outcome() == Some(Outcome::Left) && !matches!(self.plan.ending, Ending::Abort { .. });
        self.has_shut || has_left
    }

    fn is_complete(&self) -> bool {
        self.has_end && self.has_shut
    }

    fn let_go(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        id: ConnId,
        outcome: Outcome,
    ) -> Result<(), Violation> {
        self.end(outcome);
        endpoint.close(now, id).map_err(refused("close"))
    }

    fn change_a_setting(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        id: ConnId,
    ) -> Result<(), Violation> {
        let Some(left) = self.settings_left.checked_sub(1) else { return Ok(()) };
        self.settings_left = left;
        let old = endpoint.options(id).map_err(refused("options"))?;
        let new = changed(old, self.plan.settings[left]);
        endpoint.set_options(now, id, new).map_err(refused("set_options"))?;
        if endpoint.options(id) == Ok(new) { Ok(()) } else { Err(Violation::OptionNotKept) }
    }
}

fn changed(old: Options, setting: Setting) -> Options {
    match setting {
        Setting::Nagle(nagle) => Options { nagle, ..old },
        Setting::KeepAlive { idle } => {
            let interval = Duration::from_secs(75);
            Options { keep_alive: Some(KeepAlive { idle, interval, probes: 255 }), ..old }
        }
        Setting::NoKeepAlive => Options { keep_alive: None, ..old },
        Setting::HopLimit(hop_limit) => Options { hop_limit, ..old },
        Setting::Dscp(dscp) => Options { dscp, ..old },
    }
}
