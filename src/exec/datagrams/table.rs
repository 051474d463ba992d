//! The flows of datagrams by their key. When no place is free, the one that has sent nothing for longest makes room.

use std::collections::BTreeMap;
use std::io;

use tokio::time::Instant;

/// Flows at a time.
const MOST: usize = 1024;

#[derive(Debug)]
pub(super) struct Table<K, F>(BTreeMap<K, Used<F>>);

#[derive(Debug)]
struct Used<F> {
    last: Instant,
    flow: F,
}

impl<K: Copy + Ord, F> Table<K, F> {
    pub(super) fn new() -> Table<K, F> {
        Table(BTreeMap::new())
    }

    /// Returns the flow of this key for a datagram that it carries now. One that is not there, or has ended, is opened.
    pub(super) fn used(
        &mut self,
        key: K,
        now: Instant,
        has_ended: impl Fn(&F) -> bool,
        open: impl FnOnce() -> io::Result<F>,
    ) -> io::Result<&F> {
        let open_before = self.0.remove(&key).filter(|used| !has_ended(&used.flow));
        let flow = match open_before {
            Some(used) => used.flow,
            None => {
                self.make_room(has_ended);
                open()?
            }
        };
        Ok(&self.0.entry(key).or_insert(Used { last: now, flow }).flow)
    }

    /// A flow that will be kept for longer has no claim to its place: a lookup that waits is used later than it.
    fn make_room(&mut self, has_ended: impl Fn(&F) -> bool) {
        if self.0.len() < MOST {
            return;
        }
        self.0.retain(|_, used| !has_ended(&used.flow));
        let silent = self.0.iter().min_by_key(|(_, used)| used.last).map(|(key, _)| *key);
        if let Some(silent) = silent.filter(|_| self.0.len() >= MOST) {
            self.0.remove(&silent);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A table in which each flow opens once, at milliseconds that only grow.
    struct Tried {
        table: Table<usize, bool>,
        now: Instant,
        opened: usize,
    }

    impl Tried {
        fn new() -> Tried {
            Tried { table: Table::new(), now: Instant::now(), opened: 0 }
        }

        fn send(&mut self, key: usize) {
            self.now += Duration::from_millis(1);
            let opened = &mut self.opened;
            let open = || {
                *opened += 1;
                Ok(false)
            };
            self.table.used(key, self.now, |ended| *ended, open).expect("it opens");
        }

        fn has(&self, key: usize) -> bool {
            self.table.0.contains_key(&key)
        }
    }

    #[test]
    fn lookups_beside_as_many_flows_as_there_are_places_keep_theirs() {
        let mut tried = Tried::new();
        (0..MOST).for_each(|flow| tried.send(flow));
        let lookups = MOST..MOST + 500;
        lookups.clone().for_each(|lookup| tried.send(lookup));
        assert!(lookups.into_iter().all(|lookup| tried.has(lookup)));
        assert_eq!(
            (0..MOST).filter(|flow| tried.has(*flow)).collect::<Vec<_>>(),
            (500..MOST).collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_flow_that_sends_again_keeps_its_place_and_its_socket() {
        let mut tried = Tried::new();
        (0..MOST).for_each(|flow| tried.send(flow));
        tried.send(0);
        assert_eq!(tried.opened, MOST);
        tried.send(MOST);
        assert_eq!((tried.has(0), tried.has(1), tried.table.0.len()), (true, false, MOST));
    }

    #[test]
    fn flows_that_have_ended_make_room_first() {
        let mut tried = Tried::new();
        (0..MOST).for_each(|flow| tried.send(flow));
        tried.table.0.get_mut(&900).expect("it was opened").flow = true;
        tried.send(MOST);
        assert_eq!((tried.has(0), tried.has(900), tried.table.0.len()), (true, false, MOST));
        tried.table.0.get_mut(&0).expect("it was opened").flow = true;
        tried.send(0);
        assert_eq!(tried.opened, MOST + 2, "one that has ended is opened anew");
    }
}
