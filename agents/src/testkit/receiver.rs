//! A miniature of the ACK ledger, and the language in which receiver agents are tested:
//!
//! ```text
//!   0ms in         -> hold (count 1 of 2)
//!  20ms ooo        -> ack 1 (not-in-order)
//!  50ms in         -> hold (count 1 of 2)
//! 150ms timer      -> ack 1 (deadline)
//! ```
//!
//! A line is a time, an event and its outcome: how many segments an ACK newly covers, and why. The events `in`, `fill`,
//! `ooo` and `dup` are arrivals. Their options are `push`, `ce`, `after=N`, `rate=N`, `rtt=T` and `NB` (bytes). The
//! events `forced`, `fin` and `piggyback` are ACKs that the ledger decides. `set` changes what the agent sees: `cwnd=`,
//! `hops=`, `rtt=` (the least), `srtt=`, `rttvar=` or `window=`. `wait` does nothing. A script does not cause `timer`
//! and `ceiling`: these lines state when a deadline is due.

use std::fmt::Write;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_core::agent::{
    AckDecided, AckRequest, AckVerdict, Arrival, By, Class, HopSource, Owed, Path, ReceiverAgent, RecvView,
};

use crate::Profile;
use crate::param::{Form, Value};
use crate::registry::Registry;
use crate::spec::ReceiverSpec;

/// The longest time that the ledger lets an in-order segment wait.
pub(crate) const CEILING: Duration = Duration::from_millis(490);
pub(crate) const MSS: u32 = 1_000;

/// Plays `script` on a new agent, and compares it line by line with what really happened.
#[cfg(test)]
#[track_caller]
pub(crate) fn check(spec: &str, script: &str) {
    play(ReceiverBench::new(spec), spec, script);
}

