//! `hopwise proxy plan`: prints and draws the times at which a base station would release its held ACKs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hopwise_agents::base_station::plan::{self, Ask, Mode, Model, Plan, Sender, Stakes};
use hopwise_lab::units::Time;

use hopwise_daemon::failure::{self, Failure};
use hopwise_daemon::numbers;

mod draw;
mod printing;

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
    pub mode: Option<String>,
    /// Number of ACKs that are held
    #[arg(long, allow_hyphen_values = true)]
    pub(super) acks: String,
    /// Expected length of the outage, in seconds
    #[arg(long, allow_hyphen_values = true)]
    pub(super) outage: String,
    /// Smoothed RTT of the sender, in seconds
    #[arg(long, allow_hyphen_values = true)]
    pub(super) rtt: String,
    /// RTT variation of the sender, in seconds
    #[arg(long, allow_hyphen_values = true)]
    pub(super) rttvar: String,
    /// Share of an RTO for which each ACK waits
    #[arg(long, default_value = "1", allow_hyphen_values = true)]
    pub(super) margin: String,
    /// Retransmission timer of the sender: textbook, rfc6298, linux or freebsd
    #[arg(long, default_value = "linux")]
    pub(super) sender: String,
    /// Tail loss probes of the sender (default: as its kind has them)
    #[arg(long, value_name = "ON|OFF")]
    pub(super) tlp: Option<OnOff>,
    /// RACK loss detection of the sender, which finds lost retransmissions by time (default: as its kind has
    /// it)
    #[arg(long, value_name = "ON|OFF")]
    pub(super) rack: Option<OnOff>,
    /// F-RTO of the sender, which undoes one spurious timeout (default: as its kind has it)
    #[arg(long, value_name = "ON|OFF")]
    pub(super) frto: Option<OnOff>,
    /// Segments that the sender has in flight (default: twice the ACKs)
    #[arg(long, value_parser = numbers::whole(0..=u32::MAX))]
    pub(super) window: Option<u32>,
    /// Print a JSON object: of the mode, or of all modes by name
    #[arg(long)]
    pub(super) json: bool,
    /// With --json, also print the result for each number of ACKs that wait as long as they can, up to the first number
    /// that outlasts the outage
    #[arg(long, requires = "json")]
    pub(super) every_n: bool,
    /// Draw the plans into this SVG file
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OnOff {
    On,
    Off,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let plans = plans(arguments)?;
    if let Some(path) = &arguments.svg {
        hopwise_lab::named::write(path, draw::svg(&plans)).map_err(|error| {
            Failure::failed("write the drawing", format_args!("{}: {error}", path.display()))
        })?;
    }
    let text = if arguments.json {
        let (ask, sender) = (arguments.asked()?, arguments.sender()?);
        let tried = |plan: &Plan| plan::every_n(plan.mode, &ask, sender);
        let tried: Vec<_> = plans.iter().filter(|_| arguments.every_n).map(tried).collect();
        printing::json(&plans, &tried, arguments.mode.is_some())
    } else {
        printing::text(arguments, &plans)
    };
    failure::say(text.trim_end())
}

fn plans(arguments: &Arguments) -> Result<Vec<Plan>, Failure> {
    let (ask, model) = (arguments.asked()?, arguments.model()?);
    let window_segments = arguments.window.unwrap_or(ask.acks().saturating_mul(2));
    let stakes = Stakes { window_segments, cache_segments: window_segments };
    Ok(arguments.modes()?.into_iter().map(|mode| plan::plan(mode, &ask, model, &stakes)).collect())
}

impl Arguments {
    pub(super) fn asked(&self) -> Result<Ask, Failure> {
        let number = |key: &str, text: &str| {
            let wanted =
                format_args!("`{text}` is no time; accepted: seconds, such as 1 or .3, or 300ms, 10s, 2m");
            let with_unit = || text.parse::<Time>().map(|time| time.0.as_secs_f64());
            text.parse::<f64>().or_else(|_| with_unit()).map_err(|_| Failure::refused(key, wanted))
        };
        let Arguments { acks, outage, rtt, rttvar, margin, .. } = self;
        let acks: u32 = acks.parse().map_err(|_| {
            Failure::refused(
                "--acks",
                format_args!("`{acks}` is no count; accepted: a whole number from 1 to 65536"),
            )
        })?;
        let ask =
            Ask::new(acks, number("--outage", outage)?, number("--rtt", rtt)?, number("--rttvar", rttvar)?);
        let margin = number("--margin", margin)?;
        let ask = ask.and_then(|ask| ask.with_margin(margin));
        ask.map_err(|error| Failure::refused("proxy plan", error))
    }

    pub(super) fn sender(&self) -> Result<Sender, Failure> {
        Sender::named(&self.sender).ok_or_else(|| unknown("--sender", &self.sender, Sender::NAMES))
    }

    pub(super) fn model(&self) -> Result<Model, Failure> {
        let Arguments { tlp, rack, frto, .. } = self;
        let [tlp, rack, frto] = [tlp, rack, frto].map(|switch| switch.map(|switch| switch == OnOff::On));
        Ok(Model::from(self.sender()?).but(tlp, rack, frto))
    }

    pub(super) fn modes(&self) -> Result<Vec<Mode>, Failure> {
        match &self.mode {
            Some(name) => Ok(vec![Mode::named(name).ok_or_else(|| unknown("--mode", name, Mode::NAMES))?]),
            None => Ok(Mode::ALL.to_vec()),
        }
    }
}

fn unknown(key: &str, name: &str, names: &[&str]) -> Failure {
    Failure::refused(key, format_args!("nothing is called `{name}`; accepted: {}", names.join(", ")))
}

#[cfg(test)]
mod tests;
