//! Events: drawn, done to a site, and undone after a while. The order depends on the seed alone.

use std::fmt;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use hopwise_host::Clock;
use hopwise_testing::memory::Random;
use rustix::process::Signal;

use crate::Run;
use crate::daemon::{Kind, Started};
use crate::forge::Attack;
use crate::inside::elapsed;
use crate::site::Site;

/// The seconds by which a clock jumps away from the machine's.
const OFFSETS: [i64; 7] = [0, -1, 60, -3600, 86_400, -40_000_000, 300_000_000];

#[derive(Clone, Copy, Debug)]
enum What {
    /// The daemon is killed, and started again this many milliseconds later.
    Kill(usize, u64),
    /// The daemon gets SIGTERM and starts again.
    Restart(usize, u64),
    /// The daemon reads its file anew.
    Reread(usize),
    Stop(usize, u64),
    /// The daemon may open no further descriptor.
    Descriptors(usize, u64),
    /// The radio of all stations.
    StopAir(u64),
    FullDisk(u64),
    Clock(usize, i64),
    Flap(usize, u64),
    Attack(Attack, u64),
    /// All daemons of the site and its radio are killed at once.
    Power,
}

impl What {
    /// What befalls a daemon that thins ACKs.
    fn of_thinned(drawn: u64, daemon: usize, ms: u64) -> What {
        match drawn {
            0..30 => What::Kill(daemon, ms),
            30..45 => What::Restart(daemon, ms),
            45..75 => What::Stop(daemon, ms),
            _ => What::Descriptors(daemon, ms),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    site: usize,
    what: What,
    /// An attack draws from it.
    seed: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Undo {
    Start(usize),
    Continue(usize),
    Descriptors(usize),
    ContinueAir,
    EmptyDisk,
    Up(usize),
}

#[derive(Debug)]
pub(crate) struct Events {
    clock: Clock,
    due: Vec<(Duration, usize, Undo)>,
    attacks: Vec<JoinHandle<()>>,
}

impl Event {
    fn kind(&self) -> &'static str {
        match self.what {
            What::Kill(..) => "kill",
            What::Restart(..) => "restart",
            What::Reread(..) => "reread",
            What::Stop(..) => "stop",
            What::Descriptors(..) => "descriptors",
            What::StopAir(..) => "stop-air",
            What::FullDisk(..) => "full-disk",
            What::Clock(..) => "clock",
            What::Flap(..) => "flap",
            What::Attack(attack, _) => attack.name(),
            What::Power => "power",
        }
    }

    fn described(&self, sites: &[Site]) -> String {
        let site = &sites[self.site];
        let daemon = |nth: usize| site.daemons[nth].name.clone();
        let device = |nth: usize| {
            let (station, name) = site.devices[nth];
            format!("{name} of {}", site.stations[station].name())
        };
        let target: Box<dyn fmt::Display> = match self.what {
            What::Kill(nth, ms)
            | What::Restart(nth, ms)
            | What::Stop(nth, ms)
            | What::Descriptors(nth, ms) => Box::new(format!("{}, {ms} ms", daemon(nth))),
            What::Reread(nth) => Box::new(daemon(nth)),
            What::Clock(nth, seconds) => Box::new(format!("{}, {seconds:+} s", daemon(nth))),
            What::Flap(nth, ms) => Box::new(format!("{}, {ms} ms", device(nth))),
            What::StopAir(ms) | What::FullDisk(ms) | What::Attack(_, ms) => {
                Box::new(format!("{}, {ms} ms", site.name))
            }
            What::Power => Box::new(site.name),
        };
        format!("{} {target}", self.kind())
    }
}

impl Events {
    pub(crate) fn new(clock: Clock) -> Events {
        Events { clock, due: Vec::new(), attacks: Vec::new() }
    }

    /// Draws the next event; it takes the same numbers in any state of the sites.
    pub(crate) fn draw(&mut self, random: &mut Random, sites: &[Site]) -> Event {
        let site = random.below(sites.len() as u64) as usize;
        let daemon = random.below(sites[site].daemons.len() as u64) as usize;
        let device = random.below(sites[site].devices.len().max(1) as u64) as usize;
        let short = random.log_between(20, 4000);
        let attack = random.pick(&Attack::ALL);
        let offset = random.pick(&OFFSETS);
        let seed = random.next_u64();
        let is_thin = sites[site].daemons[daemon].kind == Kind::Thin;
        let drawn = random.below(100);
        let what = match drawn {
            _ if is_thin => What::of_thinned(drawn, daemon, short),
            0..20 => What::Kill(daemon, short),
            20..28 => What::Restart(daemon, short),
            28..32 => What::Reread(daemon),
            32..44 => What::Stop(daemon, short),
            44..48 => What::StopAir(short.min(1500)),
            48..56 => What::FullDisk(short),
            56..62 => What::Clock(daemon, offset),
            62..74 => What::Flap(device, short),
            74..98 => What::Attack(attack, short.min(2000)),
            _ => What::Power,
        };
        Event { site, what, seed }
    }

    pub(crate) fn perform(&mut self, event: &Event, run: &Run, sites: &mut [Site]) -> Result<(), String> {
        run.tally.events.fetch_add(1, Ordering::Relaxed);
        *run.tally.kinds.lock().entry(event.kind()).or_default() += 1;
        run.tally.note(&event.described(sites));
        let site = &mut sites[event.site];
        let undo = match event.what {
            What::Kill(nth, ms) => {
                site.kill(nth);
                Some((ms, Undo::Start(nth)))
            }
            What::Restart(nth, ms) => {
                end(site, nth, run);
                Some((ms, Undo::Start(nth)))
            }
            What::Reread(nth) => {
                let daemon = &site.daemons[nth];
                if matches!(daemon.kind, Kind::Node | Kind::Route) {
                    daemon.tell(Signal::HUP);
                }
                None
            }
            What::Stop(nth, ms) => {
                site.daemons[nth].tell(Signal::STOP);
                Some((ms, Undo::Continue(nth)))
            }
            What::Descriptors(nth, ms) => {
                if !site.daemons[nth].limit_descriptors(true) {
                    run.tally.violated(format!("{} could not be limited", site.daemons[nth].name));
                }
                Some((ms, Undo::Descriptors(nth)))
            }
            What::StopAir(ms) => {
                site.air.tell(Signal::STOP);
                Some((ms, Undo::ContinueAir))
            }
            What::FullDisk(ms) => {
                site.fill_disk();
                Some((ms, Undo::EmptyDisk))
            }
            What::Clock(nth, seconds) => {
                site.daemons[nth].set_clock(seconds);
                None
            }
            What::Flap(nth, ms) => {
                site.set_device(nth, false);
                Some((ms, Undo::Up(nth)))
            }
            What::Attack(attack, ms) => {
                let liar = site.liar.clone();
                let lasts = Duration::from_millis(ms);
                let seed = event.seed;
                self.attacks.push(std::thread::spawn(move || liar.attack(attack, seed, lasts)));
                None
            }
            What::Power => {
                self.undo_site(event.site, run, sites)?;
                sites[event.site].lose_power(run)?;
                None
            }
        };
        let now = elapsed(&self.clock);
        self.due.extend(undo.map(|(ms, undo)| (now + Duration::from_millis(ms), event.site, undo)));
        Ok(())
    }

    /// Undoes events that have lasted long enough.
    pub(crate) fn undo_due(&mut self, run: &Run, sites: &mut [Site]) -> Result<(), String> {
        let now = elapsed(&self.clock);
        let (due, later) = std::mem::take(&mut self.due).into_iter().partition(|(at, ..)| *at <= now);
        self.due = later;
        undo(due, run, sites)
    }

    fn undo_site(&mut self, site: usize, run: &Run, sites: &mut [Site]) -> Result<(), String> {
        let (due, later) = std::mem::take(&mut self.due).into_iter().partition(|(_, of, _)| *of == site);
        self.due = later;
        undo(due, run, sites)
    }

    pub(crate) fn undo_all(&mut self, run: &Run, sites: &mut [Site]) -> Result<(), String> {
        self.attacks.drain(..).for_each(|attack| drop(attack.join()));
        undo(std::mem::take(&mut self.due), run, sites)
    }
}

fn undo(due: Vec<(Duration, usize, Undo)>, run: &Run, sites: &mut [Site]) -> Result<(), String> {
    // Links and disks come first: daemons then start with both.
    let (starts, others): (Vec<_>, Vec<_>) =
        due.into_iter().partition(|(.., undo)| matches!(undo, Undo::Start(_)));
    for (_, nth, undo) in others {
        let site = &mut sites[nth];
        match undo {
            Undo::Continue(nth) => {
                site.daemons[nth].tell(Signal::CONT);
                // What hung for long was killed.
                site.look_for_the_dead(&run.tally);
                Undo::start_again(site, nth, run)?;
            }
            Undo::Descriptors(nth) => {
                site.daemons[nth].limit_descriptors(false);
            }
            Undo::ContinueAir => site.air.tell(Signal::CONT),
            Undo::EmptyDisk => site.empty_disk(),
            Undo::Up(nth) => site.set_device(nth, true),
            Undo::Start(_) => {}
        }
    }
    for (_, site, undo) in starts {
        if let Undo::Start(nth) = undo {
            Undo::start_again(&mut sites[site], nth, run)?;
        }
    }
    Ok(())
}

impl Undo {
    /// Starts a daemon again. One that cannot start on a full disk or a link that is down reports it, and starts once
    /// that is over.
    pub(crate) fn start_again(site: &mut Site, nth: usize, run: &Run) -> Result<(), String> {
        if site.daemons[nth].is_up() {
            return Ok(());
        }
        // A radio that stands still answers no daemon.
        site.air.tell(Signal::CONT);
        let first = site.daemons[nth].start(run)?;
        let outcome = match first {
            Started::Ended(status) if status.code() == Some(1) => {
                let daemon = &site.daemons[nth];
                run.tally.note(&format!("{} does not start: {}", daemon.name, daemon.last_words()));
                site.empty_disk();
                (0..site.devices.len()).for_each(|device| site.set_device(device, true));
                site.daemons[nth].start(run)?
            }
            other => other,
        };
        if outcome != Started::Ready {
            let daemon = &site.daemons[nth];
            run.tally.violated(format!(
                "{} does not start again: {outcome:?}\n    {}",
                daemon.name,
                daemon.last_words()
            ));
        }
        Ok(())
    }
}

/// Ends a daemon, which obeys in any state.
fn end(site: &mut Site, nth: usize, run: &Run) {
    if !site.daemons[nth].is_up() {
        return;
    }
    let ended = site.daemons[nth].end();
    if ended.and_then(|status| status.code()) != Some(0) {
        let daemon = &site.daemons[nth];
        let last = daemon.last_words();
        run.tally.violated(format!("{} did not end in order: {ended:?}\n    {last}", daemon.name));
    }
}
