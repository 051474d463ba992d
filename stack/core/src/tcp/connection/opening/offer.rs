//! Our SYN offers options. The peer's SYN decides which of them both ends use.

use super::{Negotiated, Opening, Scale};
use crate::Instant;
use crate::agent::Needs;
use crate::tcp::config::TcpConfig;
use crate::tcp::connection::Origin;
use crate::wire::{Flags, HopwiseOption, OfferFlags, RateRequest, TcpOptions, TcpView, Timestamps};

/// The needs of our agents, which decide the offers of our SYN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wishes {
    pub(crate) receiver: Needs,
    pub(crate) senders: Needs,
}

impl Wishes {
    pub(crate) fn of_all(self) -> Needs {
        self.receiver.union(self.senders)
    }

    fn offer(self) -> OfferFlags {
        let Wishes { receiver, senders } = self;
        offer_flags([
            (senders.peer_cwnd, OfferFlags::TELL_CWND),
            (senders.cwnd_in_window, OfferFlags::TELL_IN_WINDOW),
            (receiver.peer_cwnd, OfferFlags::USE_CWND),
            (receiver.dup_count, OfferFlags::TELL_DUP_COUNT),
            (senders.dup_count, OfferFlags::USE_DUP_COUNT),
            (senders.ack_after, OfferFlags::TELL_ACK_AFTER),
            (receiver.ack_after, OfferFlags::USE_ACK_AFTER),
        ])
    }
}

impl Opening {
    /// A SYN or SYN-ACK that is lost twice may have met a router that drops ECN (RFC 3168 §6.1.1.1).
    pub(crate) fn syn_flags(&self, is_reply: bool, timeouts: u32, config: &TcpConfig) -> Flags {
        let mut flags = if is_reply { Flags::SYN | Flags::ACK } else { Flags::SYN };
        let may_ask = !self.plain_syn_sent && timeouts < 2;
        if may_ask && is_reply && self.agreed.ecn {
            flags |= Flags::ECE;
        } else if may_ask && !is_reply && config.ecn {
            flags = flags | Flags::ECE | Flags::CWR;
        }
        flags
    }

    /// The options of our SYN.
    #[cold]
    pub(crate) fn syn_options(
        &self,
        now: Instant,
        wishes: Wishes,
        link_mtu: u16,
        config: &TcpConfig,
    ) -> TcpOptions {
        let offer = wishes.offer();
        TcpOptions {
            mss: Some(self.own_mss(link_mtu)),
            window_scale: config.window_scale.then(|| own_shift(config)),
            sack_permitted: config.sack,
            timestamps: config.timestamps.then(|| Timestamps { value: self.ts_now(now), echo: 0 }),
            hopwise: (offer != OfferFlags::default()).then_some(HopwiseOption::Offer(offer)),
            rate_request: wishes.of_all().ack_rate.then_some(RateRequest::Offer),
            ..TcpOptions::default()
        }
    }

    /// The options of our SYN-ACK: the common ones. It echoes the timestamp of the peer's SYN.
    #[cold]
    pub(crate) fn syn_ack_options(
        &self,
        now: Instant,
        echo: u32,
        link_mtu: u16,
        config: &TcpConfig,
    ) -> TcpOptions {
        let (agreed, offer) = (&self.agreed, self.agreed.offer);
        TcpOptions {
            mss: Some(self.own_mss(link_mtu)),
            window_scale: agreed.scale.map(|_| own_shift(config)),
            sack_permitted: agreed.sack,
            timestamps: agreed.timestamps.then(|| Timestamps { value: self.ts_now(now), echo }),
            hopwise: (offer != OfferFlags::default()).then_some(HopwiseOption::Offer(offer)),
            rate_request: (agreed.tell_ack_rate || agreed.use_ack_rate).then_some(RateRequest::Offer),
            ..TcpOptions::default()
        }
    }

    pub(super) fn negotiate(&self, syn: &TcpView<'_>, wishes: Wishes, config: &TcpConfig) -> Negotiated {
        let options = &syn.options;
        let scale = options.window_scale.filter(|_| config.window_scale);
        Negotiated {
            timestamps: config.timestamps && options.timestamps.is_some(),
            sack: config.sack && options.sack_permitted,
            ecn: config.ecn && is_ecn_setup(syn.flags),
            scale: scale.map(|snd| Scale { snd, rcv: own_shift(config) }),
            offer: self.agreed_offer(syn, wishes),
            tell_ack_rate: wishes.senders.ack_rate && options.rate_request.is_some(),
            use_ack_rate: wishes.receiver.ack_rate && options.rate_request.is_some(),
        }
    }

    /// The intersection: each end may send a note that the other end uses.
    fn agreed_offer(&self, syn: &TcpView<'_>, wishes: Wishes) -> OfferFlags {
        let is_reply = syn.flags.contains(Flags::ACK);
        let theirs = match syn.options.hopwise {
            Some(HopwiseOption::Offer(flags)) => flags,
            _ => OfferFlags::default(),
        };
        let mine = wishes.offer();
        let both = |own, other| mine.contains(own) && theirs.contains(other);
        // The opener offers and the listener agrees. In no other order do both ends know of the other's consent.
        let tell_in_window = is_reply && both(OfferFlags::TELL_IN_WINDOW, OfferFlags::USE_IN_WINDOW);
        let use_in_window = self.origin == Origin::Passive
            && wishes.receiver.peer_cwnd
            && theirs.contains(OfferFlags::TELL_IN_WINDOW);
        offer_flags([
            (both(OfferFlags::TELL_CWND, OfferFlags::USE_CWND), OfferFlags::TELL_CWND),
            (both(OfferFlags::USE_CWND, OfferFlags::TELL_CWND), OfferFlags::USE_CWND),
            (tell_in_window, OfferFlags::TELL_IN_WINDOW),
            (use_in_window, OfferFlags::USE_IN_WINDOW),
            (both(OfferFlags::TELL_DUP_COUNT, OfferFlags::USE_DUP_COUNT), OfferFlags::TELL_DUP_COUNT),
            (both(OfferFlags::USE_DUP_COUNT, OfferFlags::TELL_DUP_COUNT), OfferFlags::USE_DUP_COUNT),
            (both(OfferFlags::TELL_ACK_AFTER, OfferFlags::USE_ACK_AFTER), OfferFlags::TELL_ACK_AFTER),
            (both(OfferFlags::USE_ACK_AFTER, OfferFlags::TELL_ACK_AFTER), OfferFlags::USE_ACK_AFTER),
        ])
    }
}

/// The shift that lets the largest window we may ever offer fit in 16 bits (RFC 7323 §2.3).
pub(crate) fn own_shift(config: &TcpConfig) -> u8 {
    let mut shift = 0;
    while shift < 14 && (config.recv_buffer.max >> shift) > u32::from(u16::MAX) {
        shift += 1;
    }
    shift
}

/// A SYN, or SYN-ACK, that offers ECN (RFC 3168 §6.1.1).
pub(crate) fn is_ecn_setup(flags: Flags) -> bool {
    let ecn = Flags(flags.0 & (Flags::ECE | Flags::CWR).0);
    if flags.contains(Flags::ACK) { ecn == Flags::ECE } else { ecn == Flags::ECE | Flags::CWR }
}

fn offer_flags<const N: usize>(bits: [(bool, OfferFlags); N]) -> OfferFlags {
    bits.iter().filter(|(on, _)| *on).fold(OfferFlags::default(), |flags, (_, bit)| flags | *bit)
}
