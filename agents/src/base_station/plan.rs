//! The release times of held ACKs that let a sender wait out a fade without a timeout: pure arithmetic.
//!
//! Source: Bhutani, A Near-Optimal Scheme for TCP ACK Pacing (ack holding), section V. With gains of 1/8 and 1/4, each
//! of the first n ACKs waits the RTO that the one before has left: RTO_n = μ0 + σ0(14/3·(7/4)^n − 2/3). Together they
//! last S(n) = nμ0 + σ0(56/9·[(7/4)^n − 1] − 2n/3). The other ACKs are spaced evenly, by θ = (T − S(n))/(N − n).
//!
//! Errata: the printed search stops where RTO_N stops falling for one step. With the paper's own numbers that is n = 0,
//! with θ beyond the RTO: a timeout at once. `corrected` takes the best n of all that cause none. The printed σ_(n+i)
//! lacks the factor σ_n. The paper also takes the gap between two ACKs for an RTT sample. Real senders measure from
//! when data was sent, which for all held ACKs was before the fade: this is `cumulative`.

mod choose;
mod model;
mod search;

use std::fmt;

pub use choose::{Choice, Stakes};
pub use model::{Model, Sender, Timer};

/// A request for a plan. Invariant 1: all numbers are finite, above zero and within their limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ask {
    acks: u32,
    outage_s: f64,
    rtt_s: f64,
    rttvar_s: f64,
    /// The part of an RTO that an ACK waits: 1 on paper, less where clocks and paths jitter.
    margin: f64,
    /// The time since the data of these ACKs was sent: a round trip, and the wait of ACKs that were released before.
    sent_s: f64,
    /// True if other ACKs of the fade were released before.
    is_under_way: bool,
}

/// The most ACKs that are held.
pub const MOST_ACKS: u32 = 65_536;
/// A day.
pub const LONGEST_OUTAGE_S: f64 = 86_400.0;
/// The longest time that a sender waits between two tries.
pub const LONGEST_RTO_S: f64 = 120.0;

/// The number of an [`Ask`] that is invalid, and what would be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskError {
    /// Its name, with its unit.
    pub what: &'static str,
    /// The range that it must lie in.
    pub accepted: &'static str,
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has to be {}", self.what, self.accepted)
    }
}

impl std::error::Error for AskError {}

impl Ask {
    /// A request with a margin of 1. `outage_s` counts from the last ACK that was let through. The other two times are
    /// the sender's SRTT and RTTVAR.
    pub fn new(acks: u32, outage_s: f64, rtt_s: f64, rttvar_s: f64) -> Result<Ask, AskError> {
        let within = |value: f64, most: f64| value > 0.0 && value <= most;
        let refused = |what, accepted| Err(AskError { what, accepted });
        if acks == 0 || acks > MOST_ACKS {
            return refused("the number of ACKs", "from 1 to 65536");
        }
        if !within(outage_s, LONGEST_OUTAGE_S) {
            return refused("the outage", "above 0 and at most 86400 seconds");
        }
        if !within(rtt_s, LONGEST_RTO_S) {
            return refused("the RTT", "above 0 and at most 120 seconds");
        }
        if !within(rttvar_s, LONGEST_RTO_S) {
            return refused("the RTT's variation", "above 0 and at most 120 seconds");
        }
        Ok(Ask { acks, outage_s, rtt_s, rttvar_s, margin: 1.0, sent_s: rtt_s, is_under_way: false })
    }

    /// Turns the rest of a plan into a new request. The ACKs that were released have moved the sender's timer to
    /// `timer`, the last of them after `waited_s`.
    pub fn under_way(self, timer: Timer, waited_s: f64) -> Ask {
        let within = |value: f64| value.clamp(f64::MIN_POSITIVE, LONGEST_RTO_S);
        let (rtt_s, rttvar_s) = (within(timer.srtt_s), within(timer.rttvar_s));
        Ask { rtt_s, rttvar_s, sent_s: self.rtt_s + waited_s, is_under_way: true, ..self }
    }

