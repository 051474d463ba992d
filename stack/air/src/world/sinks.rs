//! The sinks that watch a world: its trace, its frames, and what became of them.

use hopwise_core::narrow::as_u32;
use hopwise_core::trace::TraceEvent;
use hopwise_core::{Cast, Machine};

use super::RadioWorld;
use super::hands::RadioPacket;
use crate::airtime::AirtimeBook;
use crate::dcf::{DcfNews, Frame, FrameKind, PacketOutcome, RateUse};
use crate::frames::{FrameEnding, FrameEvent};
use crate::phy::Rate;
use crate::waits::QueueWaits;

/// Sees every trace event, with its machine.
pub type TraceSink = Box<dyn FnMut(u32, &TraceEvent)>;

/// Receives each station's view of every frame, with the packet of a data frame.
pub type FrameSink = Box<dyn FnMut(&FrameEvent, &[u8])>;

/// Receives the fates of frames, each after its frame.
pub type EndingSink = Box<dyn FnMut(&FrameEnding)>;

/// The news of a radio for its driver, in addition to a machine's news.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RadioNews<'a> {
    /// A packet of `from` has arrived at `to`, which may overhear it.
    Arrived {
        /// The sender, by its number.
        from: u32,
        /// The station that received it, by its number.
        to: u32,
        /// The sender's own name for the packet.
        id: u64,
        /// The rate of its frame.
        rate: Rate,
        /// The power in watts with which the frame arrived.
        power_w: f64,
        /// The packet, as the sender's machine gave it.
        packet: &'a [u8],
    },
    /// The station's packet of that id has gone, or was given up. An RTS or a packet without an answer is a try.
    Done {
        /// The station, by its number.
        station: u32,
        /// The machine's own name for the packet.
        id: u64,
        /// The packet's end.
        outcome: PacketOutcome,
        /// The rate of its last frame.
        rate: Rate,
        /// The number of tries.
        tries: u32,
    },
}

/// Receives them in the order in which they happen.
pub type RadioSink = Box<dyn FnMut(&RadioNews<'_>)>;

impl<M: Machine> RadioWorld<M> {
    pub(super) fn tell_driver(&mut self, news: &DcfNews) {
        let Some(sink) = &mut self.radio else { return };
        match *news {
            DcfNews::Kept { .. } | DcfNews::HasRoom { .. } => {}
            DcfNews::Arrived { from, to, number, cast, rate, power_w } => {
                let tell = |held: &RadioPacket| {
                    sink(&RadioNews::Arrived { from, to, id: held.id, rate, power_w, packet: &held.packet });
                };
                match self.kept.get(&(to, from, number)).filter(|_| cast == Cast::ToUs) {
                    Some(kept) => kept.iter().for_each(tell),
                    None => self.hands[from as usize].all(number).for_each(tell),
                }
            }
            DcfNews::Done { station, number, outcome, rate, tries, .. } => {
                for held in self.hands[station as usize].all(number) {
                    sink(&RadioNews::Done { station, id: held.id, outcome, rate, tries });
                }
            }
        }
    }

    /// Books where the time of every station goes. Call it before anything has happened.
    pub fn keep_ledgers(&mut self) {
        self.dcf.keep_ledgers();
    }

    /// The uses of a station's time until now, if they are booked.
    pub fn airtime(&self, station: u32) -> Option<AirtimeBook> {
        self.dcf.airtime(self.now, station)
    }

    /// Returns whether receivers of aggregates wait for missing packets no longer than a timeout.
    pub fn has_reorder_timeout(&self) -> bool {
        self.dcf.has_reorder_timeout()
    }

    /// The waits of a station's packets before their first frames, where machines know when packets came.
    pub fn waits(&self, station: u32) -> &QueueWaits {
        self.dcf.waits(station)
    }

    /// The load that each rate has carried from a station; nothing at a fixed rate.
    pub fn rate_uses(&self, station: u32) -> &[RateUse] {
        self.dcf.rate_uses(station)
    }

    /// Sets the receiver of frames, and watches them from now on.
    pub fn set_frames(&mut self, sink: FrameSink) {
        self.dcf.watch_frames();
        self.frames = Some(sink);
    }

    /// Stops watching frames, and spends no more work on it.
    pub fn leave_frames(&mut self) {
        self.dcf.leave_frames();
        (self.frames, self.endings) = (None, None);
    }

    pub(super) fn show_frames(&mut self) {
        let Some(sink) = &mut self.frames else { return };
        let (hands, stations) = (&self.hands, &self.stations);
        self.dcf.take_seen(&mut |event| {
            let is_data = event.frame.kind == FrameKind::Data;
            let of_sender = hands.get(event.sender as usize).filter(|_| is_data);
            let mut packets =
                of_sender.into_iter().flat_map(|hands| hands.all(event.frame.number)).peekable();
            let Some(first) = packets.next() else { return sink(event, &[]) };
            if packets.peek().is_none() {
                return sink(&FrameEvent { packet_id: first.id, ..*event }, &first.packet);
            }
            // Each packet of an A-MSDU has a view of its own.
            for held in std::iter::once(first).chain(packets) {
                let bytes = as_u32(stations[event.sender as usize].framing.payload(&held.packet).len());
                let frame = Frame { bytes, ..event.frame };
                sink(&FrameEvent { packet_id: held.id, frame, ..*event }, &held.packet);
            }
        });
        for ending in self.dcf.take_endings() {
            if let Some(sink) = &mut self.endings {
                sink(&ending);
            }
        }
    }
}
