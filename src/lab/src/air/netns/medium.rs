//! The main loop: due events on the air, frames for the devices, and frames from the devices.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use hopwise_air::{FrameRefusal, Live, LiveProgress, OutsideDevices};
use hopwise_core::Instant;
use hopwise_core::narrow::as_u32;
use hopwise_host::nl80211::EVERY;
use hopwise_host::{Clock, Interest, Poller};

use super::stations::{NetnsStations, NodePort};
use crate::serving::Lag;

const LARGEST: usize = 65_536;

/// Frames that went no further, by node.
#[derive(Clone, Debug, Default)]
pub(crate) struct DroppedFrames {
    pub(crate) in_anothers_name: Vec<u64>,
    /// Longer than a frame of the radio or of the wire can be.
    pub(crate) too_long: Vec<u64>,
    /// The kernel did not take them: the device is down.
    pub(crate) not_taken: Vec<u64>,
}

struct NetnsMedium<'a> {
    live: &'a mut Live<OutsideDevices>,
    stations: &'a NetnsStations,
    ports: &'a [NodePort],
    /// The devices that are not read until there is room for their frames.
    is_full: Vec<bool>,
    poller: Poller,
    clock: Clock,
    lag: Lag,
    buffer: Vec<u8>,
    dropped: DroppedFrames,
    /// The time at which the radios tell their stations again.
    tell_at: Instant,
}

/// Runs by that clock until `ends` is readable or `lasts` is over.
pub(crate) fn serve(
    (live, clock): (&mut Live<OutsideDevices>, Clock),
    stations: &NetnsStations,
    ends: &OwnedFd,
    lasts: Option<Duration>,
) -> io::Result<DroppedFrames> {
    let lag = Lag::begin();
    live.world().keep_facts();
    let count = live.machines().len();
    let (ports, poller) = (&stations.ports[..], Poller::new()?);
    for (index, port) in ports.iter().enumerate() {
        poller.add(port.device.as_fd(), index, Interest::Read)?;
    }
    poller.add(ends.as_fd(), ports.len(), Interest::Read)?;
    let mut medium = NetnsMedium {
        live,
        stations,
        ports,
        is_full: vec![false; ports.len()],
        poller,
        clock,
        lag,
        buffer: vec![0; LARGEST],
        dropped: DroppedFrames {
            in_anothers_name: vec![0; count],
            too_long: vec![0; count],
            not_taken: vec![0; count],
        },
        tell_at: Instant::ZERO,
    };
    medium.run(lasts.map(|lasts| Instant::ZERO + lasts))?;
    Ok(medium.dropped)
}

impl NetnsMedium<'_> {
    fn run(&mut self, until: Option<Instant>) -> io::Result<()> {
        let mut ready = Vec::new();
        loop {
            let now = self.clock.now();
            if until.is_some_and(|until| until <= now) {
                return Ok(());
            }
            let progress = self.live.advance(now);
            self.deliver();
            self.lag.look(self.live, now);
            self.tell_stations(now);
            for index in 0..self.ports.len() {
                if self.is_full[index] {
                    self.read(index)?;
                }
            }
            let wake_at = match progress {
                LiveProgress::MoreIsDue => Some(now),
                LiveProgress::UpToDate => {
                    self.live.poll_timeout().into_iter().chain(until).chain([self.tell_at]).min()
                }
            };
            self.poller.wait(&self.clock, wake_at, &mut ready)?;
            if ready.contains(&self.ports.len()) {
                return Ok(());
            }
            for index in ready.drain(..) {
                // A frame belongs to the world's present. Kernels repeat ARP requests at a common tick. Sent at one
                // instant they would collide for ever, while a radio hears a frame that began a microsecond before its
                // own.
                self.live.advance(self.clock.now());
                self.read(index)?;
            }
            self.deliver();
        }
    }

    /// Reads a device while there is room for its frames.
    fn read(&mut self, index: usize) -> io::Result<()> {
        let NodePort { node, link, device } = &self.ports[index];
        while self.live.machines()[*node as usize].has_room(*link) {
            let read = device.read(&mut self.buffer).map_err(|error| self.stations.gone(index, &error))?;
            let Some(bytes) = read else { return self.set_full(index, false) };
            let frame = &self.buffer[..bytes];
            let put = self.live.world().with(*node, |now, outside| outside.put(now, *link, frame));
            match put {
                Err(FrameRefusal::InAnothersName) => self.dropped.in_anothers_name[*node as usize] += 1,
                Err(FrameRefusal::TooLong) => self.dropped.too_long[*node as usize] += 1,
                Ok(()) | Err(FrameRefusal::TooShort | FrameRefusal::NoRoom) => {}
            }
        }
        self.set_full(index, true)
    }

    fn set_full(&mut self, index: usize, is_full: bool) -> io::Result<()> {
        if std::mem::replace(&mut self.is_full[index], is_full) == is_full {
            return Ok(());
        }
        let interest = if is_full { Interest::Nothing } else { Interest::Read };
        self.poller.change(self.ports[index].device.as_fd(), index, interest)
    }

    fn deliver(&mut self) {
        let (ports, dropped) = (self.ports, &mut self.dropped);
        for node in 0..as_u32(self.live.machines().len()) {
            if !self.live.machines()[node as usize].has_mail() {
                continue;
            }
            self.live.world().with(node, |_, outside| {
                outside.take(|link, frame| {
                    let port = ports.iter().find(|port| port.node == node && port.link == link);
                    if port.is_some_and(|port| port.device.write(frame).is_err()) {
                        dropped.not_taken[node as usize] += 1;
                    }
                });
            });
        }
    }

    /// Tells the facts about stations as often as a kernel is asked for them.
    fn tell_stations(&mut self, now: Instant) {
        if self.tell_at > now {
            return;
        }
        self.tell_at = now + EVERY;
        for (node, offer) in self.stations.offers().iter_mut() {
            offer.tell(|| self.live.world().facts(*node));
        }
    }
}
