//! An hour of steady honest load: each daemon's use of the machine after ten minutes, and at the end.

use std::path::Path;
use std::time::Duration;

use hopwise_host::Clock;
use hopwise_testing::memory::Random;

use crate::daemon::Takes;
use crate::inside::{elapsed, is_told_to_end, pause};
use crate::leftovers;
use crate::round::{begin, end, sites};
use crate::site::Site;
use crate::{Run, Tally};

const TEN_MINUTES: Duration = Duration::from_secs(600);
const EVERY: Duration = Duration::from_secs(5);
/// The number of looks whose median is a figure.
const LOOKS: usize = 13;
const MOST_GROWTH_PERCENT: u64 = 10;

/// The last looks at each daemon, by its place.
type Looks = Vec<Vec<Takes>>;

pub(crate) fn soak(run: &Run, lasts: Duration, seed: u64, folder: &Path) -> Result<(), String> {
    let mut random = Random::new(seed, 3);
    let mut sites = sites(run, &mut random, folder)?;
    begin(&mut sites, run, seed)?;
    let clock = Clock::start();
    // A short soak compares with its first sixth.
    let settled = TEN_MINUTES.min(lasts / 6);
    let (mut looks, mut before, mut shown) = (Looks::new(), None, Duration::ZERO);
    while elapsed(&clock) < lasts && run.tally.is_sound() && !is_told_to_end() {
        pause(EVERY);
        look(&mut sites, &mut looks, &run.tally);
        if before.is_none() && elapsed(&clock) >= settled {
            before = Some(medians(&looks));
        }
        if elapsed(&clock) > shown + Duration::from_secs(60) {
            shown = elapsed(&clock);
            let rss: Vec<_> = medians(&looks).iter().map(|takes| takes.rss_kb.to_string()).collect();
            let text = format!("{} s: {}; kB: {}", shown.as_secs(), run.tally.progress(), rss.join(" "));
            run.tally.note(&text);
        }
    }
    if let Some(before) = before.filter(|_| !is_told_to_end()) {
        compare(&sites, &before, &medians(&looks), &run.tally);
    }
    end(&mut sites, &run.hopwise, &run.tally);
    drop(sites);
    leftovers::look_at_the_machine(&run.tally);
    Ok(())
}

fn look(sites: &mut [Site], looks: &mut Looks, tally: &Tally) {
    sites.iter_mut().for_each(|site| site.look_for_the_dead(tally));
    let daemons = sites.iter().flat_map(|site| site.daemons.iter().chain([&site.air]));
    let takes: Vec<_> = daemons.map(|daemon| daemon.takes().unwrap_or_default()).collect();
    looks.resize(takes.len(), Vec::new());
    for (all, one) in looks.iter_mut().zip(takes) {
        all.push(one);
        if all.len() > LOOKS {
            all.remove(0);
        }
    }
}

fn medians(looks: &Looks) -> Vec<Takes> {
    let median = |all: &[Takes]| {
        let middle = |mut values: Vec<u64>| {
            values.sort_unstable();
            values.get(values.len() / 2).copied().unwrap_or(0)
        };
        Takes {
            rss_kb: middle(all.iter().map(|takes| takes.rss_kb).collect()),
            descriptors: middle(all.iter().map(|takes| takes.descriptors as u64).collect()) as usize,
            ..Takes::default()
        }
    };
    looks.iter().map(|all| median(all)).collect()
}

fn compare(sites: &[Site], before: &[Takes], after: &[Takes], tally: &Tally) {
    let daemons = sites.iter().flat_map(|site| site.daemons.iter().chain([&site.air]));
    for ((daemon, before), after) in daemons.zip(before).zip(after) {
        let text = format!(
            "{}: {} kB then, {} kB now; {} descriptors then, {} now",
            daemon.name, before.rss_kb, after.rss_kb, before.descriptors, after.descriptors
        );
        tally.note(&text);
        if after.rss_kb * 100 > before.rss_kb * (100 + MOST_GROWTH_PERCENT) {
            tally.violated(format!("grew by more than {MOST_GROWTH_PERCENT} %: {text}"));
        }
        // The margin is for the connections of the moment.
        if after.descriptors > before.descriptors + 16 {
            tally.violated(format!("holds more descriptors: {text}"));
        }
    }
}
