//! Learns from frames between other nodes (RFC 4728 §3.3.1), and reports the shortcuts that they show (§3.4.3).

use std::net::IpAddr;

use hopwise_core::{Instant, Rx};

use super::cache::Learned;
use super::options::{DsrOption, Reply};
use super::parcel::{Parcel, Walk};
use super::{Dsr, MOST, is_host};

impl Dsr {
    pub(super) fn overhear(&mut self, now: Instant, rx: &Rx<'_>) {
        let Ok(Some(parcel)) = Parcel::read(rx.packet) else { return };
        let Ok(Some(walk)) = parcel.walk() else { return };
        // A packet that names another sender than its frame is not believed.
        let is_heard = rx.from == Some(IpAddr::V4(walk.sender()));
        if !is_heard || !walk.nodes.iter().all(|node| is_host(*node)) {
            return;
        }
        self.note_link(walk.sender(), rx.link);
        self.drop_needless_answers(&walk);
        self.heed(now, &parcel);
        let from = walk.to - 1;
        let back = walk.back_from(walk.to);
        match walk.nodes.iter().position(|node| *node == self.desk.own) {
            None => {
                self.cache.add(now, &walk.nodes[from..], Learned::Overheard);
                self.cache.add(now, &back, Learned::Overheard);
            }
            Some(at) if at > walk.to => {
                self.cache.add(now, &walk.nodes[at + 1..], Learned::Overheard);
                self.cache.add(now, &back, Learned::Overheard);
                self.tell_of_shortcut(now, &walk, at);
            }
            // We have passed it on ourselves.
            Some(_) => {}
        }
    }

    /// The packet comes here by more hops than it needs. Its source learns of that, once in a while (§3.4.3).
    fn tell_of_shortcut(&mut self, now: Instant, walk: &Walk, at: usize) {
        if walk.salvage > 0 {
            return; // The route begins at the salvaging node, not at the source.
        }
        let key = (walk.nodes[0], walk.sender());
        self.shortcuts.retain(|_, until| *until > now);
        if self.shortcuts.contains_key(&key) || self.shortcuts.len() >= MOST {
            return;
        }
        self.shortcuts.insert(key, now + self.settings.grat_reply_holdoff);
        let addresses = walk.nodes[1..walk.to].iter().chain(&walk.nodes[at..]).copied().collect();
        let reply = DsrOption::Reply(Reply { is_last_external: false, addresses });
        if let Some(order) = self.control(&walk.back_from(walk.to), vec![reply]) {
            self.desk.outbox.push(order);
        }
    }

    /// Drops replies to an origin that already uses a route no longer than ours (§8.2.5).
    fn drop_needless_answers(&mut self, walk: &Walk) {
        let (Some(origin), Some(target)) = (walk.nodes.first(), walk.nodes.last()) else { return };
        let hops = walk.nodes.len() - 1;
        self.pending
            .retain(|pending| (pending.origin, pending.target) != (*origin, *target) || pending.hops < hops);
    }
}
