//! The hash of the connection table: keyed, so that peers cannot choose which entries collide.

use std::fmt;
use std::hash::BuildHasher;

use siphasher::sip::SipHasher13;

/// SipHash-1-3: it runs for every packet, and outsiders never see a hash.
#[derive(Clone, Copy)]
pub(crate) struct KeyedState {
    key0: u64,
    key1: u64,
}

impl KeyedState {
    pub(super) fn new(key0: u64, key1: u64) -> KeyedState {
        KeyedState { key0, key1 }
    }
}

impl BuildHasher for KeyedState {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.key0, self.key1)
    }
}

/// Keeps the keys out of logs.
impl fmt::Debug for KeyedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedState").finish_non_exhaustive()
    }
}
