//! A sender as plans know it: its retransmission timer, as far as ACKs move it, how it finds a loss, and how it takes a
//! needless timeout back.

use super::LONGEST_RTO_S;

/// The kind of sender: its rules turn SRTT and RTTVAR into an RTO of two minutes at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// SRTT + 4·RTTVAR and nothing else, as in the paper.
    Textbook,
    /// At least a second.
    Rfc6298,
    /// RTTVAR's part is at least 200 ms.
    Linux,
    /// 200 ms more than the sum, which counts as at least 30 ms.
    FreeBsd,
}

impl Sender {
    /// The words in specs and on the command line, in the order of the variants.
    pub const NAMES: &'static [&'static str] = &["textbook", "rfc6298", "linux", "freebsd"];
    /// In the order of [`NAMES`](Sender::NAMES).
    pub const ALL: [Sender; 4] = [Sender::Textbook, Sender::Rfc6298, Sender::Linux, Sender::FreeBsd];

    /// The word in specs and on the command line.
    pub fn name(self) -> &'static str {
        Sender::NAMES[self as usize]
    }

    /// `None` for a text that is not in [`NAMES`](Sender::NAMES), such as `auto`.
    pub fn named(name: &str) -> Option<Sender> {
        Sender::ALL.into_iter().find(|sender| sender.name() == name)
    }

    fn rto_s(self, srtt_s: f64, rttvar_s: f64) -> f64 {
        let four = 4.0 * rttvar_s;
        match self {
            Sender::Textbook => srtt_s + four,
            Sender::Rfc6298 => (srtt_s + four).clamp(1.0, LONGEST_RTO_S),
            Sender::Linux => (srtt_s + four.max(0.2)).min(LONGEST_RTO_S),
            Sender::FreeBsd => ((srtt_s + four).max(0.03) + 0.2).min(LONGEST_RTO_S),
        }
    }
}

/// RFC 6298's two averages, and the kind of sender that makes an RTO of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timer {
    sender: Sender,
    /// RFC 6298's smoothed RTT.
    pub(crate) srtt_s: f64,
    /// RFC 6298's RTT variation.
    pub(crate) rttvar_s: f64,
}

impl Timer {
    /// A timer that has measured these averages: the next sample counts by RFC 6298 §2.3, not §2.2.
    pub fn new(sender: Sender, srtt_s: f64, rttvar_s: f64) -> Timer {
        Timer { sender, srtt_s, rttvar_s }
    }

    /// Takes an RTT sample by RFC 6298 §2.3, with gains of 1/8 and 1/4.
    pub fn take(&mut self, sample_s: f64) {
        let off_s = sample_s - self.srtt_s;
        self.srtt_s += off_s / 8.0;
        self.rttvar_s += (off_s.abs() - self.rttvar_s) / 4.0;
    }

    /// The RTO by the rules of the sender's kind, before any back-off.
    pub fn rto_s(&self) -> f64 {
        self.sender.rto_s(self.srtt_s, self.rttvar_s)
    }
}

/// The kind of a sender's timer, and its further mechanisms. An unknown mechanism is taken from the sender's kind.
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
    /// Replaces the mechanisms of which more is known than the sender's kind.
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
