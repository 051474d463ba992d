//! The data that was sent and not yet acknowledged: one entry for each transmitted segment, in sequence order, from
//! `snd_una` to `snd_nxt`.
//!
//! Invariants (checked by [`Scoreboard::check`] in debug builds)
//! - S1: entries are contiguous and none is empty.
//! - S2: `flight`, `lost` and `sacked` count exactly the entries in that state.
//! - S3: no entry before `first_lost` is lost.

use std::collections::VecDeque;
use std::time::Duration;

use crate::agent::Count;
use crate::narrow::as_u32;
use crate::{Instant, Seq};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentState {
    /// Believed to be in the network.
    Flight,
    /// Believed lost, and not retransmitted yet.
    Lost,
    /// Reported by a SACK block.
    Sacked,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SentSegment {
    pub(crate) seq: Seq,
    /// Sequence space: payload bytes, and one for FIN.
    pub(crate) len: u32,
    pub(crate) sent_at: Instant,
    pub(crate) state: SegmentState,
    pub(crate) fin: bool,
    /// The number of retransmissions.
    pub(crate) resent: u8,
}

impl SentSegment {
    fn new(seq: Seq, len: u32, now: Instant) -> SentSegment {
        SentSegment { seq, len, sent_at: now, state: SegmentState::Flight, fin: false, resent: 0 }
    }

    pub(crate) fn end(&self) -> Seq {
        self.seq + self.len
    }

    pub(crate) fn payload_len(&self) -> u32 {
        self.len - u32::from(self.fin)
    }
}

/// An ACK of more segments than this is handled as a whole.
const MANY: usize = 4;

#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Scoreboard {
    segments: VecDeque<SentSegment>,
    flight: Sum,
    lost: Sum,
    sacked: Sum,
    first_lost: u32,
    /// The bytes that were ever marked as lost; the count wraps.
    lost_ever: u32,
}

/// A compact [`Count`]: `snd_una` to `snd_nxt` is less than 2 GiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    segments: u32,
    bytes: u32,
}

impl Scoreboard {
    pub(crate) fn flight(&self) -> Count {
        self.flight.count()
    }

    pub(crate) fn lost(&self) -> Count {
        self.lost.count()
    }

    pub(crate) fn lost_ever(&self) -> u32 {
        self.lost_ever
    }

