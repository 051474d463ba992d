//! Receiving: the peer's sequence numbers, the data that waits for the program, and the ACKs owed for it.
//!
//! This part knows nothing of our own data. Its callers pass the state of other parts as [`Around`], and read its
//! fields. It changes them itself, or in its submodules: `data` takes payload, `timestamps` keeps TS.Recent, `window`
//! promises room, `reports` fills in the ACKs.
//!
//! Invariant (checked after every event in debug builds)
//! - C2: the advertised edge never moves left, and all data before it finds room.

mod data;
mod reports;
mod timestamps;
mod window;

use super::ingress::Arrived;
use super::opening::Negotiated;
use crate::agent::{Owed, Path, RecvView, Why};
use crate::tcp::cx::Cx;
use crate::tcp::ledger::{AckKind, AckLedger, DecidedAck, Facts};
use crate::tcp::recv_buffer::RecvBuffer;
use crate::wire::TcpView;
use crate::{Instant, Moment, Seq};
use window::Tuning;

/// The receive sequence space, and the ACKs that are owed.
pub(super) struct Receiving {
    /// The number of the peer's SYN.
    pub(super) irs: Seq,
    /// The next number that the peer is expected to send.
    pub(super) nxt: Seq,
    /// The rightmost edge that was ever advertised.
    edge: Seq,
    /// The edge that the newest segment advertised: `edge`, or left of it by less than a unit of the scale.
    advertised: Seq,
    pub(super) buffer: RecvBuffer,
    pub(super) ledger: AckLedger,
    /// The number of the peer's FIN.
    pub(super) fin: Option<Seq>,
    /// End of the peer's urgent data.
    urgent_end: Option<Seq>,
    /// The timestamp that our segments echo (RFC 7323 §4.3).
    pub(super) ts_recent: u32,
    ts_recent_at: Instant,
    /// Last.ACK.sent of RFC 7323 §4.3, moved at the decision of an ACK.
    last_ack_decided: Seq,
    /// The number of the last segment that carried our window.
    pub(super) last_told: Seq,
    /// The last congestion window that the peer sent.
    pub(super) peer_cwnd: Option<u16>,
    pub(super) last_arrival: Moment,
    /// The hop limit of the last segment that was accepted, with the crossings of its link added.
    pub(super) hop_limit: Option<u8>,
    /// The newest echo of our timestamp.
    last_echo: u32,
    /// Payload of the largest segment.
    largest: u32,
    tuning: Tuning,
    /// The application will read no more.
    pub(super) is_deaf: bool,
    /// The receiver agent has had an ACK-rate request.
    pub(super) was_asked: bool,
    /// True after a mark: every ACK echoes it until the peer sends CWR (RFC 3168 §6.1.3).
    pub(super) ecn_echo: bool,
}

/// The state of other parts that receiving may know.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    pub(super) agreed: &'a Negotiated,
    pub(super) path: &'a Path,
    /// Payload of our own full segments.
    pub(super) mss: u32,
}

impl Receiving {
    pub(super) fn new(buffer_bytes: u32, ledger: AckLedger) -> Receiving {
        Receiving {
            irs: Seq(0),
            nxt: Seq(0),
            edge: Seq(0),
            advertised: Seq(0),
            buffer: RecvBuffer::new(buffer_bytes),
            ledger,
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
            tuning: Tuning::default(),
            is_deaf: false,
            was_asked: false,
            ecn_echo: false,
        }
    }

    /// Begins with the peer's SYN and the agreement.
    pub(super) fn begin(&mut self, now: Instant, syn: &TcpView<'_>, agreed: &Negotiated) {
        self.irs = syn.seq;
        self.nxt = syn.seq + 1;
        self.edge = self.nxt + self.buffer.limit().min(u32::from(u16::MAX));
        self.advertised = self.edge;
        self.last_ack_decided = self.nxt;
        self.last_told = self.nxt;
        self.ledger.merging.has_sack = agreed.sack;
        self.buffer.unit = 1 << agreed.scale.map_or(0, |scale| scale.rcv);
        if let Some(timestamps) = syn.options.timestamps.filter(|_| agreed.timestamps) {
            self.ts_recent = timestamps.value;
            self.ts_recent_at = now;
        }
    }

