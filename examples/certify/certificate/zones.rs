//! The theory of saturated stations of several access categories that hear one another (EDCA).
//!
//! It is Bianchi's model (2000, doi:10.1109/49.840210) with the contention zones of Robinson and Randhawa (2004,
//! doi:10.1109/JSAC.2004.826929). The equations below are derived for the rules that are followed here.
//!
//! Slots count from the shortest AIFS on. A category *c* of *n* stations may send from slot *d* on: the slots by which
//! its AIFS is longer. A counter falls once in each slot from there on, the slot in which another station sends
//! included (IEEE 802.11-2016 §10.22.2.4). A draw of 0 sends in slot *d* itself. A try of window *W* thus takes W/2 + 1
//! of these slots. With collisions of probability *p* a station sends in each of them with
//!
//! τ = Σ pʲ / Σ pʲ (Wⱼ/2 + 1 + Lⱼ).
//!
//! Slot *k* is quiet with q(k) = Π (1 − τ)ⁿ over the categories with d ≤ k, and it is reached with Q(k) = Π q(i),
//! i < k. The slots from the greatest *d* on are alike, and are one zone of Q/(1 − q) slots. A frame of *c*
//! meets another with
//!
//! p = 1 − Σ Q(k) q(k)/(1 − τ) / Σ Q(k), over k ≥ d.
//!
//! Both equations are iterated until they agree. *L* are the slots of other stations that go by before a station knows
//! that it has collided. They lie within the answer's timeout, and are reached while all but the two that collided are
//! quiet.
//!
//! The cycle from one busy period to the next takes SIFS, the shortest AIFS, Σ Q q slots, and the frames that end it.
//! In slot *k* one station of *c* succeeds with n τ q/(1 − τ). A collision takes its longest frame. Its mean follows
//! from the probabilities that no station sends a longer one.
//!
//! A station with aggregates requests the block ACK that did not come, until it has one. One try of a packet's
//! aggregate is followed by p/(1 − p) requests on average: the part *p* of its frames are requests.

use super::monte_carlo::CategoryClass;
use super::turn::MediumTurn;
use hopwise_air::phy::Phy;
use hopwise_air::saturated::PAYLOAD;

/// Rounds of the iteration, and the part of the old value that stays in each.
const ROUNDS: u32 = 3_000;
const STAYS: f64 = 0.8;
/// Tries beyond these are as good as never reached.
const MOST_TRIES: usize = 400;

/// The stations of one category, with the state of the iteration.
struct Rival {
    stations: i32,
    /// *d*.
    zone: usize,
    /// Wⱼ/2 + 1 of each try.
    slots: Vec<f64>,
    data: MediumTurn,
    request: Option<MediumTurn>,
    tau: f64,
    p: f64,
}

impl Rival {
    fn new(class: &CategoryClass, shortest: u8) -> Rival {
        let CategoryClass { sender, stations, tries } = *class;
        let of = sender.phy.contention(sender.category);
        let tries = if sender.is_aggregated { MOST_TRIES } else { usize::from(tries) };
        let windows = std::iter::successors(Some(of.cw.0), |cw| Some((2 * cw + 1).min(of.cw.1)));
        Rival {
            stations: stations.cast_signed(),
            zone: usize::from(of.aifsn - shortest),
            slots: windows.take(tries).map(|cw| f64::from(cw) / 2.0 + 1.0).collect(),
            data: sender.data(),
            request: sender.is_aggregated.then(|| sender.request()),
            tau: 0.05,
            p: 0.0,
        }
    }

    /// τ.
    fn attempts(&self, lost: f64) -> f64 {
        let (mut reach, mut sent, mut slots) = (1.0, 0.0, 0.0);
        for (nth, of_try) in self.slots.iter().enumerate() {
            sent += reach;
            slots += reach * (of_try + if nth > 0 { lost } else { 0.0 });
            reach *= self.p;
        }
        sent / slots
    }

    /// The turns that its frames begin, each with its part of them.
    fn turns(&self) -> impl Iterator<Item = (f64, MediumTurn)> {
        let of_requests = if self.request.is_some() { self.p } else { 0.0 };
        [(1.0 - of_requests, Some(self.data)), (of_requests, self.request)]
            .into_iter()
            .filter_map(|(part, turn)| Some((part, turn?)))
    }
}

/// The probability that a slot is quiet, if a number of stations of each category is left out.
fn quiet(rivals: &[Rival], slot: usize, left_out: impl Fn(usize) -> i32) -> f64 {
    let of = |(nth, rival): (usize, &Rival)| (1.0 - rival.tau).powi((rival.stations - left_out(nth)).max(0));
    rivals.iter().enumerate().filter(|(_, rival)| rival.zone <= slot).map(of).product()
}

