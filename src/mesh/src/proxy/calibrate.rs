//! `hopwise proxy calibrate`: how often the forecaster is right, early, silent or wrong, for several kinds of signals.

use std::fmt::Write as _;

use clap::Args;
use hopwise_lab::sim::{Calibration, Signal, SignalError, calibrate};
use serde_json::{Value, json};

use hopwise_daemon::failure::{self, Failure};
use hopwise_daemon::numbers;

/// Measure how often fades are forecast, by the signal's slope, noise and shadowing
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise proxy calibrate
  hopwise proxy calibrate --slope 10 --noise 3 --shadow 4 --json

A fade of five seconds comes every half minute. It is foretold if the warning came within the last second, early if
the warning came before that and was not withdrawn, sudden if the link only counted as down when the fade began, and
missed otherwise. A warning without a fade is a false alarm; a link that counted as down without a warning or a fade
is a false loss. Scenarios can use the same forecast: gateway: { source: predictor }.")]
pub(super) struct Arguments {
    /// Fall of the signal before a fade, in dB per second (default: several)
    #[arg(long, value_parser = numbers::finite)]
    slope: Option<f64>,
    /// Standard deviation of the independent error of a sample, in dB
    #[arg(long, default_value_t = 2.0, value_parser = numbers::finite)]
    noise: f64,
    /// Standard deviation of shadowing that lasts half a second, in dB (default: several)
    #[arg(long, value_parser = numbers::finite)]
    shadow: Option<f64>,
    /// Number of fades
    #[arg(long, default_value_t = 200, value_parser = numbers::whole(1..=100_000_u32))]
    fades: u32,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = numbers::seed)]
    seed: u64,
    /// Print a JSON object for each line
    #[arg(long)]
    json: bool,
}

const SLOPES_DB_S: [f64; 5] = [2.0, 5.0, 10.0, 20.0, 40.0];
const SHADOWS_DB: [f64; 3] = [0.0, 2.0, 4.0];

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let rows = rows(arguments)?;
    let text = if arguments.json {
        Value::Array(rows.iter().map(|(signal, found)| value(signal, found)).collect()).to_string()
    } else {
        table(&rows)
    };
    failure::say(text.trim_end())
}

/// The forecasts for each kind of signal.
fn rows(arguments: &Arguments) -> Result<Vec<(Signal, Calibration)>, Failure> {
    let of = |given: Option<f64>, usual: &[f64]| given.map_or(usual.to_vec(), |given| vec![given]);
    let slopes = of(arguments.slope, &SLOPES_DB_S);
    let mut rows = Vec::new();
    for shadow_db in of(arguments.shadow, &SHADOWS_DB) {
        for slope_db_s in slopes.iter().copied() {
            let signal = Signal { slope_db_s, noise_db: arguments.noise, shadow_db };
            signal.check().map_err(|error| refused(&error))?;
            rows.push((signal, calibrate(&signal, arguments.fades, arguments.seed)));
        }
    }
    Ok(rows)
}

/// A refusal of the flag with the faulty value.
fn refused(error: &SignalError) -> Failure {
    let flag = match error.key {
        "slope_db_s" => "--slope",
        "noise_db" => "--noise",
        _ => "--shadow",
    };
    Failure::refused(flag, format_args!("{}, expected {}", error.value, error.accepted()))
}

/// The number in each hour.
fn hourly(count: u32, found: &Calibration) -> f64 {
    f64::from(count) / found.hours
}

fn value(signal: &Signal, found: &Calibration) -> Value {
    json!({
        "slope_db_s": signal.slope_db_s,
        "noise_db": signal.noise_db,
        "shadow_db": signal.shadow_db,
        "fades": found.fades,
        "foretold": found.foretold,
        "early": found.early,
        "sudden": found.sudden,
        "missed": found.missed,
        "false_alarms_an_hour": hourly(found.false_alarms, found),
        "false_losses_an_hour": hourly(found.false_losses, found),
        "lead_s": found.lead_s,
    })
}

fn table(rows: &[(Signal, Calibration)]) -> String {
    let mut text =
        "slope dB/s  noise dB  shadow dB  fades  foretold  early  sudden  missed  lead s  false alarms/h  \
         false losses/h\n"
            .to_owned();
    for (signal, found) in rows {
        let Signal { slope_db_s, noise_db, shadow_db } = signal;
        let Calibration { fades, foretold, early, sudden, missed, lead_s, .. } = found;
        let [alarms, losses] = [found.false_alarms, found.false_losses].map(|count| hourly(count, found));
        let _ = writeln!(
            text,
            "{slope_db_s:>10}  {noise_db:>8}  {shadow_db:>9}  {fades:>5}  {foretold:>8}  {early:>5}  {sudden:>6}  \
             {missed:>6}  {lead_s:>6.2}  {alarms:>14.1}  {losses:>14.1}"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fade_stands_in_one_column() {
        let signal = Signal::default();
        let found = calibrate(&signal, 20, 1);
        let value = value(&signal, &found);
        let sum: u64 =
            ["foretold", "early", "sudden", "missed"].iter().filter_map(|key| value[key].as_u64()).sum();
        assert_eq!((sum, value["fades"].as_u64()), (20, Some(20)));
        let text = table(&[(signal, found)]);
        assert_eq!(text.lines().count(), 2);
        let widths: Vec<_> = text.lines().map(str::len).collect();
        assert_eq!(widths[0], widths[1], "{text}");
    }
}
