//! Entrances for the fuzz targets `host` and `files`, which are no users of the API: readers of what the kernel and the
//! air send, and of what killed daemons have left. Each takes any bytes and checks what holds for all of them.

use hopwise_core::Instant;
use hopwise_core::wire::IpView;
use tun_rs::VirtioNetHdr;

use crate::bridge::addresses::{FlowDirection, LearnedAddresses, goes_on, tcp_ends};
use crate::bridge::ports;
use crate::capture::finish_checksum;
use crate::firewall::{Between, Ruleset};
use crate::journal::{self, JournalPlace};
use crate::netlink::carrier::carrier_of;
use crate::netlink::hwsim::wire::frame as frame_of_hwsim;
use crate::netlink::message::{attributes, messages};
use crate::netlink::{known as known_of_loan, read_answer};
use crate::nfqueue::{rules, socket};
use crate::nl80211;
use crate::raw::ethernet::{ETHERNET, EthernetFrame, everyone};
use crate::raw::{arp, ndp};
use crate::routing::known as known_switches;
use crate::vnet::{IncomingBundle, WholePacket, finish, header_for, read_header};

/// The number of an interface in the questions below.
const INTERFACE: u32 = 4;

/// Messages of netlink: of links, of stations (nl80211), of simulated radios (mac80211_hwsim), of chains of nft, and of
/// a netfilter queue.
pub fn netlink(bytes: &[u8]) {
    let mut within = 0;
    for heard in messages(bytes) {
        within += heard.body.len();
        assert!(within <= bytes.len(), "messages overlap");
        assert!(attributes(heard.body).map(|(_, value)| value.len()).sum::<usize>() <= heard.body.len());
        let _ = (nl80211::family(heard.body), nl80211::station(heard.body, Instant::ZERO));
        let _ = (nl80211::news(heard.body, INTERFACE), rules::read(heard.body));
        let _ = (ports::read(&heard), heard.errno(), frame_of_hwsim(heard.body));
        let _ = read_answer(heard.body);
    }
    let _ = carrier_of(bytes, "radio");
    if let Some(queued) = socket::read(bytes) {
        assert!(queued.packet.len() < bytes.len());
    }
}

/// A packet behind the header of a device that takes and gives bundles. Bundles are cut, and their pieces are sound.
pub fn vnet(bytes: &[u8]) {
    let Some(header) = read_header(bytes) else { return };
    let mut packet = bytes[tun_rs::VIRTIO_NET_HDR_LEN..].to_vec();
    let _ = (header_for(&packet, None), header_for(&packet, Some(1000)));
    let mut incoming = IncomingBundle::default();
    match finish(&header, &mut packet, &mut incoming) {
        Ok(None) => check_pieces(&header, &packet, &mut incoming),
        Ok(Some(WholePacket::Bundle(each))) => assert_eq!(each, header.gso_size),
        Ok(Some(WholePacket::Single)) | Err(_) => {}
    }
    finish_checksum(&mut packet, |protocol, bytes| (protocol, bytes));
    assert_eq!(packet.len() + tun_rs::VIRTIO_NET_HDR_LEN, bytes.len());
}

fn check_pieces(header: &VirtioNetHdr, bundle: &[u8], incoming: &mut IncomingBundle) {
    let Ok(ip) = IpView::parse(bundle) else { unreachable!("a bundle that was taken") };
    let headers = ip.header_len + 8;
    let (mut piece, mut bytes) = (vec![0; bundle.len()], 0);
    while let Some(len) = incoming.next(&mut piece) {
        assert!((headers + 1..=headers + usize::from(header.gso_size)).contains(&len));
        assert_eq!(piece[headers..len], bundle[headers + bytes..][..len - headers]);
        assert!(IpView::parse(&piece[..len]).is_ok(), "a piece is no packet");
        bytes += len - headers;
    }
    assert_eq!(headers + bytes, bundle.len(), "bytes of the bundle are missing");
}

/// An Ethernet frame, as raw links and bridges read it.
pub fn frame(bytes: &[u8]) {
    let Some(frame) = EthernetFrame::parse(bytes) else { return };
    let packet = &bytes[ETHERNET..];
    let _ = (arp::parse(packet), everyone(packet));
    if let Some(seen) = ndp::parse(packet) {
        assert!(!seen.target.is_multicast() && seen.mac.is_none_or(|mac| mac[0] & 1 == 0));
    }
    if let Some(ends) = tcp_ends(frame.protocol, packet) {
        let mut learned = LearnedAddresses::default();
        let flow = FlowDirection::ToMobile.flow(ends);
        learned.learn(flow, FlowDirection::ToMobile, &frame, goes_on(frame.protocol, packet));
        assert_eq!(learned.of(flow, FlowDirection::ToMobile), Some((frame.to, frame.from)));
        assert_eq!(learned.of(flow, FlowDirection::FromMobile), Some((frame.from, frame.to)));
    }
}

/// A list of rules of nft.
pub fn rules(text: &str) {
    let ruleset = Ruleset::parse(text);
    let [wire, radio, fixed] = ["wire", "radio", "tun"].map(str::to_owned);
    let between = Between { wire, radio, fixed };
    let _ = (ruleset.between(&between), ruleset.redirects(&between), ruleset.against_cuts(&between));
}

/// A file of old values that a killed daemon has left: where they hold, and its switches or its device on loan. A value
/// that was read is written as it is read again.
pub fn left(text: &str) {
    let (place, lines) = journal::parts(text);
    if let Some(place) = place {
        assert_eq!(JournalPlace::read(&place.line()), Some(place));
    }
    let switches = known_switches(&lines);
    assert_eq!(known_switches(&switches), switches);
    if let Some(loan) = known_of_loan(&lines) {
        assert_eq!(known_of_loan(&loan), Some(loan));
    }
}
