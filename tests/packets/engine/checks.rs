//! The lines of a script that look at more than packets: events, the connection's state, drops, and the trace.

use hopwise_core::endpoint::EventKind;
use hopwise_core::tcp::CloseReason;
use hopwise_core::trace::text::write_line;
use hopwise_core::trace::{DropReason, TraceEvent, TraceKind};

use super::fields::{self, Value};
use super::peer::Peer;
use super::run::Run;
use super::text::{Read, Words, field, pair, problem, sequence, show_sequence};

/// Events that need no line.
const IDLE_EVENTS: [&str; 4] = ["connected", "readable", "writable", "incoming"];

impl Run {
    /// Returns whether `verb` looks at something; if so, the check has passed.
    pub(crate) fn check(&mut self, verb: &str, words: &mut Words) -> Read<bool> {
        match verb {
            "event" => self.check_event(words)?,
            "no" => self.check_none(words)?,
            "info" => self.check_info(words)?,
            "gone" => self.check_gone(words)?,
            "connections" => {
                let (wanted, is) = (field::<usize>(words.want("a number")?)?, self.endpoint.connections());
                if wanted != is {
                    return Err(problem!("there are {is} connections, not {wanted}"));
                }
            }
            "dropped" => self.check_dropped(words)?,
            "trace" => self.check_trace(words)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `event [PEER] KIND …`: it has happened, and no line has taken it before.
    fn check_event(&mut self, words: &mut Words) -> Read<()> {
        let (name, wanted) = self.take_event(words);
        let is_it =
            |(whose, what): &(String, String)| *what == wanted && (wanted == "incoming" || *whose == name);
        match self.events.iter().position(is_it) {
            Some(place) => {
                self.events.remove(place);
                Ok(())
            }
            None => Err(problem!("there is no event `{wanted}`, only {:?}", self.events)),
        }
    }

    fn take_event(&self, words: &mut Words) -> (String, String) {
        let peer = self.take_peer(words);
        let wanted = words.rest();
        while words.next().is_some() {}
        (self.peers[peer].name.clone(), wanted)
    }

    /// `no event KIND`, `no trace EVENT key=value …`
    fn check_none(&mut self, words: &mut Words) -> Read<()> {
        match words.want("event or trace")? {
            "event" => {
                let (_, unwanted) = self.take_event(words);
                match self.events.iter().find(|(_, what)| what.starts_with(&unwanted)) {
                    Some((_, what)) => Err(problem!("there is an event `{what}`")),
                    None => Ok(()),
                }
            }
            "trace" => {
                let wanted = TracePattern::read(words)?;
                let found = self.trace[self.trace_mark..].iter().find(|event| self.matches(event, &wanted));
                match found {
                    Some(event) => Err(problem!("the trace has: {}", self.show_trace(event))),
                    None => Ok(()),
                }
            }
            other => Err(problem!("`{other}`: expected event or trace")),
        }
    }

    /// `info [PEER] key=value key<value …`
    fn check_info(&mut self, words: &mut Words) -> Read<()> {
        let peer = self.take_peer(words);
        let conn = self.conn(peer)?;
        let info = self.endpoint.info(self.instant(), conn).map_err(|error| problem!("{error}"))?;
        let mut known = fields::of(&info, &self.peers[peer]);
        known.push(("readable", Value::Number(self.endpoint.readable(conn).into())));
        known.push(("writable", Value::Number(self.endpoint.writable(conn).into())));
        known.push(("urgent_unread", Value::Number(self.endpoint.urgent_unread(conn).into())));
        let mut wrong = Vec::new();
        while let Some(word) = words.next() {
            wrong.extend(fields::difference(word, &known)?);
        }
        if wrong.is_empty() { Ok(()) } else { Err(problem!("{}", wrong.join("\n  "))) }
    }

    /// `gone [PEER]`: the endpoint has forgotten the connection.
    fn check_gone(&mut self, words: &mut Words) -> Read<()> {
        let peer = self.take_peer(words);
        match self.endpoint.info(self.instant(), self.conn(peer)?) {
            Ok(info) => Err(problem!("it is still there, in {}", info.state.name())),
            Err(_) => Ok(()),
        }
    }

    /// `dropped REASON N`: the total; `dropped ...`: the script does not care.
    fn check_dropped(&mut self, words: &mut Words) -> Read<()> {
        if words.take("...") {
            self.ignores_drops = true;
            return Ok(());
        }
        while let Some(name) = words.next().map(str::to_owned) {
            let reason = DropReason::ALL.iter().find(|reason| reason.name() == name);
            let reason = *reason.ok_or_else(|| problem!("`{name}` is no reason to drop a packet"))?;
            let wanted = field(words.want("how often")?)?;
            let is = self.endpoint.drops(reason);
            if is != wanted {
                return Err(problem!("dropped {name}: {is}, not {wanted}"));
            }
            self.known_drops.insert(reason.name(), wanted);
        }
        Ok(())
    }

    /// `trace EVENT key=value …`: since the last such line, in this order. `trace EVENT … times N`: the count since the
    /// script began.
    fn check_trace(&mut self, words: &mut Words) -> Read<()> {
        let wanted = TracePattern::read(words)?;
        if let Some(times) = wanted.times {
            let is = self.trace.iter().filter(|event| self.matches(event, &wanted)).count();
            return if is == times { Ok(()) } else { Err(problem!("it is there {is} times")) };
        }
        let new = self.trace.iter().enumerate().skip(self.trace_mark);
        let found = new.filter(|(_, event)| self.matches(event, &wanted)).map(|(place, _)| place).next();
        match found {
            Some(place) => {
                self.trace_mark = place + 1;
                Ok(())
            }
            None => Err(problem!("the trace does not have it")),
        }
    }

    fn matches(&self, event: &TraceEvent, wanted: &TracePattern) -> bool {
        if event.kind.name() != wanted.name {
            return false;
        }
        let line = self.show_trace(event);
        let words: Vec<&str> = line.split_whitespace().collect();
        wanted.pairs.iter().all(|pair| words.contains(&pair.as_str()))
    }

    /// The event's name and details, with relative numbers.
    fn show_trace(&self, event: &TraceEvent) -> String {
        let mut line = String::new();
        write_line(event, &mut line);
        let columns: Vec<&str> = line.trim_end().split('\t').collect();
        let peer = self.peer_of_number(event.conn);
        let details = columns.get(4).copied().unwrap_or_default().split_whitespace();
        let details: Vec<String> = details.map(|word| relative(word, event, peer)).collect();
        format!("{} {}", columns.get(3).copied().unwrap_or_default(), details.join(" "))
    }

    fn peer_of_number(&self, number: u32) -> &Peer {
        let has_number =
            |peer: &&Peer| peer.conn.is_some_and(|conn| self.endpoint.trace_number(conn) == Some(number));
        self.peers.iter().find(has_number).unwrap_or(&self.peers[0])
    }

    /// Checks that the script knows every drop, and that it took every event that needs a line.
    pub(crate) fn check_end(&self) -> Read<()> {
        for reason in DropReason::ALL {
            let (is, known) = (self.endpoint.drops(*reason), self.known_drops.get(reason.name()).copied());
            if is != known.unwrap_or(0) && !self.ignores_drops {
                return Err(problem!(
                    "at the end, dropped {}: {is}, not {}",
                    reason.name(),
                    known.unwrap_or(0)
                ));
            }
        }
        match self.events.iter().find(|(_, what)| !IDLE_EVENTS.contains(&what.as_str())) {
            Some((whose, what)) => Err(problem!("at the end, nobody asked for the event `{whose} {what}`")),
            None => Ok(()),
        }
    }
}

/// `EVENT key=value … [times N]`
struct TracePattern {
    name: String,
    pairs: Vec<String>,
    times: Option<usize>,
}

impl TracePattern {
    fn read(words: &mut Words) -> Read<TracePattern> {
        let name = words.want("the event's name")?.to_owned();
        if !hopwise_core::trace::text::EVENT_NAMES.contains(&name.as_str()) {
            return Err(problem!("`{name}` is no event of a trace"));
        }
        let mut pattern = TracePattern { name, pairs: Vec::new(), times: None };
        while let Some(word) = words.next().map(str::to_owned) {
            if word == "times" {
                pattern.times = Some(field(words.want("how often")?)?);
            } else {
                pair(&word)?;
                pattern.pairs.push(word);
            }
        }
        Ok(pattern)
    }
}

/// A pair of the trace with its sequence number as scripts write them.
fn relative(word: &str, event: &TraceEvent, peer: &Peer) -> String {
    let Some((key, value)) = word.split_once('=') else { return word.to_owned() };
    let is_its = match (key, &event.kind) {
        ("seq", TraceKind::Received { .. }) => true,
        ("ack", TraceKind::Received { .. }) => false,
        ("ack" | "number", _) => true,
        ("seq" | "point" | "to", _) => false,
        _ => return word.to_owned(),
    };
    let Ok(number) = sequence(value) else { return word.to_owned() };
    let number = if is_its { peer.its_script(number) } else { peer.our_script(number) };
    format!("{key}={}", show_sequence(number))
}

pub(crate) fn show_event(kind: EventKind) -> String {
    match kind {
        EventKind::Connected => "connected".to_owned(),
        EventKind::Readable => "readable".to_owned(),
        EventKind::Writable => "writable".to_owned(),
        EventKind::Urgent => "urgent".to_owned(),
        EventKind::PeerClosed => "peer_closed".to_owned(),
        EventKind::Struggling => "struggling".to_owned(),
        EventKind::SoftError { icmp_type, code } => format!("soft_error {icmp_type} {code}"),
        EventKind::Closed(reason) => format!("closed {}", show_reason(reason)),
    }
}

pub(crate) fn show_reason(reason: CloseReason) -> &'static str {
    match reason {
        CloseReason::Finished => "finished",
        CloseReason::Reset => "reset",
        CloseReason::Refused => "refused",
        CloseReason::TimedOut => "timed_out",
        CloseReason::Aborted => "aborted",
        CloseReason::Unreachable => "unreachable",
        CloseReason::GaveWay => "gave_way",
    }
}
