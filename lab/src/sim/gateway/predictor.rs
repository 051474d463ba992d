//! A predictor in place of the truth. It is the forecaster of `hopwise proxy`, with a signal that falls before each
//! outage and rises after it.
//!
//! The signal is the outage's as a receiver measures it. It is at the threshold when the outage begins and ends. It
//! changes by `slope` before and after, up to the usual level, and no samples come in between. Each sample gets noise
//! of its own, and shadows that last for half a second.

use std::time::Duration;

use hopwise_agents::base_station::forecast::{ForecastSettings, Forecaster};
use hopwise_air::random::{NumberStream, Purpose};
use hopwise_air::truncate;
use hopwise_core::Instant;
use hopwise_core::agent::LinkNews;
use hopwise_core::narrow::as_u32;

/// The properties of a mobile's signal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Signal {
    /// The fall in dB a second before an outage, and the rise after it.
    pub slope_db_s: f64,
    /// Standard deviations of each sample's own noise, and of the shadows that last for half a second.
    pub noise_db: f64,
    /// The standard deviation of the shadows, in dB.
    pub shadow_db: f64,
}

impl Default for Signal {
    fn default() -> Signal {
        Signal { slope_db_s: 20.0, noise_db: 2.0, shadow_db: 0.0 }
    }
}

/// The number of a signal that is invalid.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{key}: {value}; accepted: from {least} to {most} {unit}")]
pub struct SignalError {
    /// The key in the scenario.
    pub key: &'static str,
    /// The refused number.
    pub value: f64,
    least: f64,
    most: f64,
    unit: &'static str,
}

impl SignalError {
    /// The accepted numbers, in words.
    pub fn accepted(&self) -> String {
        format!("from {} to {} {}", self.least, self.most, self.unit)
    }
}

/// The interval of samples, as often as frames come.
const EVERY: Duration = Duration::from_millis(20);
/// The usual level above the threshold.
const ABOVE_DB: f64 = 25.0;
/// The part of a shadow that is left a sample later: e^(-20/500).
const LASTS: f64 = 0.960_789;
/// A mobile is gone after this long without a frame, forecast or not.
const SILENCE: Duration = Duration::from_millis(500);

/// Twelve uniform numbers make a normal one, by exact arithmetic.
fn normal(stream: &mut NumberStream) -> f64 {
    (0..12).map(|_| stream.unit()).sum::<f64>() - 6.0
}

/// The bounds of slopes and noise; larger values mean nothing.
const STEEPEST_DB_S: f64 = 1e6;
const NOISIEST_DB: f64 = 40.0;

impl Signal {
    /// Names the wrong number, and the accepted values.
    pub fn check(&self) -> Result<(), SignalError> {
        for (key, value, least, most, unit) in [
            ("slope_db_s", self.slope_db_s, 0.1, STEEPEST_DB_S, "dB/s"),
            ("noise_db", self.noise_db, 0.0, NOISIEST_DB, "dB"),
            ("shadow_db", self.shadow_db, 0.0, NOISIEST_DB, "dB"),
        ] {
            if !(least..=most).contains(&value) {
                return Err(SignalError { key, value, least, most, unit });
            }
        }
        Ok(())
    }

    /// The level above the threshold, without noise; `None` in an outage. Only the outages before and after the instant
    /// count.
    fn level_db(&self, at: Instant, fades: &[(Instant, Instant)]) -> Option<f64> {
        let (begun, coming) = fades.split_at(fades.partition_point(|(begins, _)| *begins <= at));
        let mut level_db = ABOVE_DB;
        if let Some((_, ends)) = begun.last() {
            if at < *ends {
                return None;
            }
            level_db = level_db.min(self.slope_db_s * at.since(*ends).as_secs_f64());
        }
        if let Some((begins, _)) = coming.first() {
            level_db = level_db.min(self.slope_db_s * begins.since(at).as_secs_f64());
        }
        Some(level_db)
    }
}

/// The news of one link until `end`; its outages are in order and apart.
pub(super) fn predict(
    signal: &Signal,
    fades: &[(Instant, Instant)],
    end: Instant,
    stream: &mut NumberStream,
) -> Vec<(Instant, LinkNews)> {
    let settings = ForecastSettings::default();
    let mut listener = PredictorFeed { forecaster: Forecaster::new(settings), news: Vec::new(), heard: None };
    let (mut at, mut shadow_db) = (Instant::ZERO, 0.0);
    while at <= end {
        // Both are drawn even without a sample: one seed has one weather.
        let noise_db = signal.noise_db * normal(stream);
        shadow_db = LASTS * shadow_db + (1.0 - LASTS * LASTS).sqrt() * signal.shadow_db * normal(stream);
        match signal.level_db(at, fades) {
            Some(level_db) => {
                let dbm = settings.threshold_dbm + level_db + noise_db + shadow_db;
                listener.hear(at, truncate::to_i8(dbm.round()));
            }
            None => listener.hear_nothing(at),
        }
        at += EVERY;
    }
    listener.news
}

