//! One direction of a path, and what it does to packets.

use std::collections::VecDeque;
use std::time::Duration;

use hopwise_core::Instant;

use super::Random;

/// Chances are in packets per million.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathConfig {
    pub delay: Duration,
    /// Each packet takes up to this much longer, without overtaking others.
    pub jitter: Duration,
    /// 0: no limit.
    pub bits_per_second: u64,
    /// Packets that may wait for a limited path.
    pub queue_packets: u32,
    pub loss_ppm: u32,
    pub duplicate_ppm: u32,
    /// Such a packet takes `reorder_by` longer and may be overtaken.
    pub reorder_ppm: u32,
    pub reorder_by: Duration,
    /// One bit is flipped.
    pub corrupt_ppm: u32,
    /// Instead of dropping, mark packets that wait behind this many others (needs ECT in the IP header).
    pub mark_behind: Option<u32>,
    pub is_down: bool,
    /// Larger packets go no further.
    pub mtu: u16,
    pub bundles: Bundles,
    pub hop: Hop,
}

/// What becomes of several segments in one packet (`Transmit::segment_bytes`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bundles {
    /// They are cut where the path begins, and each segment has a fate of its own.
    Cut,
    /// They arrive, or are lost, as one; the MTU goes for the segments in them.
    Carry,
}

/// What stands where the path is narrow or broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// What cannot go on vanishes without a word.
    Silent,
    /// A router: it cuts IPv4 packets that may be cut, and tells the sender of what is too large or meets an outage.
    Router,
}

impl PathConfig {
    /// Nothing happens to packets but the delay.
    pub fn clean(delay: Duration) -> PathConfig {
        PathConfig {
            delay,
            jitter: Duration::ZERO,
            bits_per_second: 0,
            queue_packets: 50,
            loss_ppm: 0,
            duplicate_ppm: 0,
            reorder_ppm: 0,
            reorder_by: Duration::ZERO,
            corrupt_ppm: 0,
            mark_behind: None,
            is_down: false,
            mtu: u16::MAX,
            bundles: Bundles::Cut,
            hop: Hop::Silent,
        }
    }
}

/// What became of a packet.
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
    random: Random,
    /// When each packet that waits for a limited path, or is being sent, will have left.
    departures: VecDeque<Instant>,
    /// The latest arrival of a packet that was not reordered.
    latest: Instant,
}

impl Direction {
    pub(super) fn new(config: PathConfig, random: Random) -> Direction {
        Direction { config, lost: 0, random, departures: VecDeque::new(), latest: Instant::ZERO }
    }

    /// Every chance is drawn for every packet, so that changing one does not move the others. `size` is what the MTU
    /// goes for.
    pub(super) fn decide(&mut self, now: Instant, packet: &mut [u8], size: usize) -> Fate {
        let config = self.config;
        let is_lost = self.random.per_million(config.loss_ppm);
        let is_twice = self.random.per_million(config.duplicate_ppm);
        let is_late = self.random.per_million(config.reorder_ppm);
        let is_spoilt = self.random.per_million(config.corrupt_ppm);
        let (jitter, which_bit) = (self.random.next_u64(), self.random.next_u64());
        if let Some(lost_to) = self.refuses(now, packet, size, is_lost) {
            self.lost += 1;
            return Fate::Lost(lost_to);
        }
        let sent_at = self.serialise(now, packet);
        if is_spoilt && !packet.is_empty() {
            let bit = (which_bit % (packet.len() as u64 * 8)) as usize;
            packet[bit / 8] ^= 1 << (bit % 8);
        }
        let spread = config.jitter.as_nanos() as u64;
        let jitter = Duration::from_nanos(if spread == 0 { 0 } else { jitter % spread });
        let mut at = (sent_at + config.delay + jitter).max(self.latest);
        if is_late {
            at += config.reorder_by;
        } else {
            self.latest = at;
        }
        Fate::Arrives { at, again: is_twice.then(|| at + config.delay / 8) }
    }

    fn refuses(&mut self, now: Instant, packet: &mut [u8], size: usize, is_lost: bool) -> Option<LostTo> {
        let config = self.config;
        if config.is_down {
            return Some(LostTo::Outage);
        }
        if size > usize::from(config.mtu) {
            return Some(LostTo::Size);
        }
        if is_lost {
            return Some(LostTo::Chance);
        }
        while self.departures.front().is_some_and(|left| *left <= now) {
            self.departures.pop_front();
        }
        // One of them is being sent; the others wait.
        let waiting = self.departures.len().saturating_sub(1);
        if !self.departures.is_empty() && waiting >= config.queue_packets as usize {
            return Some(LostTo::Queue);
        }
        if config.mark_behind.is_some_and(|most| waiting > most as usize) {
            mark(packet);
        }
        None
    }

    fn serialise(&mut self, now: Instant, packet: &[u8]) -> Instant {
        if self.config.bits_per_second == 0 {
            return now;
        }
        let free_at = self.departures.back().map_or(now, |last| now.max(*last));
        let left = free_at + transmission(packet.len(), self.config.bits_per_second);
        self.departures.push_back(left);
        left
    }
}

fn transmission(len: usize, bits_per_second: u64) -> Duration {
    Duration::from_nanos((len as u64 * 8).saturating_mul(1_000_000_000) / bits_per_second)
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
