//! Destinations whose routes may have changed, for those that keep a copy of the table.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// Nothing is written down before somebody asks for the first time.
#[derive(Debug, Default)]
pub(crate) struct Changes(Option<BTreeSet<Ipv4Addr>>);

impl Changes {
    pub(crate) fn note(&mut self, dst: Ipv4Addr) {
        if let Some(noted) = &mut self.0 {
            noted.insert(dst);
        }
    }

    /// What was noted since the last time; `None` at the first time, when all of the table is new.
    pub(crate) fn take(&mut self) -> Option<BTreeSet<Ipv4Addr>> {
        self.0.replace(BTreeSet::new())
    }
}
