//! A base station's knowledge of a flow, from its packets alone. Segments that neither end can have sent change
//! nothing.

mod send_space;

use hopwise_core::agent::{Dialect, FlowView, Kind, Passing, Says, Side};
use hopwise_core::narrow::as_u32;
use hopwise_core::wire::{Flags, SackBlock, TcpView, Timestamps};
use hopwise_core::{Instant, Seq};

use super::read::ReadPacket;
use super::rtt::SideRoundTrips;
use send_space::SendSpace;

#[derive(Debug, Default)]
pub(super) struct FlowFacts {
    pub(super) has_timestamps: bool,
    has_sack: bool,
    dialect: Dialect,
    /// The side that opened, and the number of its SYN.
    pub(super) opened: Option<(Side, Seq)>,
    mobile_shift: Option<u8>,
    fixed_shift: Option<u8>,
    answered: bool,
    pub(super) acked: Option<Seq>,
    pub(super) passed: Option<Seq>,
    pub(super) passed_at: Option<Instant>,
    promised: Option<Seq>,
    data_end: Option<Seq>,
    /// The acknowledgment number that times the fixed end's next answer, and the bytes in flight at the last one.
    asked: Option<Seq>,
    window_bytes: u32,
    mss: u32,
    /// The mobile's newest values. An ACK in its name has to bear them, or the fixed end takes it for an older one.
    pub(super) newest: NewestValues,
    blocks: Vec<SackBlock>,
    pub(super) trips: SideRoundTrips,
    /// Indexed by the sending side.
    spaces: [SendSpace; 2],
}

/// The newest values of the mobile, sent with data or without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NewestValues {
    /// One past the highest number that it has sent.
    pub(super) next: Option<Seq>,
    pub(super) timestamps: Option<Timestamps>,
    /// As it was sent, unscaled. The window of a SYN is excluded: it means something else.
    pub(super) window: u16,
}

impl NewestValues {
    fn see(&mut self, tcp: &TcpView<'_>, says: Says) {
        let next = tcp.seq + tcp.sequence_len();
        let is_late = self.is_after(tcp);
        self.next = Some(self.next.map_or(next, |known| known.max(next)));
        if is_late {
            return;
        }
        self.timestamps = tcp.options.timestamps.or(self.timestamps);
        if says != Says::Less && !tcp.flags.contains(Flags::SYN) {
            self.window = tcp.window;
        }
    }

    /// Returns whether this segment of the mobile is late: it sent newer values before.
    pub(super) fn is_after(&self, tcp: &TcpView<'_>) -> bool {
        match (tcp.options.timestamps, self.timestamps) {
            (Some(told), Some(known)) => (told.value.wrapping_sub(known.value) as i32) < 0,
            _ => self.next.is_some_and(|known| tcp.seq + tcp.sequence_len() < known),
        }
    }

    /// Returns whether this segment of the mobile is its newest. Otherwise the fixed end would take a copy for an old
    /// one (RFC 9293 §3.10.7.4, RFC 7323 §5.3).
    pub(super) fn is(&self, tcp: &TcpView<'_>) -> bool {
        let value = |told: Option<Timestamps>| told.map(|told| told.value);
        self.next == Some(tcp.seq + tcp.sequence_len())
            && value(self.timestamps) == value(tcp.options.timestamps)
    }
}

/// Flags whose segments no agent may hold.
const CONTROLS: Flags = Flags(0x01 | 0x02 | 0x04 | 0x20 | 0x40 | 0x80);

