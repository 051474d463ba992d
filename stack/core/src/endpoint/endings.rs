//! Ends all connections of a host, in order or by force.

use super::Endpoint;
use super::table::Owner;
use crate::Instant;
use crate::tcp::connection::Connection;
use crate::trace::StateName;

impl Endpoint {
    /// The state of each connection, also of those that end by themselves.
    pub fn states(&self) -> impl Iterator<Item = StateName> + '_ {
        self.table.iter().map(|(_, entry)| entry.conn.state())
    }

    /// Stops listening and releases every connection: sent data is still delivered. However many they are, none gives
    /// way to another any more.
    pub fn close_all(&mut self, now: Instant) {
        self.account.let_all_finish();
        let listeners: Vec<_> = self.listeners.values().map(super::listen::Listener::id).collect();
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
        let slots: Vec<u32> = self.table.iter().map(|(slot, _)| slot).collect();
        let mut aborted = 0;
        for slot in slots {
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
