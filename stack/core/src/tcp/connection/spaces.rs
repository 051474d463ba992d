//! The two sequence spaces, as a connection begins with them.

use super::{Rcv, Snd, window};
use crate::tcp::recv_buffer::RecvBuffer;
use crate::tcp::send_buffer::SendBuffer;
use crate::{Instant, Moment, Seq};

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
            timed: (iss, Moment::NEVER),
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

impl Rcv {
    pub(super) fn new(buffer_bytes: u32) -> Rcv {
        Rcv {
            irs: Seq(0),
            nxt: Seq(0),
            edge: Seq(0),
            advertised: Seq(0),
            buffer: RecvBuffer::new(buffer_bytes),
            fin: None,
            urgent_end: None,
            ts_recent: 0,
            ts_recent_at: Instant::ZERO,
            last_ack_decided: Seq(0),
            last_told: Seq(0),
            peer_cwnd: None,
            last_arrival: Moment::NEVER,
            hop_limit: None,
            last_echo: 0,
            largest: 0,
            tuning: window::Tuning::default(),
            is_deaf: false,
            was_asked: false,
            ecn_echo: false,
        }
    }
}
