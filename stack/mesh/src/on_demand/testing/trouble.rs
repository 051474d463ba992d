//! Trouble that a seed draws, and the checks that no loop forms in it and that all is well after it.

use std::net::IpAddr;
use std::time::Duration;

use super::{Net, address, node_of};

impl Net {
    /// Ends the node in order, and starts it again: it goes on from its numbers, if it has some.
    pub(crate) fn restart(&mut self, node: usize) {
        let numbers = self.routers[node].numbers();
        self.reboot(node);
        self.routers[node].go_on_from(self.now, &numbers);
    }

    /// From every node, the path to every other comes to an end.
    pub(crate) fn assert_free_of_loops(&self) {
        for dst in 0..self.routers.len() {
            for from in (0..self.routers.len()).filter(|from| *from != dst) {
                let (mut at, mut steps) = (from, 0);
                while let Some((_, IpAddr::V4(next))) =
                    self.routers[at].next_hop(self.now, address(dst).into())
                {
                    at = node_of(next);
                    steps += 1;
                    assert!(
                        steps <= self.routers.len(),
                        "seed {}: a loop from {from} to {dst} at {}\n{}",
                        self.seed,
                        self.now,
                        self.log.lines().rev().take(40).collect::<Vec<_>>().join("\n")
                    );
                    if at == dst {
                        break;
                    }
                }
            }
        }
    }

    /// Moves, losses, one-way links, restarts and packets, drawn from the seed; no loop ever forms.
    pub(crate) fn stir(&mut self) {
        let nodes = self.routers.len();
        for _ in 0..60 {
            for _ in 0..3 {
                let (a, b) = (self.below(nodes), self.below(nodes));
                match self.below(10) {
                    0..5 if a != b => self.connect(a, b),
                    5 if a != b => self.connect_one_way(a, b),
                    6 | 7 => self.cut(a, b),
                    8 if self.below(6) == 0 => self.isolate(a),
                    9 if self.below(6) == 0 => {
                        if a % 2 == 0 {
                            self.reboot(a);
                        } else {
                            self.restart(a);
                        }
                    }
                    _ => {}
                }
            }
            for _ in 0..4 {
                let (from, to) = (self.below(nodes), self.below(nodes));
                if from != to {
                    self.send(from, to);
                }
            }
            let time = Duration::from_millis(50 + self.below(2_000) as u64);
            self.run(self.now + time, &mut Net::assert_free_of_loops);
        }
    }

    /// Connects all nodes in a chain again: then everything arrives.
    pub(crate) fn heal(&mut self) {
        self.clear_links();
        self.lost_permille = 0;
        (1..self.routers.len()).for_each(|node| self.connect(node - 1, node));
        self.run(self.now + Duration::from_secs(40), &mut Net::assert_free_of_loops);
        let last = self.routers.len() - 1;
        self.delivered.clear();
        for _ in 0..10 {
            self.send(0, last);
            self.run(self.now + Duration::from_secs(2), &mut Net::assert_free_of_loops);
        }
        let arrived = self.delivered.len();
        assert!(arrived >= 8, "{arrived} of 10 arrived after all was well\n{}", self.log);
    }
}
