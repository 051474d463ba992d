//! Kinds of packets, among which airtime is divided.

use hopwise_air::airtime::Load;
use hopwise_core::wire::{IpView, protocol};
use hopwise_mesh::behind_routing;

/// The load of a packet: a TCP's data, or its pure segments. The first fragment of a packet decides; later fragments
/// are data.
pub(crate) fn of(packet: &[u8]) -> Load {
    let Ok(ip) = IpView::parse(packet) else { return Load::Other };
    let (protocol, payload) = behind_routing(ip.protocol, ip.payload);
    if protocol != protocol::TCP {
        return Load::Other;
    }
    if ip.fragment.is_some_and(|fragment| fragment.offset > 0) {
        return Load::TcpData;
    }
    let header_len = payload.get(12).map_or(0, |byte| usize::from(byte >> 4) * 4);
    if payload.len() > header_len { Load::TcpData } else { Load::TcpAck }
}

/// The load of a whole frame of 802.11. Management frames, such as beacons, and ARP are the rest.
pub(crate) fn of_frame(frame: &[u8]) -> Load {
    const DATA: u8 = 0x08;
    const QOS: u8 = 0x80;
    let header_len = match frame.first() {
        Some(kind) if kind & 0x0c == DATA => 24 + if kind & QOS != 0 { 2 } else { 0 },
        _ => return Load::Other,
    };
    frame.get(header_len + LLC_BYTES..).map_or(Load::Other, of)
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
        assert_eq!(of(&packet(6, 1)), Load::TcpData);
        assert_eq!(of(&packet(6, 0)), Load::TcpAck);
        assert_eq!(of(&packet(17, 100)), Load::Other);
        assert_eq!(of(b"no packet"), Load::Other);
    }

    #[test]
    fn a_frame_of_data_is_what_its_packet_is_and_any_other_is_neither() {
        let frame = |kind: u8, header: usize| {
            let mut frame = vec![0; header + LLC_BYTES];
            frame[0] = kind;
            [frame, packet(6, 1)].concat()
        };
        assert_eq!(of_frame(&frame(0x08, 24)), Load::TcpData);
        assert_eq!(of_frame(&frame(0x88, 26)), Load::TcpData, "with QoS");
        assert_eq!(of_frame(&frame(0x80, 24)), Load::Other, "a beacon");
        assert_eq!((of_frame(&[0x08; 20]), of_frame(&[])), (Load::Other, Load::Other));
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
        let [data_s, ack_s, rest_s] = results.air.airtime_s_by_load;
        assert!((data_s + ack_s + rest_s - results.air.airtime_s).abs() < 1e-6);
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
        let [data_s, ack_s, rest_s] = air("kind: cbr, every: 20ms", "static").0.air.airtime_s_by_load;
        assert!(data_s == 0.0 && ack_s == 0.0 && rest_s > 0.1);
    }

    #[test]
    fn what_has_a_header_of_routings_own_is_what_it_carries() {
        for protocol in ["dsr", "gpsr"] {
            let [data_s, ack_s, rest_s] = air("kind: bulk", protocol).0.air.airtime_s_by_load;
            assert!(data_s > 2.0 * ack_s && ack_s > 10.0 * rest_s && rest_s > 0.0, "{protocol}");
        }
    }
}
