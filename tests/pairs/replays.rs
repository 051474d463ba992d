//! The decision log of every receiver agent, replayed: the same decisions, and the same counts of its shadows.

use hopwise_agents::spec::parse_receiver;
use hopwise_core::tcp::decisions::{Begun, Entry, LogReader, News, Outcome, Replay};

use super::*;

/// The log of one end, with what the end itself counted.
#[derive(Default)]
struct Logged {
    bytes: Vec<u8>,
    decided: Vec<(u32, By, Why)>,
    shadows: Vec<(u64, Duration)>,
}

/// The agents that watch, live and in the replay.
const OTHERS: [&str; 3] = ["immediate", "dca", "tack"];

fn exchange(receiver: &str, path: PathConfig, seed: u64) -> [Logged; 2] {
    exchange_beside(receiver, &OTHERS, path, seed)
}

fn exchange_beside(receiver: &str, shadows: &[&str], path: PathConfig, seed: u64) -> [Logged; 2] {
    let shadows: Vec<_> = shadows.iter().map(|other| format!("{other:?}")).collect();
    let agents = AgentChoice {
        receiver: Some(receiver.to_owned()),
        senders: Some("[newreno, tell-cwnd, ask-rate:4]".into()),
        shadows: Some(format!("[{}]", shadows.join(", "))),
    };
    let pair = Pair::logged(agents, path, format!("{receiver}, seed {seed}"), seed);
    let mut logs: [Logged; 2] = Default::default();
    let ids = [(End::A, pair.client), (End::B, pair.server)];
    pair.exchange_and(Instant::from_secs(300), |hosts| {
        for (log, (end, id)) in logs.iter_mut().zip(ids) {
            let now = hosts.now();
            let endpoint = hosts.machine(end);
            endpoint.drain_decisions(&mut |bytes| log.bytes.extend_from_slice(bytes));
            endpoint.drain_trace(&mut |event| {
                if let TraceKind::AckDecided { number, by, why, .. } = event.kind {
                    log.decided.push((number.0, by, why));
                }
            });
            if let Ok(info) = endpoint.info(now, id) {
                log.shadows = info.shadow_acks.iter().copied().zip(info.shadow_holds).collect();
            }
        }
    });
    logs
}

fn make(spec: &str) -> Box<dyn hopwise_core::agent::ReceiverAgent> {
    parse_receiver(spec).expect("a spec").make(Profile::default())
}

/// The replay of a log with one connection, and the outcomes that the log has.
fn replayed(bytes: &[u8], receiver: impl Fn(&Begun) -> String) -> (Replay, Vec<Outcome>) {
    let (mut replay, mut outcomes) = (None, Vec::new());
    LogReader::default()
        .read(bytes, &mut |news| match news {
            News::Entry(_, Entry::Begun(begun)) => {
                let others = OTHERS.iter().map(|other| make(other)).collect();
                replay = Some(Replay::new(&begun, make(&receiver(&begun)), others));
            }
            News::Entry(_, entry) => {
                if let Entry::Outcome(outcome) = &entry {
                    outcomes.push(*outcome);
                }
                replay.as_mut().expect("it has begun").take(&entry);
            }
            News::Gap => panic!("nothing was lost"),
        })
        .expect("the log is whole");
    let mut replay: Replay = replay.expect("a connection");
    replay.conclude();
    (replay, outcomes)
}

fn paths() -> [PathConfig; 3] {
    let clean = PathConfig::clean(Duration::from_millis(10)).with(|path| path.bits_per_second = 5_000_000);
    let lossy = clean.with(|path| path.loss_ppm = 30_000);
    let bent = lossy.with(|path| {
        path.reorder_ppm = 50_000;
        path.reorder_by = Duration::from_millis(8);
        path.duplicate_ppm = 20_000;
    });
    [clean, lossy, bent]
}