/// For each zone the slots of it in a cycle, and the probability that one of them is quiet.
fn zones(rivals: &[Rival]) -> Vec<(f64, f64)> {
    let last = rivals.iter().map(|rival| rival.zone).max().unwrap_or(0);
    let mut reached = 1.0;
    let zone = |slot: usize| {
        let quiet = quiet(rivals, slot, |_| 0);
        let slots = if slot < last { reached } else { reached / (1.0 - quiet) };
        reached *= quiet;
        (slots, quiet)
    };
    (0..=last).map(zone).collect()
}

/// *p*.
fn meets(rival: &Rival, zones: &[(f64, f64)]) -> f64 {
    let of_it = &zones[rival.zone..];
    let alone: f64 = of_it.iter().map(|(slots, quiet)| slots * quiet / (1.0 - rival.tau)).sum();
    1.0 - alone / of_it.iter().map(|(slots, _)| slots).sum::<f64>()
}

/// *L* of a category.
fn lost_slots(rivals: &[Rival], own: usize, timeout: f64) -> f64 {
    let (mut lost, mut chances) = (0.0, 0.0);
    for (other, rival) in rivals.iter().enumerate() {
        let left = |nth: usize| i32::from(nth == own) + i32::from(nth == other);
        let chance = f64::from(rival.stations - i32::from(other == own)) * rival.tau;
        let (mut reached, zone) = (1.0, rivals[own].zone);
        let mut slots = 0.0;
        for slot in 0.. {
            if slot >= zone {
                let rest = timeout - (slot - zone) as f64;
                if rest <= 0.0 {
                    break;
                }
                slots += reached * rest.min(1.0);
            }
            reached *= quiet(rivals, slot, left);
        }
        (lost, chances) = (lost + chance * slots, chances + chance);
    }
    if chances > 0.0 { lost / chances } else { 0.0 }
}

fn solve(rivals: &mut [Rival], timeout: f64) {
    for _ in 0..ROUNDS {
        let zones = zones(rivals);
        rivals.iter_mut().for_each(|rival| rival.p = meets(rival, &zones));
        let lost: Vec<f64> = (0..rivals.len()).map(|own| lost_slots(rivals, own, timeout)).collect();
        for (rival, lost) in rivals.iter_mut().zip(lost) {
            rival.tau = STAYS * rival.tau + (1.0 - STAYS) * rival.attempts(lost);
        }
    }
}

/// The mean airtime of the longest first frame in a slot; 0 for a quiet one.
fn longest_ns(rivals: &[Rival], slot: usize, quiet: f64) -> f64 {
    let able = || rivals.iter().filter(|rival| rival.zone <= slot);
    let mut lengths: Vec<u64> = able().flat_map(Rival::turns).map(|(_, turn)| turn.first_ns).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let (mut sum, mut before) = (0.0, quiet);
    for length in lengths {
        let longer = |rival: &Rival| -> f64 {
            rival.turns().filter(|(_, turn)| turn.first_ns > length).map(|(part, _)| part).sum()
        };
        let none_longer: f64 =
            able().map(|rival| (1.0 - rival.tau * longer(rival)).powi(rival.stations)).product();
        sum += length as f64 * (none_longer - before);
        before = none_longer;
    }
    sum
}

/// The payload that all stations of each category carry together, in kbit/s.
pub(super) fn kbps(phy: &Phy, classes: &[CategoryClass]) -> Vec<f64> {
    let aifsn = |class: &CategoryClass| phy.contention(class.sender.category).aifsn;
    let shortest = classes.iter().map(aifsn).min().unwrap_or(0);
    let mut rivals: Vec<Rival> = classes.iter().map(|class| Rival::new(class, shortest)).collect();
    solve(&mut rivals, phy.answer_timeout_ns() as f64 / phy.slot_ns as f64);
    let mut cycle_ns = (phy.sifs_ns + u64::from(shortest) * phy.slot_ns) as f64;
    let mut packets = vec![0.0; rivals.len()];
    for (slot, (slots, quiet)) in zones(&rivals).into_iter().enumerate() {
        let mut busy_ns = longest_ns(&rivals, slot, quiet);
        for (rival, packets) in rivals.iter().zip(&mut packets).filter(|(rival, _)| rival.zone <= slot) {
            let alone = f64::from(rival.stations) * rival.tau * quiet / (1.0 - rival.tau);
            for (part, turn) in rival.turns() {
                busy_ns += alone * part * (turn.all_ns - turn.first_ns) as f64;
                *packets += slots * alone * part * f64::from(turn.packets);
            }
        }
        cycle_ns += slots * (quiet * phy.slot_ns as f64 + busy_ns);
    }
    packets.iter().map(|packets| packets * f64::from(PAYLOAD) * 8e6 / cycle_ns).collect()
}
