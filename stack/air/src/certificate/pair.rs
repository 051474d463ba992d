//! The theory of two stations that receive only their common receiver, frame by frame, from the profile's own figures.
//! It models no carrier sense, NAV or EIFS; chance alone decides.

use crate::certificate::model::drawn_from;
use crate::dcf::{MacConfig, answer_timeout_ns};
use crate::phy::Phy;
use crate::random::{Purpose, Stream};
use crate::saturated::{PACKET, PAYLOAD};

const PACKETS: u64 = 50_000;

/// One of the two stations.
struct Sender {
    /// The instant from which its slots count.
    from: u64,
    slots: u64,
    cw: u16,
    tries: u8,
}

/// The payload that both carry together, in kbit/s.
pub(super) fn hidden_kbps(phy: &Phy, mac: &MacConfig) -> f64 {
    let is_announced = mac.rts_threshold.is_some();
    // The first frame, which the other station does not receive; the answer, which it does; and all that follows the
    // first.
    let (first, answer, rest) = if is_announced {
        (phy.rts_ns(), phy.cts_ns(), phy.exchange_ns(PACKET) - phy.rts_ns())
    } else {
        (phy.data_ns(PACKET), phy.ack_ns(), phy.sifs_ns + phy.ack_ns())
    };
    let timeout = answer_timeout_ns(phy, mac.rules, answer);
    let mut chance = Stream::new(1, 0, Purpose::Traffic);
    let mut draw = |cw: u16| u64::from(chance.below(drawn_from(cw, mac.rules)));
    let mut pair = [0; 2].map(|from| Sender { from, slots: draw(phy.cw.0), cw: phy.cw.0, tries: 0 });
    let (mut garbled_until, mut packets, mut now) = (0, 0, 0);
    while packets < PACKETS {
        let starts = [0, 1].map(|n: usize| pair[n].from + pair[n].slots * phy.slot_ns);
        let (n, other) = if starts[0] <= starts[1] { (0, 1) } else { (1, 0) };
        now = starts[n];
        let end = now + first;
        if now < garbled_until || starts[other] < end {
            garbled_until = garbled_until.max(end);
            let sender = &mut pair[n];
            sender.tries = (sender.tries + 1) % mac.short_retries;
            sender.cw = if sender.tries == 0 { phy.cw.0 } else { (2 * sender.cw + 1).min(phy.cw.1) };
            sender.from = end + timeout + phy.difs_ns();
            sender.slots = draw(sender.cw);
            continue;
        }
        packets += 1;
        let answered = end + phy.sifs_ns;
        let next = end + rest + phy.difs_ns();
        pair[n] = Sender { from: next, slots: draw(phy.cw.0), cw: phy.cw.0, tries: 0 };
        if starts[other] <= answered {
            // The other station began just before the answer, and the answer falls into its frame.
            garbled_until = starts[other] + first;
        } else {
            let waiting = &mut pair[other];
            waiting.slots -= answered.saturating_sub(waiting.from) / phy.slot_ns;
            waiting.from = waiting.from.max(next);
        }
    }
    (packets * u64::from(PAYLOAD) * 8) as f64 / now as f64 * 1e6
}
