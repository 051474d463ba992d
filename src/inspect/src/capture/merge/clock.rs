//! The line that leads from one clock to another, from frames that both saw.
//!
//! A frame that left by the first clock and came by the second one bounds the line from below: it came no earlier. One
//! in the other direction bounds it from above. Waiting in queues only widens what is between both bounds. The line
//! goes through the middle where that is widest.

use super::heard::SightOrder;

/// The largest drift that two crystals may have, in nanoseconds a second.
const MOST_DRIFT: f64 = 1e6;
/// The search for the drift ends at this part of the first interval.
const STEPS: u32 = 120;
/// No drift is assumed if the bounds then have this part of the widest gap.
const NEARLY: f64 = 0.9;
/// Frames of each direction that tell a drift.
const ENOUGH: usize = 10;
/// Of this number of frames one may contradict the rest, because names are alike by chance.
const MOST_WRONG: usize = 50;
/// The most frames of which two are compared each with each.
const MOST_COMPARED: usize = 300;

/// A map from one clock to a second clock, whose time is `at + offset + drift * (at - origin)`, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ClockMap {
    pub(super) origin: i64,
    pub(super) offset: i64,
    pub(super) drift: f64,
}

impl ClockMap {
    #[expect(clippy::cast_possible_truncation, reason = "drift is small, and a cast saturates")]
    pub(super) fn map(self, at: i64) -> i64 {
        let drifted = (self.drift * at.saturating_sub(self.origin) as f64).round() as i64;
        at.saturating_add(self.offset).saturating_add(drifted)
    }

    /// The composition of both maps: this one first, then `next`.
    pub(super) fn then(self, next: ClockMap) -> ClockMap {
        let ClockMap { origin, .. } = self;
        let offset = next.map(self.map(origin)).saturating_sub(origin);
        ClockMap { origin, offset, drift: self.drift + next.drift + self.drift * next.drift }
    }

    /// The map from the second clock back to the first clock.
    pub(super) fn inverse(self) -> ClockMap {
        let origin = self.map(self.origin);
        ClockMap { origin, offset: -self.offset, drift: -self.drift / (1.0 + self.drift) }
    }
}

/// Times of one frame by both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockSample {
    pub(super) first: i64,
    pub(super) second: i64,
    pub(super) order: SightOrder,
}

/// The second clock by the first one.
#[derive(Clone, Debug)]
pub(super) struct ClockFit {
    pub(super) clock: ClockMap,
    /// The largest error of the offset. None if all frames went in one direction: the shortest delay then counts as
    /// none.
    pub(super) error_ns: Option<i64>,
    /// The frames that bound the line most tightly, by both clocks.
    pub(super) bounds: Vec<ClockSample>,
}

/// Seconds by the second clock, and the first one's lead in nanoseconds.
type LeadPoint = (f64, f64);
/// The drift, and the lead at the origin.
type LeadLine = (f64, f64);

/// The bounds of one side, from left to right.
#[derive(Clone)]
struct BoundSide {
    /// 1 if they bound the line from below, -1 from above.
    sign: f64,
    all: Vec<(LeadPoint, ClockSample)>,
    /// The indices in `all` of the convex hull's points.
    hull: Vec<usize>,
}

