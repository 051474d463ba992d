//! A sender's retransmission timer, as far as ACKs move it.

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
            Sender::Rfc6298 => (srtt_s + four).clamp(1.0, super::LONGEST_RTO_S),
            Sender::Linux => (srtt_s + four.max(0.2)).min(super::LONGEST_RTO_S),
            Sender::FreeBsd => ((srtt_s + four).max(0.03) + 0.2).min(super::LONGEST_RTO_S),
        }
    }
}

/// RFC 6298's two averages, and the kind of sender that makes an RTO of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timer {
    sender: Sender,
    srtt_s: f64,
    rttvar_s: f64,
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

    /// RFC 6298's smoothed RTT.
    pub fn srtt_s(&self) -> f64 {
        self.srtt_s
    }

    /// RFC 6298's RTT variation.
    pub fn rttvar_s(&self) -> f64 {
        self.rttvar_s
    }

    /// The RTO by the rules of the sender's kind, before any back-off.
    pub fn rto_s(&self) -> f64 {
        self.sender.rto_s(self.srtt_s, self.rttvar_s)
    }
}
