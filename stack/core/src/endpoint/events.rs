//! Events for the application. Each kind is queued at most once for each connection, and stale entries are swept out,
//! so the number of connections bounds the queue.

use super::Endpoint;
use super::table::Owner;
use super::{ConnId, ListenerId};
use crate::tcp::CloseReason;

/// News that a program fetches with [`Endpoint::poll_event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection waits to be [accepted](Endpoint::accept).
    Incoming(ListenerId),
    /// News of a connection that the program has opened or accepted.
    Connection(ConnId, EventKind),
}

/// The news of one connection. `Closed` is the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The handshake is over.
    Connected,
    /// New data is in order, or the peer's FIN came. [`Endpoint::recv`] or [`Endpoint::peek`] reads it.
    Readable,
    /// There is room again after a send that did not fit.
    Writable,
    /// Urgent data is coming or here; [`Endpoint::urgent_unread`] returns its length (RFC 9293 MUST-32).
    Urgent,
    /// The peer sends no more.
    PeerClosed,
    /// Segments are retransmitted repeatedly without an answer (RFC 9293 §3.8.3, R1).
    Struggling,
    /// An ICMP error came, or the next hop did not answer. The connection lives on.
    SoftError {
        /// 3 (unreachable), 11 (time exceeded) or 12 (parameter problem), over IPv6 too.
        icmp_type: u8,
        /// As in the message: over IPv6 it is ICMPv6's code.
        code: u8,
    },
    /// The connection is over, for this reason.
    Closed(CloseReason),
}

pub(super) enum News {
    Listener(ListenerId),
    Connection(ConnId),
}

impl Endpoint {
    /// The next event. Call it until it returns `None`.
    pub fn poll_event(&mut self) -> Option<Event> {
        while let Some(news) = self.news.pop_front() {
            match news {
                News::Listener(id) => {
                    if self.hear_of_waiting(id) {
                        return Some(Event::Incoming(id));
                    }
                }
                News::Connection(id) => {
                    if let Some(event) = self.next_event_of(id) {
                        return Some(event);
                    }
                }
            }
        }
        None
    }

    /// Queues news. Stale entries are swept out, even if the program never polls.
    pub(super) fn push_news(&mut self, news: News) {
        let (table, listeners) = (&self.table, &self.listeners);
        self.news.push_back(news, |news| match news {
            News::Listener(id) => listeners.values().any(|listener| listener.id == *id),
            News::Connection(id) => table.named(*id).is_some(),
        });
    }

    fn next_event_of(&mut self, id: ConnId) -> Option<Event> {
        let entry = self.table.get_mut(id.slot).filter(|entry| entry.id == id)?;
        if entry.owner != Owner::Application {
            return None;
        }
        let events = &mut entry.conn.events;
        let kind = if std::mem::take(&mut events.connected) {
            EventKind::Connected
        } else if std::mem::take(&mut events.urgent) {
            EventKind::Urgent
        } else if std::mem::take(&mut events.readable) {
            EventKind::Readable
        } else if std::mem::take(&mut events.writable) {
            EventKind::Writable
        } else if std::mem::take(&mut events.peer_closed) {
            EventKind::PeerClosed
        } else if std::mem::take(&mut events.struggling) {
            EventKind::Struggling
        } else if let Some((icmp_type, code)) = events.icmp.take() {
            EventKind::SoftError { icmp_type, code }
        } else if std::mem::take(&mut events.closed) {
            EventKind::Closed(entry.conn.closed.unwrap_or(CloseReason::Finished))
        } else {
            entry.is_reported = false;
            return None;
        };
        entry.is_reported = entry.conn.events.any();
        if entry.is_reported {
            self.news.put_first(News::Connection(id));
        }
        Some(Event::Connection(id, kind))
    }
}
