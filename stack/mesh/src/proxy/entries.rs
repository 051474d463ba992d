//! The entries of the proxy's table, and its memory for waiting packets and for flows that are cut in two. A mobile has
//! a share of both. When there is no more, this module decides which flow gives way.
//!
//! An entry is brief until both sides were seen and the agent can serve the flow; then it lasts. For a cut flow it is
//! brief until both ends have the connection, and over when both have ended it. Entries that are over are given up
//! first, then brief ones, then lasting ones. The source with the most gives up first, and among its mobiles the one
//! with the most. Memory counts for the mobile once the entry lasts. Other flows may be forged with any mobile's
//! address, so that all of them share one part of the memory.

mod ranks;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use hopwise_core::Instant;
use hopwise_core::endpoint::Memory;
use hopwise_core::ip::Source;

use super::read::FlowKey;
use ranks::{Has, Ranks};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProxyEntry {
    /// The start of the entry.
    Brief(Instant),
    Lasting,
    /// Both ends have ended it, since then.
    Over(Instant),
}

/// A placeholder for lookups that accept any member.
const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
/// Stands for a mobile whose share takes the memory of flows without a lasting entry.
const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// A flow's part of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Charge {
    bytes: usize,
    /// It counts in the share of its mobile.
    is_lasting: bool,
}

impl Charge {
    pub(super) const NONE: Charge = Charge { bytes: 0, is_lasting: false };

    pub(super) fn new(entry: ProxyEntry, bytes: usize) -> Charge {
        Charge { bytes, is_lasting: entry == ProxyEntry::Lasting }
    }

    fn counts_for(self, key: &FlowKey) -> IpAddr {
        if self.is_lasting { key.mobile.ip() } else { NOBODY }
    }
}

/// The oldest of each mobile comes first.
type BriefEntry = (IpAddr, Instant, u16, SocketAddr);

#[derive(Debug, Default)]
pub(super) struct Entries {
    brief: BTreeSet<BriefEntry>,
    over: BTreeSet<(Instant, FlowKey)>,
    mobiles: BTreeMap<IpAddr, Has>,
    /// Ordered by bytes alone.
    of_mobiles: Ranks<IpAddr, FlowKey>,
    of_sources: Ranks<Source, IpAddr>,
    sources: BTreeMap<Source, Has>,
    of_all: Ranks<(), Source>,
    all: Has,
    most_bytes: usize,
}

impl Entries {
    /// Entries that share `most_bytes` of memory.
    pub(super) fn new(most_bytes: usize) -> Entries {
        Entries { most_bytes, ..Entries::default() }
    }

    /// The number of flows without a lasting entry.
    pub(super) fn brief(&self) -> usize {
        self.brief.len() + self.over.len()
    }

    /// The bytes that all flows hold together.
    pub(super) fn bytes(&self) -> usize {
        self.all.bytes
    }

    pub(super) fn enter(&mut self, key: FlowKey, entry: ProxyEntry) {
        let is_free = match entry {
            ProxyEntry::Over(since) => self.over.insert((since, key)),
            ProxyEntry::Brief(since) => self.brief.insert(brief(since, key)),
            ProxyEntry::Lasting => true,
        };
        debug_assert!(is_free, "an entry is made once");
        self.change(key.mobile.ip(), |has| match entry {
            ProxyEntry::Over(_) => {}
            ProxyEntry::Brief(_) => has.brief += 1,
            ProxyEntry::Lasting => has.lasting += 1,
        });
    }

    pub(super) fn leave(&mut self, key: FlowKey, entry: ProxyEntry) {
        let was_taken = match entry {
            ProxyEntry::Over(since) => self.over.remove(&(since, key)),
            ProxyEntry::Brief(since) => self.brief.remove(&brief(since, key)),
            ProxyEntry::Lasting => true,
        };
        debug_assert!(was_taken, "an entry is removed once");
        self.change(key.mobile.ip(), |has| match entry {
            ProxyEntry::Over(_) => {}
            ProxyEntry::Brief(_) => has.brief -= 1,
            ProxyEntry::Lasting => has.lasting -= 1,
        });
    }

    /// Replaces a flow's charge on the memory.
    pub(super) fn hold(&mut self, key: FlowKey, was: Charge, is: Charge) {
        if was.is_lasting == is.is_lasting {
            return self.count(key, was, is.bytes);
        }
        self.count(key, was, 0);
        self.count(key, Charge { bytes: 0, ..is }, is.bytes);
    }

    fn count(&mut self, key: FlowKey, was: Charge, bytes: usize) {
        if was.bytes == bytes {
            return;
        }
        let mobile = was.counts_for(&key);
        let [had, has] = [was.bytes, bytes].map(|bytes| Has { bytes, ..Has::default() });
        self.of_mobiles.change(mobile, key, had, has);
        self.change(mobile, |has| has.bytes = has.bytes - was.bytes + bytes);
    }

