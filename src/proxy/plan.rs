//! `hopwise proxy plan`: prints and draws the times at which a base station would release its held ACKs.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hopwise_agents::base_station::plan::{self, Ask, Mode, Model, Plan, Sender, Stakes};
use serde_json::{Value, json};

use crate::failure::{self, Failure};

mod draw;

/// Print and draw when held ACKs are released during an outage, and how the sender's timer reacts
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise proxy plan --acks 30 --outage 1000 --rtt 1 --rttvar .3
  hopwise proxy plan --mode corrected --acks 30 --outage 1000 --rtt 1 --rttvar .3 --json
  hopwise proxy plan --acks 20 --outage 10 --rtt .05 --rttvar .01 --sender rfc6298 --svg plan.svg

The modes paper and corrected plan for the paper's sender, whose RTO is exactly SRTT + 4 RTTVAR.")]
pub(crate) struct Arguments {
    /// Plan to print: paper, corrected, cumulative, kick or hopwise (default: all)
    #[arg(long)]
    mode: Option<String>,
    /// Number of ACKs that are held
    #[arg(long, allow_hyphen_values = true)]
    acks: String,
    /// Expected length of the outage, in seconds
    #[arg(long, allow_hyphen_values = true)]
    outage: String,
    /// Smoothed RTT of the sender, in seconds
    #[arg(long, allow_hyphen_values = true)]
    rtt: String,
    /// RTT variation of the sender, in seconds
    #[arg(long, allow_hyphen_values = true)]
    rttvar: String,
    /// Share of an RTO for which each ACK waits
    #[arg(long, default_value = "1", allow_hyphen_values = true)]
    margin: String,
    /// Retransmission timer of the sender: textbook, rfc6298, linux or freebsd
    #[arg(long, default_value = "linux")]
    sender: String,
    /// Tail loss probes of the sender (default: as its kind has them)
    #[arg(long, value_name = "ON|OFF")]
    tlp: Option<Switch>,
    /// RACK loss detection of the sender, which finds lost retransmissions by time (default: as its kind has
    /// it)
    #[arg(long, value_name = "ON|OFF")]
    rack: Option<Switch>,
    /// F-RTO of the sender, which undoes one spurious timeout (default: as its kind has it)
    #[arg(long, value_name = "ON|OFF")]
    frto: Option<Switch>,
    /// Segments that the sender has in flight (default: twice the ACKs)
    #[arg(long)]
    window: Option<u32>,
    /// Print a JSON object: of the mode, or of all modes by name
    #[arg(long)]
    json: bool,
    /// With --json, also print the result for each number of ACKs that wait as long as they can, up to the first number
    /// that outlasts the outage
    #[arg(long, requires = "json")]
    every_n: bool,
    /// Draw the plans into this SVG file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let plans = plans(arguments)?;
    if let Some(path) = &arguments.svg {
        std::fs::write(path, draw::svg(&plans)).map_err(|error| {
            Failure::failed("write the drawing", format_args!("{}: {error}", path.display()))
        })?;
    }
    let text = if arguments.json {
        let (ask, sender) = (asked(arguments)?, sender(arguments)?);
        let value = |plan: &Plan| {
            let mut value = value(plan);
            if arguments.every_n {
                value["every_n"] = plan::every_n(plan.mode, &ask, sender).iter().map(tried).collect();
            }
            value
        };
        let of_mode = |plan: &Plan| (plan.mode.name().to_owned(), value(plan));
        match (&arguments.mode, &plans[..]) {
            (Some(_), [one]) => value(one).to_string(),
            _ => Value::Object(plans.iter().map(of_mode).collect()).to_string(),
        }
    } else {
        let outage = format!("{} ACKs over an outage of {} s", arguments.acks, arguments.outage);
        plans.iter().fold(outage, |text, plan| format!("{text}\n\n{}", described(plan)))
    };
    failure::say(text.trim_end())
}

