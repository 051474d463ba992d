//! The theory of saturated stations in one cell: Bianchi's model, with the rules that are really followed.
//!
//! The plain model lets counters fall once in every busy period. Here a counter falls in idle slots alone, windows are
//! 31, 63, … 1023, and tries are finite. A station that has just sent and draws 0 sends again before any other station.
//!
//! Under ns-2's rules all stations wait for EIFS after a collision, and the stations that collided are among the first
//! to go on. Under the standard's no station understood a header. Stations that did not collide go on after DIFS.
//! Stations that collided find out later, when their answer is overdue.
//!
//! EDCA's counters (802.11n) fall once more at the end of AIFS, and so once in every busy period, as Bianchi has it. A
//! draw of 0 is then a slot as any other.

use hopwise_air::dcf::{MacConfig, MacRules, answer_timeout_ns};
use hopwise_air::phy::Phy;
use hopwise_air::random::{NumberStream, Purpose};
use hopwise_air::saturated::{PACKET, PAYLOAD};

/// Mean backoff of all tries of one packet that no station answers.
pub(super) fn slots_of_all_tries(phy: &Phy, mac: &MacConfig) -> f64 {
    windows(phy, mac).iter().map(|backoffs| (backoffs - 1.0) / 2.0).sum()
}

/// The number of backoffs that each try may draw from.
fn windows(phy: &Phy, mac: &MacConfig) -> Vec<f64> {
    let mut cw = phy.cw.0;
    let mut windows = Vec::new();
    for _ in 0..mac.short_retries {
        windows.push(f64::from(drawn_from(cw, mac.rules)));
        cw = (2 * cw + 1).min(phy.cw.1);
    }
    windows
}

/// 0..cw by the standard, 0..cw − 1 by ns-2.
pub(super) fn drawn_from(cw: u16, rules: MacRules) -> u32 {
    u32::from(cw) + u32::from(rules == MacRules::Standard)
}

fn power(base: f64, exponent: u32) -> f64 {
    (0..exponent).fold(1.0, |product, _| product * base)
}

/// Slots of other stations that go by before a station knows that it has collided.
fn lag_slots(phy: &Phy, rules: MacRules) -> f64 {
    match rules {
        MacRules::Ns2 => 0.0,
        MacRules::Standard => phy.answer_timeout_ns() as f64 / phy.slot_ns as f64,
    }
}

/// The slots in which a counter falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Falls {
    /// In idle slots (DCF).
    Idle,
    /// Also once in every busy period (EDCA).
    Each,
}

impl Falls {
    fn of(phy: &Phy) -> Falls {
        if phy.is_ht() { Falls::Each } else { Falls::Idle }
    }
}

/// The rate at which a station sends after a slot in which counters fall, when `p` of these frames collide.
fn attempts((windows, falls): (&[f64], Falls), lag: f64, p: f64) -> f64 {
    let (mut reach, mut sent, mut slots) = (1.0, 0.0, 0.0);
    for (try_number, cw) in windows.iter().enumerate() {
        let lag = if try_number > 0 { lag } else { 0.0 };
        // A draw of 0 collides with no frame, unless other stations have gone on before it.
        let waits = if lag > 0.0 || falls == Falls::Each { 1.0 } else { 1.0 - 1.0 / cw };
        let own = if falls == Falls::Each { 1.0 } else { 0.0 };
        sent += reach * waits;
        slots += reach * (lag + (cw - 1.0) / 2.0 + own);
        reach *= waits * p;
    }
    sent / slots
}

/// Attempts and collisions agree with each other: found by halving.
fn fixed_point(windows: (&[f64], Falls), lag: f64, stations: u32) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let p = (low + high) / 2.0;
        let met = 1.0 - power(1.0 - attempts(windows, lag, p), stations - 1);
        if met > p { low = p } else { high = p }
    }
    attempts(windows, lag, (low + high) / 2.0)
}

