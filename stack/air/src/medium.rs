//! The links between stations on a plane, with their power and delay.
//!
//! If nodes move, a sender's links are computed again when it sends; between its frames no other part refers to them.

pub use crate::radio::{Position, Radio, dbm, watts};

use hopwise_core::narrow::as_u32;

use crate::channel::{BeginningFrame, Channel, Curves, Fader, Fading, UnheardPower};
use crate::motion::{Moving, NodeTrack, STALE_NS};
use crate::radio::LIGHT_M_PER_S;
use crate::random::{NumberStream, Purpose};
use crate::truncate;

/// One direction between two stations in range of each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hearing {
    pub(crate) to: u32,
    pub(crate) from: u32,
    pub(crate) delay_ns: u32,
    /// The number of the last data frame that was passed up, by category; a repeated one is not passed up again.
    pub(crate) delivered: [u32; 4],
    /// The number of frames that chance has decided on.
    decided: u32,
    pub(crate) power_w: f64,
    pub(crate) is_decodable: bool,
    /// True if the header of its frames is understood, whatever happens to the rest.
    pub(crate) is_detectable: bool,
}

/// The place of a sender's links.
#[derive(Clone, Copy, Debug)]
struct LinkRange {
    first: u32,
    end: u32,
    /// The end of the range that is reserved.
    most: u32,
}

/// All links; the links of one sender are side by side.
#[derive(Debug, Default)]
pub(crate) struct Medium {
    pub(crate) links: Vec<Hearing>,
    ranges: Vec<LinkRange>,
    /// The longest delay of each station's frames.
    longest_ns: Vec<u64>,
    pub(crate) channel: Channel,
    pub(crate) curves: Curves,
    /// The faders, one for each link, if power changes with time.
    faders: Vec<Fader>,
    radio: Radio,
    seed: u64,
    moving: Option<Moving>,
    /// The stations that may be in range of the sender at hand, with their positions.
    near: Vec<(u32, Position)>,
    /// The greatest distance at which a station receives another; infinite with shadowing, which has no bound.
    reach_m: f64,
    fresh: Vec<(Hearing, Option<Fader>)>,
}

impl Medium {
    pub(crate) fn new(radio: &Radio, channel: &Channel, positions: &[Option<Position>], seed: u64) -> Medium {
        let mut medium = Medium {
            channel: channel.clone(),
            radio: *radio,
            seed,
            reach_m: if channel.shadowing_db == 0.0 { reach_m(radio, channel) } else { f64::INFINITY },
            ..Medium::default()
        };
        let grid = Grid::new(positions, reach_m(radio, channel));
        for from in 0..positions.len() {
            let first = as_u32(medium.links.len());
            if let Some(here) = positions[from] {
                let mut near = match &channel.field {
                    Some(field) => field.receivers_of(as_u32(from)),
                    None => grid.around(here),
                };
                if channel.field.is_some() && channel.unheard == UnheardPower::PathLoss {
                    near.extend(grid.around(here));
                    near.sort_unstable();
                    near.dedup();
                }
                for to in near {
                    let Some(there) = positions.get(to as usize).copied().flatten() else { continue };
                    let ends = [(as_u32(from), here), (to, there)];
                    if let Some(link) = link(radio, channel, ends, seed) {
                        medium.faders.extend(channel.fader(link.from, to, seed));
                        medium.links.push(link);
                    }
                }
            }
            let end = as_u32(medium.links.len());
            medium.ranges.push(LinkRange { first, end, most: end });
            let delays = medium.links[first as usize..].iter().map(|link| u64::from(link.delay_ns));
            medium.longest_ns.push(delays.max().unwrap_or(0));
        }
        medium
    }

    /// Sets the nodes' motion; a node without a track stays. A recording has the powers of nodes wherever they are.
    pub(crate) fn set_motion(&mut self, positions: &[Option<Position>], tracks: Vec<Option<NodeTrack>>) {
        if self.channel.field.is_some() {
            return;
        }
        self.moving = Some(Moving::new(positions, tracks, reach_m(&self.radio, &self.channel)));
    }

