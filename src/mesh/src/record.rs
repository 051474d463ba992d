//! `hopwise mesh record`: what this host's radio hears of each neighbour and how its packets fare there, over time.
//!
//! The kernel, or the program that makes the radio, is asked for stations in each interval. A row is written at once
//! and whole, so a kill costs an interval at most. Rows count from a clock that never jumps; comments in the file tell
//! the time of day, again after somebody set it.

mod sample;
mod summary;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hopwise_air::channel::recording::{RecordingOrigin, head_with};
use hopwise_core::{Instant, StationAddress, nanos};
use hopwise_host::netlink::index_of;
use hopwise_host::nl80211::{EVERY, Nl80211, Polled, StationSource};
use hopwise_host::{Clock, clock_is_synchronised, wait_for};
use hopwise_lab::units::Time;
use rustix::event::{PollFd, PollFlags};

use hopwise_daemon::failure::{Failure, json, remark, say};
use hopwise_daemon::signals;
use hopwise_node::fleet::here;

pub(super) use sample::NodeName;
use sample::Sampler;
use summary::{RecordingProgress, RecordingSummary};

const LONGEST_INTERVAL: Duration = Duration::from_secs(3_600);
/// An interface that tells nothing for that long is gone.
const SILENT: Duration = Duration::from_secs(5);
/// Two readings of clocks that lie further apart were interrupted.
const AT_ONCE: Duration = Duration::from_millis(1);
const MOST_READINGS: u32 = 10;

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
    #[arg(long, value_name = "NAME", value_parser = sample::name)]
    name: Option<String>,
    /// Name of a neighbour, by the address of its radio; repeatable
    #[arg(long, value_name = "ADDRESS=NAME")]
    node: Vec<NodeName>,
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
    let radio = RecordedRadio::open(interface)?;
    let node = arguments.name.clone().unwrap_or_else(here::name);
    let named = arguments.node.iter().map(|NodeName(address, name)| (*address, name.clone())).collect();
    let sampler = Sampler::new(&node, named, arguments.hold.0);
    let ends = signals::watch().map_err(Failure::during("watch for signals"))?;
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
        progress: RecordingProgress::new(),
        summary: RecordingSummary::new(interface, &node),
    };
    let ended = recorder.record(&ends, arguments.during.map(|time| time.0));
    let Recorder { sampler, mut summary, progress, .. } = recorder;
    progress.end();
    summary.neighbours = sampler.counted();
    summary.out = arguments.out.as_ref().map(|out| out.display().to_string());
    summary.every_s = every.0.as_secs_f64();
    if arguments.json {
        say(&json(&summary)?)?;
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
struct RecordedRadio {
    source: StationSource,
    /// Absent for a radio that is no Wi-Fi for the kernel.
    asking: Option<Nl80211>,
    number: u32,
    address: Option<StationAddress>,
}

impl RecordedRadio {
    fn open(interface: &str) -> Result<RecordedRadio, Failure> {
        let number = index_of(interface).map_err(|_| none(interface, "there is no such interface"))?;
        let source = StationSource::open(interface).map_err(|error| {
            none(interface, &format!("it has no stations, so it is no Wi-Fi interface ({error})"))
        })?;
        let address = fs::read_to_string(format!("/sys/class/net/{interface}/address")).ok();
        let address = address.and_then(|text| text.trim().parse().ok());
        Ok(RecordedRadio { source, asking: Nl80211::open().ok(), number, address })
    }
}

/// Refuses an interface that cannot be recorded, and names the interfaces that can.
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
    radio: RecordedRadio,
    sampler: Sampler,
    out: Box<dyn Write>,
    progress: RecordingProgress,
    summary: RecordingSummary,
}

impl Recorder {
    /// Samples until a signal, until the time is over, or until the radio is gone.
    fn record(&mut self, ends: &OwnedFd, during: Option<Duration>) -> Result<(), Failure> {
        let (clock, every_ns) = (Clock::start(), nanos(self.every));
        let mut wall = WallClock::new(&clock, every_ns);
        // Hosts with clocks that agree sample together.
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
                lines = RecordingOrigin::began_line(began.0 + wall.zero_ns);
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
        let origin = RecordingOrigin { began_ns: Some(began_ns), nodes: nodes.into_iter().collect() };
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

/// The time of day at which a clock showed zero. It changes when somebody sets the time of day.
#[derive(Clone, Copy, Debug)]
struct WallClock {
    /// Nanoseconds since 1970.
    zero_ns: u64,
    /// A change by more than that counts.
    bound_ns: u64,
}

impl WallClock {
    /// Steps of half an interval or less move no row.
    fn new(clock: &Clock, every_ns: u64) -> WallClock {
        WallClock { zero_ns: at_zero(clock), bound_ns: every_ns / 2 }
    }

    /// Returns whether somebody has set the time of day since the last call.
    fn was_set(&mut self, clock: &Clock) -> bool {
        self.moves_to(at_zero(clock))
    }

    fn moves_to(&mut self, zero_ns: u64) -> bool {
        let was_set = zero_ns.abs_diff(self.zero_ns) > self.bound_ns;
        if was_set {
            self.zero_ns = zero_ns;
        }
        was_set
    }
}

fn at_zero(clock: &Clock) -> u64 {
    let mut found = 0;
    for _ in 0..MOST_READINGS {
        let before = clock.now();
        let wall = Clock::wall();
        let after = clock.now();
        found = nanos(wall).saturating_sub(after.0);
        if after.since(before) < AT_ONCE {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_counts_once_in_either_direction_and_a_small_step_does_not() {
        let hour_ns = 3_600_000_000_000;
        let mut wall = WallClock { zero_ns: 2 * hour_ns, bound_ns: 50_000_000 };
        let times = [2 * hour_ns + 40_000_000, hour_ns, hour_ns, 3 * hour_ns, 3 * hour_ns - 1];
        let jumps = times.map(|zero_ns| wall.moves_to(zero_ns));
        assert_eq!((jumps, wall.zero_ns), ([false, true, false, true, false], 3 * hour_ns));
        let (clock, mut wall) = (Clock::start(), WallClock::new(&Clock::start(), u64::MAX));
        assert!(!wall.was_set(&clock) && wall.zero_ns > 0);
    }
}
