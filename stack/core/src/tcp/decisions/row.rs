//! Entries as rows of numbers. The order of the fields and the numbers of names are the format: they only grow with a
//! new version.

use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::super::ledger::{AckKind, FactsOf, Heard, Stretch};
use super::entry::{LeftAck, Outcome, Seen, What};
use crate::agent::{AckRequest, AckRule, By, Class, HopSource, Path, Rtt, Why};
use crate::narrow::{low_u8, low_u32};
use crate::{Instant, LinkFacts, Seq, StationAddress};

/// The state, the arrival, and the facts about the first link. Fields that change often come first: the mask then has
/// one byte.
pub(super) type CallRow = [u64; CALL_FIELDS];
pub(super) const CALL_FIELDS: usize = 40;
/// The place of the facts about the first link.
const LINK: Range<usize> = 26..CALL_FIELDS;
type LinkRow = [u64; 14];
pub(super) type WhyRow = [u64; 4];
pub(super) type HeldRow = [u64; 3];
pub(super) type DecidedRow = [u64; 6];
pub(super) type MergedRow = [u64; 3];
pub(super) type LeftRow = [u64; 8];

const CLASSES: [Class; 4] = [Class::InOrder, Class::FillsHole, Class::OutOfOrder, Class::Duplicate];
const KINDS: [AckKind; 3] = [AckKind::InOrder, AckKind::Duplicate, AckKind::Repeat];
const SOURCES: [HopSource; 3] = [HopSource::Routing, HopSource::Ttl, HopSource::Config];

/// The latest time of an entry: 146 years. Sums with it do not saturate.
pub(super) const LATEST: u64 = 1 << 62;
/// No duration is longer.
const LONGEST: u64 = 1 << 60;

fn nth<T: PartialEq>(list: &[T], item: &T) -> u64 {
    list.iter().position(|one| one == item).map_or(u64::MAX, |nth| nth as u64)
}

fn item<T: Copy>(list: &[T], nth: u64) -> Option<T> {
    list.get(usize::try_from(nth).ok()?).copied()
}

/// 0 for none.
fn opt(value: Option<impl Into<u64>>) -> u64 {
    value.map_or(0, |value| value.into().saturating_add(1))
}

