//! An observer's knowledge of each connection on the path, for forged packets that are nearly right.

use std::net::SocketAddr;

use hopwise_core::wire::{Checksums, Flags, IpView, TcpView, protocol};
use hopwise_core::{Instant, Seq};

use super::packet::Segment;

const MOST_FLOWS: usize = 8;
const STRANGERS_WINDOW: u16 = 20_000;

/// A connection of the host, seen from its other end.
pub(super) struct Flow {
    pub(super) host: SocketAddr,
    pub(super) remote: SocketAddr,
    /// The number of the remote end's next octet.
    pub(super) next: Seq,
    /// One after the highest that the host has sent.
    pub(super) host_next: Seq,
    /// The last acknowledgment of the host.
    pub(super) host_ack: Seq,
    pub(super) host_stamp: u32,
    pub(super) has_stamps: bool,
}

impl Flow {
    pub(super) fn stamp(&self, now: Instant) -> u32 {
        (now.as_millis() as u32).wrapping_add(u32::from(self.remote.port()))
    }

    /// A segment that an honest remote end might send now, except for its flags and options.
    pub(super) fn natural(&self) -> Segment {
        Segment {
            src: self.remote,
            dst: self.host,
            seq: self.next,
            ack: self.host_next,
            flags: Flags::ACK,
            window: STRANGERS_WINDOW,
            urgent: 0,
            options: Vec::new(),
            len: 0,
        }
    }
}

#[derive(Default)]
pub(super) struct Flows {
    flows: Vec<Flow>,
    datagrams: u32,
}

impl Flows {
    /// Adds a flow; beyond the bound the oldest is forgotten.
    pub(super) fn begin(&mut self, host: SocketAddr, remote: SocketAddr, first: Seq) -> &mut Flow {
        self.flows.retain(|flow| (flow.host, flow.remote) != (host, remote));
        if self.flows.len() == MOST_FLOWS {
            self.flows.remove(0);
        }
        self.flows.push(Flow {
            host,
            remote,
            next: first,
            host_next: Seq(0),
            host_ack: first,
            host_stamp: 0,
            has_stamps: true,
        });
        let last = self.flows.len() - 1;
        &mut self.flows[last]
    }

    /// An identification that no other forged datagram has.
    pub(super) fn next_id(&mut self) -> u32 {
        self.datagrams += 1;
        self.datagrams
    }

    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Flow> {
        self.flows.get_mut(index)
    }

    /// Notes a segment that the host sent.
    pub(super) fn note_from_host(&mut self, view: &IpView<'_>, segment: &TcpView<'_>) {
        let host = SocketAddr::new(view.src, segment.src_port);
        let remote = SocketAddr::new(view.dst, segment.dst_port);
        let end = segment.seq + segment.sequence_len();
        let is_syn = segment.flags.contains(Flags::SYN);
        let known = self.flows.iter_mut().find(|flow| (flow.host, flow.remote) == (host, remote));
        let flow = match known {
            Some(flow) => flow,
            // The start of the remote end's numbers depends on its port.
            None if is_syn => self.begin(host, remote, Seq(u32::from(remote.port()) << 16 ^ 0x7fff_fff0)),
            None => return,
        };
        if is_syn || flow.host_next < end {
            flow.host_next = end;
        }
        if segment.flags.contains(Flags::ACK) && !segment.flags.contains(Flags::RST) {
            flow.host_ack = segment.ack;
        }
        if let Some(stamps) = segment.options.timestamps {
            flow.host_stamp = stamps.value;
        }
        if is_syn {
            flow.has_stamps = segment.options.timestamps.is_some();
        }
    }

    /// Notes a segment that the honest peer sent to the host.
    pub(super) fn note_from_peer(&mut self, packet: &[u8]) {
        let Ok(view) = IpView::parse(packet) else { return };
        if view.protocol != protocol::TCP || view.fragment.is_some() {
            return;
        }
        let Ok(segment) = TcpView::parse(view.src, view.dst, view.payload, Checksums::Verify) else { return };
        let remote = SocketAddr::new(view.src, segment.src_port);
        let host = SocketAddr::new(view.dst, segment.dst_port);
        let end = segment.seq + segment.sequence_len();
        let is_known = self.flows.iter().any(|flow| (flow.host, flow.remote) == (host, remote));
        if !is_known && segment.flags.contains(Flags::SYN) {
            self.begin(host, remote, end);
        }
        for flow in self.flows.iter_mut().filter(|flow| (flow.host, flow.remote) == (host, remote)) {
            if segment.flags.contains(Flags::SYN) || flow.next < end {
                flow.next = end;
            }
        }
    }
}