    /// Computes the receivers of a station before it sends. No other part refers to its links then, and they may move.
    #[inline]
    pub(crate) fn look(&mut self, station: usize, now: u64) {
        if self.moving.is_some() {
            self.look_again(station, now);
        }
    }

    #[inline(never)]
    fn look_again(&mut self, station: usize, now: u64) {
        let Some(moving) = &mut self.moving else { return };
        let last = &mut moving.looked[station];
        if *last != u64::MAX && now - *last < STALE_NS {
            return;
        }
        *last = now;
        moving.advance(now);
        let Some(here) = moving.position(as_u32(station), now) else { return };
        moving.around((as_u32(station), here), now, self.reach_m, &mut self.near);
        let LinkRange { first, end, .. } = self.ranges[station];
        let old = &self.links[first as usize..end as usize];
        self.fresh.clear();
        let mut longest_ns = 0;
        for (to, there) in self.near.iter().copied() {
            let ends = [(as_u32(station), here), (to, there)];
            let Some(mut link) = link(&self.radio, &self.channel, ends, self.seed) else { continue };
            longest_ns = longest_ns.max(u64::from(link.delay_ns));
            let before = old.binary_search_by_key(&to, |link| link.to);
            (link.delivered, link.decided) =
                before.map_or(([0; 4], 0), |index| (old[index].delivered, old[index].decided));
            let fader = match before {
                Ok(index) => self.faders.get(first as usize + index).cloned(),
                Err(_) => self.channel.fader(as_u32(station), to, self.seed),
            };
            self.fresh.push((link, fader));
        }
        self.longest_ns[station] = longest_ns;
        self.replace(station);
    }

    /// Puts the fresh links where the station's links were, or at the end where they are too many.
    fn replace(&mut self, station: usize) {
        let count = as_u32(self.fresh.len());
        let range = &mut self.ranges[station];
        if range.first + count > range.most {
            let first = as_u32(self.links.len());
            *range = LinkRange { first, end: first, most: first + 2 * count };
            self.links.resize(range.most as usize, self.fresh[0].0);
            if let Some(fader) = &self.fresh[0].1 {
                self.faders.resize(range.most as usize, fader.clone());
            }
        }
        range.end = range.first + count;
        for ((link, fader), index) in self.fresh.drain(..).zip(range.first as usize..) {
            self.links[index] = link;
            if let Some(fader) = fader {
                self.faders[index] = fader;
            }
        }
    }

    #[inline]
    pub(crate) fn of(&self, station: usize) -> std::ops::Range<usize> {
        let range = self.ranges[station];
        range.first as usize..range.end as usize
    }

    #[inline]
    pub(crate) fn longest_ns(&self, station: usize) -> u64 {
        self.longest_ns[station]
    }

