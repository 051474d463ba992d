//! One direction of a path, and its effects on packets.

use std::collections::VecDeque;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::impairment::{Impairer, Impairment, Loss, Passage, turn_over};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathConfig {
    /// Losses, delays and the rate. Its queue holds the packets that wait for the rate.
    pub impairment: Impairment,
    /// If set, packets that wait behind this many packets are marked, not dropped (needs ECT in the IP header).
    pub mark_behind: Option<u32>,
    pub is_down: bool,
    /// The largest packet that goes further.
    pub mtu: u16,
    pub bundles: Bundles,
    pub hop: Hop,
}

/// The treatment of several segments in one packet (`Transmit::segment_bytes`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bundles {
    /// Bundles are cut where the path begins, and each segment has a fate of its own.
    Cut,
    /// Bundles arrive, or are lost, as one; the MTU holds for the segments in them.
    Carry,
}

/// The node at a narrow or broken place of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// Packets that cannot go on vanish silently.
    Silent,
    /// A router: it fragments IPv4 packets if allowed. It sends an ICMP error for packets that are too large or meet an
    /// outage.
    Router,
}

impl PathConfig {
    /// A path that delays packets and changes nothing else.
    pub fn clean(delay: Duration) -> PathConfig {
        PathConfig {
            impairment: Impairment {
                delay,
                duplicate_after: delay / 8,
                queue_packets: 50,
                ..Impairment::NONE
            },
            mark_behind: None,
            is_down: false,
            mtu: u16::MAX,
            bundles: Bundles::Cut,
            hop: Hop::Silent,
        }
    }

    /// The same path with another impairment.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Impairment)) -> PathConfig {
        change(&mut self.impairment);
        self
    }
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Arrives { at: Instant, again: Option<Instant> },
    Lost(LostTo),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostTo {
    Chance,
    Queue,
    Outage,
    Size,
}

#[derive(Debug)]
pub(super) struct Direction {
    pub(super) config: PathConfig,
    pub(super) lost: u64,
    impairer: Impairer,
    /// The departures of all packets that wait for a limited path or are being sent.
    departures: VecDeque<Instant>,
}

impl Direction {
    pub(super) fn new(config: PathConfig, seed: u64) -> Direction {
        Direction { config, lost: 0, impairer: Impairer::new(seed), departures: VecDeque::new() }
    }

    /// Decides a packet's fate; `size` is compared with the MTU.
    pub(super) fn decide(&mut self, now: Instant, packet: &mut [u8], size: usize) -> Fate {
        match self.pass(now, packet, size) {
            Ok(Passage { at, again, .. }) => Fate::Arrives { at, again },
            Err(lost_to) => {
                self.lost += 1;
                Fate::Lost(lost_to)
            }
        }
    }

    fn pass(&mut self, now: Instant, packet: &mut [u8], size: usize) -> Result<Passage, LostTo> {
        let PathConfig { impairment, mark_behind, is_down, mtu, .. } = &self.config;
        if *is_down {
            return Err(LostTo::Outage);
        }
        if size > usize::from(*mtu) {
            return Err(LostTo::Size);
        }
        while self.departures.front().is_some_and(|left| *left <= now) {
            self.departures.pop_front();
        }
        // One of them is being sent; the rest wait.
        let waiting = self.departures.len().saturating_sub(1);
        let passage =
            self.impairer.decide(impairment, now, packet.len(), waiting).map_err(|loss| match loss {
                Loss::Chance => LostTo::Chance,
                Loss::Queue => LostTo::Queue,
            })?;
        if mark_behind.is_some_and(|most| waiting > most as usize) {
            mark(packet);
        }
        if let Some(bit) = passage.spoils {
            turn_over(packet, bit);
        }
        if impairment.bits_per_second > 0 {
            self.departures.push_back(passage.left);
        }
        Ok(passage)
    }
}

/// Turns ECT into CE (RFC 3168 §5); IPv4's header checksum follows.
fn mark(packet: &mut [u8]) {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet[1] & 3 != 0 && packet[1] & 3 != 3 => {
            let old = u16::from_be_bytes([packet[0], packet[1]]);
            packet[1] |= 3;
            let new = u16::from_be_bytes([packet[0], packet[1]]);
            let sum = u16::from_be_bytes([packet[10], packet[11]]);
            // RFC 1624: HC' = ~(~HC + ~m + m').
            let mut folded = u32::from(!sum) + u32::from(!old) + u32::from(new);
            while folded > 0xffff {
                folded = (folded & 0xffff) + (folded >> 16);
            }
            packet[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
        }
        Some(6) if packet[1] & 0x30 != 0 && packet[1] & 0x30 != 0x30 => packet[1] |= 0x30,
        _ => {}
    }
}