/// The time that one packet keeps the medium, in microseconds with DIFS: first for all its frames, then for its first
/// frame alone. The latter is the cost of a collision.
fn times_us(phy: &Phy, mac: &MacConfig) -> (f64, f64) {
    let (all, first, frames) = if mac.rts_threshold.is_some() {
        (phy.exchange_ns(PACKET), phy.rts_ns(), 4.0)
    } else {
        (phy.data_ns(PACKET) + phy.sifs_ns + phy.ack_ns(), phy.data_ns(PACKET), 2.0)
    };
    // A third of a microsecond through the air, once a frame.
    (us(all + phy.difs_ns()) + frames / 3.0, us(first))
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// The payload that a cell of saturated stations carries, in kbit/s.
pub(super) fn saturation_kbps(phy: &Phy, mac: &MacConfig, stations: u32) -> f64 {
    let windows = windows(phy, mac);
    let falls = Falls::of(phy);
    let tau = fixed_point((&windows, falls), lag_slots(phy, mac.rules), stations);
    let (quiet, one) =
        (power(1.0 - tau, stations), f64::from(stations) * tau * power(1.0 - tau, stations - 1));
    let many = 1.0 - quiet - one;
    let slot = us(phy.slot_ns);
    let (success, first) = times_us(phy, mac);
    let collision = match mac.rules {
        MacRules::Ns2 => first + us(phy.eifs_ns() + phy.difs_ns()),
        MacRules::Standard => first + us(phy.difs_ns()),
    };
    if falls == Falls::Each {
        let time = quiet * slot + one * success + many * collision;
        return one * f64::from(PAYLOAD) * 8.0 / time * 1e3;
    }
    // A station that succeeded draws 0 again with the probability 1/window. Under ns-2's rules two of the stations that
    // collided may do this, too, from their next window.
    let again = 1.0 / windows[0];
    let after_collision = match mac.rules {
        MacRules::Ns2 => 2.0 / windows.get(1).copied().unwrap_or(windows[0]),
        MacRules::Standard => 0.0,
    };
    let row = 1.0 / (1.0 - again);
    let packets = one * row + many * after_collision;
    let time =
        quiet * slot + one * (success * row + slot) + many * (collision + after_collision * success + slot);
    packets * f64::from(PAYLOAD) * 8.0 / time * 1e3
}

/// The rate of two stations in one cell if one of two frames that begin together always came through.
pub(super) fn without_collisions_kbps(phy: &Phy, mac: &MacConfig) -> f64 {
    let windows = windows(phy, mac);
    let falls = Falls::of(phy);
    let quiet = power(1.0 - attempts((&windows, falls), 0.0, 0.0), 2);
    let (slot, (success, _)) = (us(phy.slot_ns), times_us(phy, mac));
    if falls == Falls::Each {
        let time = quiet * slot + (1.0 - quiet) * success;
        return (1.0 - quiet) * f64::from(PAYLOAD) * 8.0 / time * 1e3;
    }
    // A station that succeeded draws 0 again with the probability 1/window.
    let row = 1.0 / (1.0 - 1.0 / windows[0]);
    let time = quiet * slot + (1.0 - quiet) * (success * row + slot);
    (1.0 - quiet) * row * f64::from(PAYLOAD) * 8.0 / time * 1e3
}

const PACKETS: u64 = 50_000;

/// One of the two stations.
struct HiddenSender {
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
    let mut chance = NumberStream::new(1, 0, Purpose::Traffic);
    let mut draw = |cw: u16| u64::from(chance.below(drawn_from(cw, mac.rules)));
    let mut pair = [0; 2].map(|from| HiddenSender { from, slots: draw(phy.cw.0), cw: phy.cw.0, tries: 0 });
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
        pair[n] = HiddenSender { from: next, slots: draw(phy.cw.0), cw: phy.cw.0, tries: 0 };
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Two stations wait half as long as one and lose nothing: they carry more than one alone, and more than two that
    /// collide.
    #[test]
    fn what_collisions_cost_is_told_with_and_without_rts() {
        for phy in Phy::names().filter_map(Phy::named) {
            let [with, without] = [Some(0), None].map(|rts_threshold| {
                let mac = MacConfig { rts_threshold, ..MacConfig::default() };
                let of_two = without_collisions_kbps(&phy, &mac);
                let [one, two] = [1, 2].map(|stations| saturation_kbps(&phy, &mac, stations));
                assert!(of_two > two && of_two > one, "{} {rts_threshold:?}", phy.name);
                // The time without backoff is the frames' own, whichever station sends them.
                let (busy_us, _) = times_us(&phy, &mac);
                assert!(of_two < f64::from(PAYLOAD) * 8e3 / busy_us, "{} {rts_threshold:?}", phy.name);
                of_two
            });
            assert!(without > with, "{}: RTS and CTS take time", phy.name);
        }
    }
}
