//! The theory of saturated stations of several access categories by chance: the rules of EDCA, idle period by idle
//! period. It knows no medium and no receivers.

use super::turn::{MediumTurn, TurnSender};
use hopwise_air::phy::{Contention, Phy};
use hopwise_air::random::{NumberStream, Purpose};
use hopwise_air::saturated::PAYLOAD;

/// The stations of one category.
#[derive(Clone, Copy, Debug)]
pub(super) struct CategoryClass {
    pub(super) sender: TurnSender,
    pub(super) stations: u32,
    /// Tries of a packet that leaves alone.
    pub(super) tries: u8,
}

struct Player<'a> {
    class: &'a CategoryClass,
    of: Contention,
    aifs_ns: u64,
    /// The instant from which AIFS counts.
    from: u64,
    slots: u64,
    cw: u16,
    tries: u8,
    /// A block ACK was missing, and is requested.
    requests: bool,
    packets: u64,
}

impl Player<'_> {
    fn new<'a>(phy: &Phy, class: &'a CategoryClass, chance: &mut NumberStream) -> Player<'a> {
        let of = phy.contention(class.sender.category);
        let aifs_ns = phy.aifs_ns(class.sender.category);
        let (from, slots, cw, tries, requests, packets) = (0, 0, of.cw.0, 0, false, 0);
        let mut player = Player { class, of, aifs_ns, from, slots, cw, tries, requests, packets };
        player.draw(chance);
        player
    }

    fn draw(&mut self, chance: &mut NumberStream) {
        self.slots = u64::from(chance.below(u32::from(self.cw) + 1));
    }

    fn begins(&self, slot_ns: u64) -> u64 {
        self.from + self.aifs_ns + self.slots * slot_ns
    }

    fn turn(&self) -> MediumTurn {
        if self.requests { self.class.sender.request() } else { self.class.sender.data() }
    }

    /// Another one keeps the medium busy from `now` to `end`.
    fn wait(&mut self, now: u64, end: u64, slot_ns: u64) {
        // The slot in which the other one begins counts.
        if let Some(passed) = now.checked_sub(self.from + self.aifs_ns) {
            self.slots -= passed / slot_ns + 1;
        }
        self.from = self.from.max(end);
    }

    fn succeed(&mut self, end: u64, chance: &mut NumberStream) {
        self.packets += u64::from(self.turn().packets);
        (self.from, self.tries, self.cw, self.requests) = (end, 0, self.of.cw.0, false);
        self.draw(chance);
    }

    fn collide(&mut self, from: u64, chance: &mut NumberStream) {
        self.from = from;
        self.tries += 1;
        self.cw = (2 * self.cw + 1).min(self.of.cw.1);
        if self.class.sender.is_aggregated {
            (self.tries, self.requests) = (0, true);
        } else if self.tries == self.class.tries {
            (self.tries, self.cw) = (0, self.of.cw.0);
        }
        self.draw(chance);
    }
}

/// The payload that all stations of each category carry together, in kbit/s.
pub(super) fn kbps(phy: &Phy, classes: &[CategoryClass], seconds: u64) -> Vec<f64> {
    let mut chance = NumberStream::new(7, 1, Purpose::Traffic);
    let mut players = Vec::new();
    for class in classes {
        players.extend((0..class.stations).map(|_| Player::new(phy, class, &mut chance)));
    }
    let mut now = 0;
    while now < seconds * 1_000_000_000 {
        let begins = |player: &Player<'_>| player.begins(phy.slot_ns);
        now = players.iter().map(begins).min().unwrap_or(u64::MAX);
        let (mut senders, others): (Vec<_>, Vec<_>) =
            players.iter_mut().partition(|player| begins(player) == now);
        let end = if let [one] = &mut senders[..] {
            let end = now + one.turn().all_ns;
            one.succeed(end, &mut chance);
            end
        } else {
            let longest = senders.iter().map(|sender| sender.turn().first_ns).max();
            let end = now + longest.unwrap_or(0);
            for sender in senders {
                // It learns of the collision when its answer is overdue.
                let learns = now + sender.turn().first_ns + phy.answer_timeout_ns();
                sender.collide(end.max(learns), &mut chance);
            }
            end
        };
        others.into_iter().for_each(|other| other.wait(now, end, phy.slot_ns));
    }
    let of = |class: &CategoryClass| -> u64 {
        players.iter().filter(|player| std::ptr::eq(player.class, class)).map(|player| player.packets).sum()
    };
    classes.iter().map(|class| (of(class) * u64::from(PAYLOAD) * 8) as f64 * 1e6 / now as f64).collect()
}
