//! A round: sites begin, events happen, then all is quiet and honest transfers succeed. At the end everything stops and
//! leftovers are sought.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hopwise_host::Clock;
use hopwise_testing::memory::Random;

use crate::cell::cell;
use crate::daemon::{Daemon, Kind};
use crate::event::{Events, Undo};
use crate::flow::Flow;
use crate::inside::{elapsed, is_told_to_end, pause, within};
use crate::leftovers;
use crate::mesh::{Speaks, mesh};
use crate::pair::pair;
use crate::site::Site;
use crate::thinned::thinned;
use crate::{Run, Tally, WAIT};

/// No daemon may exceed it. A node takes some 24 MiB without optimisation, and may fill 32 MiB of buffers.
const MOST_RSS_KB: u64 = 96 << 10;
/// The most descriptors beyond the number at the start: the seats of clients and of peers that may be gone.
const MOST_DESCRIPTORS: usize = 200;
/// The most extra descriptors once no honest program is connected any more.
const MOST_LEFT: usize = 8;

pub(crate) fn sites(run: &Run, random: &mut Random, folder: &Path) -> Result<Vec<Site>, String> {
    if run.is_thinned {
        return Ok(vec![thinned("t", (random, folder))?]);
    }
    Ok(vec![
        mesh("a", Speaks::Aodv, (random, folder))?,
        mesh("d", Speaks::Dymo, (random, folder))?,
        cell("c", (random, folder))?,
        pair("p", (random, folder))?,
    ])
}

pub(crate) fn begin(sites: &mut [Site], run: &Run, seed: u64) -> Result<(), String> {
    for (nth, site) in (1..).zip(sites) {
        site.begin(run)?;
        site.begin_flows(seed ^ (nth << 32), &run.tally)?;
    }
    Ok(())
}

pub(crate) fn round(run: &Run, lasts: Duration, seed: u64, folder: &Path) -> Result<(), String> {
    let mut random = Random::new(seed, 3);
    let mut sites = sites(run, &mut random, folder)?;
    begin(&mut sites, run, seed)?;
    run.tally.note("all daemons are ready");
    if !honest_transfers_succeed(&mut sites, &run.tally, 1) {
        return Ok(());
    }
    happen(run, &mut sites, &mut random, lasts)?;
    settle(run, &mut sites)?;
    honest_transfers_succeed(&mut sites, &run.tally, 2);
    end(&mut sites, &run.hopwise, &run.tally);
    drop(sites);
    leftovers::look_at_the_machine(&run.tally);
    if run.tally.is_sound() {
        let _ = std::fs::remove_dir_all(folder);
    }
    Ok(())
}

/// Draws events and lets them happen, for this long.
fn happen(run: &Run, sites: &mut [Site], random: &mut Random, lasts: Duration) -> Result<(), String> {
    let clock = Clock::start();
    let mut events = Events::new(clock);
    let mut shown = Duration::ZERO;
    while elapsed(&clock) < lasts && run.tally.is_sound() && !is_told_to_end() {
        let event = events.draw(random, sites);
        let gap = Duration::from_millis(random.between(100, 2500));
        events.perform(&event, run, sites)?;
        let next = elapsed(&clock) + gap;
        while elapsed(&clock) < next {
            pause(Duration::from_millis(50));
            events.undo_due(run, sites)?;
        }
        for site in sites.iter_mut() {
            site.look_for_the_dead(&run.tally);
            if !look_at_daemons(site, &run.tally, MOST_DESCRIPTORS) {
                run.tally.violated(format!("too many descriptors: {}", descriptors(site)));
            }
        }
        if elapsed(&clock) > shown + Duration::from_secs(10) {
            shown = elapsed(&clock);
            run.tally.note(&format!("{} s: {}", shown.as_secs(), run.tally.progress()));
        }
    }
    run.tally.note("no more events");
    events.undo_all(run, sites)
}

/// Liars leave, clocks are right again, disks have room.
fn settle(run: &Run, sites: &mut [Site]) -> Result<(), String> {
    for site in sites.iter_mut() {
        site.empty_disk();
        site.go_on();
        site.daemons.iter().for_each(|daemon| daemon.set_clock(0));
        site.look_for_the_dead(&run.tally);
        for device in 0..site.devices.len() {
            site.set_device(device, site.liar.device != Some(device));
        }
        for nth in 0..site.daemons.len() {
            if !site.daemons[nth].is_up() {
                Undo::start_again(site, nth, run)?;
            }
        }
    }
    Ok(())
}

