//! Decides whether the newest loss was none, by timestamps, D-SACKs and F-RTO (RFC 3522, 3708, 5682).

use super::{Loss, Space};
use crate::Instant;
use crate::tcp::connection::acks::AckNews;
use crate::tcp::recovery::{Frto, Phase};
use crate::tcp::scoreboard::Newest;
use crate::trace::UndoneBy;

impl Loss {
    /// Reports the newest arrival to RACK, unless it is an older copy. `sent_ts` is the timestamp of the newest segment
    /// that arrived.
    pub(crate) fn note_delivered(
        &mut self,
        now: Instant,
        news: &AckNews,
        space: Space,
        sent_ts: Option<u32>,
        min_rtt: Option<std::time::Duration>,
    ) {
        let is_copy = |newest: &Newest| is_first_copy(newest, news.echo, space, sent_ts);
        let newest = news.delivered.newest.filter(|newest| !is_copy(newest));
        self.recovery.rack.on_delivered(now, newest, news.delivered.reordered, min_rtt);
    }

    /// Returns the evidence if this ACK shows that the last loss was none. `has_unsent`: F-RTO has new data to send.
    pub(crate) fn is_denied(&mut self, news: &AckNews, space: Space, has_unsent: bool) -> Option<UndoneBy> {
        if let Some(twice) = news.dsack {
            self.recovery.rack.on_dsack(space.una, space.nxt);
            if self.recovery.undo().is_some_and(|undo| undo.is_denied_by_dsack(twice)) {
                return Some(UndoneBy::Dsack);
            }
        }
        let is_recovering = self.recovery.phase != Phase::Open;
        if is_recovering
            && news.advanced > 0
            && let (Some(echo), Some(undo)) = (news.echo, self.recovery.undo())
            && undo.is_denied_by_echo(space.una, echo)
        {
            return Some(UndoneBy::Timestamps);
        }
        self.step_frto(news, space, has_unsent)
    }

    fn step_frto(&mut self, news: &AckNews, space: Space, has_unsent: bool) -> Option<UndoneBy> {
        match self.recovery.frto {
            Frto::Off => return None,
            Frto::FirstAck if news.advanced > 0 && space.una < self.recovery.point && has_unsent => {
                self.recovery.frto = Frto::SecondAck { new_left: 2 };
                return None;
            }
            Frto::SecondAck { new_left } if news.advanced > 0 && new_left < 2 => return Some(UndoneBy::Frto),
            Frto::SecondAck { new_left: 2 } if !news.is_dup => return None,
            Frto::SecondAck { .. } if news.is_dup => {
                // The loss was real. One of the new segments has arrived and makes room for the next old one (step 3a).
                let in_flight = self.board.flight().segments;
                self.recovery.assumed_arrived = in_flight.saturating_sub(1).min(1);
            }
            _ => {}
        }
        self.recovery.frto = Frto::Off;
        None
    }
}

/// An echo older than the retransmission shows that the first copy had arrived. The time of the last copy is then no
/// evidence about other segments (RFC 8985 §6.2 step 2). Above a hole the echo is that of the last segment in order
/// (RFC 7323 §4.3), and proves nothing.
fn is_first_copy(newest: &Newest, echo: Option<u32>, space: Space, sent_ts: Option<u32>) -> bool {
    let is_older = |(echo, sent): (u32, u32)| (echo.wrapping_sub(sent) as i32) < 0;
    newest.was_resent && newest.end <= space.una && echo.zip(sent_ts).is_some_and(is_older)
}
