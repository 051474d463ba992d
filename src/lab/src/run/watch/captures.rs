//! Captures of radios: each frame that a station sends or decodes, one file for each station.
//!
//! A frame that needs an answer waits until its sender knows its outcome. One with a packet for an endpoint waits until
//! the endpoint has processed it. Later frames wait behind both, so that the file stays in order.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::time::Duration;

use hopwise_air::dcf::{EVERYONE, FrameKind};
use hopwise_air::frames::{FrameEffect, FrameEnding, FrameEvent, Framing, Mac};
use hopwise_air::radiotap::Monitor;
use hopwise_core::{Instant, StationAddress};
use hopwise_host::Comment;
use hopwise_host::{ArrivalFrames, Direction, finish_checksum};
use hopwise_lab::scenario::Prepared;
use hopwise_mesh::behind_routing;
use pcap_file::DataLink;

use super::Epoch;
use super::pcapng::{PcapngFile, PcapngInterface};
use super::words;

/// The largest number of reasons for packets that left an endpoint and may still go on the air; the oldest give way.
const MOST_REASONS: usize = 4096;
/// A packet reaches its endpoint at the end of its frame, plus the propagation time.
const AT_ONCE: Duration = Duration::from_micros(10);

pub(super) struct WatchCaptures {
    monitor: Monitor,
    framing: Framing,
    epoch: Epoch,
    names: Vec<String>,
    stations: Vec<WatchedStation>,
    /// A packet whose checksum is being completed.
    scratch: Vec<u8>,
}

struct WatchedStation {
    file: PcapngFile,
    waiting: VecDeque<WaitingFrame>,
    /// Frames that are in the file or wait for it.
    frames: u64,
    /// The frame numbers of the endpoint's arrivals, once it has processed them.
    taken: ArrivalFrames,
    /// The reasons why packets left, by their ids.
    reasons: BTreeMap<u64, String>,
}

struct WaitingFrame {
    at: Duration,
    direction: Direction,
    bytes: Vec<u8>,
    /// The trace's text; the MAC's text follows it.
    reason: String,
    words: String,
    to: u32,
    /// Its sender does not know its outcome yet.
    is_open: bool,
    /// The time at which a packet for this station's endpoint was complete.
    came: Option<Instant>,
}

impl WatchCaptures {
    pub(super) fn create(
        (prepared, framing): (&Prepared, Framing),
        epoch: Epoch,
        folder: &Path,
    ) -> io::Result<WatchCaptures> {
        let plan = &prepared.plan;
        let stations =
            prepared.names.iter().zip(0..).map(|(name, n)| WatchedStation::create(folder, name, plan.mac(n)));
        Ok(WatchCaptures {
            monitor: Monitor::new(&plan.phy, &plan.radio, plan.macs.clone()),
            framing,
            epoch,
            names: prepared.names.clone(),
            stations: stations.collect::<io::Result<_>>()?,
            scratch: Vec::new(),
        })
    }

    pub(super) fn on_frame(&mut self, event: &FrameEvent, packet: &[u8]) -> io::Result<()> {
        let Some(station) = self.stations.get_mut(event.station as usize) else { return Ok(()) };
        self.scratch.clear();
        self.scratch.extend_from_slice(packet);
        if self.framing == Framing::Packet {
            finish_checksum(&mut self.scratch, behind_routing);
        }
        let mut bytes = Vec::new();
        if !self.monitor.write(event, self.framing, &self.scratch, &mut bytes) {
            return Ok(());
        }
        station.write_complete()?;
        let (frame, is_sent) = (&event.frame, event.sees == FrameEffect::Sends);
        // A CTS of the station to itself has no answer.
        let is_answered = frame.access.is_some() && frame.to != EVERYONE && frame.kind != FrameKind::Cts;
        let is_for_it = frame.to == event.station || frame.to == EVERYONE;
        let is_packet = frame.kind == FrameKind::Data;
        let reason = station.reasons.get(&event.packet_id).filter(|_| is_sent && is_packet);
        station.frames += 1;
        station.waiting.push_back(WaitingFrame {
            at: self.epoch.at(event.from_ns),
            direction: if is_sent { Direction::Out } else { Direction::In },
            bytes,
            reason: reason.cloned().unwrap_or_default(),
            words: words::of_frame(&self.names, frame),
            to: frame.to,
            is_open: is_sent && is_answered,
            came: (!is_sent && is_packet && is_for_it).then_some(Instant(event.until_ns)),
        });
        Ok(())
    }

    pub(super) fn on_ending(&mut self, ending: &FrameEnding) {
        let Some(station) = self.stations.get_mut(ending.station as usize) else { return };
        if let Some(record) = station.waiting.iter_mut().rev().find(|record| record.is_open) {
            record.is_open = false;
            words::add_ending(&self.names, record.to, ending, &mut record.words);
        }
    }

    /// Notes the reason why a packet leaves a node's endpoint.
    pub(super) fn on_reason(&mut self, node: u32, id: u64, reason: &Comment) {
        let Some(station) = self.stations.get_mut(node as usize) else { return };
        if station.reasons.len() == MOST_REASONS {
            station.reasons.pop_first();
        }
        let text = reason.with_frames(|packet| station.taken.of(0, packet));
        station.reasons.insert(id, text);
    }

    /// Notes what a node's endpoint did with the packet of that number, which it got just now.
    pub(super) fn on_taken(&mut self, node: u32, now: Instant, id: u64, what: &Comment) {
        let Some(station) = self.stations.get_mut(node as usize) else { return };
        let newest = station.waiting.back_mut();
        if let Some(record) =
            newest.filter(|record| record.came.is_some_and(|came| now.since(came) < AT_ONCE))
        {
            record.reason = what.with_frames(|packet| station.taken.of(0, packet));
            station.taken.note(0, id, station.frames);
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.stations.iter_mut().try_for_each(|station| {
            station.waiting.iter_mut().for_each(|record| record.is_open = false);
            station.write_complete()?;
            station.file.flush()
        })
    }
}

impl WatchedStation {
    fn create(folder: &Path, name: &str, mac: Mac) -> io::Result<WatchedStation> {
        let description = format!("the radio of {name}, {}", StationAddress(mac));
        let link = DataLink::IEEE802_11_RADIOTAP;
        let interface = PcapngInterface { name, description: &description, link };
        let file = PcapngFile::create(&folder.join(format!("{name}.pcapng")), interface)?;
        let (waiting, reasons) = (VecDeque::new(), BTreeMap::new());
        Ok(WatchedStation { file, waiting, frames: 0, taken: ArrivalFrames::default(), reasons })
    }

    fn write_complete(&mut self) -> io::Result<()> {
        while self.waiting.front().is_some_and(|record| !record.is_open) {
            let Some(WaitingFrame { at, direction, bytes, reason, words, .. }) = self.waiting.pop_front()
            else {
                break;
            };
            self.file.push(at, direction, &bytes, &[&reason, &words])?;
        }
        Ok(())
    }
}
