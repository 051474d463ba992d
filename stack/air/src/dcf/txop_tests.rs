//! Durations in a TXOP of several frames.

use hopwise_core::queue::Category;

use super::*;

const BYTES: u32 = 1_000;
const BEGINS: u64 = 1_000_000;

/// A frame that a station sends, with the end of its duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    by: u32,
    pub(super) kind: FrameKind,
    pub(super) to: u32,
    pub(super) from_ns: u64,
    pub(super) until_ns: u64,
    pub(super) nav_ns: u64,
    is_repeat: bool,
}

/// Adds the frames that stations have sent since.
pub(super) fn take_sent(dcf: &mut Dcf, all: &mut Vec<Sent>) {
    dcf.take_seen(&mut |event| {
        if event.sees == crate::frames::FrameEffect::Sends {
            let Frame { kind, to, duration_ns, is_repeat, .. } = event.frame;
            let (by, from_ns, until_ns) = (event.sender, event.from_ns, event.until_ns);
            let nav_ns = until_ns + duration_ns;
            all.push(Sent { by, kind, to, from_ns, until_ns, nav_ns, is_repeat });
        }
    });
}

fn phy() -> Phy {
    Phy::named("ht20-mcs7").expect("a profile")
}

/// The end of the first TXOP of voice, which begins at once on an idle medium.
fn limit() -> u64 {
    BEGINS + phy().contention(Category::Voice).txop_ns
}

/// Stations at these places. Two that are farther apart than 250 m do not sense each other.
fn dcf(places: &[f64], mac: MacConfig) -> Dcf {
    let positions: Vec<_> = places.iter().map(|x| Some(Position { x: *x, y: 0.0 })).collect();
    let radio = Radio { sense_w: Radio::default().receive_w, ..Radio::default() };
    let mut dcf = Dcf::new(phy(), mac, radio, &positions, 1);
    dcf.watch_frames();
    dcf
}

fn offered(to: u32, category: Category) -> Offered {
    Offered::plain(to, BYTES, category)
}

/// Lets station 0 send packets of voice to these stations in turn. Station 2 has one of best effort for station 1 once
/// it has received the first answer. Returns all frames in order.
fn played(dcf: &mut Dcf, mut voice: Vec<u32>) -> Vec<Sent> {
    let (mut all, mut is_other_due) = (Vec::new(), true);
    voice.reverse();
    dcf.give(BEGINS, 0, offered(voice.pop().expect("a packet"), Category::Voice));
    while dcf.next() < BEGINS + 20_000_000 {
        let now = dcf.next();
        dcf.fire();
        while dcf.next_news().is_some() {}
        if dcf.has_room_in(0, Category::Voice)
            && let Some(to) = voice.pop()
        {
            dcf.give(now, 0, offered(to, Category::Voice));
        }
        take_sent(dcf, &mut all);
        let is_answered = all.iter().any(|sent: &Sent| sent.kind == FrameKind::Ack && sent.until_ns < now);
        if is_answered && std::mem::take(&mut is_other_due) {
            dcf.give(now, 2, offered(1, Category::BestEffort));
        }
    }
    all
}

fn without_rts() -> MacConfig {
    MacConfig { rts_threshold: None, ..MacConfig::default() }
}

fn of(all: &[Sent], by: u32, kind: FrameKind) -> Vec<Sent> {
    all.iter().copied().filter(|sent| (sent.by, sent.kind) == (by, kind)).collect()
}

/// Those that hear a frame or its answer need not wait for what follows it.
#[test]
fn a_frame_of_a_txop_tells_of_its_own_exchange_and_the_next_follows_after_sifs() {
    let all = played(&mut dcf(&[0.0, 200.0, 200.0], without_rts()), vec![1; 6]);
    let (data, acks) = (of(&all, 0, FrameKind::Data), of(&all, 1, FrameKind::Ack));
    assert_eq!((data.len(), data.iter().filter(|sent| sent.is_repeat).count()), (6, 0), "{all:?}");
    for sent in &data {
        assert_eq!(sent.nav_ns, sent.until_ns + phy().sifs_ns + phy().ack_ns());
    }
    for (answer, next) in acks.iter().zip(&data[1..]) {
        assert_eq!(answer.nav_ns, answer.until_ns);
        assert!((next.from_ns - answer.until_ns).abs_diff(phy().sifs_ns) < 1_000, "{all:?}");
    }
    assert!(acks[5].until_ns < limit(), "{all:?}");
}

/// Two packets are over long before the limit.
#[test]
fn after_the_last_frame_of_a_txop_others_wait_for_their_gap_alone() {
    let all = played(&mut dcf(&[0.0, 200.0, 200.0], without_rts()), vec![1; 2]);
    let last = of(&all, 1, FrameKind::Ack)[1];
    let other = of(&all, 2, FrameKind::Data)[0];
    let window = u64::from(phy().contention(Category::BestEffort).cw.0) * phy().slot_ns;
    let waited = other.from_ns - last.until_ns - phy().aifs_ns(Category::BestEffort);
    assert!(waited <= window + 1_000 && other.from_ns < limit(), "{other:?} {last:?}");
}

/// The NAV of the one before is over by then.
#[test]
fn each_frame_of_a_txop_has_its_own_rts() {
    let all = played(&mut dcf(&[0.0, 200.0, 200.0], MacConfig::default()), vec![1; 3]);
    let data = of(&all, 0, FrameKind::Data);
    assert_eq!((of(&all, 0, FrameKind::Rts).len(), data.len()), (3, 3), "{all:?}");
    assert!(data[2].until_ns < limit(), "one TXOP has all: {all:?}");
}