/// The forecaster, with the knowledge of every radio: a silent mobile is gone, and one that sends again is there.
struct PredictorFeed {
    forecaster: Forecaster,
    news: Vec<(Instant, LinkNews)>,
    heard: Option<Instant>,
}

impl PredictorFeed {
    fn is_gone(&self) -> bool {
        self.news.last().is_some_and(|(_, news)| *news == LinkNews::Gone)
    }

    fn say(&mut self, at: Instant, news: LinkNews) {
        // News that a link is gone, or back, does not come twice.
        let is_known = match news {
            LinkNews::Gone => self.is_gone(),
            LinkNews::Up => self.news.last().is_none_or(|(_, last)| *last == LinkNews::Up),
            LinkNews::GoingDown { .. } => false,
        };
        if !is_known {
            self.news.push((at, news));
        }
    }

    fn hear(&mut self, at: Instant, dbm: i8) {
        let was_silent = self.heard.is_some_and(|heard| at.since(heard) >= SILENCE);
        self.heard = Some(at);
        let news = self.forecaster.on_signal(at, dbm);
        if was_silent && self.is_gone() {
            self.say(at, LinkNews::Up);
        }
        if let Some(news) = news {
            self.say(at, news);
        }
    }

    fn hear_nothing(&mut self, at: Instant) {
        if let Some(news) = self.forecaster.on_silence(at) {
            self.say(at, news);
        }
        if self.heard.is_some_and(|heard| at.since(heard) >= SILENCE) {
            self.say(at, LinkNews::Gone);
        }
    }
}

/// The quality of the forecasts of fades.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calibration {
    /// The number of fades.
    pub fades: u32,
    /// Fades with a warning within the second before them.
    pub foretold: u32,
    /// Fades with an earlier warning that was not taken back.
    pub early: u32,
    /// Fades without a warning: the link was taken to be gone, and still was when the fade came.
    pub sudden: u32,
    /// Fades without any news before them: only their silence showed them.
    pub missed: u32,
    /// Warnings without a fade.
    pub false_alarms: u32,
    /// Links taken to be gone without a warning, and back before a fade came.
    pub false_losses: u32,
    /// The mean lead of the foretold fades.
    pub lead_s: f64,
    /// The simulated time, in hours.
    pub hours: f64,
}

/// The last news of a link that is there.
#[derive(Clone, Copy, Debug, Default)]
enum FadeForecast {
    #[default]
    Nothing,
    /// A warning was given then, and stands until it is taken back.
    Warned(Instant),
    /// The link was taken to be gone, without a warning.
    Lost,
}

const SOON: Duration = Duration::from_secs(1);
/// The times between two fades, and of each.
const APART: Duration = Duration::from_secs(30);
const LASTING: Duration = Duration::from_secs(5);

