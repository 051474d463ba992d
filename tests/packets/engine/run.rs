//! Drives one endpoint through a script, in virtual time: lines that act, and lines that expect.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hopwise_core::endpoint::{Event, ListenerId};
use hopwise_core::trace::TraceEvent;
use hopwise_core::wire::bundle::Cutter;
use hopwise_core::{Cast, Endpoint, Instant, LinkId, Machine, Payload, Rx};

use super::build;
use super::peer::Peer;
use super::script::{Arrow, Line, When, arrow, read_line};
use super::seen::Seen;
use super::segment::{Inbound, Outbound};
use super::settings::Settings;
use super::text::{Read, Words, problem, show_time};

/// The driver's behaviour; the endpoint's may not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Timeouts come when they are due.
    Calm,
    /// Timeouts come early and twice as well.
    Nervous,
    /// The link takes bundles and cuts them up: the peer sees what it sees without bundles.
    Cutting,
}

pub(crate) struct Run {
    pub(crate) endpoint: Endpoint,
    pub(crate) settings: Settings,
    pub(crate) peers: Vec<Peer>,
    pub(crate) listeners: BTreeMap<u16, ListenerId>,
    /// Events that no line has taken yet: the peer's name and the event.
    pub(crate) events: VecDeque<(String, String)>,
    pub(crate) trace: Vec<TraceEvent>,
    /// The end of the trace that was checked.
    pub(crate) trace_mark: usize,
    /// Drops that the script knows of.
    pub(crate) known_drops: BTreeMap<&'static str, u64>,
    pub(crate) ignores_drops: bool,
    /// True if the link takes packets.
    pub(crate) has_room: bool,
    /// The instant of the script's 0.
    start: Instant,
    now: u64,
    pending: VecDeque<Emitted>,
    /// Identifications of IPv4 packets: destination, ports and number.
    identifications: BTreeSet<Vec<u8>>,
    manner: Manner,
    turns: u64,
}

/// A packet that left and that no line has expected yet.
struct Emitted {
    at: u64,
    peer: usize,
    seen: Seen,
}

impl Run {
    pub(crate) fn new(mut settings: Settings, manner: Manner) -> Read<Run> {
        if manner == Manner::Cutting {
            settings.takes_bundles();
        }
        let (endpoint, start) = settings.finish()?;
        Ok(Run {
            endpoint,
            peers: settings.peers.clone(),
            settings,
            listeners: BTreeMap::new(),
            events: VecDeque::new(),
            trace: Vec::new(),
            trace_mark: 0,
            known_drops: BTreeMap::new(),
            ignores_drops: false,
            has_room: true,
            start,
            now: 0,
            pending: VecDeque::new(),
            identifications: BTreeSet::new(),
            manner,
            turns: 0,
        })
    }

    /// The endpoint's clock.
    pub(crate) fn instant(&self) -> Instant {
        Instant(self.start.0 + self.now)
    }

    pub(crate) fn script_time(&self, at: Instant) -> u64 {
        at.0.saturating_sub(self.start.0)
    }

    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// The value of a peer's timestamp clock.
    fn peer_ms(&self) -> u32 {
        1000 + (self.now / 1_000_000) as u32
    }

    /// The peer of that name; the first one where no name is given.
    pub(crate) fn peer(&self, name: &str) -> Read<usize> {
        if name.is_empty() {
            return Ok(0);
        }
        let place = self.peers.iter().position(|peer| peer.name == name);
        place.ok_or_else(|| problem!("there is no peer `{name}`: declare it with `peer {name} ADDRESS:PORT`"))
    }

    /// Takes a peer's name from the words, if there is one.
    pub(crate) fn take_peer(&self, words: &mut Words) -> usize {
        let named = self.peers.iter().position(|peer| words.peek() == Some(peer.name.as_str()));
        if named.is_some() {
            words.next();
        }
        named.unwrap_or(0)
    }

    pub(crate) fn line(&mut self, line: &Line) -> Read<()> {
        let mut words = line.words.clone();
        if self.manner == Manner::Nervous {
            self.fidget();
        }
        match words.peek().and_then(arrow) {
            Some((Arrow::Out, name)) => {
                let peer = self.peer(name)?;
                words.next();
                let wanted = Outbound::read(&mut words)?;
                self.expect(line.when, peer, &wanted)
            }
            Some((Arrow::In, name)) => {
                let peer = self.peer(name)?;
                words.next();
                let inbound = Inbound::read(&mut words)?;
                self.wait(line.when)?;
                self.inject(peer, &inbound)
            }
            None => {
                self.wait(line.when)?;
                self.act(&mut words)?;
                words.finish()
            }
        }
    }

