//! The arguments of `hopwise proxy`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use hopwise_lab::units::Time;

use super::{calibrate, config, plan};
use hopwise_daemon::numbers;

/// Run base-station agents on a router, to hold ACKs while a mobile's link fades
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
pub struct Arguments {
    #[command(subcommand)]
    pub(super) subcommand: Option<Sub>,
    /// Configuration file in YAML
    pub(super) config: Option<PathBuf>,
    /// Check the configuration and exit
    #[arg(long)]
    pub check: bool,
    /// Obey a trial that has started this: take its news of links, begin at its word, and then print counts
    #[arg(long, hide = true)]
    pub(super) with_trial: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum Sub {
    Plan(plan::Arguments),
    Calibrate(calibrate::Arguments),
    Event(EventArguments),
    /// Kill the process at standard output once standard input is silent for this long
    #[command(hide = true)]
    Watch {
        #[arg(value_parser = time)]
        patience: Duration,
        /// Number of the process
        #[arg(value_parser = numbers::whole(1..=i32::MAX))]
        process: i32,
        /// Watch in this process, and not in one that is started again when it is killed
        #[arg(long)]
        alone: bool,
    },
    /// Print the state and counters of a running proxy as JSON, with the facts about its stations
    Status {
        #[command(flatten)]
        at: At,
        /// Print lines for people, not JSON
        #[arg(long)]
        text: bool,
    },
}

/// Report an event of a mobile's link to a running proxy
#[derive(Args, Debug)]
pub(super) struct EventArguments {
    #[command(subcommand)]
    pub(super) news: ProxyNews,
}

#[derive(Debug, Subcommand)]
pub(super) enum ProxyNews {
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
        #[arg(long, allow_hyphen_values = true, value_parser = numbers::whole(i8::MIN..=i8::MAX))]
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
pub(super) struct At {
    /// Control socket of the proxy
    #[arg(long, value_name = "SOCKET", default_value_os_t = config::control())]
    pub control: PathBuf,
}

fn time(text: &str) -> Result<Duration, String> {
    serde_yaml::from_str::<Time>(text).map(|time| time.0).map_err(|error| error.to_string())
}
