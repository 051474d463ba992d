//! SYNs that a program answers: it accepts them, and decides whether the connection comes about.
//!
//! A transparent proxy answers once its own connection to the destination stands. Until then the peer waits as it would
//! for the destination itself, and a refusal reaches it as that of the destination.

use std::net::IpAddr;

use super::Endpoint;
use super::errors::{AbortError, ListenError};
use super::listen::{EVERY_PORT, Listener};
use super::options::ListenOptions;
use super::rules::Choice;
use super::table::Owner;
use super::{ConnId, ListenerId};
use crate::wire::{IcmpKind, IpHeader, protocol};
use crate::{Instant, Seq};

impl Endpoint {
    /// Listens for connections to every port that has no listener of its own, at every address that the links
    /// [answer for](super::LinkConfig::answers_for).
    pub fn listen_everywhere(&mut self, options: ListenOptions) -> Result<ListenerId, ListenError> {
        self.listen_at(None, EVERY_PORT, options)
    }

    /// Listens at a port, which may stand for every port.
    pub(super) fn listen_at(
        &mut self,
        local: Option<IpAddr>,
        port: u16,
        options: ListenOptions,
    ) -> Result<ListenerId, ListenError> {
        if let Some(address) = local.filter(|address| !self.links.is_ours(*address)) {
            return Err(ListenError::NotOurs(address));
        }
        if self.listeners.contains_key(&(port, local)) {
            return Err(ListenError::PortInUse(port));
        }
        let choice = Choice::read(options.agents.clone(), &*self.maker).map_err(ListenError::Agents)?;
        let id = ListenerId(self.next_listener);
        self.next_listener += 1;
        self.listeners.insert((port, local), Listener::new(id, choice, options));
        Ok(id)
    }

    /// Keeps a connection silent until its program answers, and offers it for [`accept`](Endpoint::accept).
    pub(super) fn withhold(&mut self, slot: u32) {
        let Some(entry) = self.table.get_mut(slot) else { return };
        entry.is_withheld = true;
        // It takes a place among the waiting ones instead.
        self.leave_listener(slot);
        self.offer(slot);
    }

    /// Lets the SYN-ACK of an accepted SYN leave ([`OnDemand`](super::SynAck::OnDemand)). A program that does not want
    /// the connection [aborts](Endpoint::abort) it instead: its peer is then refused.
    pub fn answer(&mut self, now: Instant, id: ConnId) -> Result<(), AbortError> {
        let slot = self.held(id).ok_or(AbortError::NoConnection)?;
        if let Some(entry) = self.table.get_mut(slot) {
            entry.is_withheld = false;
        }
        self.touch(now, slot);
        Ok(())
    }

    /// Tells the peer of an unanswered SYN that its destination cannot be reached, with this code of ICMP or ICMPv6,
    /// and forgets the connection. An answered one is aborted.
    pub fn tell_unreachable(&mut self, now: Instant, id: ConnId, code: u8) -> Result<(), AbortError> {
        let slot = self.held(id).ok_or(AbortError::NoConnection)?;
        let entry = self.table.get(slot).filter(|entry| entry.is_silenced());
        let Some(entry) = entry else { return self.abort(now, id) };
        let (flow, link, irs) = (entry.conn.flow(), entry.link as usize, entry.conn.received_up_to() - 1);
        let syn = quoted_syn(&flow, irs);
        self.forget(now, slot);
        let between = (flow.local.ip(), flow.remote.ip());
        self.emit_error(now, link, between, IcmpKind::Unreachable { code }, &syn);
        Ok(())
    }

    pub(super) fn is_of_program(&self, slot: u32) -> bool {
        self.table.get(slot).is_some_and(|entry| entry.owner == Owner::Application)
    }
}

/// The part of a SYN that an ICMP error has to quote: the IP header and eight bytes of TCP (RFC 792).
fn quoted_syn(flow: &crate::tcp::Flow, seq: Seq) -> Vec<u8> {
    let mut packet = Vec::with_capacity(48);
    let ip = IpHeader::plain(flow.remote.ip(), flow.local.ip(), protocol::TCP);
    ip.emit(8, &mut packet);
    packet.extend(flow.remote.port().to_be_bytes());
    packet.extend(flow.local.port().to_be_bytes());
    packet.extend(seq.0.to_be_bytes());
    packet
}
