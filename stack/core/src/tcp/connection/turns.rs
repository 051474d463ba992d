//! What a connection of an ensemble wants a turn for, and that it sends nothing new while another has it.

use std::time::Duration;

use super::{Connection, send_view};
use crate::agent::{Common, Turn};
use crate::{Instant, Seq};

/// A turn that ends too early lets two trains meet, one that ends too late holds up everybody else.
const LEAST_TURN: Duration = Duration::from_secs(1);
const MOST_TURN: Duration = Duration::from_secs(4);

impl Connection {
    /// Where it stands; nothing where its owner of cwnd takes no turns.
    pub(crate) fn turn(&self) -> Option<Turn> {
        self.snd.turn
    }

    pub(crate) fn set_turn(&mut self, turn: Turn) {
        self.snd.turn = Some(turn);
    }

    /// New data waits until others have sent theirs.
    pub(super) fn waits_for_turn(&self) -> bool {
        self.snd.turn == Some(Turn::Waiting) && !self.asks_with_new_data()
    }

    /// Whoever could send nothing wants no turn.
    pub(crate) fn may_use_turn(&self) -> bool {
        self.state.is_synchronized()
            && self.closed.is_none()
            && !self.is_at_rest()
            && !self.is_frozen()
            && !self.is_blocked_by_window()
    }

    /// The train that it wants a turn for.
    pub(crate) fn wanted_turn(&self, now: Instant) -> Option<Seq> {
        self.may_use_turn().then(|| self.senders.turn(now, &self.send_view())).flatten()
    }

    /// Whether the holder is to look at what the others know.
    pub(crate) fn share(&mut self, common: &mut Common) -> bool {
        self.senders.share(common, &send_view(&self.snd, &self.path, &self.board, &self.recovery))
    }

    /// Twice the RTO has room for a train, its ACK, and what is lost of it. Whatever the RTO, a turn ends.
    pub(crate) fn longest_turn(&self) -> Duration {
        (2 * self.rto()).clamp(LEAST_TURN, MOST_TURN)
    }
}
