//! Hold, pace or kick: the choice that loses least with the sender at hand.

use super::search::{self, RttSampling};
use super::{Ask, Mode, Model, Plan, Sender, Timer};

hopwise_core::named! {
    /// The treatment of a flow's ACKs during a fade.
    pub enum Choice {
        /// Every ACK waits until the link is back.
        Hold = "hold",
        /// ACKs are released while it is away.
        Pace = "pace",
        /// No ACK is held; the newest is repeated when the link is back.
        Kick = "kick",
    }
}

/// The quantities that a choice puts at stake.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stakes {
    /// Segments that the sender has in flight.
    pub window_segments: u32,
    /// Segments of these that can be cached.
    pub cache_segments: u32,
}

/// The probability that only the retransmission timer finds a loss in the round trips after a fade. The timer is still
/// long then from the ACKs that waited. The first is a loss at the end of a window, which a probe finds sooner. The
/// second is a lost retransmission, which RACK finds sooner. Together they are one in a hundred: fades end on a link
/// that has just been bad.
const LATE_TAIL: f64 = 0.005;
const LATE_AGAIN: f64 = 0.005;

/// Segments that a sender does not send because of the fade, for each choice.
#[derive(Clone, Copy, Debug)]
struct ExpectedLosses {
    hold: f64,
    pace: f64,
    kick: f64,
}

fn expected(ask: &Ask, model: Model, stakes: &Stakes, kicked: &Plan, paced: &Plan) -> ExpectedLosses {
    let window = f64::from(stakes.window_segments);
    let uncached = f64::from(stakes.window_segments.saturating_sub(stakes.cache_segments));
    // A needless retransmission goes no further than the base station, and the sender would send nothing else then.
    // Its segments that are not sent otherwise: a window grows back from half its size by one each round trip (RFC
    // 5681). They include the segments of the round trip before, in which the ACKs of the cached data open the window
    // that far.
    let regrown = window + window * window / 8.0;
    let after = |timeouts: u32| if model.takes_back(timeouts) { 0.0 } else { regrown };
    // A fast recovery halves the window, which then grows by one each round trip.
    let recovery = if uncached > 0.0 { uncached + window * window / 8.0 } else { 0.0 };
    let usual_s = Timer::new(model.sender, ask.rtt_s, ask.rttvar_s).rto_s();
    let waits_s = |srtt_s: f64, rto_s: f64| {
        LATE_TAIL * model.finds_tail_s(srtt_s, rto_s) + LATE_AGAIN * model.finds_again_s(rto_s)
    };
    let longer_s = waits_s(paced.final_srtt_s, paced.final_rto_s) - waits_s(ask.rtt_s, usual_s);
    ExpectedLosses {
        // Held ACKs leave nothing to cache. The path to the mobile is then empty for half a round trip.
        hold: after(kicked.timeouts) + window / 2.0,
        pace: after(paced.timeouts) + recovery + window * longer_s.max(0.0) / ask.rtt_s,
        kick: after(kicked.timeouts) + recovery,
    }
}

/// The samples that a sender of this kind takes; for an unknown kind the fewest.
fn samples(sender: Sender) -> RttSampling {
    match sender {
        Sender::Linux | Sender::FreeBsd => RttSampling::SinceSent,
        Sender::Textbook | Sender::Rfc6298 => RttSampling::Once,
    }
}

pub(super) fn hopwise(ask: &Ask, model: Model, stakes: &Stakes) -> Plan {
    let sender = model.sender;
    let kicked = search::kick(Mode::Hopwise, ask, sender);
    let paced = search::best(Mode::Hopwise, ask, sender, samples(sender));
    // A plan under way goes on: its ACKs have made the timer long already.
    if ask.is_under_way {
        return paced;
    }
    let losses = expected(ask, model, stakes, &kicked, &paced);
    // A choice within noise of a kick is a kick, which needs no correct forecast.
    if losses.kick <= 1.1 * losses.pace.min(losses.hold) {
        kicked
    } else if losses.pace <= losses.hold {
        paced
    } else {
        Plan { choice: Choice::Hold, ..kicked }
    }
}
