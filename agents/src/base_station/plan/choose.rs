//! Hold, pace or kick: whichever loses least with the sender at hand.

use super::search::{self, Samples};
use super::{Ask, Mode, Model, Plan, Sender, Timer};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Every ACK waits until the link is back.
    Hold,
    /// ACKs are released while it is away.
    Pace,
    /// None is held; the newest is said again when the link is back.
    Kick,
}

impl Choice {
    pub const fn name(self) -> &'static str {
        match self {
            Choice::Hold => "hold",
            Choice::Pace => "pace",
            Choice::Kick => "kick",
        }
    }
}

/// What a choice puts at stake.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stakes {
    /// What the sender has in flight.
    pub window_segments: u32,
    /// What can be cached of it.
    pub cache_segments: u32,
}

/// How likely it is that a loss is left to the retransmission timer in the round trips after a fade, while the timer
/// is still long from the ACKs that waited: at the end of a window, which a probe finds sooner, and of what was sent
/// again, which RACK finds sooner. One in a hundred together: fades end on a link that has just been bad.
const LATE_TAIL: f64 = 0.005;
const LATE_AGAIN: f64 = 0.005;

/// Segments that a sender would have sent and does not, by how it comes out of the fade.
#[derive(Clone, Copy, Debug)]
struct Losses {
    hold: f64,
    pace: f64,
    kick: f64,
}

/// Those not sent while a window grows back from half of what it was by one each round trip (RFC 5681), and in the
/// round trip before, in which the ACKs of the cached data open it that far.
fn regrown(window: f64) -> f64 {
    window + window * window / 8.0
}

fn expected(ask: &Ask, model: Model, stakes: &Stakes, kicked: &Plan, paced: &Plan) -> Losses {
    let window = f64::from(stakes.window_segments);
    let uncached = f64::from(stakes.window_segments.saturating_sub(stakes.cache_segments));
    // What a timeout sends for nothing goes no further than here, and nothing else would be sent then.
    let after = |timeouts: u32| if model.takes_back(timeouts) { 0.0 } else { regrown(window) };
    // A fast recovery halves the window, which then grows by one each round trip.
    let recovery = if uncached > 0.0 { uncached + window * window / 8.0 } else { 0.0 };
    let usual_s = Timer::new(model.sender, ask.rtt_s, ask.rttvar_s).rto_s();
    let waits_s = |srtt_s: f64, rto_s: f64| {
        LATE_TAIL * model.finds_tail_s(srtt_s, rto_s) + LATE_AGAIN * model.finds_again_s(rto_s)
    };
    let longer_s = waits_s(paced.final_srtt_s, paced.final_rto_s) - waits_s(ask.rtt_s, usual_s);
    Losses {
        // What is held leaves nothing to cache; the way to the mobile is empty for half a round trip.
        hold: after(kicked.timeouts) + window / 2.0,
        pace: after(paced.timeouts) + recovery + window * longer_s.max(0.0) / ask.rtt_s,
        kick: after(kicked.timeouts) + recovery,
    }
}

/// What is known of a sender's kind, or the least that it does.
fn samples(sender: Sender) -> Samples {
    match sender {
        Sender::Linux | Sender::FreeBsd => Samples::SinceSent,
        Sender::Textbook | Sender::Rfc6298 => Samples::Once,
    }
}

pub(super) fn hopwise(ask: &Ask, model: Model, stakes: &Stakes) -> Plan {
    let sender = model.sender;
    let kicked = search::kick(Mode::Hopwise, ask, sender);
    let paced = search::best(Mode::Hopwise, ask, sender, samples(sender));
    // What was begun goes on: its ACKs have made the timer long already.
    if ask.is_under_way {
        return paced;
    }
    let losses = expected(ask, model, stakes, &kicked, &paced);
    // What is within noise of a kick is a kick, which needs no forecast to be right.
    if losses.kick <= 1.1 * losses.pace.min(losses.hold) {
        kicked
    } else if losses.pace <= losses.hold {
        paced
    } else {
        Plan { choice: Choice::Hold, ..kicked }
    }
}
