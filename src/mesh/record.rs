//! `hopwise mesh record`: what this host's radio hears of each neighbour and how its packets fare there, over time.
//!
//! The kernel, or the program that makes the radio, is asked for stations in each interval. A row is written at once
//! and whole, so a kill costs an interval at most. Rows count from a clock that never jumps; the time of day is told
//! beside, again after somebody set it.

mod names;
mod sample;
mod summary;
mod wall;

use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hopwise_air::channel::recording::{Origin, head_with};
use hopwise_core::{Instant, StationAddress};
use hopwise_host::netlink::index_of;
use hopwise_host::nl80211::{EVERY, Nl80211, Polled, StationSource};
use hopwise_host::{Clock, clock_is_synchronised, wait_for};
use hopwise_lab::units::Time;
use indicatif::ProgressBar;
use rustix::event::{PollFd, PollFlags};

use crate::failure::{Failure, remark, say};
use crate::fleet::here;
use crate::signals;

pub(super) use names::Named;
use sample::Sampler;
use summary::Summary;
use wall::Wall;

const LONGEST_INTERVAL: Duration = Duration::from_secs(3_600);
/// An interface that tells nothing for that long is gone.
const SILENT: Duration = Duration::from_secs(5);
/// Between two lines of progress where there is no terminal.
const PAUSE: Duration = Duration::from_secs(60);

/// Record what a radio hears of its neighbours, for `channel: { trace: FILE }`
#[derive(Args, Debug)]
#[command(after_help = "\
One host tells the signals that it hears and the packets that it sends. Run it on each node, and join the files with
`hopwise mesh merge`. The clocks of the nodes have to agree within one interval. Neighbours without a name stand in the
file by their address; a merge takes their names from their own files. Ctrl-C ends it.

Examples:
  hopwise mesh record wlan0 --out roof.csv                # on each node, while traffic runs
  hopwise mesh record wlan0 --for 10m --every 1s --out roof.csv --json
  hopwise mesh record wlan0 --node 02:00:00:00:00:01=gate > roof.csv
  hopwise mesh merge gate.csv roof.csv shed.csv --out field.csv")]
pub(crate) struct Arguments {
    /// Wi-Fi interface, or one of `hopwise air`
    interface: String,
    /// File to write, which must not be there yet (default: standard output)
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Time between two samples, 50ms to 1h
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = interval)]
    every: Time,
    /// End after this time (default: at Ctrl-C)
    #[arg(long = "for", value_name = "TIME")]
    during: Option<Time>,
    /// Time after a neighbour's last frame for which its signal holds; later it is not known
    #[arg(long, value_name = "TIME", default_value = "2s")]
    hold: Time,
    /// Name of this node (default: the host's name)
    #[arg(long, value_name = "NAME", value_parser = names::name)]
    name: Option<String>,
    /// Name of a neighbour, by the address of its radio; repeatable
    #[arg(long, value_name = "ADDRESS=NAME")]
    node: Vec<Named>,
    /// Print a summary at the end as one JSON object
    #[arg(long, requires = "out")]
    json: bool,
}

fn interval(text: &str) -> Result<Time, String> {
    let time: Time = text.parse().map_err(|error| format!("{error}"))?;
    let is_fit = (EVERY..=LONGEST_INTERVAL).contains(&time.0);
    is_fit
        .then_some(time)
        .ok_or_else(|| format!("`{text}`, expected 50ms to 1h: drivers are asked 20 times a second"))
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { interface, every, .. } = arguments;
    let radio = Radio::open(interface)?;
    let node = arguments.name.clone().unwrap_or_else(here::name);
    let named = arguments.node.iter().map(|Named(address, name)| (*address, name.clone())).collect();
    let sampler = Sampler::new(&node, named, arguments.hold.0);
    let ends = signals::watch().map_err(|error| Failure::failed("watch for signals", error))?;
    let out = open(arguments.out.as_ref())?;
    if matches!(clock_is_synchronised(), Ok(false)) {
        let within = every.0.as_millis();
        remark(&format!("the clock is not synchronised: a merge needs clocks that agree within {within} ms"));
    }
    let to =
        arguments.out.as_ref().map_or_else(|| "standard output".to_owned(), |out| out.display().to_string());
    remark(&format!("recording {interface} as {node} into {to}; Ctrl-C ends it"));
    let mut recorder = Recorder {
        every: every.0,
        radio,
        sampler,
        out,
        progress: Progress::new(),
        summary: Summary::new(interface, &node),
    };
    let ended = recorder.record(&ends, arguments.during.map(|time| time.0));
    let Recorder { sampler, mut summary, progress, .. } = recorder;
    progress.end();
    summary.neighbours = sampler.counted();
    summary.out = arguments.out.as_ref().map(|out| out.display().to_string());
    summary.every_s = every.0.as_secs_f64();
    if arguments.json {
        let text = serde_json::to_string(&summary).map_err(|error| Failure::failed("write JSON", error))?;
        say(&text)?;
    } else {
        summary.lines().iter().for_each(|line| remark(line));
    }
    ended
}

/// A file that is new, so that nobody's recording is written over.
fn open(path: Option<&PathBuf>) -> Result<Box<dyn Write>, Failure> {
    let Some(path) = path else { return Ok(Box::new(io::stdout())) };
    let refused = |error: io::Error| {
        let problem = match error.kind() {
            io::ErrorKind::AlreadyExists => "it is there already, expected a new name after --out".to_owned(),
            _ => error.to_string(),
        };
        Failure::refused(path.display().to_string(), problem)
    };
    Ok(Box::new(OpenOptions::new().write(true).create_new(true).open(path).map_err(refused)?))
}

