//! The half of a window that standard TCP leaves after a loss, for `newreno` and `reno`.
//!
//! Rule: a loss halves what was in flight (RFC 5681 eq. 4). A further timeout of a series leaves ssthresh as it is.
//!
//! Deviations: `half=window` is ns-2's rule. It halves the least of cwnd, the receiver's window and what other agents
//! let into the network, in whole segments. Every timeout of a series halves it. RFC 5681 keeps ssthresh after the
//! first timeout, as `half=flight` does. The amount to halve never exceeds cwnd, which leaves out the segments that
//! limited transmit added.

use hopwise_core::agent::{Loss, LossKind, SendView};

use super::window::{Window, mss_of};
use crate::param::{Param, choices};

choices! {
    Half { Flight = "flight", Window = "window" }
}

pub(super) const HALF: Param =
    Half::FORM.is(0).ns2(1).means("quantity that a loss halves: bytes in flight, or the window");

impl Half {
    /// The new ssthresh.
    pub(super) fn reduced(self, window: &Window, loss: &Loss, view: &SendView<'_>) -> u64 {
        let mss = mss_of(view);
        match (self, loss.kind) {
            // RFC 5681 §3.1: a segment that timed out before shows nothing new of the path.
            (Half::Flight, LossKind::Timeout { nth: 2.. }) => window.ssthresh(mss),
            (Half::Flight, _) => loss.flight_before.bytes.min(window.cwnd(mss)) / 2,
            (Half::Window, _) => {
                let filled = window.filled(loss, mss).min(u64::from(view.snd_wnd));
                filled / 2 / mss * mss
            }
        }
    }
}