    pub(crate) fn sacked(&self) -> Count {
        self.sacked.count()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub(crate) fn front(&self) -> Option<&SentSegment> {
        self.segments.front()
    }

    pub(crate) fn back(&self) -> Option<&SentSegment> {
        self.segments.back()
    }

    pub(crate) fn get(&self, index: usize) -> &SentSegment {
        &self.segments[index]
    }

    /// Adds a new segment that left.
    pub(crate) fn push(&mut self, seq: Seq, len: u32, fin: bool, now: Instant) {
        debug_assert!(self.back().is_none_or(|last| last.end() == seq), "S1");
        debug_assert!(len > 0, "S1");
        self.flight.add(len);
        self.segments.push_back(SentSegment { fin, ..SentSegment::new(seq, len, now) });
    }

    /// Adds new segments of the same length that left at once.
    pub(crate) fn push_alike(&mut self, seq: Seq, each: u32, count: u32, now: Instant) {
        debug_assert!(self.back().is_none_or(|last| last.end() == seq), "S1");
        debug_assert!(each > 0 || count == 0, "S1");
        self.flight.segments += count;
        self.flight.bytes += count * each;
        self.segments.extend((0..count).map(|nth| SentSegment::new(seq + nth * each, each, now)));
    }

    /// Takes back the last segment, as if it had never left (a window probe that the peer refused).
    pub(crate) fn unsend_last(&mut self) -> Option<SentSegment> {
        let last = self.segments.pop_back()?;
        self.counter(last.state).take(last.len);
        self.first_lost = self.first_lost.min(as_u32(self.segments.len()));
        Some(last)
    }

    /// Removes everything below `una`, which has arrived.
    pub(crate) fn ack(&mut self, una: Seq, highest_sacked: Option<Seq>, delivered: &mut Delivered) {
        if self.segments.get(MANY).is_some_and(|segment| segment.end() <= una) {
            self.ack_sent_once(una, highest_sacked, delivered);
        }
        while let Some(front) = self.segments.front_mut() {
            if front.end() <= una {
                let segment = *front;
                self.segments.pop_front();
                self.first_lost = self.first_lost.saturating_sub(1);
                self.counter(segment.state).take(segment.len);
                if segment.state != SegmentState::Sacked {
                    add(&mut delivered.acked, segment.len);
                    delivered.covers_resent |= segment.resent > 0;
                    if segment.resent == 0 {
                        // Entries are in the order of sending: the first one is the oldest.
                        delivered.first_acked.get_or_insert(segment.sent_at);
                    }
                    delivered.note(&segment, highest_sacked);
                }
            } else {
                let partial = una.bytes_since(front.seq);
                if partial > 0 {
                    front.seq += partial;
                    front.len -= partial;
                    let state = front.state;
                    self.counter(state).bytes -= partial;
                    delivered.acked.bytes += u64::from(partial);
                }
                break;
            }
        }
    }

    /// Removes the segments at the front that were sent once and not SACKed, the usual case. They are in the order of
    /// numbers and of time, so the first and the last give all that each would.
    fn ack_sent_once(&mut self, una: Seq, highest_sacked: Option<Seq>, delivered: &mut Delivered) {
        let is_one = |segment: &&SentSegment| {
            segment.end() <= una && segment.resent == 0 && segment.state == SegmentState::Flight
        };
        let count = self.segments.iter().take_while(is_one).count();
        let Some(last) = count.checked_sub(1).map(|last| self.segments[last]) else { return };
        let first = self.segments[0];
        let of_all = Sum { segments: as_u32(count), bytes: last.end().bytes_since(first.seq) };
        self.segments.drain(..count);
        self.first_lost = self.first_lost.saturating_sub(as_u32(count));
        self.flight.segments -= of_all.segments;
        self.flight.bytes -= of_all.bytes;
        delivered.acked.segments += of_all.segments;
        delivered.acked.bytes += u64::from(of_all.bytes);
        delivered.first_acked.get_or_insert(first.sent_at);
        delivered.note(&first, highest_sacked);
        delivered.note(&last, highest_sacked);
    }

    /// Takes a SACK block: the whole segments in it arrived. A segment that it cuts stays unmarked, since only whole
    /// segments are retransmitted.
    pub(crate) fn sack(&mut self, left: Seq, right: Seq, highest: Option<Seq>, delivered: &mut Delivered) {
        let from = self.segments.partition_point(|segment| segment.seq < left);
        for index in from..self.segments.len() {
            let segment = self.segments[index];
            if segment.end() > right {
                break;
            }
            if segment.state != SegmentState::Sacked {
                delivered.note(&segment, highest);
                add(&mut delivered.sacked, segment.len);
                self.set_state(index, SegmentState::Sacked);
            }
        }
    }

    fn set_state(&mut self, index: usize, state: SegmentState) {
        let segment = &mut self.segments[index];
        let (len, old) = (segment.len, segment.state);
        segment.state = state;
        self.counter(old).take(len);
        self.counter(state).add(len);
        if state == SegmentState::Lost {
            self.lost_ever = self.lost_ever.wrapping_add(len);
            self.first_lost = self.first_lost.min(as_u32(index));
        }
    }

    /// Marks all segments in flight as lost, after a timeout.
    pub(crate) fn mark_all_lost(&mut self) {
        self.turn_all(SegmentState::Flight, SegmentState::Lost, |_| true);
    }

    /// Marks the segments as lost that are too large for the path.
    pub(crate) fn mark_larger_lost(&mut self, mss: u32) {
        self.turn_all(SegmentState::Flight, SegmentState::Lost, |segment| segment.payload_len() > mss);
    }

    /// Unmarks SACKed segments after the peer has discarded them (RFC 2018 §8 allows it).
    pub(crate) fn forget_sacks(&mut self) {
        self.turn_all(SegmentState::Sacked, SegmentState::Flight, |_| true);
    }

    /// Unmarks lost segments that were not retransmitted: nothing was lost, so they are in flight.
    pub(crate) fn unmark_lost(&mut self) {
        self.turn_all(SegmentState::Lost, SegmentState::Flight, |_| true);
        self.first_lost = as_u32(self.segments.len());
    }

    /// Gives each segment of one state that is meant another state.
    fn turn_all(&mut self, from: SegmentState, to: SegmentState, is_meant: impl Fn(&SentSegment) -> bool) {
        for index in 0..self.segments.len() {
            let segment = &self.segments[index];
            if segment.state == from && is_meant(segment) {
                self.set_state(index, to);
            }
        }
    }

    fn counter(&mut self, state: SegmentState) -> &mut Sum {
        match state {
            SegmentState::Flight => &mut self.flight,
            SegmentState::Lost => &mut self.lost,
            SegmentState::Sacked => &mut self.sacked,
        }
    }

    /// Marks the first undelivered segment as lost (NewReno). Returns whether that is news.
    pub(crate) fn mark_first_lost(&mut self) -> bool {
        match self.segments.iter().position(|segment| segment.state != SegmentState::Sacked) {
            Some(index) if self.segments[index].state == SegmentState::Flight => {
                self.set_state(index, SegmentState::Lost);
                true
            }
            _ => false,
        }
    }

    /// RFC 6675 `IsLost`: marks a segment with enough SACKed data above it. Enough is `dup_threshold` segments, or more
    /// bytes than `dup_threshold - 1` full ones. Returns whether a new loss was found.
    pub(crate) fn mark_lost_by_sack(&mut self, dup_threshold: u8, mss: u32) -> bool {
        let (mut segments_above, mut bytes_above, mut found) = (0u32, 0u32, false);
        let byte_threshold = u32::from(dup_threshold).saturating_sub(1) * mss;
        for index in (0..self.segments.len()).rev() {
            let segment = self.segments[index];
            match segment.state {
                SegmentState::Sacked => {
                    segments_above += 1;
                    bytes_above = bytes_above.saturating_add(segment.len);
                }
                // A retransmitted segment is judged by the timer: its first copy may have caused these SACKs.
                SegmentState::Flight if segment.resent == 0 => {
                    if segments_above >= u32::from(dup_threshold) || bytes_above > byte_threshold {
                        self.set_state(index, SegmentState::Lost);
                        found = true;
                    }
                }
                SegmentState::Flight | SegmentState::Lost => {}
            }
        }
        found
    }

    /// Returns whether `newest` can show a loss. Usually it cannot: the first segment was sent after it.
    pub(crate) fn may_show_loss(&self, newest: &Newest) -> bool {
        self.front().is_some_and(|front| front.resent > 0 || newest.tells_of(front))
    }

    /// RFC 8985 §6.2 step 5: a segment sent by at least `window` before the newest delivered one is lost. Returns
    /// whether one was found, and the time until the next must be judged again.
    pub(crate) fn mark_lost_by_time(
        &mut self,
        now: Instant,
        newest: &Newest,
        rtt_and_window: Duration,
    ) -> (bool, Option<Duration>) {
        let (mut found, mut wait) = (false, None::<Duration>);
        for index in 0..self.segments.len() {
            let segment = self.segments[index];
            if !newest.tells_of(&segment) {
                if segment.resent == 0 {
                    break; // Entries sent once are in order of time: all that follow are younger.
                }
                continue;
            }
            if segment.state != SegmentState::Flight {
                continue;
            }
            let due = segment.sent_at + rtt_and_window;
            if due <= now {
                self.set_state(index, SegmentState::Lost);
                found = true;
            } else {
                let remaining = due.since(now);
                wait = Some(wait.map_or(remaining, |longest| longest.max(remaining)));
            }
        }
        (found, wait)
    }

    /// The first lost segment that reaches above `floor`.
    pub(crate) fn next_lost(&self, floor: Seq) -> Option<usize> {
        if self.lost.segments == 0 {
            return None;
        }
        (self.first_lost as usize..self.segments.len()).find(|index| {
            self.segments[*index].state == SegmentState::Lost && self.segments[*index].end() > floor
        })
    }

    /// The first segment that begins at or above `floor`; if there is none, the last one below it.
    pub(crate) fn at_or_before(&self, floor: Seq) -> Option<usize> {
        if self.segments.is_empty() {
            return None;
        }
        let index = self.segments.partition_point(|segment| segment.seq < floor);
        Some(index.min(self.segments.len() - 1))
    }

    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    /// Marks the segment as retransmitted.
    pub(crate) fn resent(&mut self, index: usize, now: Instant) {
        self.set_state(index, SegmentState::Flight);
        let segment = &mut self.segments[index];
        segment.sent_at = now;
        segment.resent = segment.resent.saturating_add(1);
        if index == self.first_lost as usize {
            let next = (index..self.segments.len()).find(|i| self.segments[*i].state == SegmentState::Lost);
            self.first_lost = as_u32(next.unwrap_or(self.segments.len()));
        }
    }

    /// Splits a segment after the packet size shrank; the first part has `first_len` bytes.
    pub(crate) fn split(&mut self, index: usize, first_len: u32) {
        let segment = self.segments[index];
        assert!(first_len > 0 && first_len < segment.len, "S1: a split leaves two pieces");
        let rest = SentSegment { seq: segment.seq + first_len, len: segment.len - first_len, ..segment };
        self.segments[index].len = first_len;
        self.segments[index].fin = false;
        self.segments.insert(index + 1, rest);
        self.counter(segment.state).segments += 1;
        if self.first_lost as usize > index {
            self.first_lost += 1;
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Scoreboard { lost_ever: self.lost_ever, ..Scoreboard::default() };
    }

    /// Frees the heap while nothing is in flight.
    pub(crate) fn relax(&mut self) {
        if self.segments.is_empty() {
            self.segments = VecDeque::new();
        }
    }

    pub(crate) fn allocated(&self) -> usize {
        self.segments.capacity() * size_of::<SentSegment>()
    }

    #[cfg(any(test, debug_assertions))]
    pub(crate) fn check(&self) {
        let (mut flight, mut lost, mut sacked) = (Sum::default(), Sum::default(), Sum::default());
        for (index, segment) in self.segments.iter().enumerate() {
            assert!(segment.len > 0, "S1");
            if let Some(next) = self.segments.get(index + 1) {
                assert_eq!(segment.end(), next.seq, "S1");
            }
            match segment.state {
                SegmentState::Flight => flight.add(segment.len),
                SegmentState::Lost => {
                    assert!(index >= self.first_lost as usize, "S3");
                    lost.add(segment.len);
                }
                SegmentState::Sacked => sacked.add(segment.len),
            }
        }
        assert_eq!((flight, lost, sacked), (self.flight, self.lost, self.sacked), "S2");
    }
}

fn add(count: &mut Count, len: u32) {
    count.segments += 1;
    count.bytes += u64::from(len);
}

impl Sum {
    fn add(&mut self, len: u32) {
        self.segments += 1;
        self.bytes += len;
    }

    fn take(&mut self, len: u32) {
        self.segments -= 1;
        self.bytes -= len;
    }

    fn count(self) -> Count {
        Count { segments: self.segments, bytes: self.bytes.into() }
    }
}

#[cfg(test)]
mod tests;

// The segments that an ACK delivered, as the scoreboard reports them.

/// The segments that an ACK delivered, cumulatively or by SACK. Only segments that were sent once give an RTT (Karn).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivered {
    pub(crate) acked: Count,
    pub(crate) sacked: Count,
    /// Sent times of the first acknowledged and the last delivered segment that were never retransmitted.
    pub(crate) first_acked: Option<Instant>,
    pub(crate) last_sent: Option<Instant>,
    /// A retransmitted segment is acknowledged; the others may have waited for it for an unknown time.
    pub(crate) covers_resent: bool,
    /// The most recently sent segment of all delivered (RFC 8985: `RACK.segment`).
    pub(crate) newest: Option<Newest>,
    /// A segment that was never retransmitted arrived after a higher one: the network reordered.
    pub(crate) reordered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Newest {
    pub(crate) sent_at: Instant,
    pub(crate) end: Seq,
    pub(crate) was_resent: bool,
}

impl Newest {
    /// RFC 8985 `RACK_sent_after`: later, or at the same instant and higher.
    pub(crate) fn is_after(&self, sent_at: Instant, end: Seq) -> bool {
        self.sent_at > sent_at || (self.sent_at == sent_at && end < self.end)
    }

    /// Returns whether this arrival is evidence about `segment`. It is not if the segment was retransmitted at the same
    /// instant: the two may have left in either order.
    fn tells_of(&self, segment: &SentSegment) -> bool {
        let is_tie = self.sent_at == segment.sent_at && segment.resent > 0 && !self.was_resent;
        !is_tie && self.is_after(segment.sent_at, segment.end())
    }
}

impl Delivered {
    pub(crate) fn bytes(&self) -> u64 {
        self.acked.bytes + self.sacked.bytes
    }

    fn note(&mut self, segment: &SentSegment, highest_delivered: Option<Seq>) {
        if segment.resent == 0 {
            self.last_sent = Some(self.last_sent.map_or(segment.sent_at, |at| at.max(segment.sent_at)));
            self.reordered |= highest_delivered.is_some_and(|high| segment.end() < high);
        }
        if self.newest.is_none_or(|newest| !newest.is_after(segment.sent_at, segment.end())) {
            self.newest =
                Some(Newest { sent_at: segment.sent_at, end: segment.end(), was_resent: segment.resent > 0 });
        }
    }
}
