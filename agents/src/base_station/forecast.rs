//! Forecasts fades from a mobile's signal strength, and reports when its link is gone and back.
//!
//! Rule: a straight line through the samples of the last `window` continues the signal. If it will be below `threshold`
//! within `lead`, the link is going down. The expected outage is the average of past fades (the average fade duration
//! of textbooks), or `first` before there was one. The link is gone when the median of three samples is below the
//! threshold, or when a link that was going down falls silent. It is up when the median is above the threshold by
//! `hysteresis`. A forecast is taken back if its fade has not come within twice the lead, the signal is that much
//! above the threshold, and the line no longer leads below it.

use std::collections::VecDeque;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::LinkNews;

/// The settings of a forecaster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ForecastSettings {
    /// Signal strength below which the link counts as gone.
    pub threshold_dbm: f64,
    /// The link counts as up again once the signal is this far above the threshold.
    pub hysteresis_db: f64,
    /// A fade is reported when the trend will cross the threshold within this time.
    pub lead: Duration,
    /// Age of the oldest sample that the trend is fitted to.
    pub window: Duration,
    /// A link that is going down counts as gone after this time without a sample.
    pub silence: Duration,
    /// The expected outage before the first fade.
    pub first: Duration,
}

impl Default for ForecastSettings {
    fn default() -> ForecastSettings {
        ForecastSettings {
            threshold_dbm: -85.0,
            hysteresis_db: 3.0,
            lead: Duration::from_millis(300),
            window: Duration::from_millis(500),
            silence: Duration::from_millis(500),
            first: Duration::from_secs(1),
        }
    }
}

/// The most samples in use, whatever the window.
const MOST_SAMPLES: usize = 64;
/// A line through fewer samples means nothing.
const LEAST_SAMPLES: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkPhase {
    Up,
    Going(Instant),
    Gone(Instant),
}

/// The forecaster of one link.
#[derive(Debug)]
pub struct Forecaster {
    settings: ForecastSettings,
    samples: VecDeque<(Instant, f64)>,
    state: LinkPhase,
    fades: u32,
    faded: Duration,
}

impl Forecaster {
    /// The link counts as up until samples show that it falls.
    pub fn new(settings: ForecastSettings) -> Forecaster {
        Forecaster {
            settings,
            samples: VecDeque::new(),
            state: LinkPhase::Up,
            fades: 0,
            faded: Duration::ZERO,
        }
    }

    /// Takes a sample of the mobile's signal strength.
    pub fn on_signal(&mut self, now: Instant, dbm: i8) -> Option<LinkNews> {
        self.samples.push_back((now, f64::from(dbm)));
        while self.samples.len() > MOST_SAMPLES
            || self.samples.front().is_some_and(|(at, _)| now.since(*at) > self.settings.window)
        {
            self.samples.pop_front();
        }
        let ForecastSettings { threshold_dbm, hysteresis_db, lead, .. } = self.settings;
        let level = self.median();
        match self.state {
            LinkPhase::Gone(since) if level >= threshold_dbm + hysteresis_db => {
                self.fades += 1;
                self.faded += now.since(since);
                self.state = LinkPhase::Up;
                Some(LinkNews::Up)
            }
            LinkPhase::Gone(_) => None,
            _ if level < threshold_dbm => {
                self.state = LinkPhase::Gone(now);
                Some(LinkNews::Gone)
            }
            LinkPhase::Up if self.falls_below(threshold_dbm) => {
                self.state = LinkPhase::Going(now);
                Some(LinkNews::GoingDown { rtt: Duration::ZERO, outage: self.expected(), within: lead })
            }
            LinkPhase::Going(since)
                if now.since(since) > 2 * lead
                    && level >= threshold_dbm + hysteresis_db
                    && !self.falls_below(threshold_dbm) =>
            {
                self.state = LinkPhase::Up;
                Some(LinkNews::Up)
            }
            LinkPhase::Up | LinkPhase::Going(_) => None,
        }
    }

    /// No signal has come until now.
    pub fn on_silence(&mut self, now: Instant) -> Option<LinkNews> {
        let last = self.samples.back().map(|(at, _)| *at)?;
        let is_silent = now.since(last) >= self.settings.silence;
        if matches!(self.state, LinkPhase::Going(_)) && is_silent {
            self.state = LinkPhase::Gone(last);
            return Some(LinkNews::Gone);
        }
        None
    }

    /// The time at which [`on_silence`](Forecaster::on_silence) may report that the link is gone.
    pub fn deadline(&self) -> Option<Instant> {
        let last = self.samples.back().map(|(at, _)| *at)?;
        matches!(self.state, LinkPhase::Going(_)).then(|| last + self.settings.silence)
    }

    /// The average of past fades.
    fn expected(&self) -> Duration {
        self.faded.checked_div(self.fades).unwrap_or(self.settings.first)
    }

    /// The median of the last three samples.
    fn median(&self) -> f64 {
        let mut last: Vec<f64> = self.samples.iter().rev().take(3).map(|(_, dbm)| *dbm).collect();
        last.sort_by(f64::total_cmp);
        last.get(last.len() / 2).copied().unwrap_or(0.0)
    }

