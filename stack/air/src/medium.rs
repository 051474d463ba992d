//! Who hears whom, how strongly, and how long it takes: two-ray ground over places on a plane.

use crate::channel::{Channel, Fader, Fading};
use crate::random::{Purpose, Stream};

/// A place in metres.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Place {
    pub x: f64,
    pub y: f64,
}

impl Place {
    pub fn distance_m(self, other: Place) -> f64 {
        let (dx, dy) = (self.x - other.x, self.y - other.y);
        (dx * dx + dy * dy).sqrt()
    }
}

/// Powers in watts. The defaults are ns-2's: 250 m to decode, 550 m to sense.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Radio {
    pub transmit_w: f64,
    pub frequency_hz: f64,
    pub antenna_m: f64,
    /// From here on a frame can be decoded.
    pub receive_w: f64,
    /// From here on it keeps the carrier busy.
    pub sense_w: f64,
    /// A frame under reception survives a later one that is weaker by this ratio.
    pub capture: f64,
}

impl Default for Radio {
    fn default() -> Radio {
        Radio {
            transmit_w: 0.281_838_15,
            frequency_hz: 914e6,
            antenna_m: 1.5,
            receive_w: 3.652e-10,
            sense_w: 1.559e-11,
            capture: 10.0,
        }
    }
}

const LIGHT_M_PER_S: f64 = 3e8;

impl Radio {
    pub(crate) fn free_space_w(&self, distance_m: f64) -> f64 {
        if distance_m <= 0.0 {
            return self.transmit_w;
        }
        let m = LIGHT_M_PER_S / self.frequency_hz / (4.0 * std::f64::consts::PI * distance_m);
        self.transmit_w * m * m
    }

    /// Free space up to the crossover distance, beyond it the two rays cancel and power falls with d⁴.
    pub fn power_w(&self, distance_m: f64) -> f64 {
        let wavelength_m = LIGHT_M_PER_S / self.frequency_hz;
        let heights = self.antenna_m * self.antenna_m;
        let crossover_m = 4.0 * std::f64::consts::PI * heights / wavelength_m;
        if distance_m <= 0.0 {
            self.transmit_w
        } else if distance_m < crossover_m {
            self.free_space_w(distance_m)
        } else {
            let squared = distance_m * distance_m;
            self.transmit_w * heights * heights / (squared * squared)
        }
    }
}

/// One direction between two stations that hear each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) to: u32,
    pub(crate) from: u32,
    pub(crate) delay_ns: u32,
    /// The number of the last data frame that was passed up, so that a repeated one is not.
    pub(crate) delivered: u32,
    pub(crate) power_w: f64,
    pub(crate) is_decodable: bool,
}

/// All links, those of one sender side by side.
#[derive(Debug)]
pub(crate) struct Medium {
    pub(crate) links: Vec<Link>,
    first: Vec<u32>,
    /// How long a station's frames are under way at most.
    longest_ns: Vec<u64>,
    pub(crate) channel: Channel,
    /// One for each link, where power changes with time.
    faders: Vec<Fader>,
    losses: Stream,
}

impl Medium {
    pub(crate) fn new(radio: &Radio, channel: &Channel, places: &[Option<Place>], seed: u64) -> Medium {
        let mut medium = Medium {
            links: Vec::new(),
            first: vec![0],
            longest_ns: Vec::new(),
            channel: channel.clone(),
            faders: Vec::new(),
            losses: Stream::new(seed, 0, Purpose::FrameLoss),
        };
        // What is mostly too weak may be heard for a moment.
        let least_w = if channel.fading == Fading::None { radio.sense_w } else { radio.sense_w / 10.0 };
        let grid = Grid::new(places, reach_m(radio, channel, least_w));
        for from in 0..places.len() {
            let mut longest = 0;
            let near = places[from].map(|place| (place, grid.around(place)));
            for (here, to) in near.iter().flat_map(|(place, near)| near.iter().map(move |to| (*place, *to))) {
                let Some(there) = places[to as usize] else { continue };
                let distance_m = here.distance_m(there);
                if to as usize == from {
                    continue;
                }
                let ends = [(from as u32, here), (to, there)];
                let power_w = channel.power_w(radio, ends, seed);
                if power_w < least_w {
                    continue;
                }
                let delay_ns = (distance_m * 1e9 / LIGHT_M_PER_S + 0.5) as u32;
                longest = longest.max(u64::from(delay_ns));
                let is_decodable = power_w >= radio.receive_w;
                medium.faders.extend(channel.fader(from as u32, to, seed));
                medium.links.push(Link {
                    to,
                    from: from as u32,
                    delay_ns,
                    delivered: 0,
                    power_w,
                    is_decodable,
                });
            }
            medium.first.push(medium.links.len() as u32);
            medium.longest_ns.push(longest);
        }
        medium
    }

    #[inline]
    pub(crate) fn of(&self, station: usize) -> std::ops::Range<usize> {
        self.first[station] as usize..self.first[station + 1] as usize
    }

