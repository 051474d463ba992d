//! The totals of a node's connections in its state.

use std::collections::BTreeMap;

use hopwise_core::trace::{LostBy, SentWhat, Totals, UndoneBy};
use serde::{Deserialize, Serialize};

/// Totals of all connections: sent and lost.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct TotalsSnapshot {
    /// Segments with data, SYN, FIN or RST, by kind.
    pub(crate) segments_sent: BTreeMap<String, u64>,
    /// Bytes of payload, by the same kinds.
    #[serde(default)]
    pub(crate) payload_bytes_sent: BTreeMap<String, u64>,
    pub(crate) segments_retransmitted: u64,
    pub(crate) pure_acks_sent: u64,
    pub(crate) timeouts: u64,
    /// The timeouts among them right after another one.
    #[serde(default)]
    pub(crate) timeouts_repeated: u64,
    /// By the mechanism that found the loss.
    #[serde(default)]
    pub(crate) segments_lost: BTreeMap<String, u64>,
    /// By the mechanism that found the loss.
    pub(crate) fast_recoveries: BTreeMap<String, u64>,
    /// Losses that proved false.
    pub(crate) recoveries_undone: u64,
    /// The same by their evidence.
    #[serde(default)]
    pub(crate) undone: BTreeMap<String, u64>,
}

impl TotalsSnapshot {
    pub(in crate::node) fn of(totals: &Totals) -> TotalsSnapshot {
        let what = SentWhat::ALL.map(SentWhat::name);
        let lost_by = LostBy::ALL.map(LostBy::name);
        TotalsSnapshot {
            segments_sent: by_name(what, totals.sent),
            payload_bytes_sent: by_name(what, totals.sent_bytes),
            segments_retransmitted: totals.segments_retransmitted(),
            pure_acks_sent: totals.pure_acks,
            timeouts: totals.timeouts,
            timeouts_repeated: totals.timeouts_repeated,
            segments_lost: by_name(lost_by, totals.lost),
            fast_recoveries: by_name(lost_by, totals.recoveries),
            recoveries_undone: totals.undone.iter().sum(),
            undone: by_name(UndoneBy::ALL.map(UndoneBy::name), totals.undone),
        }
    }

    /// The totals in one line.
    pub(crate) fn summary(&self) -> String {
        let sent = self.segments_sent.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
        let recoveries = self.fast_recoveries.iter().filter(|(_, count)| **count > 0);
        let recoveries: Vec<_> = recoveries.map(|(by, count)| format!("{count} by {by}")).collect();
        let recoveries = if recoveries.is_empty() { "none".to_owned() } else { recoveries.join(", ") };
        let TotalsSnapshot { segments_retransmitted, pure_acks_sent, timeouts, recoveries_undone, .. } = self;
        format!(
            "sent {sent} segments, {segments_retransmitted} of them again, and {pure_acks_sent} ACKs; \
             {timeouts} timeouts; fast recoveries: {recoveries}; {recoveries_undone} losses that were none"
        )
    }
}

fn by_name<const N: usize>(names: [&str; N], counts: [u64; N]) -> BTreeMap<String, u64> {
    names.into_iter().map(str::to_owned).zip(counts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_told_in_a_line() {
        let mut totals = Totals { pure_acks: 7, timeouts: 1, ..Totals::default() };
        totals.sent[SentWhat::New as usize] = 40;
        totals.sent[SentWhat::Resent as usize] = 2;
        totals.sent[SentWhat::AfterTimeout as usize] = 1;
        totals.recoveries[LostBy::Rack as usize] = 3;
        let snapshot = TotalsSnapshot::of(&totals);
        assert_eq!((snapshot.segments_sent["resent"], snapshot.fast_recoveries["rack"]), (2, 3));
        assert_eq!(
            snapshot.summary(),
            "sent 43 segments, 3 of them again, and 7 ACKs; 1 timeouts; fast recoveries: 3 by rack; 0 losses that \
             were none"
        );
    }
}