impl BoundSide {
    fn new(sign: f64, mut all: Vec<(LeadPoint, ClockSample)>) -> BoundSide {
        all.sort_by(|(a, _), (b, _)| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut side = BoundSide { sign, all, hull: Vec::new() };
        side.find_hull();
        side
    }

    fn find_hull(&mut self) {
        self.hull.clear();
        for (nth, (point, _)) in self.all.iter().enumerate() {
            while let [.., a, b] = self.hull[..] {
                let (a, b) = (self.all[a].0, self.all[b].0);
                let turn = (b.0 - a.0) * (point.1 - a.1) - (b.1 - a.1) * (point.0 - a.0);
                if self.sign * turn < 0.0 {
                    break;
                }
                self.hull.pop();
            }
            self.hull.push(nth);
        }
    }

    /// The lead at the origin of the line with that drift on the bounds, and the place of the frame that it is on.
    fn lead(&self, drift: f64) -> (f64, usize) {
        let lead = |nth: usize| self.all[nth].0.1 - drift * self.all[nth].0.0;
        let leads = self.hull.iter().map(|nth| (lead(*nth), *nth));
        leads.fold((f64::NEG_INFINITY * self.sign, 0), |most, next| {
            if self.sign * (next.0 - most.0) > 0.0 { next } else { most }
        })
    }

    fn without(&self, nth: usize) -> BoundSide {
        let mut side = self.clone();
        side.all.remove(nth);
        side.find_hull();
        side
    }

    /// The line on the bounds that is nearest to all of them.
    fn nearest(&self) -> LeadLine {
        let place = |nth: usize| self.all[nth].0;
        let ends = (self.hull.first(), self.hull.last());
        let (Some(first), Some(last)) = ends else { return (0.0, 0.0) };
        let middle = f64::midpoint(place(*first).0, place(*last).0);
        let edge = self.hull.windows(2).find(|pair| place(pair[1]).0 >= middle);
        let drift = edge.map_or(0.0, |pair| {
            let ((x, y), (next_x, next_y)) = (place(pair[0]), place(pair[1]));
            if next_x > x { (next_y - y) / (next_x - x) } else { 0.0 }
        });
        // A steeper edge is of queues that grow, not of a clock.
        let drift = if drift.abs() < MOST_DRIFT { drift } else { 0.0 };
        (drift, self.lead(drift).0)
    }
}

struct Points {
    origin: (i64, i64),
    forth: BoundSide,
    back: BoundSide,
    together: Vec<LeadPoint>,
}

/// Returns `None` without frames whose order is known.
pub(super) fn fit(samples: &[ClockSample]) -> Option<ClockFit> {
    let mut points = Points::of(samples)?;
    let (line, error) = match (points.forth.all.is_empty(), points.back.all.is_empty()) {
        (true, true) => {
            let (line, error) = middle(&points.together)?;
            (line, Some(error))
        }
        (true, false) => (points.back.nearest(), None),
        (false, true) => (points.forth.nearest(), None),
        (false, false) => {
            for _ in 0..=samples.len() / MOST_WRONG {
                if points.gap(points.widest()) >= 0.0 {
                    break;
                }
                points.drop_worst();
            }
            let (line, error) = points.between();
            (line, Some(error))
        }
    };
    let bounds = [&points.forth, &points.back].into_iter();
    let bounds = bounds.flat_map(|side| side.hull.iter().map(|nth| side.all[*nth].1)).collect();
    Some(ClockFit { clock: points.clock(line), error_ns: error.map(nanos), bounds })
}

#[expect(clippy::cast_possible_truncation, reason = "a cast of a float saturates")]
fn nanos(value: f64) -> i64 {
    value.round() as i64
}

impl Points {
    fn of(samples: &[ClockSample]) -> Option<Points> {
        let first = samples.first()?;
        let origin = (first.second, first.first - first.second);
        let (mut forth, mut back, mut together) = (Vec::new(), Vec::new(), Vec::new());
        for sample in samples {
            let seconds = (sample.second - origin.0) as f64 / 1e9;
            let point = (seconds, (sample.first - sample.second - origin.1) as f64);
            match sample.order {
                SightOrder::Forth => forth.push((point, *sample)),
                SightOrder::Back => back.push((point, *sample)),
                SightOrder::Together => together.push(point),
            }
        }
        let (forth, back) = (BoundSide::new(1.0, forth), BoundSide::new(-1.0, back));
        Some(Points { origin, forth, back, together })
    }

    fn clock(&self, (drift, lead): LeadLine) -> ClockMap {
        ClockMap { origin: self.origin.0, offset: self.origin.1 + nanos(lead), drift: drift / 1e9 }
    }

    /// The lowest and the highest lead at the origin with that drift.
    fn leads(&self, drift: f64) -> (f64, f64) {
        (self.forth.lead(drift).0, self.back.lead(drift).0)
    }

