//! The fates of frames that need an answer, noted while frames are watched. A MAC knows nothing of them.

use hopwise_core::narrow::as_u32;

use super::station::{Hears, Reception};
use super::{Dcf, FrameKind};
use crate::frames::{FrameEnding, FrameFate, FrameLoss, MediumAccess};

impl Dcf {
    /// Until more is known, a frame that starts counts as lost on the channel.
    pub(super) fn note_departure(&mut self, n: usize) {
        if self.seen.is_none() {
            return;
        }
        self.losses[n] = Some(FrameLoss::Channel);
        self.spoilers[n] = FrameLoss::Channel;
        let reception = &self.stations[n].reception;
        if reception.hears == Hears::Frame {
            let sender = self.medium.links[reception.link as usize].from;
            self.note_loss(sender, n, FrameLoss::Sending(self.stations[n].frame.kind));
        }
    }

    /// Notes that the last frame of `sender` is lost at `n`, if it was for that station.
    pub(super) fn note_loss(&mut self, sender: u32, n: usize, loss: FrameLoss) {
        if self.seen.is_some() && self.stations[sender as usize].frame.to as usize == n {
            self.losses[sender as usize] = Some(loss);
        }
    }

    /// Notes what has spoilt parts of an aggregate for this station, of which other parts were understood.
    pub(super) fn note_spoiler(&mut self, n: usize, heard: &Reception) {
        let from = self.medium.links[heard.link as usize].from as usize;
        if self.seen.is_none() || heard.lost == 0 || self.stations[from].frame.to as usize != n {
            return;
        }
        let by = self.stations[n].strongest_beside(heard);
        let sender = by.map(|link| self.medium.links[link as usize].from);
        self.spoilers[from] = sender.map_or(FrameLoss::Channel, |sender| FrameLoss::Frame {
            sender,
            kind: self.stations[sender as usize].frame.kind,
        });
    }

    pub(super) fn note_understood(&mut self, sender: u32) {
        if self.seen.is_some() {
            self.losses[sender as usize] = None;
        }
    }

    pub(super) fn note_answered(&mut self, n: usize) {
        self.note_ending(n, FrameFate::Answered, false);
    }

    /// The fate of the frame whose answer has not come.
    pub(super) fn fate(&self, n: usize) -> FrameFate {
        let of = |station: usize| self.losses.get(station).copied().flatten();
        let receiver = self.stations[n].frame.to as usize;
        of(n).map_or_else(
            || FrameFate::AnswerLost(of(receiver).unwrap_or(FrameLoss::Channel)),
            FrameFate::Lost,
        )
    }

    pub(super) fn note_ending(&mut self, n: usize, fate: FrameFate, is_given_up: bool) {
        if self.seen.is_some() {
            self.endings.push(FrameEnding { station: as_u32(n), fate, is_given_up });
        }
    }

    /// The access of the RTS or the packet that the station sends now, while frames are watched.
    #[inline]
    pub(super) fn access(&self, n: usize, kind: FrameKind) -> Option<MediumAccess> {
        if self.seen.is_some() { self.access_now(n, kind) } else { None }
    }

    #[cold]
    fn access_now(&self, n: usize, kind: FrameKind) -> Option<MediumAccess> {
        let st = &self.stations[n];
        let service = st.service?;
        let is_broadcast = service.to == super::EVERYONE;
        let is_data = kind == FrameKind::Data;
        let (tries, most) = match is_data && service.is_announced {
            true => (st.long_tries, self.mac.long_retries),
            false if is_broadcast => (0, 1),
            false => (st.short_tries, self.mac.short_retries),
        };
        Some(MediumAccess {
            attempt: tries + 1,
            most,
            backoff: st.drawn.filter(|_| !(is_data && service.is_cleared)),
        })
    }
}
