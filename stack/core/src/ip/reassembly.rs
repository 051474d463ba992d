//! Reassembly of fragments in bounded memory (RFC 791 §3.2, RFC 815, RFC 8200 §4.5).
//!
//! A datagram with overlapping fragments is dropped whole (RFC 5722). RFC 791 would let the later fragment win in IPv4.
//! No honest sender depends on that, and it is used to fool filters, so IPv4 gets the same rule. An exact copy of a
//! fragment is no overlap: networks duplicate packets.

use std::net::IpAddr;
use std::time::Duration;

use crate::Instant;
use crate::ip::{Share, Shares, Source};
use crate::trace::DropReason;

/// A datagram of 65,515 bytes over the least MTU of IPv4 hosts (576) comes in 119 fragments.
const MAX_FRAGMENTS: usize = 128;
/// The cost of a fragment besides its bytes: its entry, the list's spare room, the allocator's header. Without it, a
/// flood of eight-byte fragments would be nearly free.
const FRAGMENT_OVERHEAD_BYTES: usize = 64;
/// An ICMPv6 error of at most 1,280 bytes has room for this much of the quoted packet (RFC 4443 §2.4 c).
const MAX_QUOTE_BYTES: usize = 1232;

/// The common fields of a datagram's fragments (RFC 791 §3.2, RFC 8200 §4.5).
///
/// In IPv6 `protocol` is the fragment header's Next Header. Fragments with different values stay apart and time out, so
/// that the protocol of a whole datagram is certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FragmentKey {
    /// The sender. Each [`Source`](super::Source) has a share of the memory.
    pub src: IpAddr,
    /// Its family sets the longest payload: 65,515 bytes in IPv4, 65,535 in IPv6.
    pub dst: IpAddr,
    /// The protocol field in IPv4.
    pub protocol: u8,
    /// The identification: 16 bits in IPv4, 32 in IPv6.
    pub id: u32,
}

/// The limits of waiting fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Incomplete datagrams at a time.
    pub datagrams: usize,
    /// Bytes of all incomplete datagrams.
    pub bytes: usize,
    /// Time since the fragment that came first (RFC 8200 §4.5, RFC 1122 §3.3.2).
    pub timeout: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { datagrams: 256, bytes: 1 << 20, timeout: Duration::from_secs(60) }
    }
}

/// Incomplete datagrams, oldest first.
///
/// 1. `partials` is in the order of `deadline`, for `now` never decreases and the timeout is one value.
/// 2. The fragments of a datagram do not overlap. It is thus complete when their lengths add up to its end.
/// 3. `held_bytes` is the cost of all partials, and at most `limits.bytes`.
/// 4. `shares` counts the partials of each source, and their cost.
#[derive(Debug)]
pub struct Reassembler {
    limits: Limits,
    partials: Vec<Partial>,
    held_bytes: usize,
    shares: Shares,
    gave_way: u32,
}

impl Reassembler {
    /// With room for 0 datagrams it takes only fragments that are whole datagrams (RFC 6946).
    pub fn new(limits: Limits) -> Reassembler {
        Reassembler { limits, partials: Vec::new(), held_bytes: 0, shares: Shares::default(), gave_way: 0 }
    }

    /// Takes a fragment whose payload begins at `offset` bytes (not eight-byte units) of its datagram. Returns the
    /// datagram's payload once it is complete. `quote` is the part for an ICMP error; it is kept from the first
    /// fragment only.
    ///
    /// If there is no room, the [`Source`](super::Source) that holds the most loses its oldest other datagram, and
    /// `take_gave_way` counts it. A flood from one source thus costs no other source a datagram.
    pub fn insert(
        &mut self,
        now: Instant,
        key: FragmentKey,
        offset: u16,
        more: bool,
        payload: &[u8],
        quote: &[u8],
    ) -> Result<Option<Vec<u8>>, DropReason> {
        let piece = Span::check(key, offset, more, payload.len())?;
        if piece.is_atomic() {
            // A whole datagram must not meet fragments with the same identification (RFC 6946 §4).
            return Ok(Some(payload.to_vec()));
        }
        let index = self.find_or_open(now, key)?;
        let partial = &mut self.partials[index];
        if now >= partial.deadline {
            return Err(DropReason::FragmentTimeout);
        }
        match partial.fit(piece, payload) {
            Fit::Copy => return Ok(None),
            Fit::Conflict => {
                let freed = partial.spoil();
                self.release(key.src, freed);
                return Err(DropReason::FragmentInvalid);
            }
            Fit::New => {}
        }
        let quote: &[u8] = if offset == 0 { &quote[..quote.len().min(MAX_QUOTE_BYTES)] } else { &[] };
        let index = self.make_room(index, payload.len() + quote.len() + FRAGMENT_OVERHEAD_BYTES)?;
        let cost = self.partials[index].add(piece, payload, quote);
        self.held_bytes += cost;
        self.shares.change(key.src, Share::default(), Share { count: 0, bytes: cost });
        assert!(self.held_bytes <= self.limits.bytes, "invariant 3");
        if !self.partials[index].is_complete() {
            return Ok(None);
        }
        let whole = self.remove(index);
        Ok(Some(whole.join()))
    }

