//! Strategies shared by the tests of all headers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;
use crate::Seq;

pub(super) fn cases(count: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(count) }
}

/// Source and destination of one family.
pub(super) fn addresses() -> impl Strategy<Value = (IpAddr, IpAddr)> {
    prop_oneof![
        any::<(Ipv4Addr, Ipv4Addr)>().prop_map(|(src, dst)| (src.into(), dst.into())),
        any::<(Ipv6Addr, Ipv6Addr)>().prop_map(|(src, dst)| (src.into(), dst.into())),
    ]
}

pub(super) fn ecn() -> impl Strategy<Value = Ecn> {
    (0..4u8).prop_map(Ecn::from_bits)
}

pub(super) fn timestamps() -> impl Strategy<Value = Timestamps> {
    any::<(u32, u32)>().prop_map(|(value, echo)| Timestamps { value, echo })
}

fn sack(blocks: usize) -> impl Strategy<Value = Vec<SackBlock>> {
    let block =
        any::<(u32, u32)>().prop_map(|(left, right)| SackBlock { left: Seq(left), right: Seq(right) });
    prop::collection::vec(block, 0..=blocks)
}

fn notes() -> impl Strategy<Value = Notes> {
    any::<(Option<u16>, Option<u8>, Option<u8>)>().prop_map(|(cwnd, dup_count, ack_after)| Notes {
        cwnd,
        dup_count,
        ack_after,
    })
}

/// Options of a SYN.
pub(super) fn options_of_syn() -> impl Strategy<Value = TcpOptions> {
    let offer = any::<Option<u8>>();
    (
        any::<Option<u16>>(),
        prop::option::of(0..=14u8),
        any::<bool>(),
        prop::option::of(timestamps()),
        offer,
        any::<bool>(),
    )
        .prop_map(|(mss, window_scale, sack_permitted, timestamps, offer, rate)| TcpOptions {
            mss,
            window_scale,
            sack_permitted,
            timestamps,
            hopwise: offer.map(|flags| HopwiseOption::Offer(OfferFlags(flags))),
            rate_request: rate.then_some(RateRequest::Offer),
            ..TcpOptions::default()
        })
}

/// Options of a later segment, whether they all fit or not.
pub(super) fn options_of_later_segment() -> impl Strategy<Value = TcpOptions> {
    (prop::option::of(timestamps()), sack(4), prop::option::of(notes()), prop::option::of(0..=127u8))
        .prop_map(|(timestamps, sack, notes, rate)| TcpOptions {
            timestamps,
            sack: sack.into_iter().collect(),
            hopwise: notes.map(HopwiseOption::Notes),
            rate_request: rate.map(RateRequest::Ask),
            ..TcpOptions::default()
        })
}

/// Matching flags and options.
pub(super) fn flags_and_options() -> impl Strategy<Value = (Flags, TcpOptions)> {
    let syn = any::<u8>().prop_map(|flags| Flags(flags) | Flags::SYN);
    let later = any::<u8>().prop_map(|flags| Flags(flags & !Flags::SYN.0));
    prop_oneof![(syn, options_of_syn()), (later, options_of_later_segment())]
}

pub(super) fn bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..=max)
}

pub(super) fn v4(last: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, 2, last).into()
}

pub(super) fn v6(last: u16) -> IpAddr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last).into()
}
