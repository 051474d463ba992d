//! The path between the endpoints, its changes, and its healing.

use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::impairment::Impairment;

use super::{Purpose, seconds};
use crate::memory::{Bundles, End, Hop, PathConfig, Random};
use crate::swarm::scenario::{Change, ChangeKind, Family, Host};

pub(super) struct Drawn {
    pub(super) paths: [PathConfig; 2],
    pub(super) changes: Vec<Change>,
    pub(super) heal_at: Instant,
    pub(super) mtu_stays: [bool; 2],
}

pub(super) fn draw(seed: u64, family: Family, hosts: &[Host; 2]) -> Drawn {
    let mut random = Purpose::Path.stream(seed);
    let base = one_way(&mut random);
    let mut paths = match random.below(10) {
        0 => [PathConfig::clean(base.impairment.delay); 2],
        1..6 => [base; 2],
        _ => [base, one_way(&mut random)],
    };
    let mut bundles = Purpose::Bundles.stream(!seed);
    for path in &mut paths {
        path.bundles = bundles.pick(&[Bundles::Cut, Bundles::Carry]);
    }
    let mut changes = Vec::new();
    for _ in 0..random.pick(&[0, 0, 0, 1, 1, 3]) {
        outage(&mut random, &mut changes);
    }
    if random.one_in(6) {
        let smallest = if family == Family::V4 { 576 } else { 1280 };
        let largest = hosts.iter().map(|host| host.link_mtu).min().unwrap_or(smallest).max(smallest);
        let mtu = random.between(smallest.into(), largest.into()) as u16;
        changes.push(sometime(&mut random, ChangeKind::Mtu(mtu)));
    }
    if random.one_in(6) {
        let delay = random.time_between(Duration::from_micros(1), seconds(2));
        changes.push(sometime(&mut random, ChangeKind::Delay(delay)));
    }
    changes.sort_by_key(|change| change.at);
    let last = changes.last().map_or(Instant::ZERO, |change| change.at);
    let heal_at = last.max(Instant::ZERO + random.time_between(seconds(1), seconds(120)));
    // A host that does not look for a small MTU will not find it.
    let mtu_stays = [0, 1].map(|from: usize| {
        let finds_out = hosts[from].tcp.path_mtu_discovery || paths[from].hop == Hop::Router;
        finds_out && random.one_in(2)
    });
    Drawn { paths, changes, heal_at, mtu_stays }
}

fn one_way(random: &mut Random) -> PathConfig {
    let micros = Duration::from_micros(1);
    let mut often = |n: u64, most: u64| if random.one_in(n) { random.log_between(1, most) as u32 } else { 0 };
    let (loss_ppm, duplicate_ppm) = (often(2, 300_000), often(4, 200_000));
    let (reorder_ppm, corrupt_ppm) = (often(3, 300_000), often(4, 50_000));
    let is_limited = random.one_in(3);
    let delay = random.time_between(micros, seconds(2));
    let clean = PathConfig::clean(delay);
    let impairment = Impairment {
        jitter: if random.one_in(3) { random.time_between(micros, seconds(1)) } else { Duration::ZERO },
        bits_per_second: if is_limited { random.log_between(50_000, 100_000_000) } else { 0 },
        queue_packets: random.log_between(1, 100) as usize,
        loss_ppm,
        duplicate_ppm,
        reorder_ppm,
        reorder_by: random.time_between(micros, seconds(2)),
        corrupt_ppm,
        ..clean.impairment
    };
    PathConfig {
        impairment,
        mark_behind: random.one_in(2).then(|| random.between(0, 20) as u32),
        hop: random.pick(&[Hop::Silent, Hop::Silent, Hop::Router]),
        ..clean
    }
}

/// Draws an outage in one direction or in both, for up to ten minutes.
fn outage(random: &mut Random, changes: &mut Vec<Change>) {
    let begins = Instant::ZERO + random.time_between(Duration::from_millis(1), seconds(60));
    let ends = begins + random.time_between(Duration::from_millis(100), seconds(600));
    let directions: &[End] = random.pick(&[&[End::A, End::B][..], &[End::A], &[End::B]]);
    for from in directions {
        changes.push(Change { at: begins, from: *from, what: ChangeKind::Down });
        changes.push(Change { at: ends, from: *from, what: ChangeKind::Up });
    }
}

fn sometime(random: &mut Random, what: ChangeKind) -> Change {
    let at = Instant::ZERO + random.time_between(Duration::from_millis(1), seconds(60));
    Change { at, from: random.pick(&[End::A, End::B]), what }
}

/// The longest time that a packet is under way.
pub(super) fn lifetime(paths: &[PathConfig; 2], changes: &[Change]) -> Duration {
    let later = changes.iter().map(|change| match change.what {
        ChangeKind::Delay(delay) => delay,
        _ => Duration::ZERO,
    });
    let slowest = paths.iter().map(|path| {
        let Impairment { delay, jitter, reorder_by, bits_per_second, queue_packets, .. } = path.impairment;
        let waits = match bits_per_second {
            0 => Duration::ZERO,
            rate => {
                let largest = if path.bundles == Bundles::Carry { 1 << 16 } else { 9000 };
                Duration::from_micros((queue_packets as u64 + 2) * largest * 8 * 1_000_000 / rate)
            }
        };
        2 * delay + jitter + reorder_by + waits
    });
    slowest.max().unwrap_or_default() + 2 * later.max().unwrap_or_default()
}
