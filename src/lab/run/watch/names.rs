//! Names of an endpoint's connections, for the comments of a capture that another thread writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use hopwise_core::Endpoint;
use hopwise_core::trace::TraceEvent;
use hopwise_host::{ConnNames, Names};
use parking_lot::Mutex;

/// The largest number of look-ups for a connection whose hops are unknown.
const MOST_ASKED: u8 = 8;

/// The known names of connections, and the number of look-ups: hops may be known later than the rest.
type Known = BTreeMap<u32, (Option<ConnNames>, u8)>;

#[derive(Clone, Debug, Default)]
pub(crate) struct KnownNames(Arc<Mutex<Known>>);

impl KnownNames {
    pub(crate) fn namer(&self) -> Names {
        let known = self.clone();
        Box::new(move |conn: u32| known.0.lock().get(&conn).and_then(|(names, _)| names.clone()))
    }

    /// Learns the names of the event's connection.
    pub(crate) fn learn(&self, endpoint: &Endpoint, event: &TraceEvent) {
        if event.conn == 0 {
            return;
        }
        let mut known = self.0.lock();
        let (names, asked) = known.entry(event.conn).or_default();
        if *asked < MOST_ASKED && names.as_ref().is_none_or(|names| names.hops.is_none()) {
            *asked += 1;
            *names = ConnNames::of(event.now, endpoint, event.conn).or(names.take());
        }
    }
}