/// Runs this many fades of five seconds, one each half minute.
pub fn calibrate(signal: &Signal, fades: u32, seed: u64) -> Calibration {
    let stream = &mut NumberStream::new(seed, 0, Purpose::Forecast);
    let begin = |nth: u32| Instant::ZERO + APART * (nth + 1);
    let fades: Vec<_> = (0..fades).map(|nth| (begin(nth), begin(nth) + LASTING)).collect();
    let end = begin(as_u32(fades.len()));
    let predicted = predict(signal, &fades, end, stream);
    let (mut found, mut leads_s) = (Calibration::default(), 0.0);
    let (mut known, mut is_away) = (FadeForecast::Nothing, false);
    let mut fades_left = fades.iter().map(|(begins, _)| *begins).peekable();
    for (at, news) in predicted.into_iter().chain([(end, LinkNews::Up)]) {
        while let Some(begins) = fades_left.next_if(|begins| *begins <= at) {
            match std::mem::take(&mut known) {
                FadeForecast::Warned(since) if begins.since(since) <= SOON => {
                    found.foretold += 1;
                    leads_s += begins.since(since).as_secs_f64();
                }
                FadeForecast::Warned(_) => found.early += 1,
                FadeForecast::Lost => found.sudden += 1,
                FadeForecast::Nothing => found.missed += 1,
            }
            is_away = true;
        }
        match (news, known) {
            (LinkNews::GoingDown { .. }, _) => known = FadeForecast::Warned(at),
            (LinkNews::Gone, FadeForecast::Nothing) if !is_away => known = FadeForecast::Lost,
            // A fade that is taken for gone a little too early counts as foretold.
            (LinkNews::Gone, _) => {}
            (LinkNews::Up, _) => {
                match std::mem::take(&mut known) {
                    FadeForecast::Warned(_) => found.false_alarms += 1,
                    FadeForecast::Lost => found.false_losses += 1,
                    FadeForecast::Nothing => {}
                }
                is_away = false;
            }
        }
    }
    found.fades = as_u32(fades.len());
    found.lead_s = leads_s / f64::from(found.foretold.max(1));
    found.hours = end.since(Instant::ZERO).as_secs_f64() / 3_600.0;
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream() -> NumberStream {
        NumberStream::new(1, 0, Purpose::Forecast)
    }

    fn s(s: u64) -> Instant {
        Instant::from_secs(s)
    }

    fn names(signal: &Signal, fades: &[(Instant, Instant)]) -> Vec<&'static str> {
        predict(signal, fades, s(60), &mut stream()).iter().map(|(_, news)| news.name()).collect()
    }

    #[test]
    fn a_signal_that_falls_is_told_of_before_it_is_gone_and_the_link_is_back_after_it() {
        let quiet = Signal { slope_db_s: 20.0, noise_db: 0.0, shadow_db: 0.0 };
        let predicted = predict(&quiet, &[(s(10), s(20))], s(40), &mut stream());
        let times: Vec<_> = predicted.iter().map(|(at, news)| (at.as_millis(), news.name())).collect();
        let [(down, "going-down"), (gone, "gone"), (up, "up")] = times[..] else { panic!("{times:?}") };
        assert!((9_600..10_000).contains(&down) && (10_000..=10_500).contains(&gone), "{times:?}");
        assert!((20_000..20_500).contains(&up), "{times:?}");
    }

    #[test]
    fn a_link_that_breaks_at_once_is_gone_when_it_has_been_silent_and_nobody_is_told_twice() {
        let sudden = Signal { slope_db_s: 1e6, noise_db: 0.0, shadow_db: 0.0 };
        assert_eq!(names(&sudden, &[(s(10), s(20)), (s(30), s(31))]), ["gone", "up", "gone", "up"]);
        assert!(names(&Signal::default(), &[]).is_empty(), "noise alone");
    }

    #[test]
    fn only_the_fades_beside_a_moment_say_how_strong_the_signal_is_then() {
        let signal = Signal { slope_db_s: 2.0, noise_db: 0.0, shadow_db: 0.0 };
        let fades = [(s(2), s(4)), (s(5), s(9)), (s(12), s(13)), (s(50), s(51))];
        for at in (0..60_000).step_by(250).map(Instant::from_millis) {
            let is_in_one = fades.iter().any(|(begins, ends)| at >= *begins && at < *ends);
            let away = |begins: Instant, ends| if at < begins { begins.since(at) } else { at.since(ends) };
            let away_s = fades.iter().map(|(begins, ends)| away(*begins, *ends).as_secs_f64());
            let level_db = away_s.fold(ABOVE_DB, |level_db, away_s| level_db.min(2.0 * away_s));
            assert_eq!(signal.level_db(at, &fades), (!is_in_one).then_some(level_db), "{at:?}");
        }
        // Outages farther off may be out of order: `level_db` does not use them.
        let odd = [(s(1), s(25)), (s(10), s(20)), (s(40), s(50)), (s(60), s(61))];
        assert_eq!(signal.level_db(s(22), &odd), Some(4.0));
    }

    #[test]
    fn every_fade_is_foretold_early_sudden_or_missed_and_noise_makes_false_alarms() {
        let of = |signal: Signal| calibrate(&signal, 100, 1);
        let usual = of(Signal::default());
        assert_eq!((usual.fades, usual.foretold + usual.early + usual.sudden + usual.missed), (100, 100));
        assert!(usual.foretold >= 90 && usual.lead_s > 0.1 && usual.lead_s < 1.0, "{usual:?}");
        let sudden = of(Signal { slope_db_s: 1e6, ..Signal::default() });
        assert_eq!((sudden.foretold, sudden.sudden, sudden.missed), (0, 0, 100), "{sudden:?}");
        // With a slow fall in noise, the link is often taken to be gone and back before it fades. No warning comes.
        let slow = of(Signal { slope_db_s: 2.0, ..Signal::default() });
        assert!(slow.sudden > slow.missed && slow.false_losses > usual.false_losses, "{slow:?}");
        let shadowed = of(Signal { shadow_db: 8.0, ..Signal::default() });
        assert!(shadowed.false_alarms > usual.false_alarms, "{shadowed:?}");
    }
}