    fn gap(&self, drift: f64) -> f64 {
        let (low, high) = self.leads(drift);
        high - low
    }

    /// The drift with the widest gap, which falls on both sides of it.
    fn widest(&self) -> f64 {
        let (mut low, mut high) = (-MOST_DRIFT, MOST_DRIFT);
        for _ in 0..STEPS {
            let third = (high - low) / 3.0;
            if self.gap(low + third) < self.gap(high - third) { low += third } else { high -= third }
        }
        f64::midpoint(low, high)
    }

    /// The line between the bounds, and its largest error. Clocks that agree as far as the frames show are left alone.
    fn between(&self) -> (LeadLine, f64) {
        let alone = -self.origin.1 as f64;
        let (low, high) = self.leads(0.0);
        if (low..=high).contains(&alone) {
            return ((0.0, alone), (alone - low).max(high - alone));
        }
        let widest = self.widest();
        let is_sure = self.tells_drift() && high - low < NEARLY * self.gap(widest);
        let drift = if is_sure || high < low { widest } else { 0.0 };
        let (low, high) = self.leads(drift);
        ((drift, f64::midpoint(low, high)), (high - low).abs() / 2.0)
    }

    /// Returns whether frames of both directions overlap in time. If all of one were before all of the other, a larger
    /// drift would always seem better.
    fn tells_drift(&self) -> bool {
        let ends = |side: &BoundSide| Some((side.all.first()?.0.0, side.all.last()?.0.0));
        let (Some(forth), Some(back)) = (ends(&self.forth), ends(&self.back)) else { return false };
        let common = forth.1.min(back.1) - forth.0.max(back.0);
        let whole = forth.1.max(back.1) - forth.0.min(back.0);
        self.forth.all.len().min(self.back.all.len()) >= ENOUGH && common * 2.0 > whole
    }

