//! The send sequence space, as a connection begins with it.

use super::Snd;
use crate::tcp::send_buffer::SendBuffer;
use crate::{Moment, Seq};

impl Snd {
    pub(super) fn new(iss: Seq, buffer_bytes: u32, mss: u32) -> Snd {
        Snd {
            iss,
            opened: false,
            una: iss,
            nxt: iss,
            max: iss,
            wnd: 0,
            wl1: Seq(0),
            wl2: Seq(0),
            max_wnd: 0,
            highest_ack: iss,
            urgent_end: None,
            buffer: SendBuffer::new(buffer_bytes),
            fin_wanted: false,
            fin_sent: false,
            mss,
            last_sent_at: Moment::NEVER,
            waiting_since: Moment::NEVER,
            ack_requests: None,
            turn: None,
            app_limited: false,
            more_comes: false,
            cwr: false,
            last_allowed: 0,
        }
    }

    /// The number of the first byte that the send buffer holds.
    pub(super) fn first_held(&self) -> Seq {
        if self.opened { self.una } else { self.iss + 1 }
    }
}