    #[inline]
    pub(crate) fn longest_ns(&self, station: usize) -> u64 {
        self.longest_ns[station]
    }

    /// A link as it is for a frame that begins at `at_ns`; `None`: nothing of it is heard.
    pub(crate) fn at(&mut self, link: usize, radio: &Radio, at_ns: u64) -> Option<Link> {
        let mut now = self.links[link];
        if self.channel.is_out(now.from, now.to, at_ns) {
            return None;
        }
        if let Some(fader) = self.faders.get(link) {
            now.power_w *= fader.gain(at_ns);
            now.is_decodable = now.power_w >= radio.receive_w;
        }
        let loss_ppm = self.channel.loss_ppm;
        if loss_ppm > 0 && now.is_decodable && self.losses.below(1_000_000) < loss_ppm {
            now.is_decodable = false;
        }
        Some(now).filter(|now| now.power_w >= radio.sense_w)
    }

    pub(crate) fn stations(&self) -> usize {
        self.longest_ns.len()
    }
}

/// Whose frames each station can decode.
pub fn neighbours(radio: &Radio, channel: &Channel, places: &[Option<Place>], seed: u64) -> Vec<Vec<u32>> {
    let medium = Medium::new(radio, channel, places, seed);
    let of = |station| {
        let links = &medium.links[medium.of(station)];
        links.iter().filter(|link| link.is_decodable).map(|link| link.to).collect()
    };
    (0..places.len()).map(of).collect()
}

/// Beyond this nobody senses anything, but for shadows three times as bright as usual.
fn reach_m(radio: &Radio, channel: &Channel, least_w: f64) -> f64 {
    let plain = Channel { shadowing_db: 0.0, ..channel.clone() };
    let least_w = least_w / libm::pow(10.0, 3.0 * channel.shadowing_db / 10.0);
    let power_w = |m: f64| plain.power_w(radio, [(0, Place::default()), (1, Place { x: m, y: 0.0 })], 0);
    let mut reach = 1.0;
    while power_w(reach) >= least_w && reach < 1e7 {
        reach *= 1.1;
    }
    reach
}

/// Squares as wide as the reach: whoever is in reach stands in one of nine.
struct Grid {
    cells: std::collections::BTreeMap<(i64, i64), Vec<u32>>,
    width_m: f64,
}

impl Grid {
    fn new(places: &[Option<Place>], width_m: f64) -> Grid {
        let mut grid = Grid { cells: std::collections::BTreeMap::new(), width_m };
        for (station, place) in places.iter().enumerate() {
            let Some(place) = *place else { continue };
            grid.cells.entry(grid.cell(place)).or_default().push(station as u32);
        }
        grid
    }

    fn cell(&self, place: Place) -> (i64, i64) {
        ((place.x / self.width_m).floor() as i64, (place.y / self.width_m).floor() as i64)
    }

    /// In the order of their numbers, so that nothing depends on where the grid's lines are.
    fn around(&self, place: Place) -> Vec<u32> {
        let (x, y) = self.cell(place);
        let cells = (-1..=1).flat_map(|dx| (-1..=1).map(move |dy| (x + dx, y + dy)));
        let mut near: Vec<u32> = cells.filter_map(|cell| self.cells.get(&cell)).flatten().copied().collect();
        near.sort_unstable();
        near
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(spacing_m: f64, nodes: u32) -> Vec<Option<Place>> {
        (0..nodes).map(|n| Some(Place { x: f64::from(n) * spacing_m, y: 0.0 })).collect()
    }

    #[test]
    fn frames_are_decoded_up_to_250_m_and_sensed_up_to_550() {
        let radio = Radio::default();
        for (distance_m, decoded, sensed) in
            [(250.0, true, true), (250.1, false, true), (550.0, false, true), (550.3, false, false)]
        {
            let power = radio.power_w(distance_m);
            assert_eq!((power >= radio.receive_w, power >= radio.sense_w), (decoded, sensed), "{distance_m}");
        }
    }

    #[test]
    fn captures_on_the_200_m_grid_are_those_of_its_distances() {
        let radio = Radio::default();
        let survives = |near: f64, far: f64| radio.power_w(near) >= radio.capture * radio.power_w(far);
        assert!(!survives(200.0, 283.0) && survives(200.0, 400.0) && survives(200.0, 447.0));
        assert!(!survives(283.0, 400.0) && !survives(283.0, 447.0));
    }

    #[test]
    fn middle_of_a_chain_hears_two_on_either_side() {
        let medium = Medium::new(&Radio::default(), &Channel::default(), &chain(200.0, 9), 1);
        let heard: Vec<_> = medium.links[medium.of(4)].iter().map(|l| (l.to, l.is_decodable)).collect();
        assert_eq!(heard, [(2, false), (3, true), (5, true), (6, false)]);
        assert_eq!((medium.longest_ns(4), medium.of(0).len()), (1_333, 2));
    }
}