    /// Lines that stand for several.
    pub(crate) fn lines(&mut self, text: &str) -> Read<()> {
        for line in text.lines() {
            if let Some(line) = read_line(0, line)? {
                self.line(&line).map_err(|problem| problem!("in `{}`: {problem}", line.text))?;
            }
        }
        Ok(())
    }

    fn act(&mut self, words: &mut Words) -> Read<()> {
        let Some(verb) = words.next().map(str::to_owned) else { return Ok(()) };
        if self.check(&verb, words)? {
            return Ok(());
        }
        self.nothing_waits()?;
        self.call(&verb, words)?;
        self.settle()
    }

    /// Before the script does something new, everything that left must have been expected.
    fn nothing_waits(&self) -> Read<()> {
        match self.pending.front() {
            None => Ok(()),
            Some(emitted) => Err(problem!("nobody expects what left: {}", self.show(emitted))),
        }
    }

    fn show(&self, emitted: &Emitted) -> String {
        let peer = &self.peers[emitted.peer];
        let name = if emitted.peer == 0 { "" } else { &peer.name };
        format!("\n    >{name} {}    at {}", emitted.seen.show(peer), show_time(emitted.at))
    }

    fn inject(&mut self, peer: usize, inbound: &Inbound) -> Read<()> {
        self.nothing_waits()?;
        self.turn_to(peer);
        let now_ms = self.peer_ms();
        let (mut cast, mut segment_bytes) = (Cast::ToUs, None);
        let packet = match inbound {
            Inbound::Raw(packet) => packet.clone(),
            Inbound::Icmp(icmp) => build::icmp(icmp, &self.peers[peer])?,
            Inbound::Tcp(segment) => {
                cast = segment.tricks.cast.unwrap_or(cast);
                segment_bytes = segment.tricks.coalesced;
                build::tcp(segment, &mut self.peers[peer], now_ms)?
            }
        };
        let rx = Rx { link: LinkId(0), from: None, cast, segment_bytes, packet: &packet };
        self.endpoint.handle_packet(self.instant(), &rx);
        self.settle()
    }

    /// Drains the endpoint's packets, events and trace.
    pub(crate) fn settle(&mut self) -> Read<()> {
        let now = self.instant();
        let mut packet = Vec::new();
        while self.has_room {
            packet.clear();
            let Some(transmit) = self.endpoint.poll_transmit(now, LinkId(0), Payload::Inline, &mut packet)
            else {
                break;
            };
            match transmit.segment_bytes {
                Some(segment_bytes) if self.manner == Manner::Cutting => self.cut(&packet, segment_bytes)?,
                segment_bytes => self.emitted(&packet, segment_bytes)?,
            }
        }
        let trace = &mut self.trace;
        self.endpoint.drain_trace(&mut |event| trace.push(*event));
        while let Some(event) = self.endpoint.poll_event() {
            let named = self.name_event(event);
            self.events.push_back(named);
        }
        if self.endpoint.forgotten_events() > 0 {
            return Err(problem!("the trace's ring was too small"));
        }
        Ok(())
    }

    /// Cuts a bundle, as a network card would.
    fn cut(&mut self, bundle: &[u8], segment_bytes: u16) -> Read<()> {
        let cutter = Cutter::new(bundle, segment_bytes);
        let mut cutter = cutter.map_err(|reason| problem!("a bundle cannot be cut: {reason:?}"))?;
        let mut packet = Vec::new();
        while cutter.cut(bundle, &mut packet) {
            self.emitted(&packet, None)?;
            packet.clear();
        }
        Ok(())
    }

    fn emitted(&mut self, packet: &[u8], segment_bytes: Option<u16>) -> Read<()> {
        let mut seen = Seen::read(packet, self.settings.most_bytes(segment_bytes))
            .map_err(|problem| problem!("a packet left that may not: {problem}: {packet:02x?}"))?;
        self.check_identification(packet, segment_bytes)?;
        let peer = self.peer_of(&seen);
        if let Seen::Tcp(segment) = &mut seen {
            segment.segment_bytes = segment_bytes;
            self.peers[peer].remember(packet);
            let met = segment.meet(&mut self.peers[peer]);
            met.map_err(|problem| {
                problem!("a segment left that may not: {}: {problem}", segment.show(&self.peers[peer]))
            })?;
        }
        self.pending.push_back(Emitted { at: self.now, peer, seen });
        Ok(())
    }

