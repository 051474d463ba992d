//! What theory says of saturated stations in one cell: Bianchi's model, with the rules that are really followed.
//!
//! The plain model lets counters fall once in every busy period and draws from 0..cw with a window that doubles
//! exactly. Here a counter falls in idle slots alone, windows are 31, 63, … 1023 with draws from 0..cw − 1, tries
//! are finite, who has just sent and draws 0 sends again before all others, and a collision is followed by EIFS.

use crate::dcf::{MacConfig, Rules};
use crate::phy::Phy;
use crate::saturated::{PACKET, PAYLOAD};

/// Mean backoff of all tries of one packet that nobody answers.
pub(super) fn slots_of_all_tries(phy: &Phy, tries: u8) -> f64 {
    windows(phy, tries).iter().map(|cw| (cw - 1.0) / 2.0).sum()
}

fn windows(phy: &Phy, tries: u8) -> Vec<f64> {
    let mut cw = phy.cw.0;
    let mut windows = Vec::new();
    for _ in 0..tries {
        windows.push(f64::from(cw));
        cw = (2 * cw + 1).min(phy.cw.1);
    }
    windows
}

fn power(base: f64, exponent: u32) -> f64 {
    (0..exponent).fold(1.0, |product, _| product * base)
}

/// How often a station sends after an idle slot, when `p` of what it sends so collides.
fn attempts(windows: &[f64], p: f64) -> f64 {
    let (mut reach, mut sent, mut slots) = (1.0, 0.0, 0.0);
    for cw in windows {
        // A draw of 0 meets nobody.
        let waits = 1.0 - 1.0 / cw;
        sent += reach * waits;
        slots += reach * (cw - 1.0) / 2.0;
        reach *= waits * p;
    }
    sent / slots
}

/// Attempts and collisions agree with each other: found by halving.
fn fixed_point(windows: &[f64], stations: u32) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let p = (low + high) / 2.0;
        let met = 1.0 - power(1.0 - attempts(windows, p), stations - 1);
        if met > p { low = p } else { high = p }
    }
    attempts(windows, (low + high) / 2.0)
}

/// How long one packet keeps the medium, in microseconds with DIFS: all its frames when it comes through, and the
/// first of them, which is what a collision costs.
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

/// What a cell of saturated stations carries, in kbit/s of payload.
pub(super) fn saturation_kbps(phy: &Phy, mac: &MacConfig, stations: u32) -> f64 {
    let windows = windows(phy, mac.short_retries);
    let tau = fixed_point(&windows, stations);
    let (quiet, one) =
        (power(1.0 - tau, stations), f64::from(stations) * tau * power(1.0 - tau, stations - 1));
    let many = 1.0 - quiet - one;
    let slot = us(phy.slot_ns);
    let (success, first) = times_us(phy, mac);
    let collision = match mac.rules {
        Rules::Ns2 => first + us(phy.eifs_ns() + phy.difs_ns()),
        Rules::Standard => first + us(phy.eifs_ns()),
    };
    // Whoever succeeded draws 0 once in cw times; of those who collided some two do, from the next window.
    let again = 1.0 / windows[0];
    let after_collision = 2.0 / windows.get(1).copied().unwrap_or(windows[0]);
    let row = 1.0 / (1.0 - again);
    let packets = one * row + many * after_collision;
    let time =
        quiet * slot + one * (success * row + slot) + many * (collision + after_collision * success + slot);
    packets * f64::from(PAYLOAD) * 8.0 / time * 1e3
}

/// What two stations of one cell would carry, if of two frames that begin together one always came through.
pub(super) fn without_collisions_kbps(phy: &Phy, mac: &MacConfig) -> f64 {
    let windows = windows(phy, mac.short_retries);
    let quiet = power(1.0 - attempts(&windows, 0.0), 2);
    let (slot, (success, _)) = (us(phy.slot_ns), times_us(phy, mac));
    // Whoever succeeded draws 0 once in cw times.
    let row = 1.0 / (1.0 - 1.0 / windows[0]);
    let time = quiet * slot + (1.0 - quiet) * (success * row + slot);
    (1.0 - quiet) * row * f64::from(PAYLOAD) * 8.0 / time * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two stations wait half as long as one and lose nothing: more than one alone, and than two that collide.
    #[test]
    fn what_collisions_cost_is_told_with_and_without_rts() {
        for phy in Phy::names().filter_map(Phy::named) {
            let [with, without] = [Some(0), None].map(|rts_threshold| {
                let mac = MacConfig { rts_threshold, ..MacConfig::default() };
                let of_two = without_collisions_kbps(&phy, &mac);
                let [one, two] = [1, 2].map(|stations| saturation_kbps(&phy, &mac, stations));
                assert!(of_two > two && of_two > one, "{} {rts_threshold:?}", phy.name);
                // What is not backoff is the frames' own, whoever sends them.
                let (busy_us, _) = times_us(&phy, &mac);
                assert!(of_two < f64::from(PAYLOAD) * 8e3 / busy_us, "{} {rts_threshold:?}", phy.name);
                of_two
            });
            assert!(without > with, "{}: RTS and CTS take time", phy.name);
        }
    }
}