    /// The time of the next call of [`expire`](Self::expire).
    pub fn next_deadline(&self) -> Option<Instant> {
        self.partials.first().map(|partial| partial.deadline)
    }

    /// Drops datagrams that have waited too long. The sink gets each key and, if the first fragment came, its quote. A
    /// Time Exceeded needs the quote (RFC 792, RFC 8200 §4.5). Datagrams dropped for an overlap were reported at that
    /// time, and leave silently.
    pub fn expire(&mut self, now: Instant, sink: &mut dyn FnMut(FragmentKey, Option<&[u8]>)) {
        while self.partials.first().is_some_and(|oldest| oldest.deadline <= now) {
            let partial = self.remove(0);
            if partial.health == Health::Collecting {
                sink(partial.key, partial.quote.as_deref());
            }
        }
    }

    /// The number of datagrams that gave way to newer ones since the last call. Each counts as one
    /// [`FragmentsFull`](DropReason::FragmentsFull).
    pub(crate) fn take_gave_way(&mut self) -> u32 {
        std::mem::take(&mut self.gave_way)
    }

    /// The bytes of all incomplete datagrams, with the overhead of each fragment.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Incomplete datagrams, including dropped ones that are remembered until their timeout.
    pub fn datagrams(&self) -> usize {
        self.partials.len()
    }

    fn find_or_open(&mut self, now: Instant, key: FragmentKey) -> Result<usize, DropReason> {
        if let Some(index) = self.partials.iter().position(|partial| partial.key == key) {
            return Ok(index);
        }
        if self.limits.datagrams == 0 {
            return Err(DropReason::FragmentsFull);
        }
        while self.partials.len() >= self.limits.datagrams {
            let all = 0..self.partials.len();
            self.give_way(self.of_the_greediest(all, key.src, |share| share.count, 1));
        }
        self.partials.push(Partial::new(key, now + self.limits.timeout));
        self.shares.change(key.src, Share::default(), Share { count: 1, bytes: 0 });
        Ok(self.partials.len() - 1)
    }

    /// The datagram that gives way: first by the source that holds the most, then by its address that holds the most,
    /// then the oldest. `src` counts with `more` added.
    fn of_the_greediest(
        &self,
        these: impl DoubleEndedIterator<Item = usize>,
        src: IpAddr,
        held: impl Fn(&Share) -> usize,
        more: usize,
    ) -> usize {
        // The source of `src` is about to hold more.
        let weight = |&index: &usize| {
            let of = self.partials[index].key.src;
            let is_same = [Source::of(of) == Source::of(src), of == src];
            let [source, address] = self.shares.of(of).map(|share| held(&share));
            (source + more * usize::from(is_same[0]), address + more * usize::from(is_same[1]))
        };
        // `max_by_key` takes the last of equal ones.
        these.rev().max_by_key(weight).expect("there is one that may give way")
    }

    /// Frees `cost` bytes by dropping others; returns the new index of the datagram at `index`. A datagram too large
    /// for the limit is dropped itself.
    fn make_room(&mut self, mut index: usize, cost: usize) -> Result<usize, DropReason> {
        if self.partials[index].cost_bytes + cost > self.limits.bytes {
            self.remove(index);
            return Err(DropReason::FragmentsFull);
        }
        while self.held_bytes + cost > self.limits.bytes {
            // A spoiled datagram holds no bytes, and without its entry the overlap would pass. This datagram fits
            // alone, so others hold the excess.
            let others = (0..self.partials.len())
                .filter(|&other| other != index && self.partials[other].cost_bytes > 0);
            let src = self.partials[index].key.src;
            let oldest = self.of_the_greediest(others, src, |share| share.bytes, cost);
            self.give_way(oldest);
            index -= usize::from(oldest < index);
        }
        Ok(index)
    }

    fn give_way(&mut self, index: usize) {
        let partial = self.remove(index);
        if partial.health == Health::Collecting {
            self.gave_way = self.gave_way.saturating_add(1);
        }
    }

    fn remove(&mut self, index: usize) -> Partial {
        let partial = self.partials.remove(index);
        self.held_bytes -= partial.cost_bytes;
        let share = Share { count: 1, bytes: partial.cost_bytes };
        self.shares.change(partial.key.src, share, Share::default());
        partial
    }

