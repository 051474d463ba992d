use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

const NOW: Instant = Instant::from_secs(5);

fn key(id: u32) -> FragmentKey {
    let host = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
    FragmentKey { src: host(1), dst: host(2), protocol: 6, id }
}

fn key_v6(id: u32) -> FragmentKey {
    let host = |text: &str| text.parse().unwrap();
    FragmentKey { src: host("fd00::1"), dst: host("fd00::2"), protocol: 6, id }
}

fn default() -> Reassembler {
    Reassembler::new(Limits::default())
}

/// A fragment of which only place and content matter.
fn put(
    all: &mut Reassembler,
    id: u32,
    offset: u16,
    len: usize,
    more: bool,
    fill: u8,
) -> Result<Option<Vec<u8>>, DropReason> {
    all.insert(NOW, key(id), offset, more, &vec![fill; len], b"quote")
}

fn expired(all: &mut Reassembler, now: Instant) -> Vec<(u32, Option<Vec<u8>>)> {
    let mut seen = Vec::new();
    all.expire(now, &mut |key, quote| seen.push((key.id, quote.map(<[u8]>::to_vec))));
    seen
}

#[test]
fn fragments_in_either_order_give_the_datagram() {
    for last_first in [false, true] {
        let mut all = default();
        let mut parts = [(0, 16, true, 1), (16, 3, false, 2)];
        if last_first {
            parts.reverse();
        }
        let [a, b] = parts.map(|(offset, len, more, fill)| put(&mut all, 7, offset, len, more, fill));
        assert_eq!(a, Ok(None));
        assert_eq!(b, Ok(Some([vec![1; 16], vec![2; 3]].concat())));
        assert_eq!((all.datagrams(), all.held_bytes()), (0, 0));
        assert_eq!(all.next_deadline(), None);
    }
}

#[test]
fn keys_that_differ_in_anything_stay_apart() {
    let others = [
        FragmentKey { src: key(0).dst, ..key(7) },
        FragmentKey { dst: key(0).src, ..key(7) },
        FragmentKey { protocol: 17, ..key(7) },
        key(8),
    ];
    for other in others {
        let mut all = default();
        assert_eq!(put(&mut all, 7, 0, 8, true, 1), Ok(None));
        assert_eq!(all.insert(NOW, other, 8, false, &[2; 8], &[]), Ok(None));
    }
}

#[test]
fn an_exact_copy_is_tolerated() {
    let mut all = default();
    for _ in 0..3 {
        assert_eq!(put(&mut all, 7, 0, 8, true, 1), Ok(None));
    }
    let held = all.held_bytes();
    assert_eq!(put(&mut all, 7, 0, 8, true, 1), Ok(None));
    assert_eq!(all.held_bytes(), held, "a copy costs nothing");
    assert!(put(&mut all, 7, 8, 1, false, 2).is_ok_and(|whole| whole.is_some()));
}

#[test]
fn an_overlap_gives_up_the_datagram_and_what_follows_of_it() {
    // (offset, length, more, content) after [0, 16) and [32, 48) of 1s.
    let overlaps = [
        (0, 16, true, 2),
        (0, 8, true, 1),
        (8, 16, true, 1),
        (24, 16, true, 1),
        (16, 24, true, 1),
        (0, 64, true, 1),
        (32, 16, false, 1),
        (40, 64, false, 1),
        (16, 8, false, 1),
    ];
    for (offset, len, more, fill) in overlaps {
        let mut all = default();
        assert_eq!(put(&mut all, 7, 0, 16, true, 1), Ok(None));
        assert_eq!(put(&mut all, 7, 32, 16, true, 1), Ok(None));
        let case = (offset, len, more, fill);
        assert_eq!(put(&mut all, 7, offset, len, more, fill), Err(DropReason::FragmentInvalid), "{case:?}");
        assert_eq!(all.held_bytes(), 0, "{case:?}");
        for (offset, more) in [(0, true), (16, true), (32, true), (48, false)] {
            assert_eq!(put(&mut all, 7, offset, 16, more, 1), Err(DropReason::FragmentInvalid), "{case:?}");
        }
        assert_eq!(expired(&mut all, Instant::FAR), [], "{case:?}: no Time Exceeded about it");
        assert_eq!(put(&mut all, 7, 0, 16, true, 1), Ok(None), "{case:?}: its successor begins anew");
    }
}

