//! The calls of a program.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use super::bounds::Footprint;
use super::errors::{AbortError, ConnectError, ListenError};
use super::options::{ConnectOptions, ListenOptions};
use super::rules::{Choice, Chosen, Direction};
use super::table::{Entry, Owner};
use super::{ConnId, ListenerId};
use super::{Endpoint, listen::EVERY_PORT};
use crate::agent::HostPair;
use crate::ip::is_unicast_destination;
use crate::narrow::as_u32;
use crate::secrets::PortUse;
use crate::tcp::connection::{Connection, Origin, Setup, open_active};
use crate::tcp::cx::Cx;
use crate::tcp::{CloseReason, Flow, Info, Options, TcpConfig};
use crate::trace::{ChosenBy, StateName, TraceKind};
use crate::{Instant, Seq};

impl Endpoint {
    /// Opens a connection; the event [`Connected`](super::EventKind::Connected) follows when it is open.
    pub fn connect(
        &mut self,
        now: Instant,
        to: SocketAddr,
        options: &ConnectOptions,
    ) -> Result<ConnId, ConnectError> {
        if !is_unicast_destination(to.ip()) || to.port() == 0 || self.links.is_broadcast(to.ip()) {
            return Err(ConnectError::NotUnicast(to));
        }
        if options.source_route.is_some() && to.is_ipv6() {
            return Err(ConnectError::SourceRouteNeedsIpv4);
        }
        let link = self.links.towards(to.ip()).ok_or(ConnectError::NoRoute(to.ip()))?;
        let local = self.local_socket(now, link, to, options)?;
        let flow = Flow { local, remote: to };
        let choice = Choice::read(options.agents.clone(), &*self.maker).map_err(ConnectError::Agents)?;
        let chosen = self.rules.resolve(&flow, Direction::Outgoing, &choice);
        let before = self.table.slot_of(&flow.into());
        let before = before.and_then(|slot| {
            self.with(now, slot, |conn, cx| {
                conn.make_way(cx);
                (conn.sent_up_to(), conn.received_up_to())
            })
        });
        if !self.has_place_for(now, to.ip()) {
            return Err(ConnectError::TableFull { most: self.config.most_connections });
        }
        let iss = self.first_number(now, &flow, before.map(|(sent, _)| sent));
        let mut opening = self.opening(now, flow, link, &chosen, iss, options.tcp.clone());
        opening.follows = before.map(|(_, received)| received);
        opening.source_route = options.source_route.clone().map(Box::new);
        let slot = self.insert(now, opening, (chosen, link), None, open_active);
        self.touch(now, slot);
        Ok(self.id_of(slot))
    }

    fn local_socket(
        &mut self,
        now: Instant,
        link: usize,
        to: SocketAddr,
        options: &ConnectOptions,
    ) -> Result<SocketAddr, ConnectError> {
        let ip = match options.local_ip {
            Some(ip) if self.links.is_ours(ip) && ip.is_ipv4() == to.is_ipv4() => ip,
            Some(_) => return Err(ConnectError::NoLocalAddress),
            None => self.links.source_for(link, to.ip()).ok_or(ConnectError::NoLocalAddress)?,
        };
        if let Some(port) = options.local_port.filter(|port| *port != 0) {
            let local = SocketAddr::new(ip, port);
            let is_taken = self.table.slot_of(&Flow { local, remote: to }.into()).is_some() || local == to;
            return if is_taken { Err(ConnectError::InUse(local)) } else { Ok(local) };
        }
        let (table, listeners) = (&self.table, &self.listeners);
        let has_timestamps = options.tcp.as_ref().unwrap_or(&self.config.tcp).timestamps;
        let port_use = |port: u16| {
            if listeners.contains_key(&(port, None)) || listeners.contains_key(&(port, Some(ip))) {
                return PortUse::Taken;
            }
            let local = SocketAddr::new(ip, port);
            let entry = table.slot_of(&Flow { local, remote: to }.into()).and_then(|slot| table.get(slot));
            match entry {
                None => PortUse::Free,
                Some(entry) if has_timestamps && entry.conn.may_make_way(now) => PortUse::MakesWay,
                Some(_) => PortUse::Taken,
            }
        };
        let port = self.ports.next(&self.secrets, ip, to, &port_use).ok_or(ConnectError::NoFreePort)?;
        Ok(SocketAddr::new(ip, port))
    }

    /// The parts of a new connection.
    pub(super) fn opening(
        &mut self,
        now: Instant,
        flow: Flow,
        link: usize,
        chosen: &Chosen,
        iss: Seq,
        tcp: Option<Arc<TcpConfig>>,
    ) -> Setup {
        self.connections = self.connections.wrapping_add(1).max(1);
        let config = tcp.unwrap_or_else(|| Arc::clone(&self.config.tcp));
        let between = HostPair { link, local: flow.local.ip(), peer: flow.remote.ip() };
        Setup {
            number: self.connections,
            flow,
            config,
            receiver: (chosen.receiver)(),
            shadows: (chosen.shadows)(),
            senders: (chosen.senders)(between),
            iss,
            ts_offset: self.secrets.ts_offset(flow.local, flow.remote),
            link_mtu: self.links.config(link).mtu,
            path_mtu: self.path_mtus.get(now, flow.remote.ip()),
            ack_merge: self.ack_merge,
            source_route: None,
            follows: None,
        }
    }

