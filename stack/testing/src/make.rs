//! Endpoints with the agents of the registry, and segments of peers that exist in a test alone.

use std::net::SocketAddr;
use std::time::Duration;

use hopwise_agents::StandardAgents;
use hopwise_core::endpoint::EndpointConfig;
use hopwise_core::wire::{Checksums, Flags, IpHeader, TcpHeader, TcpOptions, protocol};
use hopwise_core::{Endpoint, Seq};

/// A time in milliseconds.
pub const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// An endpoint whose configuration names agents that there are.
pub fn endpoint(config: EndpointConfig) -> Endpoint {
    let made = Endpoint::new(config, Box::new(StandardAgents::default()));
    made.unwrap_or_else(|error| panic!("its agents are refused: {error}"))
}

/// A segment of a peer.
#[derive(Clone, Debug)]
pub struct Segment<'a> {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub seq: Seq,
    pub ack: Seq,
    pub flags: Flags,
    pub window: u16,
    pub options: TcpOptions,
    pub payload: &'a [u8],
}

impl Segment<'_> {
    /// An ACK without options and payload; all its numbers are 0.
    pub fn between(from: SocketAddr, to: SocketAddr) -> Segment<'static> {
        Segment {
            from,
            to,
            seq: Seq(0),
            ack: Seq(0),
            flags: Flags::ACK,
            window: u16::MAX,
            options: TcpOptions::default(),
            payload: &[],
        }
    }

    /// The whole packet, with its checksums.
    pub fn packet(&self) -> Vec<u8> {
        let Segment { from, to, seq, ack, flags, window, ref options, payload } = *self;
        let (src_port, dst_port) = (from.port(), to.port());
        let header = TcpHeader { src_port, dst_port, seq, ack, flags, window, urgent: 0, options };
        let mut packet = Vec::new();
        IpHeader::plain(from.ip(), to.ip(), protocol::TCP).emit(header.len() + payload.len(), &mut packet);
        header.emit(from.ip(), to.ip(), (payload, &[]), Checksums::Verify, &mut packet);
        packet
    }
}