fn from_opt<T: TryFrom<u64>>(field: u64) -> Option<Option<T>> {
    match field.checked_sub(1) {
        None => Some(None),
        Some(value) => T::try_from(value).ok().map(Some),
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(LONGEST).min(LONGEST)
}

fn duration(field: u64) -> Option<Duration> {
    (field <= LONGEST).then_some(Duration::from_nanos(field))
}

fn opt_duration(field: u64) -> Option<Option<Duration>> {
    field.checked_sub(1).map_or(Some(None), |ns| duration(ns).map(Some))
}

/// Two numbers in one. No stretch is empty, so 0 stands for none.
fn stretch(stretch: Option<Stretch>) -> u64 {
    stretch.map_or(0, |(from, to)| u64::from(from.0) << 32 | u64::from(to.0))
}

fn to_stretch(both: u64) -> Option<Stretch> {
    (both != 0).then_some((Seq(low_u32(both >> 32)), Seq(low_u32(both))))
}

fn hops(hops: Option<(u8, HopSource)>) -> u64 {
    hops.map_or(0, |(hops, source)| 1 + u64::from(hops) + (nth(&SOURCES, &source) << 8))
}

fn to_hops(field: u64) -> Option<Option<(u8, HopSource)>> {
    let Some(both) = field.checked_sub(1) else { return Some(None) };
    Some(Some((low_u8(both), item(&SOURCES, both >> 8)?)))
}

pub(super) fn of_seen(seen: &Seen) -> CallRow {
    let mut row = [0; CALL_FIELDS];
    set_seen(&mut row, seen);
    row
}

pub(super) fn set_seen(row: &mut CallRow, seen: &Seen) {
    let Seen { facts, has_sack, twice } = seen;
    let FactsOf { path, peer_cwnd, mss, advertised, holes, rcv_nxt, last_decided, ts_recent } = facts;
    let Path { hops_to_peer, hops_from_peer, link_bps, link, rtt } = path;
    row[0] = rcv_nxt.0.into();
    row[1] = (*advertised).into();
    row[2] = last_decided.0.into();
    row[3] = (*ts_recent).into();
    row[7] = (*holes).into();
    row[8] = stretch(*twice);
    row[9] = opt(*peer_cwnd);
    row[10] = (*mss).into();
    row[11] = opt(rtt.latest.map(nanos));
    row[12] = opt(rtt.smoothed.map(nanos));
    row[13] = nanos(rtt.variance);
    row[14] = opt(rtt.min.map(nanos));
    row[15] = hops(*hops_to_peer);
    row[16] = hops(*hops_from_peer);
    row[17] = opt(link_bps.map(NonZeroU64::get));
    row[18] = (*has_sack).into();
    row[LINK].copy_from_slice(&of_link(link.as_deref()));
}

/// Zeroes if the facts are unknown.
fn of_link(link: Option<&LinkFacts>) -> LinkRow {
    let Some(facts) = link else { return LinkRow::default() };
    let LinkFacts { station: StationAddress([a, b, c, d, e, f]), at, .. } = *facts;
    let dbm = |power: Option<i8>| opt(power.map(i8::cast_unsigned));
    let time = |time: Option<Duration>| opt(time.map(nanos));
    [
        1 + u64::from_be_bytes([0, 0, a, b, c, d, e, f]),
        at.0,
        time(facts.inactive),
        dbm(facts.signal_dbm),
        dbm(facts.signal_average_dbm),
        opt(facts.tx_packets),
        opt(facts.tx_retries),
        opt(facts.tx_failed),
        opt(facts.rx_packets),
        opt(facts.rx_bytes),
        opt(facts.tx_bitrate_bps),
        opt(facts.expected_throughput_bps),
        time(facts.tx_duration),
        time(facts.rx_duration),
    ]
}

fn to_link(row: &LinkRow) -> Option<Option<LinkFacts>> {
    let Some(station) = row[0].checked_sub(1) else { return Some(None) };
    let [0, 0, station @ ..] = station.to_be_bytes() else { return None };
    let dbm = |field| from_opt::<u8>(field).map(|power| power.map(u8::cast_signed));
    Some(Some(LinkFacts {
        inactive: opt_duration(row[2])?,
        signal_dbm: dbm(row[3])?,
        signal_average_dbm: dbm(row[4])?,
        tx_packets: from_opt(row[5])?,
        tx_retries: from_opt(row[6])?,
        tx_failed: from_opt(row[7])?,
        rx_packets: from_opt(row[8])?,
        rx_bytes: from_opt(row[9])?,
        tx_bitrate_bps: from_opt(row[10])?,
        expected_throughput_bps: from_opt(row[11])?,
        tx_duration: opt_duration(row[12])?,
        rx_duration: opt_duration(row[13])?,
        ..LinkFacts::new(StationAddress(station), to_instant(row[1])?)
    }))
}

pub(super) fn set_heard(row: &mut CallRow, heard: &Heard, segments: u16) {
    let Heard { class, bytes, each, push, ce, ack_request, rtt, timestamp, part_of } = *heard;
    row[4] = opt(timestamp);
    row[5] = bytes.into();
    row[6] = each.into();
    row[19] = segments.into();
    row[20] = nth(&CLASSES, &class);
    row[21] = push.into();
    row[22] = ce.into();
    row[23] = match ack_request {
        None => 0,
        Some(AckRequest::Rate(rate)) => 1 + u64::from(rate),
        Some(AckRequest::After(after)) => 257 + u64::from(after),
    };
    row[24] = opt(rtt.map(nanos));
    row[25] = stretch(part_of);
}

pub(super) fn to_seen(row: &CallRow) -> Option<Seen> {
    let seq = |nth: usize| u32::try_from(row[nth]).ok().map(Seq);
    let facts = FactsOf {
        rcv_nxt: seq(0)?,
        advertised: u32::try_from(row[1]).ok()?,
        last_decided: seq(2)?,
        ts_recent: u32::try_from(row[3]).ok()?,
        holes: u32::try_from(row[7]).ok()?,
        peer_cwnd: from_opt(row[9])?,
        mss: u32::try_from(row[10]).ok()?,
        path: Path {
            rtt: Rtt {
                latest: opt_duration(row[11])?,
                smoothed: opt_duration(row[12])?,
                variance: duration(row[13])?,
                min: opt_duration(row[14])?,
            },
            hops_to_peer: to_hops(row[15])?,
            hops_from_peer: to_hops(row[16])?,
            link_bps: from_opt(row[17])?.and_then(NonZeroU64::new),
            link: to_link(row[LINK].try_into().ok()?)?.map(Arc::new),
        },
    };
    Some(Seen { facts, has_sack: row[18] != 0, twice: to_stretch(row[8]) })
}

pub(super) fn to_heard(row: &CallRow) -> Option<What> {
    let request = |field: u64| match field {
        0 => Some(None),
        1..=256 => u8::try_from(field - 1).ok().map(|rate| Some(AckRequest::Rate(rate))),
        _ => u8::try_from(field - 257).ok().map(|after| Some(AckRequest::After(after))),
    };
    let heard = Heard {
        timestamp: from_opt(row[4])?,
        bytes: u32::try_from(row[5]).ok()?,
        each: u32::try_from(row[6]).ok()?,
        class: item(&CLASSES, row[20])?,
        push: row[21] != 0,
        ce: row[22] != 0,
        ack_request: request(row[23])?,
        rtt: opt_duration(row[24])?,
        part_of: to_stretch(row[25]),
    };
    Some(What::Arrived { heard, segments: u16::try_from(row[19]).ok()? })
}

fn of_why(why: Why) -> [u64; 3] {
    [nth(AckRule::ALL, &why.rule), why.have.into(), why.want.into()]
}

fn to_why(rule: u64, have: u64, want: u64) -> Option<Why> {
    Some(Why::new(item(AckRule::ALL, rule)?, u32::try_from(have).ok()?, u32::try_from(want).ok()?))
}

pub(super) fn of_forced(kind: AckKind, why: Why) -> WhyRow {
    let [rule, have, want] = of_why(why);
    [nth(&KINDS, &kind), rule, have, want]
}

pub(super) fn to_forced(row: &WhyRow) -> Option<What> {
    let [kind, rule, have, want] = *row;
    Some(What::Forced { kind: item(&KINDS, kind)?, why: to_why(rule, have, want)? })
}

pub(super) fn of_held(why: Why) -> HeldRow {
    let [rule, have, want] = of_why(why);
    [have, rule, want]
}

pub(super) fn to_held(row: &HeldRow) -> Option<Outcome> {
    let [have, rule, want] = *row;
    Some(Outcome::Held { why: to_why(rule, have, want)? })
}

pub(super) fn of_decided(number: Seq, decision: u16, by: By, why: Why) -> DecidedRow {
    let [rule, have, want] = of_why(why);
    [number.0.into(), decision.into(), nth(By::ALL, &by), rule, have, want]
}

pub(super) fn to_decided(row: &DecidedRow) -> Option<Outcome> {
    let [number, decision, by, rule, have, want] = *row;
    Some(Outcome::Decided {
        number: Seq(u32::try_from(number).ok()?),
        decision: u16::try_from(decision).ok()?,
        by: item(By::ALL, by)?,
        why: to_why(rule, have, want)?,
    })
}

pub(super) fn of_merged(number: Seq, decision: u16, into: u16) -> MergedRow {
    [number.0.into(), decision.into(), into.into()]
}

pub(super) fn to_merged(row: &MergedRow) -> Option<Outcome> {
    let [number, decision, into] = *row;
    let number = Seq(u32::try_from(number).ok()?);
    Some(Outcome::Merged { number, decision: u16::try_from(decision).ok()?, into: u16::try_from(into).ok()? })
}

pub(super) fn of_left(ack: &LeftAck) -> LeftRow {
    [
        ack.number.0.into(),
        ack.decided.0.into(),
        ack.decision.into(),
        opt(ack.echo),
        opt(ack.dup_count),
        ack.repeat.into(),
        stretch(ack.twice),
        stretch(ack.part_of),
    ]
}

pub(super) fn to_left(row: &LeftRow) -> Option<Outcome> {
    Some(Outcome::Left(Some(LeftAck {
        number: Seq(u32::try_from(row[0]).ok()?),
        decided: Seq(u32::try_from(row[1]).ok()?),
        decision: u16::try_from(row[2]).ok()?,
        echo: from_opt(row[3])?,
        dup_count: from_opt(row[4])?,
        repeat: row[5] != 0,
        twice: to_stretch(row[6]),
        part_of: to_stretch(row[7]),
    })))
}

/// A time that sums do not saturate.
pub(super) fn to_instant(ns: u64) -> Option<Instant> {
    (ns <= LATEST).then_some(Instant(ns))
}
