//! The length of a train: the segments in it, the numbers at which it ends, and what may follow it before its ACK.

use hopwise_core::Seq;
use hopwise_core::agent::SendView;

use super::Train;
use super::constants::{FIRST_SEGMENTS, Part};
use super::gap::Regime;
use crate::sender::window::mss_of;
use crate::truncate;

impl Train {
    pub(super) fn window(&self, view: &SendView<'_>) -> u64 {
        let segments = if self.is_probing { 1 } else { self.length(view) + self.ahead() };
        u64::from(segments) * mss_of(view)
    }

    /// Segments that may follow a train before its ACK is in: none, another train, or what the path holds.
    pub(super) fn ahead(&self) -> u32 {
        match self.gap.regime() {
            Regime::Sharing => self.gap.share().map_or(0, truncate::to_u32).min(self.most),
            Regime::Waiting => 0,
            Regime::Flowing => self.segments,
            Regime::Filling => self.segments.max(self.gap.holds()),
        }
    }

    /// The end of the train that begins at `began`, with segments of the current size.
    pub(super) fn end_of(&self, began: Seq, view: &SendView<'_>) -> Seq {
        began + u32::try_from(u64::from(self.length(view)) * mss_of(view)).unwrap_or(u32::MAX / 2)
    }

    /// The length in segments of the train under way, or of the first one.
    pub(super) fn length(&self, view: &SendView<'_>) -> u32 {
        match (self.began, view.path.rtt.latest) {
            (None, Some(_)) if self.without != Part::HandshakeGap && self.gap.seconds == 0.0 => {
                FIRST_SEGMENTS.min(self.most)
            }
            _ => self.segments,
        }
    }

    /// The end of the train under way, according to its ACK. Trains that fill a long path left when trains had another
    /// length: an ACK for most of one counts for all of it.
    pub(super) fn end_told(&self, began: Seq, view: &SendView<'_>) -> Seq {
        let end = self.end_of(began, view);
        let is_most = 2 * u64::from(view.snd_una.bytes_since(began)) > u64::from(end.bytes_since(began));
        let is_filled = self.gap.regime() == Regime::Filling && self.without != Part::MostIsAll;
        if is_filled && is_most { end.min(view.snd_una) } else { end }
    }

    /// The end of the train that holds `first`: the one from `began`, or one that follows before its ACK is in.
    pub(super) fn end_after(&self, first: Seq, began: Seq, view: &SendView<'_>) -> Seq {
        let mut end = self.end_of(began, view);
        let train = end.bytes_since(began).max(1);
        if end <= first {
            end += first.bytes_since(end) / train * train + train;
        }
        end
    }

    /// Whole segments that follow `after` in the train under way, as far as it has room and data is ready.
    pub(super) fn left(&self, after: Seq, end: Seq, view: &SendView<'_>) -> u32 {
        let mss = view.mss.max(1);
        let ready = self.ready(view);
        end.bytes_since(after).div_ceil(mss).min(ready.bytes_since(after) / mss)
    }

    pub(super) fn next_segments(&self, view: &SendView<'_>) -> u32 {
        let gap_s = self.gap.seconds;
        let fit = if gap_s > 0.0 { truncate::to_u32(self.span_s / gap_s) } else { 1 };
        let most = if self.gap.is_starting() { self.segments.saturating_mul(2) } else { u32::MAX };
        fit.clamp(1, self.most).min(most).min(self.beside_the_path(view))
    }

    /// Three trains fit into the peer's window on a long path: one is acknowledged, another follows it, and the path
    /// holds the third. A train that fills the window alone would wait for its ACK after all.
    pub(super) fn beside_the_path(&self, view: &SendView<'_>) -> u32 {
        if self.gap.regime() != Regime::Filling || self.without == Part::WindowFit {
            return u32::MAX;
        }
        (view.snd_wnd / view.mss.max(1) / 3).max(1)
    }
}
