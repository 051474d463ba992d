//! Destinations whose routes may have changed, for those that keep a copy of the table.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// It notes changes only after the first `take`.
#[derive(Debug, Default)]
pub(crate) struct Changes(Option<BTreeSet<Ipv4Addr>>);

impl Changes {
    pub(crate) fn note(&mut self, dst: Ipv4Addr) {
        if let Some(noted) = &mut self.0 {
            noted.insert(dst);
        }
    }

    /// The destinations noted since the last call; `None` at the first call, when the whole table is new.
    pub(crate) fn take(&mut self) -> Option<BTreeSet<Ipv4Addr>> {
        self.0.replace(BTreeSet::new())
    }
}