    /// The state of a link for a frame that begins, and the parts of the frame that chance spoils, from the lowest bit
    /// on. `None`: the frame does not arrive at all.
    pub(crate) fn at(&mut self, link: usize, frame: &BeginningFrame<'_>) -> Option<(Hearing, u64)> {
        let mut spoilt = 0;
        let mut now = self.links[link];
        let modelled_w = now.power_w;
        let (power_w, loss_ppm) = self.channel.heard((now.from, now.to), frame.now, || modelled_w)?;
        now.power_w = power_w;
        if let Some(fader) = self.faders.get(link) {
            now.power_w *= fader.gain(frame.now);
        }
        if self.channel.field.is_some() || !self.faders.is_empty() {
            now.is_decodable = now.power_w >= self.radio.receive_w;
            now.is_detectable = now.is_decodable;
        }
        if self.channel.noise_w.is_some() || loss_ppm > 0 {
            // The luck of a link's nth frame does not depend on the traffic of other links.
            let mut luck = luck(self.seed, &now);
            self.links[link].decided = now.decided.wrapping_add(1);
            if let Some(noise_w) = self.channel.noise_w {
                let error = self.curves.frame_error(frame.rate, now.power_w / noise_w, frame.bytes);
                now.is_decodable = luck.unit() >= error;
                // A frame that is noticed at all is sensed.
                now.is_detectable = true;
            }
            now.is_decodable &= luck.below(1_000_000) >= loss_ppm;
            if !frame.mpdus.is_empty() {
                let noise_w = self.channel.noise_w;
                let curves = &mut self.curves;
                let mut is_lost = |bytes: &u32, luck: &mut NumberStream| {
                    let error =
                        noise_w.map_or(0.0, |w| curves.frame_error(frame.rate, now.power_w / w, *bytes));
                    luck.unit() < error || luck.below(1_000_000) < loss_ppm
                };
                let lost = frame.mpdus.iter().map(|bytes| is_lost(bytes, &mut luck));
                spoilt = lost.zip(0..).fold(0, |lost, (is_lost, nth)| lost | u64::from(is_lost) << nth);
                now.is_decodable =
                    now.power_w >= self.radio.receive_w && (spoilt.count_ones() as usize) < frame.mpdus.len();
            }
        }
        (now.power_w >= self.radio.sense_w).then_some((now, spoilt))
    }

    pub(crate) fn stations(&self) -> usize {
        self.longest_ns.len()
    }
}

/// The luck of the next frame from one station to another.
fn luck(seed: u64, link: &Hearing) -> NumberStream {
    let of_sender = NumberStream::new(seed, link.from, Purpose::FrameLoss).next_u64();
    let of_link = NumberStream::new(of_sender, link.to, Purpose::FrameLoss).next_u64();
    NumberStream::new(of_link, link.decided, Purpose::FrameLoss)
}

/// The stations whose frames each station can decode.
pub fn neighbours(
    radio: &Radio,
    channel: &Channel,
    positions: &[Option<Position>],
    seed: u64,
) -> Vec<Vec<u32>> {
    let medium = Medium::new(radio, channel, positions, seed);
    let of = |station| {
        let links = &medium.links[medium.of(station)];
        links.iter().filter(|link| link.is_decodable).map(|link| link.to).collect()
    };
    (0..positions.len()).map(of).collect()
}

/// The links between stations that stand still, by sender and receiver.
pub(crate) fn links(
    radio: &Radio,
    channel: &Channel,
    positions: &[Option<Position>],
    seed: u64,
) -> Vec<(u32, u32)> {
    Medium::new(radio, channel, positions, seed).links.iter().map(|link| (link.from, link.to)).collect()
}

/// The most links there can be between these positions, counted by squares and not one by one.
pub fn most_links(radio: &Radio, channel: &Channel, positions: &[Option<Position>]) -> u64 {
    let recorded = channel.field.as_ref().map(|field| field.links() as u64);
    if let (Some(links), UnheardPower::Nothing) = (recorded, channel.unheard) {
        return links;
    }
    let grid = Grid::new(positions, reach_m(radio, channel));
    let near = |(x, y): (i64, i64)| {
        let cells = (-1..=1).flat_map(|dx| (-1..=1).map(move |dy| (x + dx, y + dy)));
        cells.filter_map(|cell| grid.cells.get(&cell)).map(|cell| cell.len() as u64).sum::<u64>()
    };
    let modelled: u64 = grid.cells.iter().map(|(cell, stations)| stations.len() as u64 * near(*cell)).sum();
    modelled + recorded.unwrap_or(0)
}

