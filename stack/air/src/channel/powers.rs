//! The power of each link at any instant, as the world computes it, for a recording. It acts on no world.

use std::collections::BTreeMap;

use super::{Channel, Fader};
use crate::medium::{self, Position, Radio};
use crate::motion::{NodeTrack, Walker};

/// All stations, without their machines.
#[derive(Debug)]
pub struct Powers {
    radio: Radio,
    channel: Channel,
    seed: u64,
    stations: Vec<Option<Walker>>,
    /// The links that there can be, by sender and receiver.
    links: Vec<(u32, u32)>,
    /// Those of links that have carried frames; none where power does not fade.
    faders: BTreeMap<(u32, u32), Option<Fader>>,
}

/// A link at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkPower {
    /// The number of the sender.
    pub from: u32,
    /// The number of the receiver.
    pub to: u32,
    /// The power of a frame at the receiver.
    pub power_w: f64,
    /// Frames in a million that chance spoils although their power is enough.
    pub loss_ppm: u32,
}

impl Powers {
    /// The stations of a world with these settings.
    pub fn new(
        radio: &Radio,
        channel: &Channel,
        positions: &[Option<Position>],
        tracks: &[Option<NodeTrack>],
        seed: u64,
    ) -> Powers {
        let links = if channel.field.is_none() && tracks.iter().any(Option::is_some) {
            let all = || (0..).zip(positions).filter(|(_, position)| position.is_some()).map(|(n, _)| n);
            all().flat_map(|from| all().filter(move |to| *to != from).map(move |to| (from, to))).collect()
        } else {
            medium::links(radio, channel, positions, seed)
        };
        let walker = |(position, node): (&Option<Position>, usize)| {
            position.map(|first| Walker::new(first, tracks.get(node).cloned().flatten()))
        };
        Powers {
            radio: *radio,
            channel: channel.clone(),
            seed,
            stations: positions.iter().zip(0..).map(walker).collect(),
            links,
            faders: BTreeMap::new(),
        }
    }

    /// Tells all links that carry frames at that time. Times of calls never fall.
    pub fn at(&mut self, now: u64, sink: &mut dyn FnMut(LinkPower)) {
        let places: Vec<_> =
            self.stations.iter_mut().map(|station| station.as_mut().map(|walker| walker.at(now))).collect();
        for (from, to) in self.links.iter().copied() {
            let (Some(here), Some(there)) = (places[from as usize], places[to as usize]) else { continue };
            let modelled_w = || self.channel.modelled_w(&self.radio, [(from, here), (to, there)], self.seed);
            let Some((power_w, loss_ppm)) = self.channel.heard((from, to), now, modelled_w) else { continue };
            let fader = self.faders.entry((from, to));
            let fader = fader.or_insert_with(|| self.channel.fader(from, to, self.seed));
            let gain = fader.as_ref().map_or(1.0, |fader| fader.gain(now));
            sink(LinkPower { from, to, power_w: power_w * gain, loss_ppm });
        }
    }
}
