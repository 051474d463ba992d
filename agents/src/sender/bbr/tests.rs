//! The model beside figures by hand, and the state machine over a bottleneck with a queue.

use std::collections::VecDeque;
use std::time::Duration;

use hopwise_core::agent::{
    Acked, Allowance, Count, Loss, LossKind, Path, Recovered, Recovering, SendView, SenderAgent, Sent,
    SentKind,
};
use hopwise_core::{Instant, Seq};

use super::Bbr;
use super::cycle::BbrState;
use super::filter::{ExtraAcked, FullPipe, MinRtt, TwoWindows};
use super::model::{inflight_at_loss, is_too_high};
use super::rate::{RateSample, RateSampler};

const MSS: u64 = 1_000;

fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

fn at(time_ms: u64) -> Instant {
    Instant::from_millis(time_ms)
}

fn segments(count: u64) -> Count {
    Count { segments: u32::try_from(count).expect("few"), bytes: count * MSS }
}

/// A bottleneck of one rate with a queue, on a path of one round trip. Each segment is acknowledged.
struct Pipe {
    agent: Bbr,
    now: Instant,
    bytes_per_s: u64,
    round_trip: Duration,
    queue_bytes: u64,
    /// Every n-th segment is lost by chance; 0 loses none.
    loses_every: u64,
    /// The departures, and the arrivals of their ACKs; None is lost.
    flying: VecDeque<(u64, Instant, Option<Instant>)>,
    sent: u64,
    delivered: u64,
    lost_bytes: u32,
    free_at: Instant,
    /// Recovery ends with the ACK of this segment.
    point: Option<u64>,
    path: Path,
    states: Vec<(Instant, BbrState)>,
    longest_wait: Duration,
}

impl Pipe {
    /// A bottleneck of a megabyte per second and 40 ms: 40 segments of a thousand bytes.
    fn new(queue_segments: u64) -> Pipe {
        let agent = Bbr { iw: 10, ..Bbr::default() };
        let mut path = Path::default();
        path.rtt.smoothed = Some(ms(40));
        Pipe {
            agent,
            now: Instant::ZERO,
            bytes_per_s: 1_000_000,
            round_trip: ms(40),
            queue_bytes: queue_segments * MSS,
            loses_every: 0,
            flying: VecDeque::new(),
            sent: 0,
            delivered: 0,
            lost_bytes: 0,
            free_at: Instant::ZERO,
            point: None,
            path,
            states: vec![(Instant::ZERO, BbrState::Startup)],
            longest_wait: Duration::ZERO,
        }
    }

    fn flight(&self) -> Count {
        segments(self.flying.len() as u64)
    }

    fn view<'a>(&self, path: &'a Path) -> SendView<'a> {
        let mut view = SendView::new(1_000, Seq(7), path);
        (view.flight, view.unsent, view.lost_bytes) = (self.flight(), segments(100), self.lost_bytes);
        view.recovering = self.point.map(|_| Recovering::Fast { ssthresh: u64::MAX });
        view
    }

    fn run(&mut self, time: Duration) -> &mut Pipe {
        let until = self.now + time;
        loop {
            let allowed = self.agent.narrow(self.now, &self.view(&self.path), Allowance::UNLIMITED);
            let may_send = self.flight().bytes + MSS <= allowed.flight_bytes;
            let send_at = may_send.then(|| allowed.new_from.max(self.now));
            let ack_at = self.flying.iter().find_map(|(_, _, at)| *at);
            let Some(next) = [send_at, ack_at].into_iter().flatten().min() else { panic!("it stands still") };
            if next > until {
                self.now = until;
                return self;
            }
            self.now = next;
            if ack_at == Some(next) {
                self.ack();
            } else {
                self.send();
            }
            if self.states.last().is_none_or(|(_, state)| *state != self.agent.state) {
                self.states.push((self.now, self.agent.state));
            }
        }
    }

    fn send(&mut self) {
        self.sent += 1;
        let waits = self.free_at.since(self.now);
        let waiting = u64::try_from(waits.as_nanos()).expect("short") * self.bytes_per_s / 1_000_000_000;
        let by_chance = self.loses_every > 0 && self.sent.is_multiple_of(self.loses_every);
        let passes = !by_chance && waiting <= self.queue_bytes;
        if passes {
            self.longest_wait = self.longest_wait.max(waits);
            self.free_at =
                self.free_at.max(self.now) + Duration::from_nanos(MSS * 1_000_000_000 / self.bytes_per_s);
        }
        self.flying.push_back((self.sent, self.now, passes.then(|| self.free_at + self.round_trip)));
        let path = self.path.clone();
        let view = self.view(&path);
        self.agent.on_sent(&Sent::new(self.now, segments(1), SentKind::New), &view);
    }

    /// The next ACK. All that left before its segment and has not come is lost, and sent again as new data.
    fn ack(&mut self) {
        let flight_before = self.flight();
        let mut lost = 0;
        let (id, sent_at) = loop {
            match self.flying.pop_front().expect("an ACK is under way") {
                (id, sent_at, Some(_)) => break (id, sent_at),
                (_, _, None) => lost += 1,
            }
        };
        self.delivered += MSS;
        self.lost_bytes += 1_000 * lost;
        let path = self.path.clone();
        if lost > 0 && self.point.is_none() {
            let view = self.view(&path);
            self.agent.on_loss(&Loss::new(self.now, LossKind::Fast, flight_before), &view);
            self.point = Some(self.sent);
        }
        let mut acked = Acked::new(self.now, segments(1), flight_before);
        (acked.rtt, acked.newest_sent_at) = (Some(self.now.since(sent_at)), Some(sent_at));
        let view = self.view(&path);
        self.agent.on_acked(&acked, &view);
        if self.point.is_some_and(|point| point <= id) {
            self.point = None;
            let view = self.view(&path);
            self.agent.on_recovered(Recovered::Full, &view);
        }
    }

    fn walk(&self) -> Vec<BbrState> {
        self.states.iter().map(|(_, state)| *state).collect()
    }

    /// Percent of the bottleneck that was used in this time from now on.
    fn use_of(&mut self, time: Duration) -> u64 {
        let before = self.delivered;
        self.run(time);
        (self.delivered - before) * 100 / (self.bytes_per_s * time.as_secs())
    }
}

