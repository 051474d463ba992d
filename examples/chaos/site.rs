//! A site: a radio world, the daemons on its stations, and the honest programs there. Sites share nothing.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::Signal;

use crate::daemon::{Daemon, Kind, Started};
use crate::flow::{Flow, Plan, Server};
use crate::forge::Liar;
use crate::inside;
use crate::leftovers::Facts;
use crate::place::Namespace;
use crate::{Run, Tally};

/// The options of a site's disk for captures and state files. It is closed to all users but the daemons' own: `doctor`
/// trusts no file in a folder that others may write.
fn disk_options() -> String {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let number = |name: &str| {
        let mut lines = users.lines().map(|line| line.split(':'));
        lines.find_map(|mut words| (words.next() == Some(name)).then(|| words.nth(1)).flatten())
    };
    // Without a user of that name, daemons have the first of the numbers that nobody gets.
    let user = number("hopwise").unwrap_or("60706");
    format!("size=4m,mode=755,uid={user}")
}

#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) name: &'static str,
    pub(crate) folder: PathBuf,
    pub(crate) air: Daemon,
    pub(crate) daemons: Vec<Daemon>,
    pub(crate) stations: Vec<Namespace>,
    /// Those of the stations that the radio does not make.
    pub(crate) made: Vec<Namespace>,
    /// Whole commands, once the stations are there. One that begins with `-` may fail.
    pub(crate) furniture: Vec<String>,
    /// Routes for `ip` in a station: the kernel forgets them when a device goes down.
    pub(crate) roads: Vec<(usize, String)>,
    /// Devices that go down and come up.
    pub(crate) devices: Vec<(usize, &'static str)>,
    pub(crate) serves: Vec<(usize, SocketAddr)>,
    pub(crate) plans: Vec<Plan>,
    pub(crate) liar: Liar,
    /// Grows when one of its daemons is killed, and is odd meanwhile.
    pub(crate) kills: Arc<AtomicU64>,
    pub(crate) disk_is_full: bool,
    pub(crate) servers: Vec<Server>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) before: Vec<Facts>,
}

