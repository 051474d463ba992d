//! Requests that were seen (RFC 4728 §4.3): the last few of each of the latest origins.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

#[derive(Debug)]
pub(super) struct Requests {
    /// The origin whose last request is the oldest comes first.
    by_origin: VecDeque<(Ipv4Addr, VecDeque<(u16, Ipv4Addr)>)>,
    most_origins: usize,
    most_ids: usize,
}

impl Requests {
    pub(super) fn new(most_origins: u32, most_ids: u32) -> Requests {
        let (most_origins, most_ids) = (most_origins.max(1) as usize, most_ids.max(1) as usize);
        Requests { by_origin: VecDeque::new(), most_origins, most_ids }
    }

    /// Returns whether this request is new, and remembers it.
    pub(super) fn is_new(&mut self, origin: Ipv4Addr, id: u16, target: Ipv4Addr) -> bool {
        let known = self.by_origin.iter().position(|(known, _)| *known == origin);
        let mut ids = known.and_then(|n| self.by_origin.remove(n)).map_or_else(VecDeque::new, |(_, ids)| ids);
        let is_new = !ids.contains(&(id, target));
        if is_new {
            if ids.len() >= self.most_ids {
                ids.pop_front();
            }
            ids.push_back((id, target));
        }
        if self.by_origin.len() >= self.most_origins {
            self.by_origin.pop_front();
        }
        self.by_origin.push_back((origin, ids));
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_new_once_and_memory_is_bounded() {
        let mut requests = Requests::new(4, 3);
        let (node, target) = (Ipv4Addr::from_bits, Ipv4Addr::new(10, 0, 0, 9));
        assert!(requests.is_new(node(1), 7, target));
        assert!(!requests.is_new(node(1), 7, target));
        assert!(requests.is_new(node(1), 7, node(8)), "another target is another request");
        (0..10).for_each(|id| assert!(requests.is_new(node(1), 100 + id, target)));
        assert!(requests.is_new(node(1), 7, target), "long ago");
        for origin in 2..1_000 {
            assert!(requests.is_new(node(origin), 7, target));
        }
        assert!(requests.by_origin.len() <= 4 && requests.by_origin.iter().all(|(_, ids)| ids.len() <= 3));
        assert!(requests.is_new(node(1), 109, target));
    }
}
