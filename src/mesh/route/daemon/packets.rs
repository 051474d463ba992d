//! Packets that came to the TUN device, and undeliverable ones.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use hopwise_core::trace::DropReason;
use hopwise_core::wire::IpView;
use hopwise_core::{Instant, LinkId, NextHop};
use hopwise_host::routing::is_link_lost;
use hopwise_host::{Link, Received};
use hopwise_mesh::{Cx, Routed, Undelivered, Verdict};
use rustix::io::Errno;

use super::super::neighbours::v4;
use super::{Daemon, MOST_AT_ONCE};

/// A packet is sent twice at most: the protocol gives a returned one a new wait each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It comes from the TUN device, and may wait for another route.
    First,
    /// It has waited.
    Last,
}

impl Daemon {
    /// Takes packets for which the kernel has no route.
    pub(super) fn take_packets(&mut self) {
        for _ in 0..MOST_AT_ONCE {
            let now = self.clock.now();
            let Received::Packet(arrived) = self.tun.receive(now, &mut self.buffer) else { return };
            let packet = self.buffer[..arrived.bytes].to_vec();
            let Some((routed, dst)) = self.routed(&packet) else { continue };
            if !self.config.network.contains(dst.into()) {
                continue;
            }
            let verdict = self.router.route(&Cx { now, endpoint: &self.nodes }, &routed);
            self.obey(now);
            if let Verdict::Forward { link, via: NextHop::Neighbour(via) } = verdict {
                self.send_on(now, (link, via), Turn::First, &packet);
            }
        }
    }

    /// A packet as protocols see it, and its destination.
    fn routed<'p>(&self, packet: &'p [u8]) -> Option<(Routed<'p>, Ipv4Addr)> {
        let view = IpView::parse(packet).ok()?;
        let (src, dst, hop_limit) = (view.src, view.dst, view.hop_limit);
        let from = self.config.previous(src);
        Some((Routed { src, dst, from, hop_limit, id: 0, packet }, v4(dst)?))
    }

    /// Sends by the kernel's route. A device that no longer sends is a lost link. Other errors cost one packet.
    pub(super) fn send_on(&mut self, now: Instant, way: (LinkId, IpAddr), turn: Turn, packet: &[u8]) {
        let (link, via) = way;
        let Some(port) = self.ports.get(usize::from(link.0)) else { return };
        let Some((routed, dst)) = self.routed(packet) else { return };
        // The kernel did not take the route, or the protocol has given it up since.
        if !self.installed.has(dst) {
            return self.drops.count(DropReason::NoRoute);
        }
        let is_there = if turn == Turn::First { self.installed.restore(now, dst) } else { Ok(()) };
        let Err(error) = is_there.and_then(|()| port.resender.send(dst, packet)) else { return };
        if !is_link_lost(&error) {
            return self.drops.count(reason(&error));
        }
        tracing::info!(%dst, %via, device = port.name, %error, "link gone");
        self.installed.lose(dst);
        if turn == Turn::First {
            let cx = Cx { now, endpoint: &self.nodes };
            let _: Undelivered = self.router.on_undelivered(&cx, link, via, &routed);
        } else if let Some(neighbour) = v4(via) {
            self.router.lose(now, link, neighbour);
            self.drops.count(DropReason::Undelivered);
        }
    }
}

/// The reason why a device did not take a packet.
fn reason(error: &io::Error) -> DropReason {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MSGSIZE) => DropReason::TooBig,
        Some(Errno::NOBUFS | Errno::AGAIN) => DropReason::QueueFull,
        _ => DropReason::Undelivered,
    }
}