impl FlowFacts {
    /// Notes a segment and classifies it; `None` if neither end can have sent it.
    pub(super) fn see<'a>(
        &mut self,
        now: Instant,
        from: Side,
        read: &'a ReadPacket<'_>,
    ) -> Option<Passing<'a>> {
        let tcp = &read.tcp;
        if !self.fits(from, tcp) {
            return None;
        }
        if tcp.flags.contains(Flags::SYN) {
            self.see_syn(from, read);
        }
        self.note_numbers(from, tcp);
        let kind = match from {
            Side::Fixed => self.see_fixed(now, tcp),
            Side::Mobile => self.see_mobile(now, tcp),
        };
        let mut passing = Passing::new(now, from, kind, tcp.seq, as_u32(tcp.payload.len()));
        (passing.ack, passing.flags, passing.window) = (ack_of(tcp), tcp.flags, self.scaled(from, tcp));
        (passing.sack, passing.ce) = (&tcp.options.sack, read.ce);
        Some(passing)
    }

    /// Returns whether the end that it names can have sent it. After packets have passed by the base station, no
    /// segment fits. Numbers on which both ends agree are then believed: an attacker on one side cannot forge that.
    fn fits(&mut self, from: Side, tcp: &TcpView<'_>) -> bool {
        let Some(ack) = ack_of(tcp) else { return self.fits_without_ack(from, tcp) };
        let (own, other) = (&self.spaces[from as usize], &self.spaces[from.other() as usize]);
        // RFC 9293 §3.10.7.3: an answer has any number, and acknowledges the SYN. Another can replace it until one of
        // the ends has continued from it.
        let is_new = tcp.flags.contains(Flags::SYN) && !own.is_settled();
        let answered = self.opened.filter(|(opener, _)| is_new && *opener != from);
        let is_next = answered.is_some() || !self.is_ignored(from, tcp) && own.can_be_sent(tcp.seq);
        if is_next && other.can_be_acknowledged(ack) && answered.is_none_or(|(_, syn)| syn < ack) {
            return true;
        }
        if self.spaces[from.other() as usize].agree(ack) {
            if !is_next {
                self.spaces[from as usize].restart(tcp.seq);
            }
            self.forget_numbers();
            return true;
        }
        let end = tcp.seq + tcp.sequence_len();
        if end != tcp.seq {
            self.spaces[from as usize].note_misfit(tcp.seq, end);
        }
        false
    }

    /// Returns whether the other end ignores this segment. An opener in SYN-SENT takes only SYNs and RSTs (RFC 9293
    /// §3.10.7.3). Data may overtake the answer to its SYN. Once it has gone on, it has one, maybe around us.
    fn is_ignored(&self, from: Side, tcp: &TcpView<'_>) -> bool {
        let has_gone_on = self.spaces[from.other() as usize].has_gone_on();
        !tcp.flags.intersects(Flags::SYN | Flags::RST) && self.is_to_answer(from) && !has_gone_on
    }

    /// Returns whether the other end has sent a SYN that this end has not acknowledged.
    fn is_to_answer(&self, from: Side) -> bool {
        self.opened.is_some_and(|(opener, _)| opener != from && self.spaces[opener as usize].is_unanswered())
    }

    /// Only a SYN and a RST come without ACK. A SYN changes nothing in a connection (RFC 5961 §4). An opener ignores
    /// such a RST before its SYN is acknowledged (RFC 9293 §3.10.7.3). If both ends open at once, the answers decide.
    fn fits_without_ack(&self, from: Side, tcp: &TcpView<'_>) -> bool {
        let own = &self.spaces[from as usize];
        let is_believed = if tcp.flags.contains(Flags::SYN) {
            self.opened.map_or(!own.is_known(), |opened| opened == (from, tcp.seq))
        } else {
            tcp.flags.contains(Flags::RST) && !self.is_to_answer(from)
        };
        is_believed && own.can_be_sent(tcp.seq)
    }

    /// The fixed end has sent up to here, by another path.
    #[cfg(test)]
    pub(super) fn has_sent(&mut self, end: Seq) {
        self.spaces[Side::Fixed as usize].sent(end);
    }

    fn forget_numbers(&mut self) {
        (self.acked, self.passed, self.promised, self.data_end, self.asked) = Default::default();
        self.newest = NewestValues::default();
        self.blocks.clear();
    }

    fn note_numbers(&mut self, from: Side, tcp: &TcpView<'_>) {
        if tcp.flags.contains(Flags::RST) {
            return;
        }
        let is_syn = tcp.flags.contains(Flags::SYN);
        let own = &mut self.spaces[from as usize];
        own.sent(tcp.seq + tcp.sequence_len());
        if !is_syn {
            own.go_on();
        }
        if let Some(ack) = ack_of(tcp) {
            let window = (is_syn || self.is_whole()).then(|| self.scaled(from, tcp));
            self.spaces[from.other() as usize].acknowledged(ack, window);
        }
    }

    /// A repeated SYN has no effect later (RFC 5961 §4).
    fn see_syn(&mut self, from: Side, read: &ReadPacket<'_>) {
        let (options, has_ack) = (&read.tcp.options, read.tcp.flags.contains(Flags::ACK));
        if self.spaces[from as usize].is_settled() {
            return;
        }
        if self.spaces[from as usize].begin(read.tcp.seq) {
            self.forget_numbers();
        }
        self.answered |= has_ack && self.opened.is_some_and(|(opener, _)| opener != from);
        if !has_ack {
            self.opened = Some((from, read.tcp.seq));
        }
        self.has_sack = options.sack_permitted && (self.has_sack || !has_ack);
        match from {
            Side::Fixed => {
                self.dialect = read.dialect;
                self.fixed_shift = options.window_scale;
            }
            Side::Mobile => self.mobile_shift = options.window_scale,
        }
    }

    fn see_fixed(&mut self, now: Instant, tcp: &TcpView<'_>) -> Kind {
        let is_answer = tcp.options.timestamps.is_some_and(|echoed| self.trips.on_fixed(now, echoed));
        let len = as_u32(tcp.payload.len());
        self.mss = self.mss.max(len);
        let end = tcp.seq + tcp.sequence_len();
        if !tcp.flags.contains(Flags::RST) {
            self.data_end = Some(self.data_end.map_or(end, |known| known.max(end)));
        }
        if let (true, Some(asked)) = (is_answer && len > 0, self.asked) {
            self.window_bytes = end.bytes_since(asked);
        }
        match (tcp.flags.intersects(CONTROLS), len) {
            (true, _) => Kind::Control,
            (false, 0) => Kind::Ack(Says::More),
            (false, _) => Kind::Data,
        }
    }

    fn see_mobile(&mut self, now: Instant, tcp: &TcpView<'_>) -> Kind {
        if tcp.options.timestamps.is_some_and(|told| self.trips.on_mobile(now, told)) {
            self.asked = ack_of(tcp);
        }
        let says = self.says(tcp);
        if !tcp.flags.contains(Flags::RST) {
            self.newest.see(tcp, says);
        }
        if let Some(ack) = ack_of(tcp) {
            self.acked = Some(self.acked.map_or(ack, |known| known.max(ack)));
            let scaled = self.scaled(Side::Mobile, tcp);
            let is_whole = self.is_whole() && !tcp.flags.contains(Flags::SYN);
            if is_whole {
                let edge = ack + scaled;
                self.promised = Some(self.promised.map_or(edge, |known| known.max(edge)));
            }
            if says != Says::Less {
                self.blocks.clear();
                self.blocks.extend_from_slice(&tcp.options.sack);
            }
        }
        match (tcp.flags.intersects(CONTROLS) || !tcp.flags.contains(Flags::ACK), tcp.payload.len()) {
            (true, _) => Kind::Control,
            (false, 0) => Kind::Ack(says),
            (false, _) => Kind::Data,
        }
    }

    fn says(&self, tcp: &TcpView<'_>) -> Says {
        match self.acked {
            Some(known) if tcp.ack < known => Says::Less,
            Some(known) if tcp.ack > known => Says::More,
            None => Says::More,
            Some(_) if tcp.window != self.newest.window => Says::Window,
            Some(_) if tcp.options.sack[..] != self.blocks[..] => Says::Blocks,
            Some(_) => Says::Again,
        }
    }

    /// RFC 7323 §2.2: both ends have to offer a scale, and a SYN's window is never scaled.
    fn scaled(&self, from: Side, tcp: &TcpView<'_>) -> u32 {
        let window = u32::from(tcp.window);
        let (Some(mobile), Some(fixed)) = (self.mobile_shift, self.fixed_shift) else { return window };
        let shift = if from == Side::Mobile { mobile } else { fixed };
        if tcp.flags.contains(Flags::SYN) { window } else { window << shift.min(14) }
    }

    /// Returns whether both SYNs were seen.
    pub(super) fn is_whole(&self) -> bool {
        self.answered
    }

    /// Returns whether the other end may accept a RST with this number: it has to be the next one (RFC 5961 §3.2).
    pub(super) fn is_next(&self, from: Side, seq: Seq) -> bool {
        self.spaces[from as usize].is_next(seq)
    }

    /// Notes that an ACK of the mobile goes on.
    pub(super) fn note_passed(&mut self, now: Instant, ack: Seq) {
        self.passed = Some(self.passed.map_or(ack, |known| known.max(ack)));
        self.passed_at = Some(now);
    }

    pub(super) fn view(&self) -> FlowView {
        let mut view = FlowView::default();
        (view.has_timestamps, view.has_sack) = (self.has_timestamps, self.has_sack);
        (view.is_whole, view.dialect) = (self.is_whole(), self.dialect);
        (view.acked, view.passed, view.passed_at) = (self.acked, self.passed, self.passed_at);
        (view.promised, view.data_end) = (self.promised, self.data_end);
        (view.window_bytes, view.mss) = (self.window_bytes, self.mss);
        (view.to_mobile, view.whole) = (self.trips.to_mobile.rtt, self.trips.whole);
        view
    }
}

fn ack_of(tcp: &TcpView<'_>) -> Option<Seq> {
    tcp.flags.contains(Flags::ACK).then_some(tcp.ack)
}
