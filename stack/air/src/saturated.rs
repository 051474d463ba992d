//! Traffic at the MAC, for calibration: stations that always have a packet to send.

use hopwise_core::Cast;
use hopwise_core::queue::Category;

use crate::dcf::{Dcf, DcfNews, MacConfig, Offered};
use crate::phy::Phy;
use crate::radio::Position;
use crate::radio::Radio;

const SECOND_NS: u64 = 1_000_000_000;
/// Payload of a packet, and its size with UDP and IP.
pub const PAYLOAD: u32 = 1_000;
pub const PACKET: u32 = PAYLOAD + 28;

/// Saturated flows: each sender always has a packet.
#[derive(Clone, Debug)]
pub struct Saturated {
    pub phy: Phy,
    pub mac: MacConfig,
    pub radio: Radio,
    pub positions: Vec<Option<Position>>,
    /// The sender and the receiver of each flow.
    pub flows: Vec<(u32, u32)>,
    pub seed: u64,
}

impl Saturated {
    /// Stations evenly on a circle of 100 m, all with packets for the one in its centre, which is the first.
    pub fn cell(phy: Phy, mac: MacConfig, stations: u32, seed: u64) -> Saturated {
        let on_circle = |n: u32| {
            let angle = f64::from(n) * std::f64::consts::TAU / f64::from(stations);
            Position { x: 100.0 * libm::cos(angle), y: 100.0 * libm::sin(angle) }
        };
        let positions = std::iter::once(Position::default()).chain((0..stations).map(on_circle)).map(Some);
        let flows = (1..=stations).map(|station| (station, 0)).collect();
        Saturated { phy, mac, radio: Radio::default(), positions: positions.collect(), flows, seed }
    }

    /// Stations at one point, all with packets for one that stands 100 m away and is the first. Frames that begin
    /// together are equally strong everywhere: no station understands one of them.
    pub fn crowd(phy: Phy, mac: MacConfig, stations: u32, seed: u64) -> Saturated {
        let at = |n: u32| Some(Position { x: if n == 0 { 100.0 } else { 0.0 }, y: 0.0 });
        let flows = (1..=stations).map(|station| (station, 0)).collect();
        let positions = (0..=stations).map(at).collect();
        Saturated { phy, mac, radio: Radio::default(), positions, flows, seed }
    }

    /// A, B and C on a line; A and C have packets for B, which is the second.
    pub fn line(
        phy: Phy,
        mac: MacConfig,
        radio: Radio,
        (to_b_m, to_c_m): (f64, f64),
        seed: u64,
    ) -> Saturated {
        let positions = [0.0, to_b_m, to_b_m + to_c_m].map(|x| Some(Position { x, y: 0.0 })).to_vec();
        Saturated { phy, mac, radio, positions, flows: vec![(0, 1), (2, 1)], seed }
    }

    /// The payload that each flow delivered, in kbit/s, after a second of warming up.
    pub fn kbps_each(&self, seconds: u64) -> Vec<f64> {
        self.kbps_each_in(&vec![Category::BestEffort; self.flows.len()], seconds)
    }

    /// The same of flows that have these categories. A station sends in one flow.
    pub fn kbps_each_in(&self, categories: &[Category], seconds: u64) -> Vec<f64> {
        let mut dcf = Dcf::new(self.phy, self.mac, self.radio, &self.positions, self.seed);
        let mut arrived = vec![0_u64; self.flows.len()];
        let mut flow_of = vec![None; self.positions.len()];
        for (flow, (from, to)) in self.flows.iter().enumerate() {
            flow_of[*from as usize] = Some((flow, *to));
            fill_in(&mut dcf, u64::from(*from) * 1_000_000, (*from, *to), categories[flow]);
        }
        dcf.play((seconds + 1) * SECOND_NS, |dcf, now, news| match news {
            DcfNews::Arrived { from, cast: Cast::ToUs, .. } => {
                if let Some((flow, _)) = flow_of[from as usize].filter(|_| now >= SECOND_NS) {
                    arrived[flow] += 1;
                }
            }
            DcfNews::Arrived { .. } | DcfNews::Kept { .. } => {}
            DcfNews::Done { station, .. } | DcfNews::HasRoom { station } => {
                if let Some((flow, to)) = flow_of[station as usize] {
                    fill_in(dcf, now, (station, to), categories[flow]);
                }
            }
        });
        let kbps = |packets: &u64| (packets * u64::from(PAYLOAD) * 8) as f64 / seconds as f64 / 1e3;
        arrived.iter().map(kbps).collect()
    }

    pub fn kbps(&self, seconds: u64) -> f64 {
        self.kbps_each(seconds).iter().sum()
    }
}

/// Gives a station all packets that it has room for.
#[cfg(test)]
pub fn fill(dcf: &mut Dcf, now: u64, flow: (u32, u32)) {
    fill_in(dcf, now, flow, Category::BestEffort);
}

/// Gives a category of a station all packets that it has room for.
fn fill_in(dcf: &mut Dcf, now: u64, (station, to): (u32, u32), category: Category) {
    let offered = Offered::plain(to, PACKET, category);
    if dcf.has_room_in(station, category) {
        dcf.give(now, station, offered);
    }
    while dcf.room_for_more_in(station, category).is_some_and(|room| room.bytes >= PACKET) {
        dcf.give_more(now, station, offered);
    }
}

/// Jain's index: 1 for equal shares.
pub fn jain(shares: &[f64]) -> f64 {
    let (sum, squares): (f64, f64) = (shares.iter().sum(), shares.iter().map(|share| share * share).sum());
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}
