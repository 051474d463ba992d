//! `hopwise proxy`: a base station for a link that fades.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use hopwise_lab::plain;
use hopwise_lab::units::Time;

use crate::failure::{self, Failure};

mod calibrate;
pub(crate) mod config;
mod control;
mod devices;
mod firewall;
pub mod fuzzing;
mod plan;
mod serve;
mod sources;
mod told;
mod watchdog;

use control::{Request, Response, Status};

/// Run base-station agents on a router's traffic, report link events to a running proxy, or plan a fade
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  hopwise proxy configs/proxy.yaml
  hopwise proxy event going-down 10.9.0.2 --outage 10s
  hopwise proxy event gone 10.9.0.2
  hopwise proxy event up 10.9.0.2
  hopwise proxy status
  hopwise proxy plan --acks 30 --outage 1000 --rtt 1 --rttvar .3
  hopwise proxy calibrate

It ends on SIGTERM, SIGINT, SIGQUIT or SIGHUP. The router then forwards as before, also if the proxy is killed."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    subcommand: Option<Sub>,
    /// Configuration file in YAML
    config: Option<PathBuf>,
    /// Check the configuration and exit
    #[arg(long)]
    check: bool,
}

#[derive(Debug, Subcommand)]
enum Sub {
    Plan(plan::Arguments),
    Calibrate(calibrate::Arguments),
    Event(Event),
    /// Kill the process at standard output once standard input is silent for this long
    #[command(hide = true)]
    Watch {
        #[arg(value_parser = time)]
        patience: Duration,
    },
    /// Print the state and counters of a running proxy as JSON, with the facts about its stations
    Status {
        #[command(flatten)]
        at: At,
        /// Print lines for people instead
        #[arg(long)]
        text: bool,
    },
}

/// Report an event of a mobile's link to a running proxy
#[derive(Args, Debug)]
struct Event {
    #[command(subcommand)]
    news: News,
}

#[derive(Debug, Subcommand)]
enum News {
    /// Report that the link to a mobile will go down soon
    GoingDown {
        /// Address of the mobile
        mobile: IpAddr,
        /// Expected length of the outage, such as 10s
        #[arg(long, value_parser = time)]
        outage: Duration,
        /// Round-trip time between proxy and mobile, used until a flow has measured it
        #[arg(long, value_parser = time, default_value = "20ms")]
        rtt: Duration,
        /// Expected time until the link goes down, such as 200ms; 0s: unknown
        #[arg(long, value_parser = time, default_value = "0s")]
        within: Duration,
        #[command(flatten)]
        at: At,
    },
    /// Report that the link to a mobile is down
    Gone {
        /// Address of the mobile
        mobile: IpAddr,
        #[command(flatten)]
        at: At,
    },
    /// Report the strength of a mobile's signal, for a proxy that forecasts fades
    Signal {
        /// Address of the mobile
        mobile: IpAddr,
        /// Signal strength in dBm
        #[arg(long, allow_hyphen_values = true)]
        dbm: i8,
        #[command(flatten)]
        at: At,
    },
    /// Report that the link to a mobile is up again
    Up {
        /// Address of the mobile
        mobile: IpAddr,
        #[command(flatten)]
        at: At,
    },
}

#[derive(Args, Debug)]
struct At {
    /// Control socket of the proxy
    #[arg(long, value_name = "SOCKET", default_value_os_t = config::control())]
    control: PathBuf,
}

fn time(text: &str) -> Result<Duration, String> {
    serde_yaml::from_str::<Time>(text).map(|time| time.0).map_err(|error| error.to_string())
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match (&arguments.subcommand, &arguments.config) {
        (Some(Sub::Plan(arguments)), _) => plan::run(arguments),
        (Some(Sub::Calibrate(arguments)), _) => calibrate::run(arguments),
        (Some(Sub::Event(event)), _) => tell(&event.news),
        (Some(Sub::Watch { patience }), _) => watchdog::watch(*patience),
        (Some(Sub::Status { at, text }), _) => status(&at.control, *text),
        (None, Some(path)) => carry(path, arguments.check),
        (None, None) => {
            Err(Failure::refused("proxy", "accepted: a configuration, plan, calibrate, event or status"))
        }
    }
}

fn carry(path: &Path, is_check: bool) -> Result<(), Failure> {
    let config = config::load(path)?;
    if is_check {
        return crate::daemon::accepted(path);
    }
    crate::daemon::log::begin();
    serve::run(&config)
}

fn tell(news: &News) -> Result<(), Failure> {
    let micros = |time: &Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let (request, at) = match news {
        News::GoingDown { mobile, outage, rtt, within, at } => {
            let (rtt_us, outage_us, within_us) = (micros(rtt), micros(outage), micros(within));
            (Request::GoingDown { peer: *mobile, rtt_us, outage_us, within_us }, at)
        }
        News::Signal { mobile, dbm, at } => (Request::Signal { peer: *mobile, dbm: *dbm }, at),
        News::Gone { mobile, at } => (Request::Gone { peer: *mobile }, at),
        News::Up { mobile, at } => (Request::Up { peer: *mobile }, at),
    };
    ask(&at.control, request).map(drop)
}

fn status(at: &Path, is_text: bool) -> Result<(), Failure> {
    let Some(status) = ask(at, Request::Status)? else {
        return Err(Failure::failed("ask the proxy", "it answered something else"));
    };
    if is_text {
        return failure::say(&status.page());
    }
    let text = serde_json::to_string(&status).map_err(|error| Failure::failed("ask the proxy", error))?;
    failure::say(&text)
}

/// The likely reason why no proxy answers.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            ": is `hopwise proxy` running? --control names the socket of its file's `control:`"
        }
        io::ErrorKind::PermissionDenied => ": only root and the proxy's user may ask",
        _ => "",
    }
}

fn ask(at: &Path, request: Request) -> Result<Option<Box<Status>>, Failure> {
    let shown = at.display();
    let answer = crate::daemon::control::ask(at, &request).map_err(|error| {
        Failure::failed("ask the proxy", format_args!("{shown}: {error}{}", hint(&error)))
    })?;
    match answer {
        Response::Done => Ok(None),
        Response::Status(status) => Ok(Some(status)),
        Response::Refused(problem) => Err(Failure::failed("ask the proxy", plain::line(&problem))),
    }
}
