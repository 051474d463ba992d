//! Looks for things that daemons left behind: in the kernel, on disk, and among processes.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::{WaitOptions, wait};

use crate::Tally;
use crate::inside::within;
use crate::place::Namespace;
use crate::site::Site;

/// The kernel removes some things a while later.
const MOMENT: Duration = Duration::from_secs(60);

/// A station's devices, rules, routes, rules of nft and switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    listed: Vec<(&'static str, Vec<String>)>,
    switches: Vec<(String, String)>,
}

impl Facts {
    pub(crate) fn of(place: &Namespace) -> Facts {
        let lines = |words: &[&str]| {
            let mut lines: Vec<_> =
                place.output_of(words).lines().map(|line| line.trim().to_owned()).collect();
            lines.sort();
            lines
        };
        let devices = lines(&["ip", "-o", "-br", "link"]);
        // Numbers and states are left out, as they change with the radio.
        let devices = devices.iter().filter_map(|line| line.split(['@', ' ']).next());
        Facts {
            listed: vec![
                ("device", devices.map(str::to_owned).collect()),
                ("address", lines(&["sh", "-c", "ip -4 -o addr | cut -d ' ' -f 2-"])),
                ("rule", lines(&["ip", "rule"])),
                ("route", lines(&["ip", "-4", "route", "show", "table", "all"])),
                ("nft", lines(&["nft", "list", "ruleset"])),
                ("socket", lines(&["sh", "-c", "grep -o '@hopwise.*' /proc/net/unix"])),
                ("queue", lines(&["cat", "/proc/net/netfilter/nfnetlink_queue"])),
            ],
            switches: place.switches(),
        }
    }

    /// The differences, in words.
    fn differences(&self, after: &Facts) -> Vec<String> {
        let mut found = Vec::new();
        for ((what, before), (_, after)) in self.listed.iter().zip(&after.listed) {
            let news = after.iter().filter(|line| !before.contains(line));
            found.extend(news.map(|line| format!("{what} that was not there before: {line}")));
            let lost = before.iter().filter(|line| !after.contains(line));
            found.extend(lost.map(|line| format!("{what} that was there before: {line}")));
        }
        for (key, value) in &self.switches {
            let now = after.switches.iter().find(|(other, _)| other == key);
            if let Some((_, now)) = now.filter(|(_, now)| now != value) {
                found.push(format!("switch {key}: {value} before, {now} now"));
            }
        }
        found
    }
}

/// Compares a site whose daemons have ended with its state before them. The radio is there still.
pub(crate) fn look(site: &Site, hopwise: &Path, tally: &Tally) {
    for (place, before) in site.stations.iter().zip(&site.before) {
        let mut left = Vec::new();
        let is_clean = within(MOMENT, || {
            site.mend_roads();
            left = before.differences(&Facts::of(place));
            left.is_empty()
        });
        if !is_clean {
            left.iter().for_each(|what| tally.violated(format!("left behind in {}: {what}", place.name())));
        }
    }
    forget_what_is_gone(site, hopwise, tally);
    for folder in [site.folder.clone(), site.disk()] {
        for path in entries(&folder) {
            if path.ends_with(".sock")
                || path.ends_with(".carried")
                || path.ends_with(".switches")
                || path.contains(".part")
            {
                tally.violated(format!("left behind: {path}"));
            }
        }
    }
}

/// Removes the files of a daemon that cannot start again. A transfer can keep the namespace of a station without power
/// for a while. An administrator would use this command.
fn forget_what_is_gone(site: &Site, hopwise: &Path, tally: &Tally) {
    let repair = || {
        let mut doctor = Command::new(hopwise);
        doctor.args(["doctor", "--repair", "--json", "--state"]).arg(site.disk());
        doctor.output()
    };
    let is_left = || entries(&site.disk()).iter().any(|path| path.ends_with(".switches"));
    let is_clean = within(MOMENT, || {
        let done = if is_left() { repair().map(drop) } else { Ok(()) };
        done.is_ok() && !is_left()
    });
    if !is_clean {
        tally.note("`hopwise doctor --repair` leaves files of old switches");
    }
}

/// Looks for the rest once all sites are gone: names of namespaces, notes, processes.
pub(crate) fn look_at_the_machine(tally: &Tally) {
    for folder in ["/run/netns", "/run/hopwise"] {
        for path in entries(Path::new(folder)) {
            tally.violated(format!("left behind: {path}"));
        }
    }
    let mut others = Vec::new();
    let are_gone = within(MOMENT, || {
        // Orphans are ours in this namespace.
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        others = processes();
        others.is_empty()
    });
    if !are_gone {
        others.iter().for_each(|name| tally.violated(format!("a process was left behind: {name}")));
    }
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().to_string_lossy().into_owned()).collect()
}

/// All processes but this one, in its namespace.
fn processes() -> Vec<String> {
    let ids = entries(Path::new("/proc"))
        .into_iter()
        .filter_map(|path| path.rsplit('/').next()?.parse::<u32>().ok());
    let others = ids.filter(|id| *id != std::process::id());
    others
        .map(|id| {
            let words = fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
            format!("{id} {}", words.replace('\0', " "))
        })
        .collect()
}