#[test]
fn nothing_lies_behind_the_last_fragment() {
    for more in [true, false] {
        let mut all = default();
        assert_eq!(put(&mut all, 7, 16, 8, false, 1), Ok(None));
        assert_eq!(put(&mut all, 7, 24, 8, more, 1), Err(DropReason::FragmentInvalid));
    }
    let mut all = default();
    assert_eq!(put(&mut all, 7, 32, 8, true, 1), Ok(None));
    assert_eq!(put(&mut all, 7, 8, 8, false, 1), Err(DropReason::FragmentInvalid));
}

#[test]
fn what_no_sender_makes_is_refused_and_harms_nothing() {
    let mut all = default();
    assert_eq!(put(&mut all, 7, 0, 8, true, 1), Ok(None));
    let wrong = [(8, 7, true), (8, 0, true), (8, 0, false), (0, 0, false), (9, 8, true), (65_512, 8, true)];
    for (offset, len, more) in wrong {
        assert_eq!(
            put(&mut all, 7, offset, len, more, 1),
            Err(DropReason::FragmentInvalid),
            "{offset} {len}"
        );
    }
    assert_eq!(put(&mut all, 7, 8, 70_000, false, 1), Err(DropReason::FragmentInvalid));
    assert!(put(&mut all, 7, 8, 5, false, 1).is_ok_and(|whole| whole.is_some()));
}

#[test]
fn the_longest_datagram_is_that_of_its_family() {
    let mut all = Reassembler::new(Limits { bytes: 1 << 20, ..Limits::default() });
    let half = vec![1; 32_768];
    let cases = [(key(1), 32_747), (key_v6(1), 32_767)];
    for (key, most) in cases {
        assert_eq!(all.insert(NOW, key, 0, true, &half, &[]), Ok(None));
        let beyond = all.insert(NOW, key, 32_768, false, &vec![2; most + 1], &[]);
        assert_eq!(beyond, Err(DropReason::FragmentInvalid));
        let whole = all.insert(NOW, key, 32_768, false, &vec![2; most], &[]).unwrap().unwrap();
        assert_eq!(whole.len(), 32_768 + most);
    }
}

#[test]
fn an_atomic_fragment_does_not_meet_the_others() {
    let mut all = default();
    assert_eq!(all.insert(NOW, key_v6(7), 0, true, &[1; 8], &[]), Ok(None));
    assert_eq!(all.insert(NOW, key_v6(7), 0, false, &[9; 5], &[]), Ok(Some(vec![9; 5])));
    assert_eq!(all.insert(NOW, key_v6(7), 8, false, &[1; 8], &[]), Ok(Some(vec![1; 16])));
}

#[test]
fn too_many_fragments_give_up_the_datagram() {
    let mut all = default();
    for n in 0..128 {
        assert_eq!(put(&mut all, 7, n * 16, 8, true, 1), Ok(None));
    }
    assert_eq!(put(&mut all, 7, 128 * 16, 8, true, 1), Err(DropReason::FragmentInvalid));
    assert_eq!(all.held_bytes(), 0);
}

#[test]
fn time_runs_from_the_fragment_that_came_first() {
    let mut all = default();
    assert_eq!(all.insert(NOW, key(7), 8, true, &[1; 8], b"second"), Ok(None));
    let later = NOW + Duration::from_secs(59);
    assert_eq!(all.insert(later, key(7), 0, true, &[1; 8], b"first"), Ok(None));
    assert_eq!(all.insert(later, key(8), 8, true, &[1; 8], b"second"), Ok(None));
    let deadline = NOW + Duration::from_secs(60);
    assert_eq!(all.next_deadline(), Some(deadline));
    assert_eq!(expired(&mut all, deadline - Duration::from_nanos(1)), []);
    let late = all.insert(deadline, key(7), 16, false, &[1; 8], &[]);
    assert_eq!(late, Err(DropReason::FragmentTimeout));
    assert_eq!(expired(&mut all, deadline), [(7, Some(b"first".to_vec()))]);
    assert_eq!(expired(&mut all, deadline), [], "once");
    assert_eq!(all.next_deadline(), Some(later + Duration::from_secs(60)));
    assert_eq!(expired(&mut all, Instant::FAR), [(8, None)], "without its first fragment nothing is quoted");
}

