//! The behaviour of a sender beside its timer: how it finds a loss, and how it takes a needless timeout back.

use super::Sender;

/// The kind of a sender's timer, and the mechanisms beside it. An unknown mechanism is taken from the sender's kind.
///
/// The model does not count on a probe that pushes the timer back (RFC 8985 §7.3): Linux leaves its timer where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// Decides how the RTO is computed, and which needless timeouts are taken back without F-RTO.
    pub sender: Sender,
    /// A probe two round trips after the last ACK finds a loss that no later segment shows (RFC 8985 §7).
    pub tlp: bool,
    /// A retransmission that is lost again is found by its time (RFC 8985 §6).
    pub rack: bool,
    /// One timeout is taken back when the next ACKs show that it was needless (RFC 5682).
    pub frto: bool,
}

impl From<Sender> for Model {
    fn from(sender: Sender) -> Model {
        let is_linux = sender == Sender::Linux;
        Model { sender, tlp: is_linux, rack: is_linux, frto: is_linux }
    }
}

impl Model {
    /// Replaces the mechanisms that are known to be otherwise.
    pub fn but(self, tlp: Option<bool>, rack: Option<bool>, frto: Option<bool>) -> Model {
        Model {
            tlp: tlp.unwrap_or(self.tlp),
            rack: rack.unwrap_or(self.rack),
            frto: frto.unwrap_or(self.frto),
            ..self
        }
    }

    /// Returns whether the window is restored once this many timeouts in a row turn out to be needless. Every flow
    /// whose ACKs are held has timestamps. They show it to Linux (RFC 3522) even without F-RTO, and to BSD senders for
    /// the first timeout.
    pub fn takes_back(self, timeouts: u32) -> bool {
        match self.sender {
            Sender::Textbook | Sender::Rfc6298 => timeouts <= u32::from(self.frto),
            Sender::Linux => true,
            Sender::FreeBsd => timeouts <= 1,
        }
    }

    /// The time until a loss at the end of a window is found.
    pub(super) fn finds_tail_s(self, srtt_s: f64, rto_s: f64) -> f64 {
        if self.tlp { self.probes_after_s(srtt_s).min(rto_s) } else { rto_s }
    }

    /// The same for a lost retransmission. RACK finds it in a round trip, however long the timer is.
    pub(super) fn finds_again_s(self, rto_s: f64) -> f64 {
        if self.rack { 0.0 } else { rto_s }
    }

    /// The time from the last ACK until a probe leaves, if this sender has probes.
    pub fn probes_after_s(self, srtt_s: f64) -> f64 {
        2.0 * srtt_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_sender_stands_over_what_its_kind_has() {
        let linux = Model::from(Sender::Linux);
        assert!(linux.tlp && linux.rack && linux.frto);
        let without = linux.but(Some(false), Some(false), Some(false));
        assert_eq!([without.tlp, without.rack, without.frto], [false; 3]);
        assert!(without.takes_back(5), "by timestamps");
        let plain = Model::from(Sender::Rfc6298);
        assert_eq!([plain.takes_back(0), plain.takes_back(1)], [true, false]);
        let with = plain.but(None, None, Some(true));
        assert_eq!([with.takes_back(1), with.takes_back(2)], [true, false]);
    }

    #[test]
    fn a_probe_finds_the_tail_before_a_long_timer_does_and_a_short_one_comes_first() {
        let model = Model::from(Sender::Rfc6298).but(Some(true), Some(true), None);
        assert_eq!([model.finds_tail_s(0.5, 30.0), model.finds_tail_s(0.5, 0.7)], [1.0, 0.7]);
        assert_eq!(Model::from(Sender::Rfc6298).finds_tail_s(0.5, 30.0), 30.0);
        assert_eq!(
            [model.finds_again_s(30.0), Model::from(Sender::FreeBsd).finds_again_s(30.0)],
            [0.0, 30.0]
        );
    }
}
