//! Access categories, held to a model of their rules: its random numbers, its order of events and its code are its own.

use hopwise_core::queue::Category;

use super::{Dcf, DcfNews, EVERYONE, MacConfig, Offered};
use crate::medium::{Position, Radio};
use crate::phy::Contention;
use crate::phy::{Band, Phy};
use crate::random::{NumberStream, Purpose};

const BYTES: u32 = 1_000;
const SECONDS: u64 = 40;
/// The model is quick.
const MODELLED_SECONDS: u64 = 800;
const TRIES: u32 = 7;

/// Senders by their station and category: all have packets for station 0 at all times.
type Senders<'a> = &'a [(u32, Category)];

/// Packets a second that each sender delivers, and the internal collisions of a packet.
fn measured(phy: Phy, senders: Senders<'_>) -> (Vec<f64>, f64) {
    let mac = MacConfig { rts_threshold: None, ..MacConfig::default() };
    let positions = [(0.0, 0.0), (100.0, 0.0), (0.0, 100.0)].map(|(x, y)| Some(Position { x, y }));
    let mut dcf = Dcf::new(phy, mac, Radio::default(), &positions, 7);
    let mut came = vec![0_u64; senders.len()];
    let fill = |dcf: &mut Dcf, now: u64| {
        for (station, category) in senders {
            if dcf.has_room_in(*station, *category) {
                let offered = Offered::plain(0, BYTES, *category);
                dcf.give(now, *station, offered);
            }
        }
    };
    fill(&mut dcf, 0);
    while dcf.next() < SECONDS * 1_000_000_000 {
        let now = dcf.next();
        dcf.fire();
        while let Some(news) = dcf.next_news() {
            if let DcfNews::Arrived { from, number, .. } = news {
                let of = (from, super::category_of(number));
                came[senders.iter().position(|sender| *sender == of).expect("a sender")] += 1;
            }
        }
        fill(&mut dcf, now);
    }
    let collisions: u64 = [1, 2].map(|station| dcf.stats(station).internal_collisions).iter().sum();
    let all: u64 = came.iter().sum();
    (came.iter().map(|came| *came as f64 / SECONDS as f64).collect(), collisions as f64 / all as f64)
}

/// A sender of the model.
struct Modelled {
    station: u32,
    category: Category,
    of: Contention,
    slots: u32,
    cw: u32,
    tries: u32,
    came: u64,
}

impl Modelled {
    fn new(phy: &Phy, (station, category): (u32, Category), stream: &mut NumberStream) -> Modelled {
        let of = phy.contention(category);
        let mut new = Modelled { station, category, of, slots: 0, cw: of.cw.0.into(), tries: 0, came: 0 };
        new.draw(stream);
        new
    }

    fn draw(&mut self, stream: &mut NumberStream) {
        self.slots = stream.below(self.cw + 1);
    }

    /// The slots after SIFS at which it would send.
    fn runs_out(&self) -> u32 {
        u32::from(self.of.aifsn) + self.slots
    }

    /// Another one has sent at that slot.
    fn wait(&mut self, sent_at: u32) {
        let gap = u32::from(self.of.aifsn);
        self.slots -= if sent_at < gap { 0 } else { sent_at - gap + 1 };
    }

    fn collide(&mut self, is_counted: bool, stream: &mut NumberStream) {
        self.tries += u32::from(is_counted);
        self.cw = (2 * self.cw + 1).min(self.of.cw.1.into());
        if self.tries == TRIES {
            (self.tries, self.cw) = (0, self.of.cw.0.into());
        }
        self.draw(stream);
    }

    /// Fills its TXOP with frames, and returns how long that takes.
    fn send(&mut self, phy: &Phy, stream: &mut NumberStream) -> u64 {
        let exchange = phy.data_ns(BYTES) + phy.sifs_ns + phy.ack_ns();
        let frames = ((self.of.txop_ns + phy.sifs_ns) / (exchange + phy.sifs_ns)).max(1);
        (self.came, self.cw, self.tries) = (self.came + frames, self.of.cw.0.into(), 0);
        self.draw(stream);
        time_of(phy, frames, exchange)
    }
}