#[test]
fn a_long_quote_is_cut() {
    let mut all = default();
    assert_eq!(all.insert(NOW, key(7), 0, true, &[1; 8], &[3; 4000]), Ok(None));
    assert_eq!(expired(&mut all, Instant::FAR), [(7, Some(vec![3; MAX_QUOTE_BYTES]))]);
}

#[test]
fn the_oldest_datagram_gives_way_when_too_many_wait() {
    let mut all = Reassembler::new(Limits { datagrams: 2, ..Limits::default() });
    for id in [1, 2] {
        assert_eq!(put(&mut all, id, 0, 8, true, 1), Ok(None));
    }
    assert_eq!(all.take_gave_way(), 0);
    assert_eq!(put(&mut all, 3, 0, 8, true, 1), Ok(None));
    assert_eq!(all.take_gave_way(), 1);
    assert_eq!(all.take_gave_way(), 0, "told once");
    assert!(put(&mut all, 2, 8, 8, false, 1).is_ok_and(|whole| whole.is_some()));
    assert_eq!(put(&mut all, 1, 8, 8, false, 1), Ok(None), "the first is forgotten");
}

#[test]
fn the_oldest_datagrams_give_way_when_they_hold_too_much() {
    let cost = 1000 + 5 + FRAGMENT_OVERHEAD_BYTES;
    let mut all = Reassembler::new(Limits { bytes: 3 * cost, ..Limits::default() });
    for id in [1, 2, 3] {
        assert_eq!(put(&mut all, id, 0, 1000, true, 1), Ok(None));
    }
    assert_eq!(put(&mut all, 3, 1000, 1000, true, 1), Ok(None));
    assert_eq!((all.take_gave_way(), all.datagrams()), (1, 2));
    assert_eq!(put(&mut all, 3, 2000, 1000, true, 1), Ok(None));
    assert_eq!((all.take_gave_way(), all.datagrams()), (1, 1));
    assert_eq!(put(&mut all, 3, 3000, 1000, true, 1), Err(DropReason::FragmentsFull));
    assert_eq!((all.datagrams(), all.held_bytes()), (0, 0), "it would not fit alone");
}

#[test]
fn a_remembered_overlap_survives_the_want_of_bytes() {
    let mut all = Reassembler::new(Limits { bytes: 3000, ..Limits::default() });
    assert_eq!(put(&mut all, 1, 0, 8, true, 1), Ok(None));
    assert_eq!(put(&mut all, 1, 0, 8, true, 2), Err(DropReason::FragmentInvalid));
    for id in 2..6 {
        assert_eq!(put(&mut all, id, 0, 2000, true, 1), Ok(None));
    }
    assert_eq!(put(&mut all, 1, 0, 8, true, 1), Err(DropReason::FragmentInvalid));
}

#[test]
fn without_room_for_any_datagram_nothing_is_kept() {
    for limits in [Limits { datagrams: 0, ..Limits::default() }, Limits { bytes: 0, ..Limits::default() }] {
        let mut all = Reassembler::new(limits);
        assert_eq!(put(&mut all, 1, 0, 8, true, 1), Err(DropReason::FragmentsFull));
        assert_eq!((all.datagrams(), all.take_gave_way()), (0, 0));
    }
}