    /// Pieces of two packets must not be taken for pieces of one (RFC 6864), nor a retransmission for a copy. Packets
    /// without a connection have no number and no payload, and are not cut. SYNs of two connections may leave at one
    /// instant.
    fn check_identification(&mut self, packet: &[u8], segment_bytes: Option<u16>) -> Read<()> {
        if packet[0] != 0x45 || packet[9] != 6 {
            return Ok(());
        }
        let payload = packet.len() - 20 - usize::from(packet[32] >> 4) * 4;
        let may_be_cut = packet[6] & 0x40 == 0 && packet.len() > 68;
        let first = u16::from_be_bytes([packet[4], packet[5]]);
        let is_syn = packet[33] & 2 != 0;
        if (first == 0 || is_syn) && payload == 0 && !may_be_cut {
            return Ok(());
        }
        let from: &[u8] = if may_be_cut { &[0; 2] } else { &packet[20..22] };
        let segments = segment_bytes.map_or(1, |each| payload.div_ceil(each.into()));
        for nth in 0..segments {
            let id = first.wrapping_add(nth as u16).to_be_bytes();
            let name = [&packet[16..20], from, &packet[22..24], &id].concat();
            if !self.identifications.insert(name) {
                return Err(problem!("two packets have one identification: {packet:02x?}"));
            }
        }
        Ok(())
    }

    /// The script deals with this peer.
    pub(crate) fn turn_to(&mut self, peer: usize) {
        self.turns += 1;
        self.peers[peer].turn = self.turns;
    }

    /// The peer with the latest turn of all for which `is_it` holds.
    pub(crate) fn latest(&self, is_it: impl Fn(&Peer) -> bool) -> Option<usize> {
        let those = self.peers.iter().enumerate().rev().filter(|(_, peer)| is_it(peer));
        those.max_by_key(|(_, peer)| peer.turn).map(|(place, _)| place)
    }

    fn peer_of(&self, seen: &Seen) -> usize {
        let place = match seen {
            Seen::Tcp(segment) => self
                .latest(|peer| (peer.local, peer.remote) == (segment.src, segment.dst))
                .or_else(|| self.latest(|peer| peer.remote == segment.dst)),
            Seen::Icmp { dst, .. } => self.latest(|peer| peer.remote.ip() == *dst),
        };
        place.unwrap_or(0)
    }

    fn name_event(&self, event: Event) -> (String, String) {
        let Event::Connection(id, kind) = event else { return (String::new(), "incoming".to_owned()) };
        let of_id = self.peers.iter().find(|peer| peer.conn == Some(id));
        let remote = self.endpoint.info(self.instant(), id).ok().map(|info| info.flow.remote);
        let of_flow = self.peers.iter().find(|peer| Some(peer.remote) == remote);
        let name = of_id.or(of_flow).map_or_else(String::new, |peer| peer.name.clone());
        (name, super::checks::show_event(kind))
    }

    /// Lets time pass, in silence.
    fn wait(&mut self, when: When) -> Read<()> {
        let target = match when {
            When::Now => return Ok(()),
            When::After(after) => self.now + after,
            When::At(at) if at >= self.now => at,
            When::At(_) => return Err(problem!("it is {} already", show_time(self.now))),
            When::Within(..) => return Err(problem!("a span of time goes with `>` only")),
        };
        self.nothing_waits()?;
        while self.step(target)? {
            if self.pending.front().is_some_and(|emitted| emitted.at < target) {
                self.nothing_waits()?;
            }
        }
        Ok(())
    }

    /// Handles the next deadline up to `target`; false, and `target` is reached, when there is none.
    fn step(&mut self, target: u64) -> Read<bool> {
        let due = self.endpoint.poll_timeout();
        if due != self.endpoint.poll_timeout() {
            return Err(problem!("poll_timeout is not pure"));
        }
        let due = due.map(|due| self.script_time(due).max(self.now)).filter(|due| *due <= target);
        let Some(due) = due else {
            self.now = target;
            return Ok(false);
        };
        if self.manner == Manner::Nervous {
            self.now += (due - self.now) / 2;
            self.fidget();
            self.settle()?;
        }
        self.now = due;
        self.endpoint.handle_timeout(self.instant());
        if self.manner == Manner::Nervous {
            self.fidget();
        }
        self.settle()?;
        let next = self.endpoint.poll_timeout();
        if self.has_room && next.is_some_and(|next| next <= self.instant()) {
            return Err(problem!("a deadline at {} stays due after it was handled", show_time(self.now)));
        }
        Ok(true)
    }