    fn release(&mut self, src: IpAddr, bytes: usize) {
        self.held_bytes -= bytes;
        self.shares.change(src, Share { count: 0, bytes }, Share::default());
    }
}

/// The place of a fragment's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: u32,
    end: u32,
    more: bool,
}

impl Span {
    /// Rejects fragments that no sender makes under RFC 791 §3.2 or RFC 8200 §4.5.
    fn check(key: FragmentKey, offset: u16, more: bool, len: usize) -> Result<Span, DropReason> {
        // In IPv4 the 65,535 bytes include the header, of 20 bytes at least.
        let longest: u32 = if key.dst.is_ipv4() { 65_515 } else { 65_535 };
        let len = u32::try_from(len).map_err(|_| DropReason::FragmentInvalid)?;
        let start = u32::from(offset);
        let in_units = start.is_multiple_of(8) && (!more || len.is_multiple_of(8));
        match start.checked_add(len) {
            Some(end) if in_units && len > 0 && end <= longest => Ok(Span { start, end, more }),
            _ => Err(DropReason::FragmentInvalid),
        }
    }

    fn is_atomic(self) -> bool {
        self.start == 0 && !self.more
    }
}

/// The relation of a fragment to those that came before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    New,
    /// A repetition of one of them.
    Copy,
    /// It overlaps one of them, contradicts the end of the datagram, or there are too many.
    Conflict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Collecting,
    /// Dropped, but remembered. Otherwise later fragments would start it anew, and the originator of the overlap could
    /// complete it (RFC 5722 §3 discards them too).
    Spoiled,
}

#[derive(Debug)]
struct Partial {
    key: FragmentKey,
    deadline: Instant,
    health: Health,
    /// The fragments in the order of `span.start`.
    pieces: Vec<Piece>,
    payload_bytes: u32,
    cost_bytes: usize,
    quote: Option<Box<[u8]>>,
}

#[derive(Debug)]
struct Piece {
    span: Span,
    bytes: Box<[u8]>,
}

impl Partial {
    fn new(key: FragmentKey, deadline: Instant) -> Partial {
        Partial {
            key,
            deadline,
            health: Health::Collecting,
            pieces: Vec::new(),
            payload_bytes: 0,
            cost_bytes: 0,
            quote: None,
        }
    }

    fn fit(&self, span: Span, payload: &[u8]) -> Fit {
        if self.health == Health::Spoiled {
            return Fit::Conflict;
        }
        let at = self.pieces.partition_point(|piece| piece.span.end <= span.start);
        match self.pieces.get(at) {
            Some(piece) if piece.span == span && *piece.bytes == *payload => return Fit::Copy,
            Some(piece) if piece.span.start < span.end => return Fit::Conflict,
            _ => {}
        }
        let full = self.pieces.len() >= MAX_FRAGMENTS;
        if full || self.is_beyond_end(span) { Fit::Conflict } else { Fit::New }
    }

    /// Returns whether data would lie behind the last fragment, which is the highest one.
    fn is_beyond_end(&self, span: Span) -> bool {
        self.pieces.last().is_some_and(|highest| {
            let behind_last = !highest.span.more && span.start >= highest.span.end;
            let last_before = !span.more && span.end <= highest.span.start;
            behind_last || last_before
        })
    }

    fn add(&mut self, span: Span, payload: &[u8], quote: &[u8]) -> usize {
        let at = self.pieces.partition_point(|piece| piece.span.end <= span.start);
        self.pieces.insert(at, Piece { span, bytes: payload.into() });
        if span.start == 0 {
            self.quote = Some(quote.into());
        }
        let cost = payload.len() + quote.len() + FRAGMENT_OVERHEAD_BYTES;
        self.cost_bytes += cost;
        self.payload_bytes += span.end - span.start;
        cost
    }

    fn is_complete(&self) -> bool {
        self.pieces.last().is_some_and(|highest| !highest.span.more && highest.span.end == self.payload_bytes)
    }

    fn join(&self) -> Vec<u8> {
        let mut whole = Vec::with_capacity(self.pieces.iter().map(|piece| piece.bytes.len()).sum());
        for piece in &self.pieces {
            whole.extend_from_slice(&piece.bytes);
        }
        whole
    }

    /// Keeps only the entry of such a datagram; returns the freed bytes.
    fn spoil(&mut self) -> usize {
        self.health = Health::Spoiled;
        self.pieces = Vec::new();
        self.payload_bytes = 0;
        self.quote = None;
        std::mem::take(&mut self.cost_bytes)
    }
}

#[cfg(test)]
mod tests;