#[test]
fn every_receiver_decides_the_same_again_and_others_what_they_decided_as_shadows() {
    for receiver in receivers() {
        for (nth, path) in (0..).zip(paths()) {
            for log in exchange(&receiver, path, 17 + nth) {
                let (replay, outcomes) = replayed(&log.bytes, |begun| begun.receiver.clone());
                assert_eq!(replay.difference(), None, "{receiver}, path {nth}");
                assert!(replay.arrivals() > 40, "{receiver}: {}", replay.arrivals());
                let decided = outcomes.iter().filter_map(|outcome| match *outcome {
                    Outcome::Decided { number, by, why, .. } => Some((number.0, by, why)),
                    _ => None,
                });
                assert_eq!(decided.collect::<Vec<_>>(), log.decided, "{receiver}, path {nth}");
                let tallies: Vec<_> = replay.tallies().collect();
                assert_eq!(tallies[0].acks, log.decided.len() as u64, "{receiver}, path {nth}");
                let others =
                    tallies[1..].iter().map(|tally| (tally.acks, Duration::from_nanos(tally.held_ns)));
                assert_eq!(others.collect::<Vec<_>>(), log.shadows, "{receiver}, path {nth}");
            }
        }
    }
}

#[test]
fn another_agent_in_place_of_the_live_one_is_found_at_its_first_other_decision() {
    let [log, _] = exchange("delayed", paths()[2], 3);
    let (replay, _) = replayed(&log.bytes, |_| "immediate".into());
    let difference = replay.difference().expect("it never waits");
    assert!(matches!(difference.live, Some(Outcome::Held { .. })), "{difference:?}");
    assert!(matches!(difference.replayed, Some(Outcome::Decided { .. })), "{difference:?}");
}

#[test]
fn an_outcome_that_the_log_lacks_or_has_once_more_is_a_difference() {
    let [log, _] = exchange("delayed", paths()[0], 3);
    let mut entries = Vec::new();
    let take = &mut |news| match news {
        News::Entry(_, entry) => entries.push(entry),
        News::Gap => panic!("nothing was lost"),
    };
    LogReader::default().read(&log.bytes, take).expect("the log is whole");
    let Some(Entry::Begun(begun)) = entries.first().cloned() else { panic!("a connection begins") };
    let differs = |entries: &[Entry]| {
        let mut replay = Replay::new(&begun, make(&begun.receiver), Vec::new());
        entries.iter().for_each(|entry| replay.take(entry));
        replay.conclude();
        replay.difference().cloned()
    };
    assert_eq!(differs(&entries), None);
    let outcomes = (0..entries.len()).filter(|at| matches!(entries[*at], Entry::Outcome(_)));
    for at in outcomes.step_by(9) {
        let lacks = [&entries[..at], &entries[at + 1..]].concat();
        assert!(differs(&lacks).is_some(), "without {:?}", entries[at]);
        let has_more = [&entries[..=at], &entries[at..]].concat();
        assert!(differs(&has_more).is_some(), "twice {:?}", entries[at]);
    }
}

/// Both of these want nothing of the peer, so that the packets are the same with and without them. One has timers.
#[test]
fn agents_that_did_not_watch_are_told_as_if_they_had() {
    let modest = [OTHERS[0], OTHERS[2]];
    for (receiver, path) in ["delayed", "immediate", "dca"].into_iter().zip(paths()) {
        let alone = exchange_beside(receiver, &[], path, 5);
        let watched = exchange_beside(receiver, &modest, path, 5);
        for (alone, watched) in alone.into_iter().zip(watched) {
            assert_eq!(alone.decided, watched.decided, "{receiver}: shadows change nothing");
            let (replay, _) = replayed(&alone.bytes, |begun| begun.receiver.clone());
            let tallies: Vec<_> = replay.tallies().collect();
            let others = [&tallies[1], &tallies[3]];
            let others = others.map(|tally| (tally.acks, Duration::from_nanos(tally.held_ns)));
            assert_eq!(others[..], watched.shadows, "{receiver}");
        }
    }
}

#[test]
fn waits_are_those_of_all_segments() {
    let [log, _] = exchange("tack", paths()[2], 5);
    let (as_itself, _) = replayed(&log.bytes, |begun| begun.receiver.clone());
    let own = as_itself.tallies().next().expect("the live agent");
    assert!(own.waited_ns >= own.held_ns, "each first segment waits: {own:?}");
    assert!(own.longest_ns <= 490_000_000, "{own:?}");
    assert!(own.segments <= as_itself.arrivals(), "{own:?}");
}