#[test]
fn a_flow_walks_through_all_states_in_their_order() {
    let mut pipe = Pipe::new(1_000);
    pipe.run(Duration::from_secs(4));
    let walk = pipe.walk();
    use BbrState::{Cruise, Down, Drain, Refill, Startup, Up};
    // DOWN lasts no longer than the ACK that ends Drain.
    assert_eq!(walk[..7], [Startup, Drain, Cruise, Refill, Up, Down, Cruise], "{walk:?}");
    let began = |wanted| pipe.states.iter().find(|(_, state)| *state == wanted).expect("it came").0;
    assert!(began(Drain) < at(1_000), "Startup takes some ten round trips");
    let cruise = began(Refill).since(began(Cruise));
    assert!(
        (ms(1_000)..ms(3_100)).contains(&cruise),
        "§5.3.3.8: 40 round trips, or two to three seconds: {cruise:?}"
    );
    let refill = began(Up).since(began(Refill));
    assert!((ms(40)..ms(100)).contains(&refill), "one round trip: {refill:?}");
}

#[test]
fn the_model_is_the_bottleneck() {
    let mut pipe = Pipe::new(1_000);
    pipe.run(Duration::from_secs(4));
    assert!((0.97e6..1.03e6).contains(&pipe.agent.max_bw.highest()), "{:?}", pipe.agent.max_bw);
    assert_eq!(pipe.agent.min_rtt.get(), Some(ms(41)), "with the millisecond of the bottleneck");
    let percent = pipe.use_of(Duration::from_secs(8));
    assert!(percent >= 95, "{percent} %");
}

#[test]
fn a_large_queue_stays_short_after_startup() {
    let mut pipe = Pipe::new(100_000);
    pipe.run(Duration::from_secs(2));
    pipe.longest_wait = Duration::ZERO;
    pipe.run(Duration::from_secs(20));
    assert!(
        pipe.longest_wait < ms(41),
        "a round trip, and not the second that it holds: {:?}",
        pipe.longest_wait
    );
}

#[test]
fn every_five_seconds_the_flight_is_halved_for_200_ms() {
    let mut pipe = Pipe::new(1_000);
    pipe.run(Duration::from_secs(24));
    let probes: Vec<_> = pipe.states.windows(2).filter(|pair| pair[0].1 == BbrState::ProbeRtt).collect();
    assert!((3..=5).contains(&probes.len()), "{probes:?}");
    for pair in &probes {
        assert!((ms(200)..ms(400)).contains(&pair[1].0.since(pair[0].0)), "{pair:?}");
        assert_eq!(pair[1].1, BbrState::Cruise, "the pipe is known, and less than full");
    }
    let mut pipe = Pipe::new(1_000);
    while pipe.agent.state != BbrState::ProbeRtt {
        pipe.run(ms(1));
    }
    pipe.run(ms(150));
    let flight = pipe.flight().segments;
    assert!((18..=21).contains(&flight), "half of 41: {flight}");
}

