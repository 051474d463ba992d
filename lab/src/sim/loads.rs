//! Kinds of packets, among which airtime is divided.

use hopwise_air::airtime::AirLoad;
use hopwise_core::wire::{IpView, protocol};
use hopwise_mesh::{behind_routing, is_routing_port};

/// The load of a packet: a TCP's data, or its pure segments, ARP, or a message of a routing protocol. The first
/// fragment of a packet decides; later fragments are data.
pub(crate) fn of(packet: &[u8]) -> AirLoad {
    if packet.starts_with(&ARP) {
        return AirLoad::Arp;
    }
    let Ok(ip) = IpView::parse(packet) else { return AirLoad::Other };
    let (protocol, payload) = behind_routing(ip.protocol, ip.payload);
    match protocol {
        protocol::TCP => {}
        protocol::UDP if ip.fragment.is_none() && is_of_routing(payload) => return AirLoad::Routing,
        // A routing header with nothing behind it.
        protocol::NO_NEXT_HEADER if protocol != ip.protocol => return AirLoad::Routing,
        _ => return AirLoad::Other,
    }
    if ip.fragment.is_some_and(|fragment| fragment.offset > 0) {
        return AirLoad::TcpData;
    }
    let header_len = payload.get(12).map_or(0, |byte| usize::from(byte >> 4) * 4);
    if payload.len() > header_len { AirLoad::TcpData } else { AirLoad::TcpAck }
}

/// The beginning of ARP for IPv4 over Ethernet (RFC 826): the kinds of addresses, and their lengths.
const ARP: [u8; 6] = [0, 1, 8, 0, 6, 4];

/// True for a datagram to or from the port of a routing protocol.
fn is_of_routing(udp: &[u8]) -> bool {
    let port = |at: usize| udp.get(at..at + 2).map(|port| u16::from_be_bytes([port[0], port[1]]));
    [port(0), port(2)].into_iter().flatten().any(is_routing_port)
}

/// The load of a whole frame of 802.11. Management frames that are no beacons are the rest.
pub(crate) fn of_frame(frame: &[u8]) -> AirLoad {
    const DATA: u8 = 0x08;
    const QOS: u8 = 0x80;
    const BEACON: u8 = 0x80;
    let header_len = match frame.first() {
        Some(kind) if kind & 0xfc == BEACON => return AirLoad::Beacon,
        Some(kind) if kind & 0x0c == DATA => 24 + if kind & QOS != 0 { 2 } else { 0 },
        _ => return AirLoad::Other,
    };
    frame.get(header_len + LLC_BYTES..).map_or(AirLoad::Other, of)
}