    /// Returns whether the line through the window is below the threshold a lead from now.
    fn falls_below(&self, threshold_dbm: f64) -> bool {
        let (Some((first, _)), Some((last, _))) = (self.samples.front(), self.samples.back()) else {
            return false;
        };
        if self.samples.len() < LEAST_SAMPLES || first == last {
            return false;
        }
        let count = self.samples.len() as f64;
        let points = || self.samples.iter().map(|(at, dbm)| (at.since(*first).as_secs_f64(), *dbm));
        let (sum_t, sum_dbm) = points().fold((0.0, 0.0), |(t, d), (at, dbm)| (t + at, d + dbm));
        let (mean_t, mean_dbm) = (sum_t / count, sum_dbm / count);
        let (over, under) = points().fold((0.0, 0.0), |(over, under), (at, dbm)| {
            (over + (at - mean_t) * (dbm - mean_dbm), under + (at - mean_t) * (at - mean_t))
        });
        let slope = over / under;
        let then_s = last.since(*first).as_secs_f64() + self.settings.lead.as_secs_f64();
        slope < 0.0 && mean_dbm + slope * (then_s - mean_t) < threshold_dbm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY_MS: u64 = 20;

    fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// The reports while the signal follows `dbm`, sampled every 20 ms.
    fn said(
        forecaster: &mut Forecaster,
        times: std::ops::Range<u64>,
        dbm: impl Fn(u64) -> f64,
    ) -> Vec<(u64, LinkNews)> {
        let mut said = Vec::new();
        for at in times.step_by(EVERY_MS as usize) {
            said.extend(forecaster.on_signal(ms(at), dbm(at) as i8).map(|news| (at, news)));
        }
        said
    }

    fn names(said: &[(u64, LinkNews)]) -> Vec<&'static str> {
        said.iter().map(|(_, news)| news.name()).collect()
    }

    /// 20 dB a second down from -65, for two seconds, and up again.
    fn valley(at: u64) -> f64 {
        let t = at as f64 / 1_000.0;
        if t < 2.0 { -65.0 - 20.0 * t } else { (-105.0 + 20.0 * (t - 2.0)).min(-65.0) }
    }

    #[test]
    fn a_signal_that_falls_is_foretold_a_lead_before_it_is_gone_and_the_next_fade_by_the_last_one() {
        let mut forecaster = Forecaster::new(ForecastSettings::default());
        let first = said(&mut forecaster, 0..4_500, valley);
        assert_eq!(names(&first), ["going-down", "gone", "up"]);
        let ahead_ms = first[1].0 - first[0].0;
        assert!((240..=380).contains(&ahead_ms), "{first:?}");
        let again = said(&mut forecaster, 10_000..14_500, |at| valley(at - 10_000));
        let within = ForecastSettings::default().lead;
        let lasted = Duration::from_millis(first[2].0 - first[1].0);
        assert_eq!(again[0].1, LinkNews::GoingDown { rtt: Duration::ZERO, outage: lasted, within });
    }

    #[test]
    fn a_steady_signal_with_noise_says_nothing() {
        let mut forecaster = Forecaster::new(ForecastSettings::default());
        let noisy = |at: u64| -72.0 + ((at * 7_919) % 5) as f64 - 2.0;
        assert!(said(&mut forecaster, 0..60_000, noisy).is_empty());
    }

    #[test]
    fn a_fade_that_turns_back_is_taken_back_and_one_that_falls_silent_is_gone() {
        let mut forecaster = Forecaster::new(ForecastSettings::default());
        let dips = |at: u64| if at < 900 { -66.0 - at as f64 / 50.0 } else { -70.0 };
        assert_eq!(names(&said(&mut forecaster, 0..3_000, dips)), ["going-down", "up"]);
        let mut forecaster = Forecaster::new(ForecastSettings::default());
        assert_eq!(names(&said(&mut forecaster, 0..800, |at| -66.0 - at as f64 / 50.0)), ["going-down"]);
        let due = forecaster.deadline().expect("a link that is going down");
        assert_eq!(forecaster.on_silence(due), Some(LinkNews::Gone));
        assert_eq!((forecaster.on_silence(due), forecaster.deadline()), (None, None));
    }

    #[test]
    fn around_the_threshold_the_hysteresis_keeps_it_from_flapping() {
        let mut forecaster = Forecaster::new(ForecastSettings::default());
        let hovering = |at: u64| if (at / EVERY_MS).is_multiple_of(2) { -84.0 } else { -86.0 };
        let said = said(&mut forecaster, 0..20_000, hovering);
        assert!(said.len() <= 2, "{said:?}");
    }

    /// The stated calibration: slopes of 5 to 40 dB/s from -60 dBm, noise of ±2 dB, a sample each 20 ms.
    #[test]
    fn of_two_hundred_fades_nine_in_ten_are_foretold_and_none_later_than_it_is_gone() {
        let mut noise = 1_u64;
        let (mut foretold, mut gone) = (0, 0);
        for fade in 0..200_u64 {
            let slope = 5.0 + (fade % 36) as f64;
            let mut forecaster = Forecaster::new(ForecastSettings::default());
            let mut heard = Vec::new();
            for at in (0..8_000).step_by(EVERY_MS as usize) {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let off = ((noise >> 33) % 5) as f64 - 2.0;
                let level = (-60.0 - slope * (at as f64 - 1_000.0).max(0.0) / 1_000.0).max(-110.0) + off;
                heard.extend(forecaster.on_signal(ms(at), level as i8).map(LinkNews::name));
            }
            gone += usize::from(heard.contains(&"gone"));
            foretold += usize::from(heard.first() == Some(&"going-down"));
        }
        println!("{foretold} of {gone} fades were foretold");
        assert_eq!(gone, 200);
        assert!(foretold >= 180, "{foretold}");
    }
}
