//! The NAV over a TXOP of several frames, and its end.

use hopwise_core::queue::Category;

use super::*;

const BYTES: u32 = 1_000;
const BEGINS: u64 = 1_000_000;

/// A frame that a station sends, with the end of its duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sent {
    by: u32,
    kind: FrameKind,
    to: u32,
    from_ns: u64,
    until_ns: u64,
    nav_ns: u64,
    is_repeat: bool,
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
    Offered { to, bytes: BYTES, load: Load::Other, queued_at: None, category }
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
        dcf.take_seen(&mut |event| {
            if event.sees == crate::frames::Sees::Sends {
                let Frame { kind, to, duration_ns, is_repeat, .. } = event.frame;
                let (by, from_ns, until_ns) = (event.sender, event.from_ns, event.until_ns);
                let nav_ns = until_ns + duration_ns;
                all.push(Sent { by, kind, to, from_ns, until_ns, nav_ns, is_repeat });
            }
        });
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

/// A station that hears the answers alone waits until the TXOP ends, and spoils no frame of it.
#[test]
fn durations_reach_to_the_end_of_the_txop_and_answers_take_them_over() {
    let all = played(&mut dcf(&[0.0, 200.0, 400.0], without_rts()), vec![1; 6]);
    let (data, acks) = (of(&all, 0, FrameKind::Data), of(&all, 1, FrameKind::Ack));
    assert_eq!((data.len(), data.iter().filter(|sent| sent.is_repeat).count()), (6, 0), "{all:?}");
    for sent in data.iter().chain(&acks[..6]) {
        assert!(sent.nav_ns.abs_diff(limit()) < 2_000, "{sent:?} and not {}", limit());
    }
    let other = of(&all, 2, FrameKind::Data);
    assert!(other.len() == 1 && other[0].from_ns > limit(), "{other:?} after {}", limit());
}

/// Packets are over before the limit.
#[test]
fn a_cf_end_lets_go_on_who_hears_it_and_the_hidden_wait() {
    for (third, is_hidden) in [(200.0, false), (400.0, true)] {
        let all = played(&mut dcf(&[0.0, 200.0, third], without_rts()), vec![1; 2]);
        let ends = of(&all, 0, FrameKind::CfEnd);
        let last = of(&all, 1, FrameKind::Ack)[1];
        assert_eq!((ends.len(), ends[0].to, ends[0].nav_ns), (1, EVERYONE, ends[0].until_ns));
        assert_eq!(ends[0].until_ns - ends[0].from_ns, phy().cf_end_ns());
        assert!(
            (ends[0].from_ns - last.until_ns).abs_diff(phy().sifs_ns) < 1_000,
            "SIFS after the last answer"
        );
        let other = of(&all, 2, FrameKind::Data)[0];
        assert_eq!(other.from_ns > limit(), is_hidden, "{other:?} {}", limit());
        assert!(other.from_ns >= ends[0].until_ns + phy().aifs_ns(Category::BestEffort));
    }
}

/// A frame of best effort is a TXOP of its own.
#[test]
fn without_a_limit_a_frame_tells_of_its_own_exchange_and_nothing_ends_it() {
    let mut dcf = dcf(&[0.0, 200.0, 400.0], without_rts());
    let all = played(&mut dcf, vec![1]);
    let other = of(&all, 2, FrameKind::Data)[0];
    assert_eq!(other.nav_ns, other.until_ns + phy().sifs_ns + phy().ack_ns());
    let answer = of(&all, 1, FrameKind::Ack)[1];
    assert_eq!((answer.nav_ns, of(&all, 2, FrameKind::CfEnd).len()), (answer.until_ns, 0));
}

/// The second packet finds no station. The third is announced, to a station whose NAV the first has set.
#[test]
fn the_holder_of_a_txop_is_answered_by_those_that_wait_for_its_end() {
    let mac = MacConfig { short_retries: 1, long_retries: 1, ..MacConfig::default() };
    let all = played(&mut dcf(&[0.0, 200.0, 100.0, 900.0], mac), vec![2, 3, 1]);
    let (asked, answered) = (of(&all, 0, FrameKind::Rts), of(&all, 1, FrameKind::Cts));
    let asked: Vec<_> = asked.into_iter().filter(|sent| sent.to == 1).collect();
    let answered: Vec<_> = answered.into_iter().filter(|sent| sent.to == 0).collect();
    assert_eq!((asked.len(), answered.len()), (1, 1), "{all:?}");
    assert!(answered[0].until_ns < limit(), "within the first TXOP: {answered:?} {}", limit());
}