/// LLC and SNAP, before the packet of a frame.
const LLC_BYTES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::sim::Plan;

    /// An IPv4 packet without options: a TCP header of 20 bytes, or another `protocol`, and this many bytes.
    fn packet(protocol: u8, payload: usize) -> Vec<u8> {
        let mut packet = vec![0; 40 + payload];
        let len = (packet.len() as u16).to_be_bytes();
        packet[..4].copy_from_slice(&[0x45, 0, len[0], len[1]]);
        packet[8..10].copy_from_slice(&[64, protocol]);
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        let sum = hopwise_core::wire::Sum::default().add(&packet[..20]).finish();
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet[32] = 5 << 4;
        packet
    }

    #[test]
    fn segments_with_payload_are_data_and_those_without_acks() {
        assert_eq!(of(&packet(6, 1)), AirLoad::TcpData);
        assert_eq!(of(&packet(6, 0)), AirLoad::TcpAck);
        assert_eq!(of(&packet(17, 100)), AirLoad::Other);
        assert_eq!(of(b"no packet"), AirLoad::Other);
    }

    #[test]
    fn arp_and_messages_of_routing_are_told_from_other_packets() {
        for port in [654_u16, 269, 4305] {
            for at in [20, 22] {
                let mut message = packet(17, 100);
                message[at..at + 2].copy_from_slice(&port.to_be_bytes());
                assert_eq!(of(&message), AirLoad::Routing, "{port}");
            }
        }
        let arp = [&ARP[..], &[0; 22]].concat();
        assert_eq!(of(&arp), AirLoad::Arp);
        let mut frame = vec![0; 24 + LLC_BYTES];
        frame[0] = 0x08;
        assert_eq!(of_frame(&[frame, arp].concat()), AirLoad::Arp);
    }

    #[test]
    fn a_frame_of_data_is_what_its_packet_is_and_any_other_is_neither() {
        let frame = |kind: u8, header: usize| {
            let mut frame = vec![0; header + LLC_BYTES];
            frame[0] = kind;
            [frame, packet(6, 1)].concat()
        };
        assert_eq!(of_frame(&frame(0x08, 24)), AirLoad::TcpData);
        assert_eq!(of_frame(&frame(0x88, 26)), AirLoad::TcpData, "with QoS");
        assert_eq!(of_frame(&frame(0x80, 24)), AirLoad::Beacon);
        assert_eq!(of_frame(&frame(0x40, 24)), AirLoad::Other, "a probe request");
        assert_eq!((of_frame(&[0x08; 20]), of_frame(&[])), (AirLoad::Other, AirLoad::Other));
    }

    fn air(traffic: &str, protocol: &str) -> (super::super::Results, Plan) {
        let text = format!(
            "routing: {{ protocol: {protocol} }}\ntopology: {{ kind: chain, hops: 1 }}\ntcp: {{ profile: ns2 }}\n\
             traffic: [{{ from: first, to: last, {traffic} }}]\n\
             arms: {{ x: {{ receiver: immediate, sender: [newreno] }} }}\nrun: {{ duration: 20s }}\n"
        );
        let plan = Scenario::parse("a", &text, &[]).expect("it is read").plan(None, 1).expect("a plan").plan;
        (super::super::run(&plan).expect("a world"), plan)
    }

    #[test]
    fn airtime_is_told_by_what_it_was_for_with_all_frames_that_it_took() {
        let (results, plan) = air("kind: bulk", "static");
        let [data_s, ack_s, _, _, _, rest_s] = results.air.airtime_s_by_load;
        assert!((results.air.airtime_s_by_load.iter().sum::<f64>() - results.air.airtime_s).abs() < 1e-6);
        let phy = &plan.phy;
        let exchange_s = |bytes: u32| {
            let control = phy.rts_ns() + phy.cts_ns() + phy.ack_ns();
            (control + phy.data_ns(bytes)) as f64 / 1e9
        };
        // Frames that collide are sent again: it may be a little more. TCP has sent ACKs that wait in the queue at the
        // end, and the radio has not.
        let flow = &results.flows[0];
        let waiting = plan.queue_packets as u64;
        let least_ack_s = (flow.receiver.acks_sent.expect("it is counted") - waiting) as f64 * exchange_s(40);
        let least_data_s = (flow.sender.bytes_acked.expect("it is counted") / 1000) as f64 * exchange_s(1040);
        assert!((1.0..1.1).contains(&(ack_s / least_ack_s)), "{ack_s} {least_ack_s}");
        assert!((1.0..1.1).contains(&(data_s / least_data_s)), "{data_s} {least_data_s}");
        assert_eq!(rest_s, 0.0, "static routes say nothing");
        let [data_s, ack_s, _, _, _, rest_s] =
            air("kind: cbr, every: 20ms", "static").0.air.airtime_s_by_load;
        assert!(data_s == 0.0 && ack_s == 0.0 && rest_s > 0.1);
    }

    #[test]
    fn what_has_a_header_of_routings_own_is_what_it_carries_and_the_rest_is_routing() {
        for protocol in ["dsr", "gpsr"] {
            let [data_s, ack_s, beacon_s, _, routing_s, rest_s] =
                air("kind: bulk", protocol).0.air.airtime_s_by_load;
            assert!(data_s > 2.0 * ack_s && ack_s > 10.0 * routing_s && routing_s > 0.0, "{protocol}");
            assert_eq!((beacon_s, rest_s), (0.0, 0.0), "{protocol}");
        }
    }

    #[test]
    fn messages_with_a_port_of_their_own_are_routing() {
        for protocol in ["aodv", "dymo", "batman", "hwmp"] {
            let [_, ack_s, _, _, routing_s, rest_s] = air("kind: bulk", protocol).0.air.airtime_s_by_load;
            assert!(
                ack_s > routing_s && routing_s > 0.0 && rest_s == 0.0,
                "{protocol}: {routing_s} {rest_s}"
            );
        }
    }
}