    pub(super) fn brief_flows(&self) -> impl Iterator<Item = FlowKey> {
        self.brief.iter().map(key_of)
    }

    /// A flow whose entry is over, or the oldest brief entry of the mobile with the most.
    pub(super) fn first_to_go(&self) -> Option<FlowKey> {
        if let Some((_, key)) = self.over.first() {
            return Some(*key);
        }
        let (_, source) = self.of_all.most_brief((), Source::of(ANY))?;
        let (_, mobile) = self.of_sources.most_brief(source, ANY)?;
        self.oldest(mobile).map(|(_, key)| key)
    }

    /// The mobile with the most lasting entries, if it would still have as many as this one after giving it an entry.
    /// The same holds for their sources first.
    pub(super) fn has_too_many(&self, beside: IpAddr) -> Option<IpAddr> {
        let own = Source::of(beside);
        let (most, source) = self.of_all.most_lasting((), own)?;
        let crowded = if most > self.of(own).lasting + 1 { source } else { own };
        let (most, mobile) = self.of_sources.most_lasting(crowded, beside)?;
        (crowded != own || most > self.of_mobile(beside).lasting + 1).then_some(mobile)
    }

    /// The mobile that holds the most bytes, within the source that holds the most, and its largest flow.
    pub(super) fn holds_most(&self) -> Option<(IpAddr, FlowKey)> {
        let source = self.of_all.most_bytes((), Source::of(ANY))?;
        let mobile = self.of_sources.most_bytes(source, ANY)?;
        Some((mobile, self.of_mobiles.most_bytes(mobile, FlowKey::first_of(ANY))?))
    }

    /// Returns whether flows hold more than the memory.
    pub(super) fn are_overdrawn(&self) -> bool {
        self.all.bytes > self.most_bytes
    }

    /// The state of the memory for the cut flows of a mobile.
    pub(super) fn left_for(&self, mobile: IpAddr) -> Memory {
        let (all, most) = (self.all.bytes, self.most_bytes);
        let left = match all {
            _ if all >= most / 4 * 3 => Memory::Spent,
            _ if all >= most / 2 => Memory::Tight,
            _ => return Memory::Plenty,
        };
        if self.is_modest(mobile) { Memory::Plenty } else { left }
    }

    /// Returns whether a flow with this charge may keep a packet of `more` bytes.
    pub(super) fn has_room(&self, key: &FlowKey, charge: Charge, more: usize) -> bool {
        self.all.bytes + more <= self.most_bytes || self.is_modest(charge.counts_for(key))
    }

    /// A mobile with less than its share of the first half has room whatever other mobiles hold: they give way.
    fn is_modest(&self, mobile: IpAddr) -> bool {
        let source = self.of(Source::of(mobile));
        let of_source = self.most_bytes / 2 / self.all.holders.max(1) as usize;
        let of_mobile = of_source / source.holders.max(1) as usize;
        source.bytes < of_source || self.of_mobile(mobile).bytes < of_mobile
    }

    fn of(&self, source: Source) -> Has {
        self.sources.get(&source).copied().unwrap_or_default()
    }

    fn of_mobile(&self, mobile: IpAddr) -> Has {
        self.mobiles.get(&mobile).copied().unwrap_or_default()
    }

    /// The oldest brief entry of a mobile.
    fn oldest(&self, mobile: IpAddr) -> Option<(Instant, FlowKey)> {
        let first = brief(Instant::ZERO, FlowKey::first_of(mobile));
        let oldest = self.brief.range(first..).next().filter(|oldest| oldest.0 == mobile)?;
        Some((oldest.1, key_of(oldest)))
    }

    fn change(&mut self, mobile: IpAddr, change: impl FnOnce(&mut Has)) {
        let was = self.of_mobile(mobile);
        let mut is = was;
        change(&mut is);
        is.oldest = self.oldest(mobile).map(|key| key.0).unwrap_or_default();
        let source = Source::of(mobile);
        self.of_sources.change(source, mobile, was, is);
        put(&mut self.mobiles, mobile, is);
        let source_was = self.of(source);
        let oldest = self.of_sources.most_brief(source, mobile).map(|(oldest, _)| oldest).unwrap_or_default();
        let source_is = Has { oldest, ..source_was.with(was, is) };
        self.of_all.change((), source, source_was, source_is);
        put(&mut self.sources, source, source_is);
        self.all = self.all.with(source_was, source_is);
    }
}

fn brief(since: Instant, key: FlowKey) -> BriefEntry {
    (key.mobile.ip(), since, key.mobile.port(), key.fixed)
}

fn key_of((mobile, _, port, fixed): &BriefEntry) -> FlowKey {
    FlowKey { mobile: SocketAddr::new(*mobile, *port), fixed: *fixed }
}

fn put<T: Ord>(map: &mut BTreeMap<T, Has>, of: T, has: Has) {
    if has.is_nothing() {
        map.remove(&of);
    } else {
        map.insert(of, has);
    }
}
