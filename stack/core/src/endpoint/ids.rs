//! Names of connections and listeners.

/// Names a connection. Once the application has released it, the name only serves queries, until the connection has
/// ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

impl ConnId {
    /// A small number that only one connection of an endpoint has at a time.
    pub fn slot(self) -> usize {
        self.slot as usize
    }
}

/// Names a listener; numbers are not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(pub(super) u32);
