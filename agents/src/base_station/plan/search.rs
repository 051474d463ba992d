//! The searches for n. Each walks through its plans in the same steps.

use super::{Ask, Choice, LONGEST_RTO_S, Mode, Plan, Sender, Timer};

/// The time that a sender takes for a round trip when a held ACK comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RttSampling {
    /// The time since the ACK before.
    Gaps,
    /// The time since the data was sent, all of it before the fade.
    SinceSent,
    /// The time since the data was sent, but once: a sender must time no more than one segment per round trip (RFC 6298
    /// §3). The next one that it times comes back after the fade. A sender that measures more waits longer.
    Once,
}

/// The sender's timer on the way through a plan. It keeps no releases: a search asks for thousands of ways.
#[derive(Clone, Copy)]
struct Pace {
    timer: Timer,
    samples: RttSampling,
    sent_s: f64,
    /// Another ACK of the fade was released before.
    is_under_way: bool,
    now_s: f64,
}

impl Pace {
    fn new(ask: &Ask, sender: Sender, samples: RttSampling) -> Pace {
        let timer = Timer::new(sender, ask.rtt_s, ask.rttvar_s);
        Pace { timer, samples, sent_s: ask.sent_s, is_under_way: ask.is_under_way, now_s: 0.0 }
    }

    /// Releases the next ACK after this gap.
    fn wait(&mut self, gap_s: f64) {
        self.now_s += gap_s;
        match self.samples {
            RttSampling::Gaps => self.timer.take(gap_s),
            RttSampling::SinceSent => self.timer.take(self.sent_s + self.now_s),
            RttSampling::Once if self.is_under_way => {}
            RttSampling::Once => self.timer.take(self.sent_s + self.now_s),
        }
        self.is_under_way = true;
    }

    /// The sender's RTO after the ACKs behind the n that have waited, which are spaced evenly. `None` if it runs out.
    fn final_rto_s(mut self, ask: &Ask, n: u32) -> Option<f64> {
        let rest = ask.acks - n;
        let theta_s = (ask.outage_s - self.now_s) / f64::from(rest);
        for _ in 0..rest {
            if theta_s > self.timer.rto_s() {
                return None;
            }
            if self.samples == RttSampling::Once && self.is_under_way {
                break;
            }
            self.wait(theta_s);
        }
        Some(self.timer.rto_s())
    }
}

/// A walk through a plan, release by release.
struct PlanWalk {
    pace: Pace,
    releases: Vec<f64>,
    timers: Vec<Timer>,
    /// The time of the sender's first timeout, if there was one.
    ran_out_s: Option<f64>,
}

impl PlanWalk {
    fn new(ask: &Ask, sender: Sender, samples: RttSampling) -> PlanWalk {
        let pace = Pace::new(ask, sender, samples);
        PlanWalk { pace, releases: Vec::new(), timers: Vec::new(), ran_out_s: None }
    }

    /// The longest gap for which the next ACK may wait.
    fn patience_s(&self, ask: &Ask) -> f64 {
        ask.margin * self.pace.timer.rto_s()
    }

    /// Releases the next ACK after this gap.
    fn release(&mut self, gap_s: f64) {
        let rto_s = self.pace.timer.rto_s();
        if gap_s > rto_s && self.ran_out_s.is_none() {
            self.ran_out_s = Some(self.pace.now_s + rto_s);
        }
        self.pace.wait(gap_s);
        self.releases.push(self.pace.now_s);
        self.timers.push(self.pace.timer);
    }

    fn finish(self, mode: Mode, ask: &Ask, n: u32, theta_s: Option<f64>) -> Plan {
        let Pace { timer, now_s, .. } = self.pace;
        let covers_s = self.ran_out_s.unwrap_or(now_s + timer.rto_s());
        // The evenly spaced ACKs end with the outage, except for rounding.
        let is_reached = theta_s.is_some() || now_s >= ask.outage_s;
        Plan {
            mode,
            choice: Choice::Pace,
            feasible: self.ran_out_s.is_none() && is_reached,
            n,
            theta_s,
            final_rto_s: timer.rto_s(),
            final_srtt_s: timer.srtt_s,
            covers_s,
            timeouts: timeouts(covers_s, timer.rto_s(), ask.outage_s).0,
            release_at_s: self.releases,
            rto_s: self.timers.iter().map(Timer::rto_s).collect(),
            timers: self.timers,
        }
    }
}

/// Returns the number of timeouts until the outage is over, and the RTO after them. The first is at `at_s`, and each
/// doubles the wait.
fn timeouts(at_s: f64, rto_s: f64, outage_s: f64) -> (u32, f64) {
    let (mut count, mut at_s, mut rto_s) = (0, at_s, rto_s);
    while at_s < outage_s {
        count += 1;
        rto_s = (2.0 * rto_s).min(LONGEST_RTO_S.max(rto_s));
        at_s += rto_s;
    }
    (count, rto_s)
}

