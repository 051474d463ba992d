//! A proxy that a live trial has started at the gateway of its scenario.

use std::net::IpAddr;

use hopwise_agents::Profile;
use hopwise_host::{Clock, Driver};
use hopwise_lab::live::part::{NodePart, ProxiedPackets};
use hopwise_lab::sim::live_news;
use hopwise_mesh::{Proxy, ProxyCounts, Schedule};

use hopwise_daemon::failure::Failure;
use hopwise_daemon::{live_by_the_clock, talk};

/// The trial's part in a proxy.
#[derive(Debug)]
pub(super) struct Trial {
    /// News of the links as the scenario's forecast gives them, from the beginning on.
    pub(super) news: Schedule,
    /// The profile of the agents' defaults.
    pub(super) profile: Profile,
}

/// The text of a proxy's file for the node between these interfaces, which gets packets by `by`. A watchdog would not
/// wait for the word to begin.
pub fn text((wire, radio, by): (&str, &str, &str), agent: &str, mobiles: &[IpAddr]) -> String {
    format!(
        "steer: {{ wire: {wire}, radio: {radio}, by: {by}, mobiles: {mobiles:?} }}\n\
         agent: \"{agent}\"\nwatchdog: off\nuser: root\n"
    )
}

/// Hears the part of the gateway, from which the news follow.
pub(super) fn hear() -> Result<Trial, Failure> {
    live_by_the_clock();
    let failed = |error: &dyn std::fmt::Display| Failure::failed("read the part of a gateway", error);
    let part: NodePart = serde_json::from_str(&talk::line()?).map_err(|error| failed(&error))?;
    // The trial has planned this run itself.
    let plan = part.prepare().map_err(|error| failed(&format_args!("{error:?}")))?.plan;
    Ok(Trial { news: live_news(&plan), profile: plan.profile })
}

/// Waits for the trial's word. The clocks of all nodes begin with it.
pub(super) fn begin(driver: &mut Driver<Proxy>) -> Result<(), Failure> {
    talk::wait_for_beginning()?;
    driver.set_clock(Clock::start());
    Ok(())
}

pub(super) fn counted(counts: &ProxyCounts) -> ProxiedPackets {
    let ProxyCounts { packets, untouched, held, copied, cut, .. } = *counts;
    ProxiedPackets { packets, untouched, held, copied, cut: cut as u64 }
}