    /// Puts a new connection into the table and opens it. If it has no listener, our program opens it.
    pub(super) fn insert(
        &mut self,
        now: Instant,
        opening: Setup,
        (chosen, link): (Arc<Chosen>, usize),
        listener: Option<ListenerId>,
        open: impl FnOnce(&mut Cx<'_>, &mut Connection),
    ) -> u32 {
        let (origin, owner, packet) = match listener {
            None => (Origin::Active, Owner::Application, 0),
            Some(_) => (Origin::Passive, Owner::Listener, self.packets_in),
        };
        let mut cx = Cx::new(now, opening.number, packet, self.account.memory, &mut self.trace);
        cx.trace(TraceKind::Agents(chosen.by));
        let (slot, entry) = self.table.insert(|id| Entry {
            conn: opening.make(origin),
            chosen,
            link: as_u32(link),
            id,
            listener,
            owner,
            is_half_open: listener.is_some(),
            is_withheld: false,
            is_queued: false,
            is_reported: false,
            footprint: Footprint::new(now, listener.is_some()),
        });
        open(&mut cx, &mut entry.conn);
        slot
    }

    pub(super) fn id_of(&self, slot: u32) -> ConnId {
        self.table.get(slot).map_or(ConnId { slot, generation: 0 }, |entry| entry.id)
    }

    /// Listens for connections to `port`, at one of our addresses or at all of them.
    pub fn listen(
        &mut self,
        local: Option<IpAddr>,
        port: u16,
        options: ListenOptions,
    ) -> Result<ListenerId, ListenError> {
        if port == EVERY_PORT {
            return Err(ListenError::PortZero);
        }
        self.listen_at(local, port, options)
    }

    /// Hands the next waiting connection over to the application.
    pub fn accept(&mut self, now: Instant, listener: ListenerId) -> Option<ConnId> {
        let id = self.take_waiting(listener)?;
        let slot = self.table.resolve(id)?;
        let entry = self.table.get_mut(slot)?;
        entry.owner = Owner::Application;
        entry.listener = None;
        entry.conn.events.connected = false;
        self.touch(now, slot);
        Some(id)
    }

    /// Stops listening; connections that were not accepted are aborted.
    pub fn stop_listening(&mut self, now: Instant, listener: ListenerId) {
        let Some(key) = self.listeners.iter().find(|(_, l)| l.id == listener).map(|(key, _)| *key) else {
            return;
        };
        self.listeners.remove(&key);
        for slot in self.table.slots(|entry| entry.listener == Some(listener)) {
            self.with(now, slot, Connection::abort);
        }
    }

    /// Ends sending; the peer may go on (half-close).
    pub fn shutdown(&mut self, now: Instant, id: ConnId) -> Result<(), AbortError> {
        self.with_id(now, id, |conn, _| conn.shutdown_write())
    }

    /// Releases the connection: sent data is still delivered, and the connection ends by itself. If unread data is
    /// lost, the peer gets a RST.
    pub fn close(&mut self, now: Instant, id: ConnId) -> Result<(), AbortError> {
        self.let_go(now, id, Connection::leave)
    }

    /// Ends the connection at once, by a RST.
    pub fn abort(&mut self, now: Instant, id: ConnId) -> Result<(), AbortError> {
        self.let_go(now, id, Connection::abort)
    }

    fn let_go(
        &mut self,
        now: Instant,
        id: ConnId,
        act: impl FnOnce(&mut Connection, &mut Cx<'_>),
    ) -> Result<(), AbortError> {
        let slot = self.held(id).ok_or(AbortError::NoConnection)?;
        let entry = self.table.get_mut(slot).ok_or(AbortError::NoConnection)?;
        entry.owner = Owner::Nobody;
        if entry.is_withheld {
            // It has promised nothing that could still be delivered.
            return self.with(now, slot, Connection::abort).ok_or(AbortError::NoConnection);
        }
        self.with(now, slot, act).ok_or(AbortError::NoConnection)
    }

    /// The options in force: those of its [`TcpConfig`], until [`set_options`](Endpoint::set_options) replaces them.
    pub fn options(&self, id: ConnId) -> Result<Options, AbortError> {
        self.conn(id).map(Connection::options).ok_or(AbortError::NoConnection)
    }

    /// Replaces all options, even in mid-transfer. Fails for a connection that the program has released.
    pub fn set_options(&mut self, now: Instant, id: ConnId, options: Options) -> Result<(), AbortError> {
        self.with_id(now, id, |conn, cx| conn.set_options(cx, options))
    }

    /// The state of a connection, even if it ends by itself after [`close`](Endpoint::close).
    pub fn info(&self, now: Instant, id: ConnId) -> Result<Info, AbortError> {
        let entry = self.table.named(id).ok_or(AbortError::NoConnection)?;
        Ok(entry.conn.info(now, &entry.chosen.specs))
    }

    /// The two ends of a connection that has not been forgotten.
    pub fn flow(&self, id: ConnId) -> Option<Flow> {
        self.conn(id).map(Connection::flow)
    }

    /// The state of a connection, and the reason if it is over.
    pub fn state(&self, id: ConnId) -> Option<(StateName, Option<CloseReason>)> {
        self.conn(id).map(|conn| (conn.state(), conn.closed))
    }

    /// The rule that chose a connection's agents, by its place in the list at the connection's start. None if no rule
    /// matched, or if the application chose.
    pub fn rule_of(&self, id: ConnId) -> Option<usize> {
        match self.table.named(id)?.chosen.by {
            ChosenBy::Rule(nth) => Some(nth.into()),
            ChosenBy::Program | ChosenBy::Default => None,
        }
    }

    /// All connections that belong to the application.
    pub fn ids(&self) -> impl Iterator<Item = ConnId> + '_ {
        self.table.iter().filter(|(_, entry)| entry.owner == Owner::Application).map(|(_, entry)| entry.id)
    }

    /// The connection's number in the trace.
    pub fn trace_number(&self, id: ConnId) -> Option<u32> {
        self.conn(id).map(|conn| conn.number)
    }

    /// The connection with that number in the trace, whoever owns it. The search is linear.
    pub fn by_trace_number(&self, number: u32) -> Option<ConnId> {
        let mut numbered = self.table.iter().filter(|(_, entry)| entry.conn.number == number);
        numbered.next().map(|(_, entry)| entry.id)
    }

    pub(super) fn conn(&self, id: ConnId) -> Option<&Connection> {
        self.table.named(id).map(|entry| &entry.conn)
    }

    pub(super) fn with_id(
        &mut self,
        now: Instant,
        id: ConnId,
        act: impl FnOnce(&mut Connection, &mut Cx<'_>),
    ) -> Result<(), AbortError> {
        let slot = self.held(id).ok_or(AbortError::NoConnection)?;
        self.with(now, slot, act).ok_or(AbortError::NoConnection)
    }

    /// The slot of a connection that the application still holds.
    pub(super) fn held(&self, id: ConnId) -> Option<u32> {
        let slot = self.table.resolve(id)?;
        self.table.get(slot).filter(|entry| entry.owner == Owner::Application).map(|_| slot)
    }

    /// Applies a change to a connection and files its effects.
    pub(super) fn with<T>(
        &mut self,
        now: Instant,
        slot: u32,
        act: impl FnOnce(&mut Connection, &mut Cx<'_>) -> T,
    ) -> Option<T> {
        let entry = self.table.get_mut(slot)?;
        let mut cx = Cx::new(now, entry.conn.number, self.packets_in, self.account.memory, &mut self.trace);
        let done = act(&mut entry.conn, &mut cx);
        self.touch(now, slot);
        Some(done)
    }
}

// Figures of a connection that are cheap enough to be asked for after each packet.

impl Endpoint {
    /// The newest round trip that the connection has measured, and its number modulo 256. A caller that looks after
    /// each packet sees every one of them. None before the first.
    pub fn newest_rtt(&self, id: ConnId) -> Option<(Duration, u8)> {
        self.conn(id)?.newest_rtt()
    }

    /// The segments with data that the connection has sent, retransmissions included. It costs less than
    /// [`info`](Endpoint::info).
    pub fn segments_sent(&self, id: ConnId) -> Option<u64> {
        Some(self.conn(id)?.segments_sent())
    }
}

// Ends all connections of a host, in order or by force.

impl Endpoint {
    /// The state of each connection, also of those that end by themselves.
    pub fn states(&self) -> impl Iterator<Item = StateName> + '_ {
        self.table.iter().map(|(_, entry)| entry.conn.state())
    }

    /// Stops listening and releases every connection: sent data is still delivered. However many they are, none gives
    /// way to another any more.
    pub fn close_all(&mut self, now: Instant) {
        self.account.let_all_finish();
        let listeners: Vec<_> = self.listeners.values().map(|listener| listener.id).collect();
        for listener in listeners {
            self.stop_listening(now, listener);
        }
        let held: Vec<_> = self.ids().collect();
        for id in held {
            // The list is fresh, so the call cannot fail.
            let _ = self.close(now, id);
        }
    }

    /// Aborts the remaining connections, by a RST where the peer may still wait. Returns how many still lived.
    pub fn abort_all(&mut self, now: Instant) -> usize {
        let mut aborted = 0;
        for slot in self.table.slots(|_| true) {
            if let Some(entry) = self.table.get_mut(slot) {
                entry.owner = Owner::Nobody;
                let state = entry.conn.state();
                aborted += usize::from(!matches!(state, StateName::TimeWait | StateName::Closed));
            }
            self.with(now, slot, Connection::abort);
        }
        aborted
    }
}
