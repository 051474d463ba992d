//! Receptions of 802.11n's stations among other frames: chance decides by the curves of the rate.
//!
//! A receiver that has found a preamble stays with its frame, whatever follows; only a frame that is stronger by the
//! capture ratio takes its place. Others that are on the air meanwhile are noise to that frame. Each part of the frame
//! has the errors of its own SINR, and chance decides at the end.

use super::Dcf;
use super::station::{DcfStation, Hears, Overlap, Reception};
use crate::channel::{Curves, PREAMBLE_SNR};
use crate::deadlines::NEVER;
use crate::phy::Rate;

/// By then a receiver has found a preamble (aCCATime).
const FOUND_NS: u64 = 4_000;

/// A reception after a frame that is not received.
fn both(old: &Reception, new: &Reception, is_old_lost: bool) -> Reception {
    if old.hears == Hears::Nothing {
        return Reception { hears: Hears::Noise, ..*new };
    }
    let lasts = if new.until > old.until { new } else { old };
    let started = if is_old_lost { NEVER } else { old.started.min(new.started) };
    Reception { hears: Hears::Collision, from: old.from, started, ..*lasts }
}

impl Dcf {
    /// The first bit of a frame arrives.
    #[inline(never)]
    pub(super) fn hear_ht(&mut self, n: usize, new: Reception) {
        let capture = self.radio.capture;
        let st = &mut self.stations[n];
        let old = st.reception;
        let is_receiving = old.hears == Hears::Frame;
        let needed_from = if is_receiving { old.began.min(new.from) } else { new.from };
        st.overlapping.retain(|other| other.until > needed_from);
        let others: f64 =
            st.overlapping.iter().filter(|other| other.until > new.from).map(|other| other.power_w).sum();
        st.overlapping.push(new.overlap());
        // Both preambles are still to be found.
        let is_contest = is_receiving && new.from < old.began + FOUND_NS;
        let is_old_lost = is_contest && old.power_w < PREAMBLE_SNR * (others - old.power_w + new.power_w);
        let needed = if is_receiving && !is_contest { capture.max(PREAMBLE_SNR) } else { PREAMBLE_SNR };
        let is_taken = new.hears == Hears::Frame && new.power_w >= needed * others;
        let new = Reception { started: if is_taken { new.started } else { NEVER }, ..new };
        st.follow(&new);
        if is_receiving && !is_taken && !is_old_lost {
            st.busy_until = st.busy_until.max(new.until);
            self.count_lost(n, &new, &old);
            return;
        }
        st.reception = if is_taken {
            // A weaker frame may last longer: the carrier stays busy.
            let is_first = old.hears == Hears::Nothing;
            st.busy_until = st.busy_until.max(if is_first { 0 } else { old.until });
            Reception { from: if is_first { new.from } else { old.from }, ..new }
        } else {
            both(&old, &new, is_old_lost)
        };
        if old.hears == Hears::Nothing {
            return;
        }
        let (lost, by) = if is_taken { (&old, &new) } else { (&new, &old) };
        self.count_lost(n, lost, by);
        if is_old_lost && !is_taken {
            self.count_lost(n, &old, &new);
        }
    }

    /// A frame has come to its end. If other frames were on the air meanwhile, chance decides whether it is understood.
    #[inline(never)]
    pub(super) fn judge(&mut self, n: usize, heard: &mut Reception) {
        let from = self.medium.links[heard.link as usize].from;
        let frame = self.stations[from as usize].frame;
        let noise_w = self.medium.channel.noise_w.unwrap_or(0.0);
        let part = |from: u64, until: u64| FrameSegment {
            from: heard.began + from,
            until: heard.began + until,
            rate: frame.rate,
        };
        if frame.mpdus < 2 {
            let bits = f64::from(frame.bytes_on_air(&self.phy)) * 8.0;
            let whole = part(self.preamble_ns(frame.rate), frame.airtime_ns);
            let curves = &mut self.medium.curves;
            if !self.stations[n].is_spoilt(curves, heard, whole, (bits, noise_w)) {
                return;
            }
        } else {
            let overhead = self.phy.data_overhead;
            let parts: Vec<_> = if self.stations[n].is_alone(heard) {
                Vec::new()
            } else {
                self.parts(from as usize).collect()
            };
            for (nth, (mpdu, from, until)) in parts.into_iter().enumerate() {
                let bits = f64::from(mpdu.bytes + overhead) * 8.0;
                let curves = &mut self.medium.curves;
                if self.stations[n].is_spoilt(curves, heard, part(from, until), (bits, noise_w)) {
                    heard.lost |= 1 << nth;
                }
            }
            if heard.lost.count_ones() < u32::from(frame.mpdus) {
                self.note_spoiler(n, heard);
                return;
            }
        }
        if let Some(link) = self.stations[n].strongest_beside(heard) {
            let by = Reception { hears: Hears::Noise, link, ..*heard };
            self.count_lost(n, heard, &by);
        }
        heard.hears = Hears::Collision;
    }
}

/// A part of a frame on the air.
#[derive(Clone, Copy, Debug)]
struct FrameSegment {
    from: u64,
    until: u64,
    rate: Rate,
}

impl DcfStation {
    /// Returns whether nothing else was on the air during a frame.
    fn is_alone(&self, heard: &Reception) -> bool {
        let is_other = |o: &Overlap| !o.is_of(heard) && o.from < heard.until && o.until > heard.began;
        !self.overlapping.iter().any(is_other)
    }

    /// The link of the strongest other frame during one.
    pub(super) fn strongest_beside(&self, heard: &Reception) -> Option<u32> {
        let others = self.overlapping.iter().filter(|other| !other.is_of(heard) && other.until > heard.began);
        others.max_by(|a, b| a.power_w.total_cmp(&b.power_w)).map(|other| other.link)
    }

    /// Decides by chance whether other frames spoil a part.
    fn is_spoilt(
        &mut self,
        curves: &mut Curves,
        heard: &Reception,
        part: FrameSegment,
        content: (f64, f64),
    ) -> bool {
        let likelihood = self.intact(curves, heard, part, content);
        likelihood < 1.0 && self.luck.unit() >= likelihood
    }

    /// The probability that other frames spoil none of the `bits` of a part.
    fn intact(
        &self,
        curves: &mut Curves,
        heard: &Reception,
        part: FrameSegment,
        (bits, noise_w): (f64, f64),
    ) -> f64 {
        let others = || {
            self.overlapping.iter().filter(|o| !o.is_of(heard) && o.from < part.until && o.until > part.from)
        };
        let mut edges: Vec<u64> = others().flat_map(|other| [other.from, other.until]).collect();
        if edges.is_empty() {
            return 1.0;
        }
        edges.extend([part.from, part.until]);
        edges.retain(|edge| (part.from..=part.until).contains(edge));
        edges.sort_unstable();
        let lasts = (part.until - part.from) as f64;
        let mut likelihood = 1.0;
        for (from, until) in edges.iter().zip(&edges[1..]).filter(|(from, until)| from < until) {
            let others_w: f64 =
                others().filter(|o| o.from < *until && o.until > *from).map(|other| other.power_w).sum();
            if others_w > 0.0 {
                let share = (until - from) as f64 / lasts;
                likelihood *= curves.intact(part.rate, heard.power_w / (others_w + noise_w), bits * share);
            }
        }
        likelihood
    }
}

impl Overlap {
    fn is_of(&self, heard: &Reception) -> bool {
        (self.link, self.from) == (heard.link, heard.began)
    }
}