/// Gives whatever the reader accepts to every agent, as the live one and as a watcher.
fn replay_strange(bytes: &[u8]) -> bool {
    let agents = receivers();
    let mut replays: Vec<Replay> = Vec::new();
    let read = LogReader::default().read(bytes, &mut |news| match news {
        News::Entry(_, Entry::Begun(begun)) => {
            replays = agents.chunks(Replay::MOST_OTHERS).fold(Vec::new(), |mut replays, others| {
                let others: Vec<_> = others.iter().map(|other| make(other)).collect();
                replays.push(Replay::new(&begun, make(&agents[replays.len()]), others));
                replays
            });
        }
        News::Entry(_, entry) => replays.iter_mut().for_each(|replay| replay.take(&entry)),
        News::Gap => {}
    });
    read.is_ok()
}

#[test]
fn a_log_with_any_numbers_is_refused_or_replayed() {
    let [log, _] = exchange("tack", paths()[2], 7);
    let mut random = hopwise_core::random::SplitMix64::new(5);
    let mut next = |most: usize| (random.next_u64() % most as u64) as usize;
    let mut sound = 0;
    for _ in 0..400 {
        let mut bent = log.bytes.clone();
        for _ in 0..1 + next(3) {
            let at = next(bent.len());
            bent[at] = next(256) as u8;
        }
        sound += u32::from(replay_strange(&bent));
    }
    assert!(sound > 5, "most changes of a number are another number: {sound}");
}

/// `HOPWISE_ARRIVALS=1000000` takes a million; by default it is a part of them.
#[test]
fn a_long_transfer_over_a_bent_path_is_decided_the_same() {
    let wanted: u64 =
        std::env::var("HOPWISE_ARRIVALS").map_or(20_000, |count| count.parse().expect("a number"));
    let path = paths()[2].with(|path| {
        path.bits_per_second = 100_000_000;
        path.loss_ppm = 500;
        path.reorder_ppm = 500;
        path.duplicate_ppm = 500;
    });
    let agents = AgentChoice {
        receiver: Some("dca".into()),
        senders: Some("[cubic, tell-cwnd]".into()),
        ..AgentChoice::default()
    };
    let mut pair = Pair::logged(agents, path, "long".into(), 23);
    let (client, server) = (pair.client, pair.server);
    let (mut reader, mut replay, mut bytes) = (LogReader::default(), None::<Replay>, 0);
    let (data, mut sink) = (vec![7; 1 << 16], vec![0; 1 << 18]);
    let done = pair.hosts.run(Instant::from_secs(3600), |hosts| {
        let now = hosts.now();
        hosts.a.send(now, client, &data).expect("open");
        while hosts.b.recv(now, server, &mut sink).is_ok_and(|len| len > 0) {}
        hosts.a.drain_decisions(&mut |_| {});
        hosts.b.drain_decisions(&mut |entries| {
            bytes += entries.len();
            let take = &mut |news| match news {
                News::Entry(_, Entry::Begun(begun)) => {
                    replay = Some(Replay::new(&begun, make(&begun.receiver), vec![make("immediate")]));
                }
                News::Entry(_, entry) => replay.as_mut().expect("it has begun").take(&entry),
                News::Gap => panic!("nothing was lost"),
            };
            reader.read(entries, take).expect("the log is whole");
        });
        replay.as_ref().is_some_and(|replay| replay.arrivals() >= wanted)
    });
    let replay: Replay = replay.expect("a connection");
    assert!(done, "{} of {wanted} arrivals", replay.arrivals());
    assert_eq!(replay.difference(), None);
    let tallies: Vec<_> = replay.tallies().collect();
    println!(
        "{} arrivals, {} ACKs, {} left, {} merged, none differs; {bytes} bytes of log; {tallies:?}",
        replay.arrivals(),
        tallies[0].acks,
        replay.left(),
        replay.merged()
    );
    assert!(tallies[0].acks > wanted / 10 && tallies[1].acks > tallies[0].acks, "{tallies:?}");
}
