//! Sends packets of one side anew, through raw sockets. It never waits: it tells when there is no room, and its
//! descriptor tells when there is.
//!
//! The kernel holds a packet to an absent neighbour for seconds. The packet takes room of its socket until then. Any
//! host can cause segments with SYN to absent neighbours. SYNs therefore have a socket of their own, and are dropped
//! when it is full: the segments of connections need not wait for them.
//!
//! Where the router translates addresses, a table of nft keeps the new packets away from connection tracking. Tracking
//! knows the packets of a connection by the addresses that the other interface does not show. It would take a packet
//! that is sent anew for the first one of another connection, which would leave from another port. The table goes when
//! its owner does.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use hopwise_core::wire::{Flags, IpView, protocol};

use super::ForwardConfig;
use crate::firewall::Ruleset;
use crate::nft::OwnedTable;
use crate::poller::{Interest, Poller};
use crate::routing::Resender;

/// Room for some thousand segments without data.
const ROOM_FOR_SYNS: libc::c_int = 4 << 20;
/// The place of the flags in a TCP header (RFC 9293 §3.1).
const FLAGS_AT: usize = 13;
/// Numbers for the poller.
const QUEUE: usize = 0;
const SOCKET: usize = 1;

#[derive(Debug)]
pub(super) struct Anew {
    segments: Resender,
    syns: Resender,
    poller: Poller,
    /// Readable when the queue has a packet, or a full socket has room again.
    watched: OwnedFd,
    /// A destination whose version of IP has no room.
    full_for: Option<IpAddr>,
}

impl Anew {
    /// `queue` is watched too.
    pub(super) fn open(device: &str, queue: BorrowedFd<'_>) -> io::Result<Anew> {
        let (segments, syns) = (Resender::open(device)?, Resender::open(device)?);
        syns.make_room(ROOM_FOR_SYNS);
        let poller = Poller::new()?;
        poller.add(queue, QUEUE, Interest::Read)?;
        let watched = poller.descriptor()?;
        Ok(Anew { segments, syns, poller, watched, full_for: None })
    }

    /// Marks all packets that leave.
    pub(super) fn set_mark(&self, mark: libc::c_int) -> io::Result<()> {
        self.segments.set_mark(mark)?;
        self.syns.set_mark(mark)
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.watched.as_fd()
    }

    pub(super) fn has_device(&self) -> bool {
        self.segments.has_device()
    }

    /// Returns false if there will be room later, which the descriptor tells.
    pub(super) fn send(&mut self, ip: &IpView<'_>, packet: &[u8]) -> io::Result<bool> {
        if has_syn(ip) {
            return self.syns.send(ip.dst, packet).map(|()| true);
        }
        if let Some(socket) = self.full_for.take().and_then(|dst| self.segments.socket(dst)) {
            // It may have been removed with its device.
            let _ = self.poller.remove(socket);
        }
        match self.segments.send(ip.dst, packet) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let Some(socket) = self.segments.socket(ip.dst) else { return Err(error) };
                self.poller.add(socket, SOCKET, Interest::Room)?;
                self.full_for = Some(ip.dst);
                Ok(false)
            }
            done => done.map(|()| true),
        }
    }
}

fn has_syn(ip: &IpView<'_>) -> bool {
    let flags = ip.payload.get(FLAGS_AT).filter(|_| ip.protocol == protocol::TCP);
    flags.is_some_and(|flags| Flags(*flags).contains(Flags::SYN))
}

/// Mark of packets that are not tracked.
pub(super) const MARK: libc::c_int = 0x0068_6f70;
/// The beginning of the table's name. The first queue's number follows.
const TABLE: &str = "hopwise_anew_";

/// The interface whose packets are not tracked, and the table that says so.
#[derive(Debug)]
pub(super) struct Untracked {
    pub(super) device: String,
    _table: OwnedTable,
}

impl Untracked {
    /// `None` if neither interface translates addresses, as far as nft lists. An nft that does not answer is an error.
    pub(super) fn set(config: &ForwardConfig) -> io::Result<Option<Untracked>> {
        let rules = match Ruleset::read() {
            Ok(rules) => rules,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "rules of the router that translate addresses could not be listed");
                return Ok(None);
            }
        };
        let Some(device) = other_side(config, &rules).map(str::to_owned) else { return Ok(None) };
        match OwnedTable::set(&format!("inet {TABLE}{}", config.queue), &chain(&device)) {
            Ok(table) => Ok(Some(Untracked { device, _table: table })),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(error),
            Err(error) => {
                say_wrong_port(&device, &error);
                Ok(None)
            }
        }
    }
}

fn say_wrong_port(device: &str, error: &io::Error) {
    tracing::warn!(
        %error,
        device,
        "the router translates addresses: packets that were kept leave by it from another port, as if of another \
         connection. Take `by: tun`"
    );
}

/// The interface that does not translate addresses, where the other one does.
fn other_side<'a>(config: &'a ForwardConfig, rules: &Ruleset) -> Option<&'a str> {
    let ForwardConfig { wire, radio, .. } = config;
    if !rules.translating(wire, true).is_empty() {
        Some(radio)
    } else if !rules.translating(radio, false).is_empty() {
        Some(wire)
    } else {
        None
    }
}

fn chain(device: &str) -> String {
    format!(
        "chain sent {{ type filter hook output priority raw; policy accept; \
         oifname \"{device}\" meta mark {MARK:#x} notrack; }};"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_untracked_on_the_side_that_does_not_translate() {
        let (wire, radio) = ("wire".to_owned(), "radio".to_owned());
        let config = ForwardConfig { wire, radio, mobiles: Vec::new(), queue: 7100 };
        let nat = |hook: &str, rule: &str| {
            let hook = format!("\t\ttype nat hook {hook} priority 0; policy accept;\n");
            Ruleset::parse(&format!("table ip nat {{\n\tchain c {{\n{hook}\t\t{rule}\n\t}}\n}}\n"))
        };
        for (hook, rule, wanted) in [
            ("postrouting", "oifname \"wire\" masquerade", Some("radio")),
            ("postrouting", "ip saddr 10.9.0.0/24 snat to 192.0.2.1", Some("radio")),
            ("prerouting", "iifname \"wire\" tcp dport 80 dnat to 10.9.0.2", Some("radio")),
            ("postrouting", "oifname \"radio\" masquerade", Some("wire")),
            ("postrouting", "oifname \"lan\" masquerade", None),
            ("prerouting", "ct status dnat accept", None),
        ] {
            assert_eq!(other_side(&config, &nat(hook, rule)), wanted, "{rule}");
        }
        assert!(chain("radio").contains("oifname \"radio\" meta mark 0x686f70 notrack;"));
    }
}