/// Cut points of a datagram, in eight-byte units, and the order in which its fragments arrive, some twice.
fn cut_and_shuffled() -> impl Strategy<Value = (Vec<u8>, Vec<(usize, usize)>)> {
    let payload = proptest::collection::vec(any::<u8>(), 9..4000);
    let cuts = proptest::collection::btree_set(1usize..500, 1..60);
    (payload, cuts, 0usize..3).prop_flat_map(|(payload, cuts, copies)| {
        let inner = cuts.into_iter().map(|cut| cut * 8).filter(|&cut| cut < payload.len());
        let bounds: Vec<usize> = [0].into_iter().chain(inner).chain([payload.len()]).collect();
        let mut parts: Vec<(usize, usize)> = bounds.windows(2).map(|pair| (pair[0], pair[1])).collect();
        parts.extend(parts.clone().into_iter().take(copies));
        (Just(payload), Just(parts).prop_shuffle())
    })
}

#[derive(Clone, Debug)]
struct Step {
    id: u32,
    offset: u16,
    len: usize,
    more: bool,
    fill: u8,
    wait_s: u64,
}

/// Few places, so that fragments often meet.
fn steps(ids: u32, longest: usize) -> impl Strategy<Value = Vec<Step>> {
    let more = proptest::bool::weighted(0.75);
    let step = (0..ids, 0u16..6, 1..=longest, more, 0u8..3, 0u64..4).prop_map(
        |(id, offset, len, more, fill, wait_s)| Step {
            id,
            offset: offset * 8,
            len: if more { len.next_multiple_of(8) } else { len },
            more,
            fill,
            wait_s,
        },
    );
    proptest::collection::vec(step, 1..200)
}

/// An independent model of the RFCs for the fragments of one key: all kept, compared pairwise.
#[derive(Default)]
struct Model {
    kept: Vec<Step>,
    spoiled: bool,
}

impl Model {
    fn take(&mut self, step: &Step) -> Result<Option<Vec<u8>>, DropReason> {
        if step.offset == 0 && !step.more {
            return Ok(Some(vec![step.fill; step.len]));
        }
        let end = |step: &Step| usize::from(step.offset) + step.len;
        let same =
            |a: &Step, b: &Step| (a.offset, a.len, a.more, a.fill) == (b.offset, b.len, b.more, b.fill);
        if !self.spoiled && self.kept.iter().any(|kept| same(kept, step)) {
            return Ok(None);
        }
        let overlaps = |a: &Step, b: &Step| usize::from(a.offset) < end(b) && usize::from(b.offset) < end(a);
        let behind = |a: &Step, b: &Step| !a.more && end(b) > end(a);
        self.spoiled |=
            self.kept.iter().any(|kept| overlaps(kept, step) || behind(kept, step) || behind(step, kept));
        if self.spoiled {
            return Err(DropReason::FragmentInvalid);
        }
        self.kept.push(step.clone());
        self.kept.sort_by_key(|kept| kept.offset);
        let has_end = self.kept.last().is_some_and(|last| !last.more);
        let no_gap = self.kept.windows(2).all(|pair| end(&pair[0]) == usize::from(pair[1].offset));
        if !has_end || !no_gap || self.kept[0].offset != 0 {
            return Ok(None);
        }
        Ok(Some(self.kept.drain(..).flat_map(|kept| vec![kept.fill; kept.len]).collect()))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]
    #[test]
    fn any_cut_in_any_order_gives_the_datagram_back((payload, parts) in cut_and_shuffled()) {
        let mut all = default();
        let mut given = Vec::new();
        for (start, end) in parts {
            let offset = u16::try_from(start).unwrap();
            let (more, part) = (end < payload.len(), &payload[start..end]);
            // Copies after the completed datagram start a new one, which may complete only by copies.
            given.extend(all.insert(NOW, key(1), offset, more, part, &[]).unwrap());
        }
        prop_assert!(given.iter().all(|whole| *whole == payload));
        prop_assert!(!given.is_empty());
    }

    #[test]
    fn overlapping_fragments_never_end_in_one_datagram(steps in steps(1, 24)) {
        let mut all = default();
        let mut model = Model::default();
        for step in steps {
            let got = put(&mut all, 1, step.offset, step.len, step.more, step.fill);
            prop_assert_eq!(got, model.take(&step));
        }
    }

