//! Frames of a mesh network, which our nodes carry as UDP.

use std::net::{IpAddr, Ipv4Addr};

use hopwise_core::{Cast, Instant, LinkId, QueueClass};
use hopwise_mesh::aodv::Interface;
use hopwise_mesh::{ControlMessage, Cx, RoutedPacket, Routing, RoutingOrder, RoutingSetup, hwmp};

use super::{Nothing, capture_of, dissected_fields, tshark};

/// Captures of frames of 802.11 without a header before them.
const LINKTYPE_IEEE802_11: u32 = 105;
const LINK: LinkId = LinkId(0);

fn address(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

/// Two nodes that hear each other.
struct Pair {
    now: Instant,
    nodes: [hwmp::Hwmp; 2],
    messages: Vec<(usize, Vec<u8>)>,
}

impl Pair {
    fn new() -> Pair {
        let node = |last: u8| {
            let interfaces = vec![Interface { link: LINK, address: address(last) }];
            let setup = RoutingSetup::new(interfaces, last.into());
            hwmp::Hwmp::new(hwmp::Settings::default(), RoutingSetup { first_kbps: 11_000, ..setup })
        };
        Pair { now: Instant::ZERO, nodes: [node(1), node(2)], messages: Vec::new() }
    }

    /// Lets the next timer run, and carries messages over.
    fn step(&mut self) {
        let next = self.nodes.iter().filter_map(Routing::poll_timeout).min();
        self.now = self.now.max(next.expect("nodes send beacons for ever"));
        for n in [0, 1] {
            let cx = Cx { now: self.now, endpoint: &Nothing };
            self.nodes[n].handle_timeout(&cx);
            while let Some(order) = self.nodes[n].poll_order(self.now) {
                let RoutingOrder::Send { class: QueueClass::Routing, packet, .. } = order else { continue };
                let control = ControlMessage {
                    link: LINK,
                    from: Some(address(n as u8 + 1).into()),
                    cast: Cast::ToUs,
                    src: address(n as u8 + 1).into(),
                    dst: address(2 - n as u8).into(),
                    hop_limit: 1,
                    message: &packet[28..],
                };
                self.nodes[1 - n].handle_control(&cx, &control);
                self.messages.push((n, packet[28..].to_vec()));
            }
        }
    }

    /// A packet for the second node, or one that the second node wants passed on.
    fn route(&mut self, dst: Ipv4Addr, from: Option<IpAddr>) {
        let packet = RoutedPacket {
            src: address(1).into(),
            dst: dst.into(),
            from,
            hop_limit: 9,
            id: 1,
            packet: &[0; 40],
        };
        self.nodes[0].route(&Cx { now: self.now, endpoint: &Nothing }, &packet);
        (0..40).for_each(|_| self.step());
    }
}

/// The frame of a message: Frame Control stands before the addresses, and the body behind them.
fn frame((n, message): &(usize, Vec<u8>)) -> Vec<u8> {
    let (control, body) = message.split_at(2);
    let from = [0x02, 0, 10, 0, 0, *n as u8 + 1];
    [control, &[0, 0], &[0xff; 6], &from, &from, &[0, 0], body].concat()
}

#[test]
fn frames_of_a_mesh_are_those_that_wireshark_knows() {
    let mut pair = Pair::new();
    (0..60).for_each(|_| pair.step());
    pair.route(address(2), None);
    pair.route(address(9), Some(address(2).into()));
    let frames: Vec<_> = pair.messages.iter().map(frame).collect();
    let frames = capture_of(LINKTYPE_IEEE802_11, &frames);
    let fields = "fc.type_subtype fixed.selfprot_action peering.proto tag.number hwmp.hopcount hwmp.ttl hwmp.orig_sta \
                  hwmp.targ_sta hwmp.lifetime hwmp.metric mesh.id mesh.config.ps_protocol \
                  mesh.config.formation_info.num_peers";
    let Some(lines) = dissected_fields(&frames, "wlan.", fields, [",", "+"]) else { return };
    let beacons =
        lines.iter().filter(|line| line.starts_with("0x0008,,,0+1+114+113,,,,,,,hopwise,0x01,")).count();
    let mut actions: Vec<_> =
        lines.iter().filter(|line| line.starts_with("0x000d")).map(String::as_str).collect();
    actions.sort_unstable();
    let opened = "0x000d,0x01,0x0000,1+114+113+117,,,,,,,hopwise,0x01,0";
    let confirmed = "0x000d,0x02,0x0000,1+114+113+117,,,,,,,hopwise,0x01,0";
    let [request, reply, error] = [
        "0x000d,,,130,0,31,02:00:0a:00:00:01,02:00:0a:00:00:02,4882,0,,,",
        "0x000d,,,131,0,31,02:00:0a:00:00:01,02:00:0a:00:00:02,4882,0,,,",
        "0x000d,,,132,,31,,02:00:0a:00:00:09,,,,,",
    ];
    assert_eq!(actions, [request, reply, error, opened, opened, confirmed, confirmed]);
    assert!(beacons > 2 && beacons + actions.len() == lines.len(), "{lines:#?}");
    let malformed = tshark(&frames, &["-Y", "_ws.malformed"]);
    assert_eq!(malformed.unwrap_or_default(), [""; 0]);
}