fn asked(arguments: &Arguments) -> Result<Ask, Failure> {
    let number = |key: &str, text: &str| {
        let wanted = format_args!("`{text}` is no number; accepted: seconds, such as 1 or .3");
        text.parse::<f64>().map_err(|_| Failure::refused(key, wanted))
    };
    let Arguments { acks, outage, rtt, rttvar, margin, .. } = arguments;
    let acks: u32 = acks.parse().map_err(|_| {
        Failure::refused(
            "--acks",
            format_args!("`{acks}` is no count; accepted: a whole number from 1 to 65536"),
        )
    })?;
    let ask = Ask::new(acks, number("--outage", outage)?, number("--rtt", rtt)?, number("--rttvar", rttvar)?);
    let margin = number("--margin", margin)?;
    let ask = ask.and_then(|ask| ask.with_margin(margin));
    ask.map_err(|error| Failure::refused("proxy plan", error))
}

fn sender(arguments: &Arguments) -> Result<Sender, Failure> {
    Sender::named(&arguments.sender).ok_or_else(|| unknown("--sender", &arguments.sender, Sender::NAMES))
}

fn model(arguments: &Arguments) -> Result<Model, Failure> {
    let Arguments { tlp, rack, frto, .. } = arguments;
    let [tlp, rack, frto] = [tlp, rack, frto].map(|switch| switch.map(|switch| switch == Switch::On));
    Ok(Model::from(sender(arguments)?).but(tlp, rack, frto))
}

fn plans(arguments: &Arguments) -> Result<Vec<Plan>, Failure> {
    let (ask, model) = (asked(arguments)?, model(arguments)?);
    let modes = match &arguments.mode {
        Some(name) => vec![Mode::named(name).ok_or_else(|| unknown("--mode", name, Mode::NAMES))?],
        None => Mode::ALL.to_vec(),
    };
    let window_segments = arguments.window.unwrap_or(ask.acks().saturating_mul(2));
    let stakes = Stakes { window_segments, cache_segments: window_segments };
    Ok(modes.into_iter().map(|mode| plan::plan(mode, &ask, model, &stakes)).collect())
}

fn unknown(key: &str, name: &str, names: &[&str]) -> Failure {
    Failure::refused(key, format_args!("nothing is called `{name}`; accepted: {}", names.join(", ")))
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// The values that a search compares.
fn tried(plan: &Plan) -> Value {
    let Plan { n, feasible, theta_s, final_rto_s, .. } = plan;
    json!({
        "n": n,
        "feasible": feasible,
        "theta_s": theta_s.map(rounded),
        "final_rto_s": rounded(*final_rto_s),
    })
}

/// The plan as JSON; times to the microsecond.
fn value(plan: &Plan) -> Value {
    let all = |times: &[f64]| times.iter().copied().map(rounded).collect::<Vec<_>>();
    json!({
        "mode": plan.mode.name(),
        "choice": plan.choice.name(),
        "feasible": plan.feasible,
        "n": plan.n,
        "theta_s": plan.theta_s.map(rounded),
        "final_rto_s": rounded(plan.final_rto_s),
        "covers_s": rounded(plan.covers_s),
        "timeouts": plan.timeouts,
        "release_at_s": all(&plan.release_at_s),
        "rto_s": all(&plan.rto_s),
    })
}

fn described(plan: &Plan) -> String {
    let Plan { mode, choice, feasible, n, theta_s, final_rto_s, covers_s, timeouts, release_at_s, .. } = plan;
    let mut text = format!("{}: {}", mode.name(), choice.name());
    if !release_at_s.is_empty() {
        let _ = write!(text, ", {n} ACKs wait as long as they can");
        if let Some(theta_s) = theta_s {
            let _ = write!(text, ", the other {} every {theta_s:.3} s", release_at_s.len() - *n as usize);
        }
    }
    let covers = match (*feasible, *timeouts) {
        (true, _) => "no timeout".to_owned(),
        (false, 0) => {
            format!("cannot cover the outage with these ACKs, but their timer runs {covers_s:.3} s")
        }
        (false, count) => {
            format!("cannot cover the outage: first timeout after {covers_s:.3} s, {count} in all")
        }
    };
    let _ = write!(text, "\n  {covers}; the RTO is then {final_rto_s:.3} s\n");
    if !release_at_s.is_empty() {
        text.push_str(&draw::terminal(plan));
    }
    text
}

#[cfg(test)]
mod tests;