    /// Drops the frame that contradicts the remaining frames most.
    fn drop_worst(&mut self) {
        let drift = self.widest();
        let forth = self.forth.without(self.forth.lead(drift).1);
        let back = self.back.without(self.back.lead(drift).1);
        let forth = std::mem::replace(&mut self.forth, forth);
        let without_forth = self.gap(self.widest());
        let without_forth_at = std::mem::replace(&mut self.forth, forth);
        let back = std::mem::replace(&mut self.back, back);
        if self.gap(self.widest()) < without_forth {
            (self.forth, self.back) = (without_forth_at, back);
        }
    }
}

/// The line through the middle of frames that both clocks saw at once, by medians, and twice the median deviation.
fn middle(points: &[LeadPoint]) -> Option<(LeadLine, f64)> {
    let step = points.len().div_ceil(MOST_COMPARED).max(1);
    let some: Vec<LeadPoint> = points.iter().copied().step_by(step).collect();
    let slopes = some.iter().enumerate().flat_map(|(nth, a)| {
        let rising = some[nth + 1..].iter().filter(|b| (b.0 - a.0).abs() > 1e-3);
        rising.map(|b| (b.1 - a.1) / (b.0 - a.0))
    });
    let drift = median(slopes.collect()).unwrap_or(0.0).clamp(-MOST_DRIFT, MOST_DRIFT);
    let lead = median(points.iter().map(|(x, y)| y - drift * x).collect())?;
    let off = points.iter().map(|(x, y)| (y - drift * x - lead).abs());
    Some(((drift, lead), 2.0 * median(off.collect())?))
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000_000;
    /// The second clock by the first one.
    const TRUE: ClockMap = ClockMap { origin: 5 * HOUR, offset: -3 * HOUR - 17, drift: 40e-6 };

    /// Frames of ten minutes, alternately in both directions; frames with a number that divides by 7 waited for long.
    fn samples(wait: impl Fn(i64) -> i64) -> Vec<ClockSample> {
        let sample = |nth: i64| {
            let second = 5 * HOUR + nth * 1_000_000_000;
            let (order, delay) = if nth % 2 == 0 { (SightOrder::Forth, 1) } else { (SightOrder::Back, -1) };
            ClockSample { first: TRUE.map(second) - delay * wait(nth), second, order }
        };
        (0..600).map(sample).collect()
    }

    fn error(fit: &ClockFit) -> i64 {
        let at = 5 * HOUR + 300_000_000_000;
        (fit.clock.map(at) - TRUE.map(at)).abs()
    }

    #[test]
    fn offset_and_drift_are_found_however_long_most_frames_waited() {
        let fit =
            fit(&samples(|nth| if nth % 7 == 0 { 700 } else { 90_000_000 + nth * 777 })).expect("bounds");
        let told = fit.error_ns.expect("both directions");
        assert!(error(&fit) <= told && told < 2_000, "{fit:?} {}", error(&fit));
        assert!((fit.clock.drift - TRUE.drift).abs() < 1e-8, "{fit:?}");
    }

    #[test]
    fn no_frame_is_before_its_cause() {
        let samples = samples(|nth| nth * nth % 991 * 5_000);
        let fit = fit(&samples).expect("bounds");
        for ClockSample { first, second, order } in samples {
            let second = fit.clock.map(second);
            assert!(if order == SightOrder::Forth { second + 1 >= first } else { first + 1 >= second });
        }
    }

    #[test]
    fn frames_that_are_alike_by_chance_are_left_out() {
        let mut samples = samples(|_| 500);
        // Frames of both directions that break their bound, by much and by little.
        samples[100].first += 40_000_000;
        samples[301].first -= 9_000;
        let fit = fit(&samples).expect("bounds");
        assert!(error(&fit) < 1_000, "{fit:?}");
    }

    #[test]
    fn frames_in_one_direction_alone_tell_no_error() {
        let forth: Vec<_> = samples(|nth| 900 + nth % 5 * 3_000_000)
            .into_iter()
            .filter(|it| it.order == SightOrder::Forth)
            .collect();
        let fit = fit(&forth).expect("bounds");
        assert_eq!(fit.error_ns, None);
        assert!(error(&fit) < 2_000, "{fit:?}");
        let growing =
            |it: &ClockSample| ClockSample { first: it.first - (it.second - 5 * HOUR) / 500, ..*it };
        let behind: Vec<_> = forth.iter().map(growing).collect();
        let fit = super::fit(&behind).expect("bounds");
        assert!(fit.clock.drift == 0.0, "its queue grows by 2 ms each second: {fit:?}");
    }

    #[test]
    fn two_that_only_heard_are_brought_together_by_medians() {
        let heard: Vec<_> = (0..900)
            .map(|nth| {
                let second = 5 * HOUR + nth * 700_000_000;
                // One in three was told late.
                let late = if nth % 3 == 0 { 4_000_000 } else { nth % 11 * 10 };
                ClockSample { first: TRUE.map(second) + late, second, order: SightOrder::Together }
            })
            .collect();
        let fit = fit(&heard).expect("frames");
        assert!(error(&fit) < 1_000, "{fit:?}");
    }

    #[test]
    fn clocks_that_agree_are_left_alone() {
        let agree = |nth: i64| {
            let order = if nth % 2 == 0 { SightOrder::Forth } else { SightOrder::Back };
            let first = nth * 1_000_000 + if nth % 2 == 0 { 0 } else { 2_000 + nth };
            ClockSample { first, second: nth * 1_000_000 + if nth % 2 == 0 { 800 } else { 0 }, order }
        };
        let fit = fit(&(0..50).map(agree).collect::<Vec<_>>()).expect("bounds");
        assert_eq!((fit.clock.map(77), fit.clock.drift, fit.error_ns), (77, 0.0, Some(2_001)));
    }

    #[test]
    fn clocks_go_there_and_back_and_one_behind_the_other() {
        let next = ClockMap { origin: HOUR, offset: 5_000, drift: -12e-6 };
        for at in [0, 3 * HOUR, 9 * HOUR] {
            assert!((TRUE.inverse().map(TRUE.map(at)) - at).abs() <= 2);
            assert!((TRUE.then(next).map(at) - next.map(TRUE.map(at))).abs() <= 2);
        }
    }
}