/// The time of this number of exchanges.
fn time_of(phy: &Phy, frames: u64, exchange: u64) -> u64 {
    // Frames take a third of a microsecond to cross 100 m.
    frames * (exchange + 2 * 334) + (frames - 1) * phy.sifs_ns
}

/// The same by the standard's rules, idle time by idle time.
fn modelled(phy: Phy, senders: Senders<'_>) -> (Vec<f64>, f64) {
    let mut stream = NumberStream::new(99, 3, Purpose::Rates);
    let mut all: Vec<Modelled> =
        senders.iter().map(|sender| Modelled::new(&phy, *sender, &mut stream)).collect();
    let (mut now, mut internal) = (0, 0_u64);
    while now < MODELLED_SECONDS * 1_000_000_000 {
        let first = all.iter().map(Modelled::runs_out).min().expect("a sender");
        now += phy.sifs_ns + u64::from(first) * phy.slot_ns;
        let (over, others): (Vec<&mut Modelled>, Vec<_>) =
            all.iter_mut().partition(|one| one.runs_out() == first);
        others.into_iter().for_each(|one| one.wait(first));
        // The greatest category of a station sends.
        let sends: Vec<_> = over.iter().map(|one| (one.station, one.category)).collect();
        let (mut winners, losers): (Vec<_>, Vec<_>) = over.into_iter().partition(|one| {
            sends
                .iter()
                .filter(|(station, _)| *station == one.station)
                .all(|(_, other)| *other <= one.category)
        });
        internal += losers.len() as u64;
        losers.into_iter().for_each(|one| one.collide(false, &mut stream));
        if let [winner] = &mut winners[..] {
            now += winner.send(&phy, &mut stream);
        } else {
            now += phy.data_ns(BYTES) + phy.answer_timeout_ns();
            winners.into_iter().for_each(|one| one.collide(true, &mut stream));
        }
    }
    let came: u64 = all.iter().map(|one| one.came).sum();
    let rates = all.iter().map(|one| one.came as f64 / MODELLED_SECONDS as f64).collect();
    (rates, internal as f64 / came as f64)
}

fn assert_alike(phy: Phy, senders: Senders<'_>) {
    let (ours, theirs) = (measured(phy, senders), modelled(phy, senders));
    let most = theirs.0.iter().copied().fold(0.0, f64::max);
    for (ours, theirs) in ours.0.iter().zip(&theirs.0) {
        // In comparison with voice, windows of other categories are so wide that 40 s see few of them: the model itself
        // then scatters by 14 % (standard deviation of 30 runs).
        let allowed = if *theirs < most / 20.0 { 0.45 * theirs + 1.0 } else { 0.02 * theirs };
        assert!((ours - theirs).abs() < allowed, "{senders:?}: {ours:.1} and not {theirs:.1}");
    }
    let tolerance = 0.002 + theirs.1 * 0.05;
    assert!((ours.1 - theirs.1).abs() < tolerance, "{senders:?}: {} and not {}", ours.1, theirs.1);
}

/// AIFS, half a window of slots, and the exchanges for which the TXOP has room.
#[test]
fn a_category_alone_carries_what_its_gaps_and_its_txop_leave() {
    for band in [Band::Ghz2, Band::Ghz5] {
        let phy = Phy::named("ht20-mcs7").expect("a profile").in_band(band);
        for category in Category::ALL {
            let exchange = phy.data_ns(BYTES) + phy.sifs_ns + phy.ack_ns();
            let limit = phy.contention(category).txop_ns;
            let frames = ((limit + phy.sifs_ns) / (exchange + phy.sifs_ns)).max(1);
            let gaps = phy.aifs_ns(category) + u64::from(phy.contention(category).cw.0) * phy.slot_ns / 2;
            let each = gaps + time_of(&phy, frames, exchange);
            let expected = frames as f64 * 1e9 / each as f64;
            let (came, _) = measured(phy, &[(1, category)]);
            assert!((came[0] / expected - 1.0).abs() < 0.005, "{category:?}: {came:?} and not {expected}");
            if limit > 0 {
                assert!(frames > 1, "the limit is worth something");
            }
        }
    }
}