/// A plan in which n ACKs wait as long as they can, and the rest evenly. `None` if the n last longer than the outage.
fn with(mode: Mode, ask: &Ask, sender: Sender, samples: RttSampling, n: u32) -> Option<Plan> {
    let mut walk = PlanWalk::new(ask, sender, samples);
    for _ in 0..n {
        walk.release(walk.patience_s(ask));
    }
    let rest = ask.acks - n;
    if rest == 0 {
        return Some(walk.finish(mode, ask, n, None));
    }
    if walk.pace.now_s > ask.outage_s {
        return None;
    }
    let theta_s = (ask.outage_s - walk.pace.now_s) / f64::from(rest);
    for _ in 0..rest {
        walk.release(theta_s);
    }
    Some(walk.finish(mode, ask, n, Some(theta_s)))
}

/// The plan without a timeout that has the smallest last RTO. If there is none, all ACKs wait as long as they can,
/// which covers most.
pub(super) fn best(mode: Mode, ask: &Ask, sender: Sender, samples: RttSampling) -> Plan {
    let mut best: Option<(f64, u32)> = None;
    let mut ahead = Pace::new(ask, sender, samples);
    for n in 0..ask.acks {
        // The time that n ACKs last only grows with n.
        if ahead.now_s > ask.outage_s {
            break;
        }
        if let Some(rto_s) = ahead.final_rto_s(ask, n)
            && best.is_none_or(|(least_s, _)| rto_s < least_s)
        {
            best = Some((rto_s, n));
        }
        ahead.wait(ask.margin * ahead.timer.rto_s());
    }
    best.and_then(|(_, n)| with(mode, ask, sender, samples, n))
        .unwrap_or_else(|| as_long_as_they_can(mode, ask, sender, samples))
}

/// The plans of every n that lasts no longer than the outage, feasible or not.
pub(super) fn every(mode: Mode, ask: &Ask, sender: Sender, samples: RttSampling) -> Vec<Plan> {
    (0..ask.acks).map_while(|n| with(mode, ask, sender, samples, n)).collect()
}

fn as_long_as_they_can(mode: Mode, ask: &Ask, sender: Sender, samples: RttSampling) -> Plan {
    let mut walk = PlanWalk::new(ask, sender, samples);
    let mut n = 0;
    while n < ask.acks && walk.pace.now_s <= ask.outage_s {
        walk.release(walk.patience_s(ask));
        n += 1;
    }
    Plan { feasible: false, ..walk.finish(mode, ask, n, None) }
}

/// The search as printed: forward, until a step is no higher than its two neighbours.
pub(super) fn paper(ask: &Ask) -> Plan {
    let (mut before, mut here) = (closed::rto_last_s(ask, 0), closed::rto_last_s(ask, 0));
    let mut n = 0;
    while n + 1 < ask.acks {
        let after = closed::rto_last_s(ask, n + 1);
        if (here <= before && here <= after) || !after.is_finite() {
            break;
        }
        n += 1;
        (before, here) = (here, after);
    }
    // The printed search does not check whether S(n) is within the outage.
    let walked = with(Mode::Paper, ask, Sender::Textbook, RttSampling::Gaps, n);
    walked.unwrap_or_else(|| as_long_as_they_can(Mode::Paper, ask, Sender::Textbook, RttSampling::Gaps))
}

/// The plan that holds nothing: the sender's timer runs and backs off.
pub(super) fn kick(mode: Mode, ask: &Ask, sender: Sender) -> Plan {
    let rto_s = Timer::new(sender, ask.rtt_s, ask.rttvar_s).rto_s();
    let (timeouts, final_rto_s) = timeouts(rto_s, rto_s, ask.outage_s);
    Plan {
        mode,
        choice: Choice::Kick,
        feasible: timeouts == 0,
        n: 0,
        theta_s: None,
        final_rto_s,
        final_srtt_s: ask.rtt_s,
        covers_s: rto_s,
        timeouts,
        release_at_s: Vec::new(),
        rto_s: Vec::new(),
        timers: Vec::new(),
    }
}

/// Equations 5 to 11, with the factor that the printed equation 10 has and the text before it lacks.
pub(super) mod closed {
    use super::Ask;

    fn power(base: f64, exponent: u32) -> f64 {
        (0..exponent).fold(1.0, |product, _| product * base)
    }

    #[cfg(test)]
    pub(in super::super) fn rto_s(ask: &Ask, n: u32) -> f64 {
        ask.rtt_s + ask.rttvar_s * (14.0 / 3.0 * power(1.75, n) - 2.0 / 3.0)
    }

    pub(in super::super) fn waited_s(ask: &Ask, n: u32) -> f64 {
        let n_s = f64::from(n);
        n_s * ask.rtt_s + ask.rttvar_s * (56.0 / 9.0 * (power(1.75, n) - 1.0) - 2.0 * n_s / 3.0)
    }

    /// RTO_N of a plan in which n ACKs wait; θ may be negative.
    pub(in super::super) fn rto_last_s(ask: &Ask, n: u32) -> f64 {
        let rest = ask.acks - n;
        let theta_s = (ask.outage_s - waited_s(ask, n)) / f64::from(rest);
        let rttvar_s = power(1.75, n) * ask.rttvar_s;
        let srtt_s = ask.rtt_s + 2.0 / 3.0 * ask.rttvar_s * (power(1.75, n) - 1.0);
        let (slow, fast) = (power(0.875, rest), power(0.75, rest));
        slow * srtt_s
            + 4.0 * fast * rttvar_s
            + (1.0 - slow) * theta_s
            + 8.0 * (slow - fast) * (srtt_s - theta_s).abs()
    }
}
