//! What a sender does beside its timer: how it finds a loss, and how it takes a needless timeout back.

use super::Sender;

/// Whose timer it has, and what it has been given besides. What is not known is taken as senders of its kind have it.
///
/// A probe that pushes the timer back (RFC 8985 §7.3) is not counted on: Linux leaves its timer where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    pub sender: Sender,
    /// A probe two round trips after the last ACK finds what nothing behind it shows (RFC 8985 §7).
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
    /// With what is known to be otherwise.
    pub fn but(self, tlp: Option<bool>, rack: Option<bool>, frto: Option<bool>) -> Model {
        Model {
            tlp: tlp.unwrap_or(self.tlp),
            rack: rack.unwrap_or(self.rack),
            frto: frto.unwrap_or(self.frto),
            ..self
        }
    }

    /// Whether its window is what it was, once so many timeouts in a row turn out to have been needless. Timestamps,
    /// which every flow has that ACKs are held of, show it to Linux (RFC 3522) also without F-RTO, and to BSD's senders
    /// for the first.
    pub fn takes_back(self, timeouts: u32) -> bool {
        match self.sender {
            Sender::Textbook | Sender::Rfc6298 => timeouts <= u32::from(self.frto),
            Sender::Linux => true,
            Sender::FreeBsd => timeouts <= 1,
        }
    }

    /// How long it takes until a loss at the end of a window is found.
    pub(super) fn finds_tail_s(self, srtt_s: f64, rto_s: f64) -> f64 {
        if self.tlp { self.probes_after_s(srtt_s).min(rto_s) } else { rto_s }
    }

    /// The same, of a retransmission that is lost again; by its time it is found in a round trip, however long the
    /// timer is.
    pub(super) fn finds_again_s(self, rto_s: f64) -> f64 {
        if self.rack { 0.0 } else { rto_s }
    }

    /// When a probe leaves that this sender may have, after the last ACK.
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