    #[test]
    fn memory_stays_within_its_limits(
        steps in steps(40, 900),
        datagrams in 0usize..8,
        bytes in 0usize..6000,
    ) {
        let limits = Limits { datagrams, bytes, timeout: Duration::from_secs(9) };
        let mut all = Reassembler::new(limits);
        let mut now = NOW;
        for step in steps {
            now += Duration::from_secs(step.wait_s);
            let payload = vec![step.fill; step.len];
            let _ = all.insert(now, key(step.id), step.offset, step.more, &payload, b"quote");
            prop_assert!(all.held_bytes() <= bytes && all.datagrams() <= datagrams);
            let pieces = all.partials.iter().flat_map(|partial| &partial.pieces);
            prop_assert!(pieces.map(|piece| piece.bytes.len()).sum::<usize>() <= all.held_bytes());
            prop_assert!(all.partials.is_sorted_by_key(|partial| partial.deadline));
            if step.fill == 0 {
                all.expire(now, &mut |_, _| {});
                prop_assert!(all.next_deadline().is_none_or(|deadline| deadline > now));
            }
        }
        all.expire(Instant::FAR, &mut |_, _| {});
        prop_assert_eq!((all.held_bytes(), all.datagrams()), (0, 0));
    }
}

#[test]
fn the_source_that_holds_the_most_gives_way() {
    let from = |last: u8, id: u32| FragmentKey { src: IpAddr::from([10, 0, 0, last]), ..key(id) };
    let cost = 8 + FRAGMENT_OVERHEAD_BYTES;
    for limits in
        [Limits { datagrams: 4, ..Limits::default() }, Limits { bytes: 4 * cost, ..Limits::default() }]
    {
        let mut all = Reassembler::new(limits);
        let mut put = |key| all.insert(NOW, key, 8, true, &[1; 8], &[]);
        assert_eq!(put(from(1, 0)), Ok(None), "the oldest of all");
        for id in 0..100 {
            assert_eq!(put(from(2, id)), Ok(None));
        }
        assert_eq!(put(from(3, 0)), Ok(None));
        assert_eq!(all.take_gave_way(), 98);
        for last in [1, 3] {
            let whole = all.insert(NOW, from(last, 0), 0, true, &[1; 8], &[]);
            assert_eq!(whole, Ok(None), "{limits:?}");
            let whole = all.insert(NOW, from(last, 0), 16, false, &[1; 8], &[]);
            assert_eq!(whole, Ok(Some(vec![1; 24])), "{limits:?}");
        }
        all.expire(Instant::FAR, &mut |_, _| {});
        assert!(all.shares.total() == Share::default() && all.held_bytes() == 0);
    }
}

/// One /64 holds more than another, and one host in it more than the others.
#[test]
fn a_host_with_many_addresses_gives_way_and_so_does_one_host_of_many() {
    let address = |net: u16, host: u16| IpAddr::from([0xfd07, 0, 0, net, 0, 0, 0, host]);
    let from = |net, host, id| FragmentKey { src: address(net, host), ..key_v6(id) };
    let whole_of = |all: &mut Reassembler, key| {
        assert_eq!(all.insert(NOW, key, 0, true, &[1; 8], &[]), Ok(None));
        assert_eq!(all.insert(NOW, key, 16, false, &[1; 8], &[]), Ok(Some(vec![1; 24])));
    };
    let mut all = Reassembler::new(Limits { datagrams: 4, ..Limits::default() });
    let mut put = |key| all.insert(NOW, key, 8, true, &[1; 8], &[]);
    assert_eq!(put(from(1, 1, 0)), Ok(None), "the oldest of all");
    for host in 0..100 {
        assert_eq!(put(from(2, host, 0)), Ok(None));
    }
    whole_of(&mut all, from(1, 1, 0));
    let mut put = |key| all.insert(NOW, key, 8, true, &[1; 8], &[]);
    assert_eq!(put(from(2, 200, 0)), Ok(None), "older than what floods");
    for id in 0..100 {
        assert_eq!(put(from(2, 201, id)), Ok(None));
    }
    whole_of(&mut all, from(2, 200, 0));
    all.expire(Instant::FAR, &mut |_, _| {});
    assert!(all.shares.total() == Share::default() && all.held_bytes() == 0);
}