/// The radio world of a site.
pub(crate) fn air(name: &str, hops: u32, spacing_m: u32, folder: &Path) -> Result<Daemon, String> {
    let scenario = folder.join("air.yaml");
    let text = format!(
        "title: stations of a chaos test\nworld: sim\n\
         topology: {{ kind: chain, hops: {hops}, spacing_m: {spacing_m} }}\n\
         radio: {{ profile: dsss-11mbps, queue_packets: 50, rts_threshold: 3000 }}\n\
         mac: {{ rules: standard }}\nrouting: {{ protocol: aodv }}\n\
         traffic:\n  - {{ from: first, to: last, kind: bulk }}\n\
         arms:\n  plain: {{ receiver: delayed, sender: [newreno] }}\nrun: {{ duration: 10s }}\n"
    );
    write(&scenario, &text)?;
    let words = ["air", "netns", &scenario.to_string_lossy(), "--prefix", name];
    Ok(Daemon::new(Kind::Air, &format!("{name}/air"), None, &words, folder))
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// A folder of the site's, and in it a small disk for state files and captures.
pub(crate) fn folders(name: &str, folder: &Path) -> Result<PathBuf, String> {
    let folder = folder.join(name);
    let disk = folder.join("disk");
    fs::create_dir_all(&disk).map_err(|error| format!("{}: {error}", disk.display()))?;
    // A daemon is a user of its own, and removes its socket here.
    let anybody = fs::Permissions::from_mode(0o777);
    fs::set_permissions(&folder, anybody).map_err(|error| format!("{}: {error}", folder.display()))?;
    inside::run(&["mount", "-t", "tmpfs", "-o", &disk_options(), "none", &disk.to_string_lossy()])?;
    Ok(folder)
}

impl Site {
    pub(crate) fn disk(&self) -> PathBuf {
        self.folder.join("disk")
    }

    /// Starts everything, and notes how the stations were before any daemon.
    pub(crate) fn begin(&mut self, run: &Run) -> Result<(), String> {
        self.raise(run)?;
        self.before = self.stations.iter().map(Facts::of).collect();
        self.start_daemons(run)
    }

    pub(crate) fn begin_flows(&mut self, seed: u64, tally: &Arc<Tally>) -> Result<(), String> {
        self.serve()?;
        for (nth, plan) in (1..).zip(&self.plans) {
            self.flows.push(Flow::start(plan.clone(), seed ^ nth, &self.kills, tally));
        }
        Ok(())
    }

    /// The radio and its stations.
    fn raise(&mut self, run: &Run) -> Result<(), String> {
        match self.air.start(run)? {
            Started::Ready => {}
            other => return Err(format!("{}: {other:?}\n    {}", self.air.name, self.air.last_words())),
        }
        for command in &self.furniture {
            let words: Vec<_> = command.trim_start_matches('-').split(' ').collect();
            let done = inside::run(&words);
            if !command.starts_with('-') {
                done?;
            }
        }
        self.mend_roads();
        Ok(())
    }

    fn start_daemons(&mut self, run: &Run) -> Result<(), String> {
        for daemon in &mut self.daemons {
            match daemon.start(run)? {
                Started::Ready => {}
                other => return Err(format!("{}: {other:?}\n    {}", daemon.name, daemon.last_words())),
            }
        }
        Ok(())
    }

    fn serve(&mut self) -> Result<(), String> {
        self.servers.clear();
        for (station, at) in &self.serves {
            let server = Server::start(&self.stations[*station], *at);
            self.servers.push(server.map_err(|error| format!("{}: serve at {at}: {error}", self.name))?);
        }
        Ok(())
    }

    pub(crate) fn mend_roads(&self) {
        for (station, words) in &self.roads {
            let words: Vec<_> = std::iter::once("ip").chain(words.split(' ')).collect();
            let _ = self.stations[*station].output(&words);
        }
    }

    pub(crate) fn kill(&mut self, nth: usize) {
        self.counted(|site| site.daemons[nth].kill());
    }

    /// Counts before and after: a transfer that began or ended in between then knows of it.
    fn counted(&mut self, kill: impl FnOnce(&mut Site)) {
        self.kills.fetch_add(1, Ordering::SeqCst);
        kill(self);
        self.kills.fetch_add(1, Ordering::SeqCst);
    }

    /// Kills everything at once, the radio too, and starts it again.
    pub(crate) fn lose_power(&mut self, run: &Run) -> Result<(), String> {
        self.counted(|site| {
            for daemon in site.daemons.iter_mut().chain([&mut site.air]) {
                daemon.kill();
            }
        });
        self.servers.clear();
        self.empty_disk();
        self.raise(run)?;
        self.start_daemons(run)?;
        self.serve()
    }

    pub(crate) fn fill_disk(&mut self) {
        self.disk_is_full = true;
        // Write until it is full.
        let _ = fs::write(self.disk().join("filler"), vec![0; 8 << 20]);
    }

    pub(crate) fn empty_disk(&mut self) {
        self.disk_is_full = false;
        let _ = fs::remove_file(self.disk().join("filler"));
    }

    pub(crate) fn set_device(&self, device: usize, is_up: bool) {
        let (station, name) = self.devices[device];
        let words = ["ip", "link", "set", name, if is_up { "up" } else { "down" }];
        let _ = self.stations[station].output(&words);
        if is_up {
            self.mend_roads();
        }
    }

    /// Reports each daemon that ended without an order.
    pub(crate) fn look_for_the_dead(&mut self, tally: &Tally) {
        for daemon in self.daemons.iter_mut().chain([&mut self.air]) {
            if let Some(status) = daemon.has_died() {
                if daemon.kind == Kind::Thin && status.signal() == Some(Signal::KILL.as_raw()) {
                    tally.note(&format!("{} was killed by its watchdog", daemon.name));
                    continue;
                }
                let last = daemon.last_words();
                tally.violated(format!("{} ended by itself: {status}\n    {last}", daemon.name));
            }
        }
    }

    pub(crate) fn go_on(&self) {
        for daemon in self.daemons.iter().chain([&self.air]) {
            daemon.tell(Signal::CONT);
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.flows.iter().for_each(Flow::tell_to_stop);
        self.flows.clear();
        self.servers.clear();
        self.daemons.iter_mut().for_each(Daemon::kill);
        // The radio ends in order; its namespaces then go.
        let _ = self.air.end();
        self.empty_disk();
        keep_files(&self.disk());
        let _ = inside::run(&["umount", &self.disk().to_string_lossy()]);
    }
}

/// Keeps the small disk's files beside it.
fn keep_files(disk: &Path) {
    for entry in fs::read_dir(disk).into_iter().flatten().flatten() {
        let kept = disk.with_file_name(format!("kept-{}", entry.file_name().to_string_lossy()));
        let _ = fs::copy(entry.path(), kept);
    }
}