/// 400 segments are in flight; of 40 a single one would be more than the threshold. Between two probes, each of 60
/// rounds takes a hundredth for its losses and one for the margin: 0.98^60 is 0.3, and 0.58 the mean of the way there.
#[test]
fn losses_by_chance_below_the_threshold_cost_a_third_at_most() {
    let mut pipe = Pipe::new(1_000);
    pipe.bytes_per_s = 10_000_000;
    pipe.loses_every = 100;
    pipe.run(Duration::from_secs(3));
    let percent = pipe.use_of(Duration::from_secs(20));
    assert!(percent >= 65, "{percent} %");
}

#[test]
fn a_probe_that_loses_too_much_bounds_the_flight() {
    let mut pipe = Pipe::new(10);
    pipe.run(Duration::from_secs(30));
    let longterm = pipe.agent.longterm.expect("the queue of ten segments overflowed");
    assert!((35_000..60_000).contains(&longterm), "{longterm}, the pipe and its queue hold 51,000");
    let (before, lost) = (pipe.sent, pipe.lost_bytes);
    let percent = pipe.use_of(Duration::from_secs(30));
    assert!(percent >= 80, "{percent} %");
    let lost = u64::from(pipe.lost_bytes - lost) / MSS;
    assert!(lost * 100 <= (pipe.sent - before) * 2, "{lost} of {}", pipe.sent - before);
}

#[test]
fn a_loss_while_cruising_bounds_the_rate_until_the_next_probe() {
    let mut pipe = Pipe::new(1_000);
    while pipe.agent.state != BbrState::Cruise {
        pipe.run(ms(1));
    }
    let bw = pipe.agent.bw();
    pipe.loses_every = 5;
    pipe.run(ms(150));
    assert_eq!(pipe.agent.state, BbrState::Cruise);
    let bound = pipe.agent.short.bw.expect("a round with losses is over");
    assert!((0.69..0.95).contains(&(bound / bw)), "{bound} of {bw}: a fifth was lost");
    assert!(pipe.agent.pacing.expect("known") <= bound);
    pipe.loses_every = 0;
    while pipe.agent.state != BbrState::Refill {
        pipe.run(ms(1));
    }
    assert!(pipe.agent.short.bw.is_none() && pipe.agent.short.inflight.is_none());
}

#[test]
fn a_timeout_leaves_a_segment_and_its_end_gives_the_window_back() {
    let mut pipe = Pipe::new(1_000);
    pipe.run(Duration::from_secs(4));
    let cwnd = pipe.agent.window(MSS);
    let flight = pipe.flight();
    pipe.flying.clear();
    let path = pipe.path.clone();
    let mut view = pipe.view(&path);
    view.recovering = Some(Recovering::AfterTimeout);
    pipe.agent.on_loss(&Loss::new(pipe.now, LossKind::Timeout { nth: 1 }, flight), &view);
    assert_eq!(pipe.agent.window(MSS), MSS);
    pipe.run(ms(300));
    assert!(pipe.agent.window(MSS) >= cwnd * 9 / 10, "{} of {cwnd}", pipe.agent.window(MSS));
}

#[test]
fn a_loss_that_was_none_gives_bounds_and_state_back() {
    let mut pipe = Pipe::new(1_000);
    while pipe.agent.state != BbrState::Up {
        pipe.run(ms(1));
    }
    pipe.run(ms(60));
    assert_eq!((pipe.agent.state, pipe.agent.longterm), (BbrState::Up, None));
    pipe.loses_every = 10;
    while pipe.agent.state == BbrState::Up {
        pipe.run(ms(1));
    }
    assert!(pipe.agent.longterm.is_some());
    let path = pipe.path.clone();
    let view = pipe.view(&path);
    pipe.agent.on_recovered(Recovered::Undone, &view);
    assert_eq!((pipe.agent.state, pipe.agent.longterm), (BbrState::Refill, None));
}

#[test]
fn the_flight_at_which_losses_came_to_two_percent() {
    let sample = |lost| RateSample { tx_in_flight: 100_000, lost, ..RateSample::default() };
    assert!(!is_too_high(&sample(2_000)));
    assert!(is_too_high(&sample(2_001)));
    // 97,000 before, of which 1,940 may be lost: 1,940 / 0.98 = 1,979 more.
    assert_eq!(inflight_at_loss(&sample(3_000), 3_000), 98_979);
    assert_eq!(inflight_at_loss(&sample(5_000), 1_000), 99_000, "it had come to them before");
}