/// Each honest program completes this many more transfers within the tests' patience: the last began after this call.
fn honest_transfers_succeed(sites: &mut [Site], tally: &Tally, times: u64) -> bool {
    let clock = Clock::start();
    let before: Vec<Vec<u64>> =
        sites.iter().map(|site| site.flows.iter().map(Flow::whole).collect()).collect();
    let lacking = |sites: &[Site]| -> Vec<String> {
        let each = sites.iter().zip(&before).flat_map(|(site, before)| site.flows.iter().zip(before));
        let lacking = each.filter(|(flow, before)| flow.whole() < **before + times);
        lacking.map(|(flow, _)| flow.name.clone()).collect()
    };
    let succeeded = within(WAIT, || {
        sites.iter_mut().for_each(|site| site.look_for_the_dead(tally));
        lacking(sites).is_empty() || !tally.is_sound() || is_told_to_end()
    });
    if !succeeded {
        for name in lacking(sites) {
            tally.violated(format!("{name}: no transfer came whole in {} s of quiet", WAIT.as_secs()));
        }
    }
    tally.note(&format!("honest transfers took {:.1} s", elapsed(&clock).as_secs_f64()));
    succeeded && tally.is_sound()
}

/// Memory and descriptors against their bounds.
fn look_at_daemons(site: &Site, tally: &Tally, most_descriptors: usize) -> bool {
    let mut is_sound = true;
    for daemon in &site.daemons {
        let (Some(takes), Some(first)) = (daemon.takes(), daemon.first_descriptors()) else { continue };
        tally.most_rss_kb.fetch_max(takes.rss_kb, Ordering::Relaxed);
        tally.most_descriptors.fetch_max(takes.descriptors as u64, Ordering::Relaxed);
        if takes.rss_kb > MOST_RSS_KB {
            tally.violated(format!(
                "{} takes {} kB of memory, at most {MOST_RSS_KB}",
                daemon.name, takes.rss_kb
            ));
        }
        is_sound &= takes.descriptors <= first + most_descriptors;
    }
    is_sound
}

/// The descriptors of each daemon, now and at first.
fn descriptors(site: &Site) -> String {
    let takes = |daemon: &Daemon| {
        let (takes, first) = (daemon.takes().unwrap_or_default(), daemon.first_descriptors());
        format!("{}: {} now, {} at first", daemon.name, takes.descriptors, first.unwrap_or(0))
    };
    site.daemons.iter().map(takes).collect::<Vec<_>>().join(", ")
}

/// Honest programs stop, daemons end, and nothing of them is left.
pub(crate) fn end(sites: &mut [Site], hopwise: &Path, tally: &Tally) {
    for site in sites.iter() {
        site.flows.iter().for_each(Flow::tell_to_stop);
    }
    for site in sites.iter_mut() {
        site.flows.clear();
        if !within(WAIT, || look_at_daemons(site, tally, MOST_LEFT)) {
            tally.violated(format!("descriptors are left open: {}", descriptors(site)));
        }
        site.servers.clear();
        for nth in 0..site.daemons.len() {
            ends_in_order(&mut site.daemons[nth], tally);
        }
        (0..site.devices.len()).for_each(|device| site.set_device(device, true));
        leftovers::look(site, hopwise, tally);
        ends_in_order(&mut site.air, tally);
        for place in &site.made {
            let _ = crate::inside::run(&["ip", "netns", "del", place.name()]);
        }
    }
}

fn ends_in_order(daemon: &mut Daemon, tally: &Tally) {
    let (was_up, ended) = (daemon.is_up(), daemon.end());
    if was_up && ended.and_then(|status| status.code()) != Some(0) {
        tally.violated(format!(
            "{} did not end in order: {ended:?}\n    {}",
            daemon.name,
            daemon.last_words()
        ));
    }
    let log = daemon.log();
    for line in log.lines().filter(|line| line.contains("panicked at")) {
        tally.violated(format!("{}: {line}", daemon.name));
    }
    if daemon.kind == Kind::Node {
        // Its captures report their losses on a full disk, which is harmless.
        tally.note(&format!("{}: {} lines of log", daemon.name, log.lines().count()));
    }
}
