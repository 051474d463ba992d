//! The parts of our segments beside number and window that report on the peer's data: ECN echo and SACK blocks.

use super::Receiving;
use crate::Seq;
use crate::tcp::connection::ingress::Arrived;
use crate::tcp::connection::opening::Negotiated;
use crate::tcp::cx::Cx;
use crate::tcp::ledger::Stretch;
use crate::trace::TraceKind;
use crate::wire::{Ecn, Flags, HopwiseOption, OfferFlags, SackBlock, TcpOptions, TcpView};

impl Receiving {
    /// RFC 3168 §6.1.3: a mark is echoed until the peer confirms it with CWR.
    pub(crate) fn take_ecn_mark(&mut self, cx: &mut Cx<'_>, arrived: &Arrived<'_>, agreed: &Negotiated) {
        if !agreed.ecn {
            return;
        }
        if arrived.segment.flags.contains(Flags::CWR) {
            self.ecn_echo = false;
        }
        if arrived.ecn == Ecn::Ce {
            self.ecn_echo = true;
            cx.trace(TraceKind::MarkSeen);
        }
    }

    pub(crate) fn take_notes(&mut self, segment: &TcpView<'_>, agreed: &Negotiated) {
        if agreed.has(OfferFlags::USE_CWND)
            && let Some(HopwiseOption::Notes(notes)) = segment.options.hopwise
            && notes.cwnd.is_some()
        {
            self.peer_cwnd = notes.cwnd;
        }
    }

    /// The stretch above a hole that has this number, for SACK blocks.
    pub(super) fn stretch_of(&self, number: Seq, agreed: &Negotiated) -> Option<Stretch> {
        if !agreed.sack || number <= self.nxt {
            return None;
        }
        let held = self.buffer.ranges.around(number.bytes_since(self.nxt));
        held.map(|(from, to)| (self.nxt + from, self.nxt + to))
    }

    /// Orders the blocks. A D-SACK goes first, followed by the stretch around it (RFC 2883 §4). Next is the stretch
    /// that the ACK is about, and last the others above the hole, newest first (RFC 2018 §4).
    #[inline(never)]
    pub(crate) fn order_sack_blocks(
        &self,
        twice: Option<Stretch>,
        part_of: Option<Stretch>,
        agreed: &Negotiated,
        options: &mut TcpOptions,
    ) {
        let block = |(left, right)| SackBlock { left, right };
        let around = [twice, part_of].into_iter().flatten();
        let around = around.filter_map(|(left, _)| self.stretch_of(left, agreed));
        let newest = self.buffer.ranges.newest();
        let newest = newest.iter().map(|(from, to)| (self.nxt + *from, self.nxt + *to));
        options.sack.extend(twice.map(block));
        let before = options.sack.len();
        for stretch in around.chain(newest).map(block) {
            if options.sack[before..].contains(&stretch) {
                continue;
            }
            if options.sack.try_push(stretch).is_err() {
                break;
            }
        }
    }
}
