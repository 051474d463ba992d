//! `hopwise proxy`: a base station for a link that fades.

use std::io;
use std::path::Path;
use std::time::Duration;

use hopwise_lab::located::Document;
use hopwise_lab::plain;

use hopwise_daemon::failure::{self, Failure};

mod arguments;
mod calibrate;
pub mod config;
mod control;
mod devices;
mod firewall;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod plan;
mod serve;
mod sources;
pub mod trial;

pub use arguments::Arguments;
use arguments::{ProxyNews, Sub};
use control::{ProxyRequest, ProxyResponse, ProxyStatus};

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    match (&arguments.subcommand, &arguments.config) {
        (Some(Sub::Plan(arguments)), _) => plan::run(arguments),
        (Some(Sub::Calibrate(arguments)), _) => calibrate::run(arguments),
        (Some(Sub::Event(event)), _) => tell(&event.news),
        (Some(Sub::Watch { patience, process, alone }), _) => {
            crate::watchdog::run(*patience, *process, *alone)
        }
        (Some(Sub::Status { at, text }), _) => status(&at.control, *text),
        (None, Some(path)) => carry(path, arguments),
        (None, None) => {
            Err(Failure::refused("proxy", "accepted: a configuration, plan, calibrate, event or status"))
        }
    }
}

fn carry(path: &Path, arguments: &Arguments) -> Result<(), Failure> {
    let (document, config) = Document::load_with(path, config::read)?;
    if arguments.check {
        return hopwise_daemon::accepted(path);
    }
    if let Some(absent) = config::absent_carrier(&document, &config) {
        return Err(absent);
    }
    hopwise_daemon::log::begin();
    let trial = arguments.with_trial.then(trial::hear).transpose()?;
    serve::run(&config, trial)
}

fn tell(news: &ProxyNews) -> Result<(), Failure> {
    let micros = |time: &Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let (request, at) = match news {
        ProxyNews::GoingDown { mobile, outage, rtt, within, at } => {
            let (rtt_us, outage_us, within_us) = (micros(rtt), micros(outage), micros(within));
            (ProxyRequest::GoingDown { peer: *mobile, rtt_us, outage_us, within_us }, at)
        }
        ProxyNews::Signal { mobile, dbm, at } => (ProxyRequest::Signal { peer: *mobile, dbm: *dbm }, at),
        ProxyNews::Gone { mobile, at } => (ProxyRequest::Gone { peer: *mobile }, at),
        ProxyNews::Up { mobile, at } => (ProxyRequest::Up { peer: *mobile }, at),
    };
    ask(&at.control, request).map(drop)
}

fn status(at: &Path, is_text: bool) -> Result<(), Failure> {
    let Some(status) = ask(at, ProxyRequest::Status)? else {
        return Err(Failure::failed("ask the proxy", "it answered something else"));
    };
    if is_text {
        return failure::say(&status.page());
    }
    let text = serde_json::to_string(&status).map_err(Failure::during("ask the proxy"))?;
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

fn ask(at: &Path, request: ProxyRequest) -> Result<Option<Box<ProxyStatus>>, Failure> {
    let shown = at.display();
    let answer = hopwise_daemon::control::ask(at, &request).map_err(|error| {
        Failure::failed("ask the proxy", format_args!("{shown}: {error}{}", hint(&error)))
    })?;
    match answer {
        ProxyResponse::Done => Ok(None),
        ProxyResponse::Status(status) => Ok(Some(status)),
        ProxyResponse::Refused(problem) => Err(Failure::failed("ask the proxy", plain::line(&problem))),
    }
}