/// The link between two stations; `None` where no frame ever arrives.
fn link(radio: &Radio, channel: &Channel, ends: [(u32, Position); 2], seed: u64) -> Option<Hearing> {
    let [(from, here), (to, there)] = ends;
    if from == to {
        return None;
    }
    let recorded = channel.recorded(from, to);
    let power_w = match recorded {
        // A recorded link may come later, or grow.
        Some(field) => field.first_power_w(from, to).unwrap_or(0.0),
        None => channel.modelled_w(radio, ends, seed),
    };
    if power_w < least_w(radio, channel) && recorded.is_none() {
        return None;
    }
    // At least 1 ns, however near: a frame that begins at an instant does not arrive at that instant.
    let delay_ns = truncate::to_u32(here.distance_m(there) * 1e9 / LIGHT_M_PER_S + 0.5).max(1);
    Some(Hearing {
        to,
        from,
        delay_ns,
        delivered: [0; 4],
        decided: 0,
        power_w,
        is_decodable: power_w >= radio.receive_w,
        is_detectable: power_w >= radio.receive_w,
    })
}

/// The least power that counts: with fading, a weak frame may be strong enough for a moment.
fn least_w(radio: &Radio, channel: &Channel) -> f64 {
    if channel.fading == Fading::None { radio.sense_w } else { radio.sense_w / 10.0 }
}

/// No station senses a frame beyond this distance, unless shadowing is three times as strong as usual.
fn reach_m(radio: &Radio, channel: &Channel) -> f64 {
    let plain = Channel { path_loss: channel.path_loss, ..Channel::default() };
    let most = 3.0 * channel.shadowing_db + channel.most_gain_db();
    let least_w = least_w(radio, channel) / libm::pow(10.0, most / 10.0);
    let power_w =
        |m: f64| plain.power_w(radio, [(0, Position::default()), (1, Position { x: m, y: 0.0 })], 0);
    let mut reach = 1.0;
    while power_w(reach) >= least_w && reach < 1e7 {
        reach *= 1.1;
    }
    reach
}

/// Squares as wide as the reach: all stations in reach stand in one of nine.
struct Grid {
    cells: std::collections::BTreeMap<(i64, i64), Vec<u32>>,
    width_m: f64,
}

impl Grid {
    fn new(positions: &[Option<Position>], width_m: f64) -> Grid {
        let mut grid = Grid { cells: std::collections::BTreeMap::new(), width_m };
        for (station, position) in positions.iter().enumerate() {
            let Some(position) = *position else { continue };
            grid.cells.entry(position.square(width_m)).or_default().push(as_u32(station));
        }
        grid
    }

    /// Stations in the order of their numbers; nothing depends on the grid's lines.
    fn around(&self, position: Position) -> Vec<u32> {
        let (x, y) = position.square(self.width_m);
        let cells = (-1..=1).flat_map(|dx| (-1..=1).map(move |dy| (x + dx, y + dy)));
        let mut near: Vec<u32> = cells.filter_map(|cell| self.cells.get(&cell)).flatten().copied().collect();
        near.sort_unstable();
        near
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(spacing_m: f64, nodes: u32) -> Vec<Option<Position>> {
        (0..nodes).map(|n| Some(Position { x: f64::from(n) * spacing_m, y: 0.0 })).collect()
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
    #[test]
    fn a_link_loses_the_same_frames_whatever_others_carry() {
        let channel = Channel { loss_ppm: 300_000, ..Channel::default() };
        let lost = |others: usize| {
            let mut medium = Medium::new(&Radio::default(), &channel, &chain(200.0, 3), 1);
            let [first, second] = [medium.of(0).start, medium.of(1).start];
            let decoded = |now| {
                let frame = BeginningFrame {
                    now,
                    rate: crate::phy::Phy::named("dsss-2mbps").expect("a profile").data,
                    bytes: 1_000,
                    mpdus: &[],
                };
                for _ in 0..others {
                    medium.at(second, &frame);
                }
                medium.at(first, &frame).is_some_and(|(link, _)| link.is_decodable)
            };
            (0..1_000).map(decoded).collect::<Vec<_>>()
        };
        let alone = lost(0);
        assert_eq!(alone, lost(3));
        assert!((250..350).contains(&alone.iter().filter(|decoded| !**decoded).count()));
    }
}