#[test]
fn stations_of_different_categories_share_as_the_standards_rules_say() {
    let phy = Phy::named("ht20-mcs7").expect("a profile");
    for pair in [
        [Category::BestEffort, Category::BestEffort],
        [Category::BestEffort, Category::Background],
        [Category::Video, Category::BestEffort],
        [Category::Voice, Category::BestEffort],
        [Category::Voice, Category::Video],
    ] {
        assert_alike(phy, &[(1, pair[0]), (2, pair[1])]);
    }
}

#[test]
fn the_greater_category_of_a_station_goes_first_where_both_could() {
    let phy = Phy::named("ht20-mcs7").expect("a profile");
    for pair in [
        [Category::BestEffort, Category::Background],
        [Category::Video, Category::BestEffort],
        [Category::Voice, Category::BestEffort],
        [Category::Voice, Category::Video],
    ] {
        let (_, collisions) = measured(phy, &pair.map(|category| (1, category)));
        assert!(collisions > 0.001, "{pair:?}");
        assert_alike(phy, &pair.map(|category| (1, category)));
    }
    let all = Category::ALL.map(|category| (1, category));
    assert_alike(phy, &all);
    assert_alike(
        phy,
        &[(1, Category::Voice), (1, Category::BestEffort), (2, Category::Video), (2, Category::Background)],
    );
}

/// Aggregates of two categories cross a lossy link: each packet arrives once, and in the order of its category.
#[test]
fn packets_of_each_category_arrive_once_and_in_order() {
    let phy = Phy::named("ht20-mcs3").expect("a profile");
    let mac = MacConfig { rts_threshold: None, ampdu: Some(64), ..MacConfig::default() };
    // Hidden from each other.
    let positions = [0.0, 240.0, 480.0].map(|x| Some(Position { x, y: 0.0 }));
    let radio = Radio { sense_w: Radio::default().receive_w, ..Radio::default() };
    let mut dcf = Dcf::new(phy, mac, radio, &positions, 3);
    let categories = [Category::Video, Category::BestEffort, Category::Background];
    let mut given = [[0_u32; 4]; 3];
    let mut fill = |dcf: &mut Dcf, now: u64| {
        for station in [0, 2] {
            for category in categories {
                let offered = Offered::plain(1, 500, category);
                let count = &mut given[station as usize][category.index()];
                if dcf.has_room_in(station, category) {
                    dcf.give(now, station, offered);
                    *count += 1;
                }
                while dcf.room_for_more_in(station, category).is_some_and(|room| room.bytes >= 500) {
                    dcf.give_more(now, station, offered);
                    *count += 1;
                }
            }
        }
    };
    fill(&mut dcf, 0);
    let mut last = [[0_u32; 4]; 3];
    let mut came = 0;
    while dcf.next() < 10_000_000_000 {
        let now = dcf.next();
        dcf.fire();
        while let Some(news) = dcf.next_news() {
            if let DcfNews::Arrived { from, number, .. } = news {
                let last = &mut last[from as usize][super::category_of(number).index()];
                assert!(*last == 0 || number > *last, "{number} after {last}");
                *last = number;
                came += 1;
            }
        }
        fill(&mut dcf, now);
    }
    assert!(came > 10_000 && given[0][2] > 1_000, "{came} {given:?}");
}

/// The air is quiet afterwards: no later frame makes the station think of it.
#[test]
fn a_packet_that_comes_during_the_last_exchange_of_another_category_is_sent() {
    let phy = Phy::named("ht20-mcs7").expect("a profile");
    for ampdu in [None, Some(64)] {
        let mac = MacConfig { ampdu, ..MacConfig::default() };
        let positions = [0.0, 100.0].map(|x| Some(Position { x, y: 0.0 }));
        let mut dcf = Dcf::new(phy, mac, Radio::default(), &positions, 1);
        let offered = |to, category| Offered::plain(to, BYTES, category);
        dcf.give(0, 0, offered(1, Category::BestEffort));
        if ampdu.is_some() {
            dcf.give_more(0, 0, offered(1, Category::BestEffort));
        }
        while dcf.stats(0).frames_sent.data == 0 {
            dcf.fire();
        }
        dcf.give(dcf.now, 0, offered(EVERYONE, Category::Voice));
        dcf.play(1_000_000_000, |_, _, _| {});
        assert_eq!(dcf.stats(0).frames_sent.data, 2, "{ampdu:?}");
    }
}
