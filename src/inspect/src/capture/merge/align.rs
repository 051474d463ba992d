//! Aligns the clocks of all files with the first file's clock. Files with common frames are neighbours; each file's
//! clock leads to the first one over the neighbours with the smallest errors.

use std::path::PathBuf;

use super::clock::{ClockFit, ClockMap, ClockSample, fit};
use super::heard::{HeardFrames, SightOrder};

/// The fewest common frames that make two files neighbours.
pub(super) const FEWEST: usize = 3;
/// Rounding may put a frame this much before its cause, in nanoseconds.
const ROUNDING: i64 = 2;

/// The alignment of one file.
#[derive(Clone, Debug, Default)]
pub(super) struct Aligned {
    pub(super) clock: ClockMap,
    /// The file with which it shares these frames, and their number. None for the first file.
    pub(super) with: Option<(usize, usize)>,
    pub(super) error_ns: Option<i64>,
}

struct AlignedPair {
    first: usize,
    second: usize,
    frames: usize,
    fit: ClockFit,
}

impl AlignedPair {
    /// Bounds of both directions say most, then frames that both heard, then bounds of one direction.
    fn rank(&self) -> u8 {
        match (self.fit.error_ns, self.fit.bounds.is_empty()) {
            (Some(_), false) => 0,
            (Some(_), true) => 1,
            (None, _) => 2,
        }
    }
}

/// The outcome for all files.
#[derive(Debug)]
pub(super) struct Alignment {
    pub(super) files: Vec<Aligned>,
    /// Common frames that are before their causes nevertheless, and the time by which the worst one is.
    pub(super) too_early: u64,
    pub(super) most_early_ns: i64,
}

/// Returns the files with too few frames in common with any aligned file.
pub(super) fn align(heard: &[HeardFrames]) -> Result<Alignment, Vec<usize>> {
    let pairs = pairs(heard);
    let mut files: Vec<Option<Aligned>> = vec![None; heard.len()];
    files[0] = Some(Aligned { error_ns: Some(0), ..Aligned::default() });
    while let Some((pair, is_forth)) = nearest(&pairs, &files) {
        let (from, to) = if is_forth { (pair.first, pair.second) } else { (pair.second, pair.first) };
        let step = if is_forth { pair.fit.clock } else { pair.fit.clock.inverse() };
        let Some(known) = &files[from] else { break };
        files[to] = Some(Aligned {
            clock: step.then(known.clock),
            with: Some((from, pair.frames)),
            error_ns: known.error_ns.zip(pair.fit.error_ns).map(|(known, step)| known.saturating_add(step)),
        });
    }
    let alone: Vec<usize> =
        (0..).zip(&files).filter(|(_, file)| file.is_none()).map(|(nth, _)| nth).collect();
    if !alone.is_empty() {
        return Err(alone);
    }
    let mut files: Vec<Aligned> = files.into_iter().flatten().collect();
    put_behind_causes(&pairs, &mut files);
    let (too_early, most_early_ns) = early(heard, &files);
    Ok(Alignment { files, too_early, most_early_ns })
}

fn pairs(heard: &[HeardFrames]) -> Vec<AlignedPair> {
    let mut pairs = Vec::new();
    for second in 1..heard.len() {
        for first in 0..second {
            let samples = samples(&heard[first], &heard[second]);
            let mut frames: Vec<u64> = samples.iter().map(|(frame, _)| *frame).collect();
            frames.dedup();
            let samples: Vec<ClockSample> = samples.into_iter().map(|(_, sample)| sample).collect();
            if frames.len() >= FEWEST
                && let Some(fit) = fit(&samples)
            {
                pairs.push(AlignedPair { first, second, frames: frames.len(), fit });
            }
        }
    }
    pairs
}

/// The common frames of known order, by the first file's numbers.
fn samples(first: &HeardFrames, second: &HeardFrames) -> Vec<(u64, ClockSample)> {
    let both = first.common(second).filter_map(|(ours, other)| {
        let order = ours.order(&other)?;
        Some((ours.frame, ClockSample { first: ours.at, second: other.at, order }))
    });
    let mut samples: Vec<_> = both.collect();
    samples.sort_by_key(|(frame, _)| *frame);
    samples
}

/// The pair with the smallest error of an aligned file and a file to align; true if the aligned file is the first.
fn nearest<'a>(pairs: &'a [AlignedPair], files: &[Option<Aligned>]) -> Option<(&'a AlignedPair, bool)> {
    let open = pairs.iter().filter(|pair| files[pair.first].is_some() != files[pair.second].is_some());
    let nearest = open.min_by_key(|pair| (pair.rank(), pair.fit.error_ns, usize::MAX - pair.frames));
    nearest.map(|pair| (pair, files[pair.first].is_some()))
}

/// Pairs that are no step on the way to the first file may contradict it by a little: the later file of each is set
/// back by what lacks.
fn put_behind_causes(pairs: &[AlignedPair], files: &mut [Aligned]) {
    let bounds: Vec<(usize, usize, i64)> = pairs.iter().flat_map(|pair| slacks(pair, files)).collect();
    let mut shifts = vec![0_i64; files.len()];
    for _ in 0..files.len() {
        let mut is_settled = true;
        for (cause, effect, slack) in &bounds {
            let lacks = shifts[*cause].saturating_sub(shifts[*effect]).saturating_sub(*slack);
            if lacks > 0 {
                shifts[*effect] = shifts[*effect].saturating_add(lacks);
                is_settled = false;
            }
        }
        if is_settled {
            break;
        }
    }
    let first = shifts[0];
    for (file, shift) in files.iter_mut().zip(shifts) {
        file.clock.offset = file.clock.offset.saturating_add(shift - first);
    }
}

/// The least time from a frame of the one file to its effect in the other, in both directions.
fn slacks(pair: &AlignedPair, files: &[Aligned]) -> Vec<(usize, usize, i64)> {
    let least = |order: SightOrder| {
        let bounds = pair.fit.bounds.iter().filter(|sample| sample.order == order);
        bounds.map(|sample| after(sample, files, pair.first, pair.second)).min()
    };
    let forth = least(SightOrder::Forth).map(|slack| (pair.first, pair.second, slack - ROUNDING));
    let back = least(SightOrder::Back).map(|slack| (pair.second, pair.first, slack - ROUNDING));
    forth.into_iter().chain(back).collect()
}

/// The time from cause to effect.
fn after(sample: &ClockSample, files: &[Aligned], first: usize, second: usize) -> i64 {
    let (ours, other) = (files[first].clock.map(sample.first), files[second].clock.map(sample.second));
    match sample.order {
        SightOrder::Forth => other - ours,
        SightOrder::Back => ours - other,
        SightOrder::Together => 0,
    }
}

fn early(heard: &[HeardFrames], files: &[Aligned]) -> (u64, i64) {
    let (mut count, mut most) = (0, 0);
    for second in 1..heard.len() {
        for first in 0..second {
            for (_, sample) in samples(&heard[first], &heard[second]) {
                let by = -after(&sample, files, first, second);
                count += u64::from(by > 0);
                most = most.max(by);
            }
        }
    }
    (count, most)
}

/// The text of a refusal of files without common frames.
pub(super) fn refusal(alone: &[usize], paths: &[PathBuf]) -> String {
    let names: Vec<_> = alone.iter().map(|nth| paths[*nth].display().to_string()).collect();
    format!(
        "fewer than {FEWEST} frames in common with the files before: {}. Expected captures that heard the same frames \
         at the same time; --no-align joins files by their clocks as they are",
        names.join(", ")
    )
}