    /// Takes the hop limit. Returns whether it has changed.
    #[inline]
    pub(super) fn take_hop_limit(&mut self, arrived: &Arrived<'_>) -> bool {
        let before_crossings = Some(arrived.hop_limit.saturating_add(arrived.crossings));
        let is_other = self.hop_limit != before_crossings;
        self.hop_limit = before_crossings;
        is_other
    }

    pub(super) fn turn_deaf(&mut self) {
        self.is_deaf = true;
        self.buffer.relax();
    }

    /// The number of the first byte that the application has not read.
    pub(super) fn read_to(&self) -> Seq {
        self.nxt - self.buffer.readable()
    }

    /// Urgent bytes from the peer that have not been read.
    pub(super) fn urgent_unread(&self) -> u32 {
        self.urgent_end.map_or(0, |end| end.bytes_since(self.read_to()))
    }

    /// Returns whether the peer's FIN has come and everything before it was read.
    pub(super) fn is_at_end(&self) -> bool {
        self.buffer.readable() == 0 && self.fin.is_some_and(|fin| fin < self.nxt)
    }

    /// Handles the ledger's timer.
    pub(super) fn on_deadline(&mut self, cx: &mut Cx<'_>, around: Around<'_>) {
        let facts = self.facts(around);
        self.ledger.on_deadline(cx, &facts);
        self.note_decision();
    }

    /// Sends an ACK that no agent may withhold.
    #[cold]
    pub(super) fn force_ack(&mut self, cx: &mut Cx<'_>, kind: AckKind, why: Why, around: Around<'_>) {
        let facts = self.facts(around);
        self.ledger.force(cx, kind, why, &facts);
        self.note_decision();
    }

    /// The ACK that leaves now, alone or on another segment.
    pub(super) fn pop_ack(
        &mut self,
        cx: &mut Cx<'_>,
        leaves_alone: bool,
        around: Around<'_>,
    ) -> Option<DecidedAck> {
        let facts = self.facts(around);
        let ack = if leaves_alone { self.ledger.pop(cx, &facts) } else { self.ledger.ride(cx, &facts) };
        self.note_decision();
        ack
    }

    /// RFC 7323's Last.ACK.sent moves at the decision of an ACK. When nothing is owed, all ACKs are decided.
    fn note_decision(&mut self) {
        if self.ledger.owed().segments == 0 {
            self.last_ack_decided = self.nxt;
        }
    }

    /// Returns whether an ACK for all received data has left or is decided.
    pub(super) fn has_decided_all(&self) -> bool {
        self.nxt <= self.last_ack_decided
    }

    fn facts<'a>(&self, around: Around<'a>) -> Facts<'a> {
        Facts {
            view: RecvView {
                peer_cwnd: self.peer_cwnd,
                holes: self.buffer.holes(),
                ..RecvView::new(
                    Owed::default(),
                    around.path,
                    self.segment_bytes(around.mss),
                    self.edge.bytes_since(self.nxt),
                )
            },
            rcv_nxt: self.nxt,
            last_decided: self.last_ack_decided,
            ts_recent: self.ts_recent,
            timestamp: None,
            part_of: None,
        }
    }

    /// The estimated size of arriving segments: our own full segments, or the largest that came.
    pub(super) fn segment_bytes(&self, own: u32) -> u32 {
        own.max(self.largest)
    }

    /// Frees memory that is kept for future segments.
    pub(super) fn relax(&mut self) {
        self.buffer.relax();
        self.ledger.relax();
    }

    pub(super) fn allocated(&self) -> usize {
        self.buffer.allocated() + self.ledger.allocated()
    }

    #[cfg(test)]
    pub(super) fn has_urgent_end(&self) -> bool {
        self.urgent_end.is_some()
    }

    #[cfg(debug_assertions)]
    pub(super) fn check(&self) {
        assert!(self.edge <= self.nxt + self.buffer.room(), "C2");
    }
}
