//! A connection of an ensemble: it names the burst that it wants a turn for, and sends nothing new while another
//! connection has the turn.

use std::time::Duration;

use super::{Connection, send_view};
use crate::agent::Turn;
use crate::{Instant, Seq};

/// A turn that ends too early lets two bursts meet. One that ends too late holds up the other flows.
const LEAST_TURN: Duration = Duration::from_secs(1);
const MOST_TURN: Duration = Duration::from_secs(4);

impl Connection {
    /// Its place in the ensemble; `None` if its owner of cwnd takes no turns.
    pub(crate) fn turn(&self) -> Option<Turn> {
        self.sending.turn()
    }

    pub(crate) fn set_turn(&mut self, turn: Turn) {
        self.sending.set_turn(turn);
    }

    /// New data waits while another flow has the turn.
    pub(super) fn waits_for_turn(&self) -> bool {
        self.sending.turn() == Some(Turn::Waiting) && !self.asks_with_new_data()
    }

    /// A connection that could send nothing wants no turn.
    pub(crate) fn may_use_turn(&self) -> bool {
        self.state.is_synchronized()
            && self.closed.is_none()
            && !self.is_at_rest()
            && !self.is_frozen()
            && !self.is_blocked_by_window()
    }

    /// The burst that it wants a turn for.
    pub(crate) fn wanted_turn(&self, now: Instant) -> Option<Seq> {
        let member = self.senders.member().filter(|_| self.may_use_turn())?;
        member.wanted_turn(now, &self.send_view())
    }

    /// Whether the holder is to look at what the others know.
    pub(crate) fn share_path(&mut self) -> bool {
        let view = send_view(&self.sending, &self.path, &self.loss);
        self.senders.member_mut().is_some_and(|member| member.share(&view))
    }

    pub(crate) fn begin_ensemble(&mut self) {
        if let Some(member) = self.senders.member_mut() {
            member.begin();
        }
    }

    /// Twice the RTO has room for a burst, its ACK, and what is lost of it. Whatever the RTO, a turn ends.
    pub(crate) fn longest_turn(&self) -> Duration {
        (2 * self.rto()).clamp(LEAST_TURN, MOST_TURN)
    }
}