#[test]
fn a_rate_is_what_came_while_a_segment_was_under_way() {
    let (mut rates, mut path) = (RateSampler::default(), Path::default());
    path.rtt.smoothed = Some(ms(100));
    let view = |flight: u64| {
        let mut view = SendView::new(1_000, Seq(0), &path);
        (view.flight, view.unsent) = (segments(flight), segments(9));
        view
    };
    let send = |rates: &mut RateSampler, time, flight| {
        rates.on_sent(&Sent::new(at(time), segments(1), SentKind::New), &view(flight));
    };
    for nth in 0..4 {
        send(&mut rates, 10 * nth, nth + 1);
    }
    let ack = |rates: &mut RateSampler, time, count, sent, least| {
        let mut acked = Acked::new(at(time), segments(count), segments(4));
        acked.newest_sent_at = Some(at(sent));
        rates.on_acked(&acked, &view(3), least)
    };
    // A segment in 100 ms; the next two came 20 ms later, by which time three had come in 120 ms.
    let first = ack(&mut rates, 100, 1, 0, None).expect("known");
    assert_eq!((first.rate, first.delivered, first.tx_in_flight), (10_000.0, 1_000, 1_000));
    let next = ack(&mut rates, 120, 2, 20, None).expect("known");
    assert_eq!((next.rate, next.delivered, next.tx_in_flight), (25_000.0, 3_000, 3_000));
    send(&mut rates, 125, 2);
    // It left when 3,000 had come; the newest of these had left at 20 ms: 105 ms of sending, 20 ms of ACKs.
    let slow = ack(&mut rates, 140, 2, 125, None).expect("known");
    assert_eq!((slow.prior_delivered, slow.delivered), (3_000, 2_000));
    assert!((slow.rate - 2_000.0 / 0.105).abs() < 1.0, "{}", slow.rate);
    send(&mut rates, 150, 1);
    assert_eq!(
        ack(&mut rates, 160, 1, 150, Some(ms(100))).expect("known").rate,
        0.0,
        "shorter than the path"
    );
    assert_eq!(ack(&mut rates, 170, 1, 151, None), None, "nothing left then");
}

#[test]
fn filters_forget_by_their_windows() {
    let mut highest = TwoWindows::default();
    highest.take(7_u64);
    highest.advance();
    highest.take(3);
    assert_eq!(highest.highest(), 7);
    highest.advance();
    assert_eq!(highest.highest(), 3);

    let mut min = MinRtt::default();
    let mut take = |time_s, rtt_ms| (min.take(Instant::from_secs(time_s), Some(ms(rtt_ms))), min.get());
    assert_eq!(take(0, 50), (false, Some(ms(50))));
    assert_eq!(take(3, 70), (false, Some(ms(50))));
    assert_eq!(take(6, 80), (true, Some(ms(50))), "a probe is due, but ten seconds are not over");
    assert_eq!(take(9, 75), (false, Some(ms(50))));
    assert_eq!(take(11, 90), (false, Some(ms(75))), "the shortest since the probe was due");

    let mut extra = ExtraAcked::default();
    let expected = |time: Duration| u64::try_from(time.as_millis()).expect("short") * 1_000;
    extra.take(at(10), 5_000, expected, 99_000);
    extra.take(at(12), 4_000, expected, 99_000);
    assert_eq!(extra.highest(), 7_000, "9,000 in 2 ms, of which the rate explains 2,000");
    extra.take(at(60), 1_000, expected, 99_000);
    (0..9).for_each(|_| extra.end_round(false));
    assert_eq!(extra.highest(), 7_000);
    extra.end_round(false);
    assert_eq!(extra.highest(), 0);
}

#[test]
fn three_rounds_without_a_quarter_more_are_a_full_pipe() {
    let mut full = FullPipe::default();
    let round = |full: &mut FullPipe, rate, app_limited| {
        full.end_round(&RateSample { rate, app_limited, ..RateSample::default() });
        full.now
    };
    assert!(!round(&mut full, 100.0, false));
    assert!(!round(&mut full, 124.0, false));
    assert!(!round(&mut full, 125.0, false), "a quarter more begins anew");
    assert!(!round(&mut full, 130.0, false));
    assert!(!round(&mut full, 130.0, true), "the application was the limit");
    assert!(!round(&mut full, 130.0, false));
    assert!(round(&mut full, 130.0, false));
    full.begin(0.0);
    assert!(!full.now && full.ever);
}