    /// Sets the part of an RTO that ACKs wait.
    pub fn with_margin(self, margin: f64) -> Result<Ask, AskError> {
        if margin > 0.0 && margin <= 1.0 {
            return Ok(Ask { margin, ..self });
        }
        Err(AskError { what: "the margin", accepted: "above 0 and at most 1" })
    }

    /// The number of ACKs that can be released, from 1 to [`MOST_ACKS`].
    pub fn acks(&self) -> u32 {
        self.acks
    }

    /// The length of the outage that the plan is for, in seconds.
    pub fn outage_s(&self) -> f64 {
        self.outage_s
    }
}

/// The method that makes a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// As printed, with the printed search.
    Paper,
    /// The best of all n that cause no timeout, by the paper's samples.
    Corrected,
    /// The same, by the samples that real senders take.
    Cumulative,
    /// No ACK is held. When the link is back, the newest ACK goes out once more, and the cached data.
    Kick,
    /// The choice that loses least with this sender.
    Hopwise,
}

impl Mode {
    /// In the order of [`NAMES`](Mode::NAMES).
    pub const ALL: [Mode; 5] = [Mode::Paper, Mode::Corrected, Mode::Cumulative, Mode::Kick, Mode::Hopwise];
    /// In the order of the variants.
    pub const NAMES: &'static [&'static str] = &["paper", "corrected", "cumulative", "kick", "hopwise"];

    /// The mode's word in specs, in results and on the command line.
    pub fn name(self) -> &'static str {
        Mode::NAMES[self as usize]
    }

    /// `None` for a text that is not in [`NAMES`](Mode::NAMES).
    pub fn named(name: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// The release time of each ACK, in seconds after the last one that was let through, and the effect on the sender.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The mode that was asked for.
    pub mode: Mode,
    /// The choice that `hopwise` makes; each other mode has a fixed one.
    pub choice: Choice,
    /// True if no timeout comes before the outage is over.
    pub feasible: bool,
    /// The number of ACKs that wait as long as they can.
    pub n: u32,
    /// The gap between the other ACKs.
    pub theta_s: Option<f64>,
    /// The sender's RTO after the last release. A kick counts the doublings of the timeouts before it.
    pub final_rto_s: f64,
    /// The sender's smoothed round trip after the last release.
    pub final_srtt_s: f64,
    /// The time until which the sender's timer does not run out.
    pub covers_s: f64,
    /// The number of timeouts before the outage is over.
    pub timeouts: u32,
    /// In ascending order, and empty for `Hold` and `Kick`. ACKs beyond its length wait until the link is back.
    pub release_at_s: Vec<f64>,
    /// The sender's RTO after each release, and the timer behind it.
    pub rto_s: Vec<f64>,
    /// One for each release, from which [`Ask::under_way`] plans the rest.
    pub timers: Vec<Timer>,
}

/// Makes a plan of this mode for this sender. `paper` and `corrected` know only the paper's sender. The stakes matter
/// to `hopwise` alone.
pub fn plan(mode: Mode, ask: &Ask, model: Model, stakes: &Stakes) -> Plan {
    let sender = model.sender;
    match mode {
        Mode::Paper => search::paper(ask),
        Mode::Corrected => search::best(mode, ask, Sender::Textbook, search::RttSampling::Gaps),
        Mode::Cumulative => search::best(mode, ask, sender, search::RttSampling::SinceSent),
        Mode::Kick => search::kick(mode, ask, sender),
        Mode::Hopwise => choose::hopwise(ask, model, stakes),
    }
}

/// The paper's equation 11: the RTO after the last ACK, for each number of ACKs that wait as long as they can.
pub fn final_rto_by_n(ask: &Ask) -> Vec<f64> {
    (0..ask.acks).map(|n| search::closed::rto_last_s(ask, n)).collect()
}

/// The plans from which this mode's search chooses: one for each n, in order, up to the
/// first that outlasts the outage. Modes without a search have none.
pub fn every_n(mode: Mode, ask: &Ask, sender: Sender) -> Vec<Plan> {
    match mode {
        Mode::Paper | Mode::Corrected => {
            search::every(mode, ask, Sender::Textbook, search::RttSampling::Gaps)
        }
        Mode::Cumulative => search::every(mode, ask, sender, search::RttSampling::SinceSent),
        Mode::Kick | Mode::Hopwise => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