/// An interface that has stations.
struct Radio {
    source: StationSource,
    /// Absent for a radio that is no Wi-Fi for the kernel.
    asking: Option<Nl80211>,
    number: u32,
    address: Option<StationAddress>,
}

impl Radio {
    fn open(interface: &str) -> Result<Radio, Failure> {
        let number = index_of(interface).map_err(|_| none(interface, "there is no such interface"))?;
        let source = StationSource::open(interface).map_err(|error| {
            none(interface, &format!("it has no stations, so it is no Wi-Fi interface ({error})"))
        })?;
        let address = fs::read_to_string(format!("/sys/class/net/{interface}/address")).ok();
        let address = address.and_then(|text| text.trim().parse().ok());
        Ok(Radio { source, asking: Nl80211::open().ok(), number, address })
    }
}

/// An interface that cannot be recorded, with those that can.
fn none(interface: &str, problem: &str) -> Failure {
    let radios = here::with_stations();
    let expected = if radios.is_empty() {
        "expected a Wi-Fi interface that is up, or one of `hopwise air`; this network namespace has none"
            .to_owned()
    } else {
        format!("expected one of {}", radios.join(", "))
    };
    Failure::refused(interface, format!("{problem}; {expected}"))
}

struct Recorder {
    every: Duration,
    radio: Radio,
    sampler: Sampler,
    out: Box<dyn Write>,
    progress: Progress,
    summary: Summary,
}

impl Recorder {
    /// Samples until a signal, until the time is over, or until the radio is gone.
    fn record(&mut self, ends: &OwnedFd, during: Option<Duration>) -> Result<(), Failure> {
        let (clock, every_ns) = (Clock::start(), nanos(self.every));
        let mut wall = Wall::new(&clock, every_ns);
        // Hosts whose clocks agree sample at the same times.
        let began_ns = (wall.zero_ns + clock.now().0).div_ceil(every_ns) * every_ns;
        let began = Instant(began_ns - wall.zero_ns);
        self.begin(began_ns)?;
        let (mut nth, mut last_told) = (0, Instant::ZERO);
        loop {
            let at = Instant::ZERO + Duration::from_nanos(nth * every_ns);
            if has_signal(ends, &clock, Instant(began.0 + at.0))? {
                return Ok(());
            }
            let mut lines = String::new();
            if wall.was_set(&clock) {
                lines = Origin::began_line(began.0 + wall.zero_ns);
                self.summary.clock_was_set += 1;
            }
            if self.radio.source.poll(at, &mut |_| {}) == Polled::Fresh {
                last_told = at;
                let (asking, number) = (&mut self.radio.asking, self.radio.number);
                let used = asking.as_mut().and_then(|asking| asking.channel_use(number).ok().flatten());
                self.sampler.sample(at, self.radio.source.facts(), used, &mut |row| {
                    self.summary.rows += 1;
                    lines.push_str(&format!("{row}\n"));
                });
            } else if at.since(last_told) > SILENT.max(3 * self.every) {
                let problem =
                    format!("nothing tells its stations for {} s: it is gone or down", SILENT.as_secs());
                return Err(Failure::failed("ask the interface", problem));
            }
            self.summary.length_s = at.0 as f64 / 1e9;
            if !self.write(&lines)? || during.is_some_and(|during| at.0 + every_ns > nanos(during)) {
                return Ok(());
            }
            self.progress.show(at, &self.summary, self.sampler.neighbours());
            // Times that have passed meanwhile have no sample.
            nth = (nth + 1).max(clock.now().0.saturating_sub(began.0) / every_ns);
        }
    }

    fn begin(&mut self, began_ns: u64) -> Result<(), Failure> {
        let nodes = self.radio.address.map(|address| (self.summary.node.clone(), address));
        self.summary.address = nodes.as_ref().map(|(_, address)| address.to_string());
        self.summary.began_s = began_ns as f64 / 1e9;
        let origin = Origin { began_ns: Some(began_ns), nodes: nodes.into_iter().collect() };
        self.write(&head_with(self.every.as_secs_f64(), &[], &origin)).map(drop)
    }

    /// Returns whether anybody reads it still.
    fn write(&mut self, lines: &str) -> Result<bool, Failure> {
        match self.out.write_all(lines.as_bytes()).and_then(|()| self.out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            Err(error) => {
                Err(Failure::failed("write the recording", format!("{error}; what is written stays")))
            }
            Ok(()) => Ok(true),
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Waits until that time, or for a signal.
fn has_signal(ends: &OwnedFd, clock: &Clock, until: Instant) -> Result<bool, Failure> {
    loop {
        let now = clock.now();
        let left = if now < until { until.since(now) } else { Duration::ZERO };
        match wait_for(&mut [PollFd::new(ends, PollFlags::IN)], left) {
            Ok(ready) => return Ok(ready > 0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Failure::failed("wait", error)),
        }
    }
}

/// A line that changes on a terminal, and lines now and then elsewhere.
struct Progress {
    bar: Option<ProgressBar>,
    shown: Instant,
}

impl Progress {
    fn new() -> Progress {
        Progress { bar: io::stderr().is_terminal().then(ProgressBar::new_spinner), shown: Instant::ZERO }
    }

    fn show(&mut self, at: Instant, summary: &Summary, neighbours: usize) {
        let state = || format!("{:.0} s, {} rows, {neighbours} neighbours", summary.length_s, summary.rows);
        match &self.bar {
            Some(bar) => {
                bar.set_message(state());
                bar.tick();
            }
            None if at.since(self.shown) >= PAUSE => {
                self.shown = at;
                remark(&state());
            }
            None => {}
        }
    }

    fn end(&self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}