    /// Handles a timeout that is not due.
    fn fidget(&mut self) {
        self.endpoint.handle_timeout(self.instant());
    }

    fn expect(&mut self, when: When, peer: usize, wanted: &Outbound) -> Read<()> {
        let (least, most) = match when {
            When::Now => (self.now, self.now),
            When::After(after) => (self.now + after, self.now + after),
            When::Within(least, most) => (self.now + least, self.now + most),
            When::At(at) => (at, at),
        };
        if matches!(wanted, Outbound::Anything) {
            while self.step(most)? {}
            self.pending.clear();
            return Ok(());
        }
        while self.pending.is_empty() && self.now < most {
            self.step(most)?;
        }
        let Some(emitted) = self.pending.pop_front() else {
            return Err(problem!("nothing came until {}", show_time(most)));
        };
        let mut differences = emitted.seen.differences(&self.as_cut(wanted), &self.peers[peer]);
        if emitted.peer != peer {
            differences.push(format!("it goes to another peer, `{}`", self.peers[emitted.peer].name));
        }
        if emitted.at < least || emitted.at > most {
            differences.push(format!("it came at {}, not at {}", show_time(emitted.at), show_time(least)));
        }
        if differences.is_empty() {
            return Ok(());
        }
        Err(problem!("there came{}\n  {}", self.show(&emitted), differences.join("\n  ")))
    }

    /// A network card leaves PSH to the last segment of a bundle; ours has it on everything that is sent again.
    fn as_cut(&self, wanted: &Outbound) -> Outbound {
        let mut wanted = wanted.clone();
        if let (Manner::Cutting, Outbound::Tcp(segment)) = (self.manner, &mut wanted) {
            segment.ignores_push = true;
        }
        wanted
    }

    /// Checks the rules for the end of every script.
    pub(crate) fn finish(&mut self) -> Read<()> {
        self.nothing_waits()?;
        self.check_end()
    }

    /// `open active|passive [PEER] [OPTIONS] [win N] [rtt TIME]`: a handshake, for scripts about later events.
    pub(crate) fn open(&mut self, words: &mut Words) -> Read<()> {
        let way = words.want("active or passive")?.to_owned();
        let peer = self.take_peer(words);
        let (mut options, mut window, mut rtt) =
            ("[mss 1460, sack_ok]".to_owned(), 65_535, "10ms".to_owned());
        while let Some(word) = words.next().map(str::to_owned) {
            match word.as_str() {
                "win" => window = super::text::field(words.want("the window")?)?,
                "rtt" => rtt = words.want("the round-trip time")?.to_owned(),
                list if list.starts_with('[') => options = word,
                other => return Err(problem!("`{other}`: open takes options, win and rtt")),
            }
        }
        let name = if peer == 0 { String::new() } else { self.peers[peer].name.clone() };
        let ecn = if self.settings.tcp.ecn { "EW" } else { "" };
        let stamped = if options.contains("ts") && self.settings.tcp.timestamps { "[ts]" } else { "" };
        let text = match way.as_str() {
            "active" => format!(
                "connect {name}\n>{name} S{ecn} seq 0\n+{rtt} <{name} S. seq 0 ack 1 win {window} {options}\n\
                 >{name} . seq 1 ack 1\nevent {name} connected"
            ),
            "passive" => format!(
                "{}<{name} S seq 0 win {window} {options}\n>{name} S. seq 0 ack 1\n\
                 +{rtt} <{name} . seq 1 ack 1 {stamped}\naccept {name}",
                if self.listeners.is_empty() { "listen\n" } else { "" }
            ),
            other => return Err(problem!("`{other}`: open active, or open passive")),
        };
        self.lines(&text)
    }
}

/// The newest lines of the trace, for reports.
pub(crate) fn trace_tail(run: &Run, count: usize) -> String {
    let mut text = String::new();
    for event in &run.trace[run.trace.len().saturating_sub(count)..] {
        let shifted = TraceEvent { now: Instant(run.script_time(event.now)), ..*event };
        hopwise_core::trace::text::write_line(&shifted, &mut text);
    }
    text
}