/// Tests of a receiver agent: each plays a script on a new agent with this spec.
#[cfg(test)]
macro_rules! scripts {
    ($($(#[$attribute:meta])* $name:ident: $spec:literal $script:literal)+) => {
        $(#[test]
        $(#[$attribute])*
        fn $name() {
            $crate::testkit::receiver::check($spec, $script);
        })+
    };
}
#[cfg(test)]
pub(crate) use scripts;

#[track_caller]
pub(super) fn play(mut bench: ReceiverBench, spec: &str, script: &str) {
    let mut played = String::new();
    let mut expected = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        expected.extend(line.split_whitespace().map(|word| format!("{word} ")));
        expected.push('\n');
        let (cause, _) = line.split_once("->").unwrap_or((line, ""));
        let mut words = cause.split_whitespace();
        let (time, event) = (words.next().expect("a time"), words.next().expect("an event"));
        if matches!(event, "timer" | "ceiling") {
            continue;
        }
        bench.wait_until(time_of(time), &mut |line| played.push_str(line));
        let outcome = bench.play(event, words);
        let arrow = if outcome.is_empty() { "" } else { "-> " };
        let cause = cause.split_whitespace().collect::<Vec<_>>().join(" ");
        writeln!(played, "{cause} {arrow}{outcome}").expect("a text grows");
    }
    let tidy = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    assert_eq!(tidy(&played), tidy(&expected), "`{spec}`: left is what happened");
}

fn time_of(text: &str) -> Instant {
    let form = Form::Time { min: Duration::ZERO, max: Duration::MAX };
    let Some(Value::Time(time)) = form.parse(text) else { panic!("`{text}` is no time") };
    Instant::ZERO + time
}

/// One agent, with the state that the ledger keeps for it.
#[derive(Debug)]
pub(crate) struct ReceiverBench {
    pub(crate) agent: Box<dyn ReceiverAgent>,
    pub(crate) now: Instant,
    pub(crate) owed: Owed,
    pub(crate) path: Path,
    pub(crate) peer_cwnd: Option<u16>,
    advertised: u32,
    pub(crate) acks: u64,
    last_arrival: Option<Instant>,
    last_in_order: Option<Instant>,
}

/// The properties of an arrival apart from its class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carried {
    pub(crate) bytes: u32,
    pub(crate) push: bool,
    pub(crate) ce: bool,
    pub(crate) ack_request: Option<AckRequest>,
    pub(crate) rtt: Option<Duration>,
}

impl Carried {
    pub(crate) const PLAIN: Carried =
        Carried { bytes: MSS, push: false, ce: false, ack_request: None, rtt: None };
}

impl ReceiverBench {
    #[cfg(test)]
    pub(crate) fn new(spec: &str) -> ReceiverBench {
        ReceiverBench::among(crate::registry::in_force(), spec)
    }

    /// The spec may name these agents.
    #[track_caller]
    pub(super) fn among(agents: &Registry, spec: &str) -> ReceiverBench {
        let spec = ReceiverSpec::parse_among(agents, spec).unwrap_or_else(|error| panic!("{error}"));
        ReceiverBench {
            agent: spec.make(Profile::Modern),
            now: Instant::ZERO,
            owed: Owed::default(),
            path: Path::default(),
            peer_cwnd: None,
            advertised: 65_535,
            acks: 0,
            last_arrival: None,
            last_in_order: None,
        }
    }

    /// The next deadline, and whether it is the agent's timer or the ledger's ceiling.
    pub(crate) fn next_deadline(&self) -> Option<(Instant, &'static str)> {
        let ceiling = self.owed.since.map(|since| (since + CEILING, "ceiling"));
        let agents = self.agent.deadline().map(|due| (due, "timer"));
        agents.into_iter().chain(ceiling).min_by_key(|(due, _)| *due)
    }

    /// Lets time pass, and plays each deadline until then.
    fn wait_until(&mut self, until: Instant, log: &mut dyn FnMut(&str)) {
        while let Some((due, who)) = self.next_deadline().filter(|(due, _)| *due <= until) {
            self.now = self.now.max(due);
            let outcome = if who == "timer" { self.time_out() } else { self.force(By::Forced) };
            let time = Value::Time(self.now.since(Instant::ZERO));
            log(&format!("{time} {who} -> {outcome}\n"));
        }
        assert!(self.now <= until, "a script goes forward");
        self.now = until;
    }

    fn play<'a>(&mut self, event: &str, options: impl Iterator<Item = &'a str>) -> String {
        let class = match event {
            "in" => Class::InOrder,
            "fill" => Class::FillsHole,
            "ooo" => Class::OutOfOrder,
            "dup" => Class::Duplicate,
            "forced" | "fin" => return self.force(By::Forced),
            "piggyback" => return self.force(By::Piggyback),
            "wait" => return String::new(),
            "set" => {
                options.for_each(|option| self.set(option));
                return String::new();
            }
            _ => panic!("no event is called `{event}`"),
        };
        self.arrive(class, options.fold(Carried::PLAIN, carried))
    }

    /// Plays an event without options at the current time.
    #[cfg(test)]
    pub(crate) fn play_line(&mut self, event: &str) -> String {
        self.play(event, std::iter::empty())
    }

    pub(crate) fn show(&mut self, cwnd: Option<u16>, hops: Option<u8>, rtt: Option<Duration>) {
        self.peer_cwnd = cwnd;
        self.path.hops_from_peer = hops.map(|hops| (hops, HopSource::Routing));
        self.path.rtt.min = rtt;
    }

    fn set(&mut self, option: &str) {
        let (key, value) = option.split_once('=').expect("key=value");
        match key {
            "cwnd" => self.peer_cwnd = value.parse().ok(),
            "hops" => self.path.hops_from_peer = value.parse().ok().map(|hops| (hops, HopSource::Config)),
            "rtt" => self.path.rtt.min = Some(time_of(value).since(Instant::ZERO)),
            "srtt" => self.path.rtt.smoothed = Some(time_of(value).since(Instant::ZERO)),
            "rttvar" => self.path.rtt.variance = time_of(value).since(Instant::ZERO),
            "window" => self.advertised = value.parse().expect("bytes"),
            _ => panic!("nothing is called `{key}`"),
        }
    }

    pub(crate) fn arrive(&mut self, class: Class, carried: Carried) -> String {
        let now = self.now;
        let in_order = matches!(class, Class::InOrder | Class::FillsHole);
        let mut arrival = Arrival::new(now, class, carried.bytes);
        arrival.gap = self.last_arrival.map(|last| now.since(last));
        arrival.gap_in_order = self.last_in_order.filter(|_| in_order).map(|last| now.since(last));
        (arrival.push, arrival.ce) = (carried.push, carried.ce);
        (arrival.ack_request, arrival.rtt) = (carried.ack_request, carried.rtt);
        self.last_arrival = Some(now);
        if in_order {
            self.last_in_order = Some(now);
            self.owed.segments += 1;
            self.owed.bytes += carried.bytes;
            self.owed.since.get_or_insert(now);
            self.owed.in_order_total += 1;
        }
        let verdict = self.asked(|agent, view| agent.on_arrival(&arrival, view));
        self.obey(verdict)
    }

    pub(crate) fn time_out(&mut self) -> String {
        let now = self.now;
        let verdict = self.asked(|agent, view| agent.on_deadline(now, view));
        let due = self.agent.deadline();
        assert!(due.is_none_or(|due| due > now), "due again at {due:?} after a deadline at {now:?}");
        self.obey(verdict)
    }

    /// An ACK that is not the agent's decision.
    pub(crate) fn force(&mut self, by: By) -> String {
        format!("ack {}{}", self.decide(by), self.noted())
    }

    #[cfg(test)]
    pub(crate) fn basis(&mut self) -> Option<hopwise_core::agent::Basis> {
        let now = self.now;
        self.asked(|agent, view| agent.basis(now, view))
    }

    fn obey(&mut self, verdict: AckVerdict) -> String {
        match verdict {
            AckVerdict::Hold(why) => format!("hold ({why})"),
            AckVerdict::Now(why) => format!("ack {} ({why}){}", self.decide(By::Agent), self.noted()),
            AckVerdict::Repeat(why) => {
                self.decide(By::Repeat);
                format!("repeat ({why}){}", self.noted())
            }
        }
    }

    fn noted(&self) -> String {
        self.agent.note().dup_count.map_or(String::new(), |count| format!(" dup_count={count}"))
    }

    fn decide(&mut self, by: By) -> u32 {
        self.acks += 1;
        let (segments, bytes) = if by == By::Repeat { (0, 0) } else { (self.owed.segments, self.owed.bytes) };
        if by != By::Repeat {
            self.owed = Owed { segments: 0, bytes: 0, since: None, ..self.owed };
        }
        self.owed.last_ack = Some(self.now);
        let ack = AckDecided::new(self.now, by, segments, bytes);
        self.asked(|agent, view| agent.on_ack(&ack, view));
        segments
    }

    pub(crate) fn asked<T>(&mut self, ask: impl FnOnce(&mut dyn ReceiverAgent, &RecvView<'_>) -> T) -> T {
        let mut view = RecvView::new(self.owed, &self.path, MSS, self.advertised);
        view.peer_cwnd = self.peer_cwnd;
        ask(self.agent.as_mut(), &view)
    }
}

fn carried(so_far: Carried, option: &str) -> Carried {
    match option.split_once('=') {
        Some(("after", n)) => Carried { ack_request: n.parse().ok().map(AckRequest::After), ..so_far },
        Some(("rtt", time)) => Carried { rtt: Some(time_of(time).since(Instant::ZERO)), ..so_far },
        Some(("rate", n)) => Carried { ack_request: n.parse().ok().map(AckRequest::Rate), ..so_far },
        Some(_) => panic!("nothing is called `{option}`"),
        None if option == "push" => Carried { push: true, ..so_far },
        None if option == "ce" => Carried { ce: true, ..so_far },
        None => Carried { bytes: option.trim_end_matches('B').parse().expect("bytes"), ..so_far },
    }
}
