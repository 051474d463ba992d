//! Replays the connections of a log, and collects the findings.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use hopwise_agents::Profile;
use hopwise_agents::spec::{ReceiverSpec, parse_receiver};
use hopwise_core::tcp::decisions::{BadBlock, Begun, Block, Difference, Entry, LogReader, News, Replay};

use super::findings::{Agent, Differs, End, Findings, PacketName, Replayed};
use crate::failure::Failure;

/// Connections that are listed one by one; the rest count in the sums alone. As many more are listed if they differ.
const MOST_LISTED: usize = 10_000;
/// Connections at once of all machines together, as many as the log of one machine has. Beyond them those of other
/// machines end.
const MOST_AT_ONCE: usize = 1 << 16;

/// The log of one machine.
#[derive(Default)]
struct Machine {
    reader: LogReader,
    /// The number of the next block.
    next: u32,
    running: BTreeMap<u32, Running>,
    /// The connections that its reader keeps, or a few more.
    kept: usize,
    offset: Duration,
}

struct Running {
    begun: Begun,
    replay: Replay,
    others: Vec<String>,
}

pub(super) struct Connections<'a> {
    receivers: &'a [ReceiverSpec],
    wanted: Option<&'a str>,
    machines: BTreeMap<u16, Machine>,
    /// The sum of what their readers keep, and its bound.
    kept: usize,
    most: usize,
    /// The time of day of the first packet.
    begins: Option<u64>,
    findings: Findings,
}

impl<'a> Connections<'a> {
    pub(super) fn new(receivers: &'a [ReceiverSpec], wanted: Option<&'a str>) -> Connections<'a> {
        let (machines, findings) = (BTreeMap::new(), Findings::default());
        Connections { receivers, wanted, machines, kept: 0, most: MOST_AT_ONCE, begins: None, findings }
    }

    pub(super) fn begin_file(&mut self, name: &str) {
        self.findings.files.push(name.to_owned());
    }

    pub(super) fn note_writer(&mut self, writer: &str) {
        writer.clone_into(&mut self.findings.writer);
    }

    pub(super) fn note_packet(&mut self, at: u64) {
        self.begins.get_or_insert(at);
    }

    pub(super) fn note(&mut self, note: String) {
        const MOST_NOTES: usize = 20;
        if self.findings.notes.len() < MOST_NOTES {
            self.findings.notes.push(note);
        }
    }

    pub(super) fn note_damage(&mut self, note: String) {
        self.findings.is_damaged = true;
        self.note(note);
    }

    /// Takes the body of a block of the log.
    pub(super) fn take(&mut self, body: &[u8]) {
        let block = match Block::read(body) {
            Ok(block) => block,
            Err(BadBlock::NotOurs) => return,
            // The next sound block has another number than expected, which ends the connections.
            Err(bad) => return self.note_damage(format!("{}: {bad}", self.file())),
        };
        let machine = self.machines.entry(block.machine).or_default();
        machine.offset = block.offset;
        let is_gap = block.is_after_loss || block.number != machine.next;
        let expected = machine.next;
        machine.next = block.number.wrapping_add(1);
        if is_gap {
            self.note(gap(self.file(), expected, &block));
            self.forget(block.machine);
        }
        self.read(block.machine, block.entries);
    }

    fn file(&self) -> &str {
        self.findings.files.last().map_or("", String::as_str)
    }

    fn read(&mut self, number: u16, entries: &[u8]) {
        let Some(machine) = self.machines.get_mut(&number) else { return };
        let mut reader = std::mem::take(&mut machine.reader);
        let outcome = reader.read(entries, &mut |news| match news {
            News::Entry(conn, entry) => self.entry(number, conn, &entry),
            News::Gap => self.cut(number),
        });
        if let Err(damaged) = outcome {
            reader = LogReader::default();
            self.forget(number);
            self.note_damage(format!("{}: the decision log means nothing {damaged}", self.file()));
        }
        if let Some(machine) = self.machines.get_mut(&number) {
            machine.reader = reader;
        }
    }

    fn entry(&mut self, number: u16, conn: u32, entry: &Entry) {
        match entry {
            Entry::Unknown => {
                self.findings.without_beginning += 1;
                self.finish(number, conn, End::Cut);
                self.make_room(number);
            }
            Entry::Begun(begun) => {
                self.finish(number, conn, End::Cut);
                self.make_room(number);
                self.begin(number, conn, begun);
            }
            Entry::Call(_) | Entry::Outcome(_) => {
                let machine = self.machines.get_mut(&number);
                if let Some(running) = machine.and_then(|machine| machine.running.get_mut(&conn)) {
                    running.replay.take(entry);
                }
            }
        }
        if !matches!(entry, Entry::Call(call) if call.is_end()) {
            return;
        }
        self.finish(number, conn, End::Closed);
        if let Some(machine) = self.machines.get_mut(&number)
            && machine.kept > 0
        {
            machine.kept -= 1;
            self.kept -= 1;
        }
    }

    /// Makes room for one more connection of a machine. Its reader forgets its first one where it keeps too many.
    fn make_room(&mut self, number: u16) {
        let Some(machine) = self.machines.get_mut(&number) else { return };
        if machine.kept < self.most {
            machine.kept += 1;
            self.kept += 1;
        }
        if machine.running.len() >= self.most
            && let Some(first) = machine.running.first_key_value().map(|(conn, _)| *conn)
        {
            self.finish(number, first, End::Cut);
        }
        if self.kept > self.most {
            let most = self.most;
            self.note(format!("more than {most} connections at once: those of other machines end there"));
            let others = self.machines.keys().copied().filter(|other| *other != number);
            for other in others.collect::<Vec<_>>() {
                self.forget(other);
            }
        }
    }

    /// Ends all connections of a machine whose reader is not reading.
    fn forget(&mut self, number: u16) {
        self.cut(number);
        if let Some(machine) = self.machines.get_mut(&number) {
            machine.reader = LogReader::default();
            self.kept -= std::mem::take(&mut machine.kept);
        }
    }

    fn begin(&mut self, number: u16, conn: u32, begun: &Begun) {
        if !self.is_wanted(number, conn, begun) {
            return;
        }
        let live = match parse_receiver(&begun.receiver) {
            Ok(live) => live,
            Err(error) => {
                let name = name(number, conn);
                return self.note_damage(format!(
                    "connection {name} is not replayed: this program cannot make its agent: {error}"
                ));
            }
        };
        let others = self.receivers.iter().filter(|other| other.to_string() != live.to_string());
        let (names, others) = others.map(|spec| (spec.to_string(), spec.make(Profile::default()))).unzip();
        let replay = Replay::new(begun, live.make(Profile::default()), others);
        let running = Running { begun: begun.clone(), replay, others: names };
        if let Some(machine) = self.machines.get_mut(&number) {
            machine.running.insert(conn, running);
        }
    }

    fn is_wanted(&self, number: u16, conn: u32, begun: &Begun) -> bool {
        let Some(wanted) = self.wanted else { return true };
        let is_end = |end: SocketAddr| wanted.parse() == Ok(end);
        wanted == name(number, conn) || is_end(begun.local) || is_end(begun.remote)
    }

    /// A gap ends all connections of a machine.
    fn cut(&mut self, number: u16) {
        let running = self.machines.get(&number).map(|machine| machine.running.keys().copied());
        for conn in running.into_iter().flatten().collect::<Vec<_>>() {
            self.finish(number, conn, End::Cut);
        }
    }

    fn finish(&mut self, number: u16, conn: u32, end: End) {
        let Some(machine) = self.machines.get_mut(&number) else { return };
        let Some(Running { begun, mut replay, others }) = machine.running.remove(&conn) else { return };
        if end == End::Closed {
            replay.conclude();
        }
        let since = Duration::from_nanos(self.begins.unwrap_or(0));
        let difference = replay.difference().map(|it| differs(it, number, machine.offset, since));
        let mut tallies = replay.tallies();
        let live = tallies.next().unwrap_or_default();
        let findings = &mut self.findings;
        findings.arrivals += replay.arrivals();
        findings.acks += live.acks;
        findings.different += u64::from(difference.is_some());
        if replay.arrivals() == 0 && difference.is_none() {
            findings.without_arrivals += 1;
            return;
        }
        if findings.connections.len() >= MOST_LISTED && difference.is_none() {
            findings.not_listed += 1;
            return;
        }
        if findings.connections.len() >= 2 * MOST_LISTED {
            findings.different_not_listed += 1;
            return;
        }
        let others = others.into_iter().zip(tallies).map(|(spec, tally)| Agent::of(spec, &tally)).collect();
        findings.connections.push(Replayed {
            number: name(number, conn),
            from: begun.remote,
            to: begun.local,
            live: Agent::of(begun.receiver.clone(), &live),
            receiver: begun.receiver,
            end,
            arrivals: replay.arrivals(),
            left: replay.left(),
            merged: replay.merged(),
            difference,
            others,
        });
    }

    /// The logs are at their end.
    pub(super) fn conclude(mut self) -> Result<Findings, Failure> {
        for number in self.machines.keys().copied().collect::<Vec<_>>() {
            let running = self.machines.get(&number).map(|machine| machine.running.keys().copied());
            for conn in running.into_iter().flatten().collect::<Vec<_>>() {
                self.finish(number, conn, End::Open);
            }
        }
        let findings = self.findings;
        let nothing = findings.connections.is_empty() && findings.without_arrivals == 0;
        match self.wanted {
            Some(wanted) if nothing => {
                let problem = format!(
                    "no connection `{wanted}`: expected a number, as the output has without --connection, or the \
                     ADDRESS:PORT of an end"
                );
                Err(Failure::refused("--connection", problem))
            }
            _ => Ok(findings),
        }
    }
}

/// The text about a gap before a block.
fn gap(file: &str, expected: u32, block: &Block<'_>) -> String {
    let number = block.number;
    if number == expected {
        return "entries were lost while the capture was written: connections end there".to_owned();
    }
    if expected == 0 {
        return format!(
            "the log begins in an earlier file: {file} goes on with its block {number}; name all files of the capture"
        );
    }
    if number < expected {
        return format!("{file}: the log goes back from block {expected} to {number}, as in another capture");
    }
    format!("{file}: blocks {expected} to {} of the log are missing", number - 1)
}

fn name(machine: u16, conn: u32) -> String {
    if machine == 0 { conn.to_string() } else { format!("{machine}.{conn}") }
}

fn differs(difference: &Difference, machine: u16, offset: Duration, since: Duration) -> Differs {
    let Difference { call, live, replayed } = difference;
    let at = offset + Duration::from_nanos(call.at.0);
    let outcome =
        |outcome: &Option<_>| outcome.as_ref().map_or_else(|| "nothing more".to_owned(), ToString::to_string);
    let id = if call.packet == 0 { 0 } else { u64::from(machine) << 48 | call.packet };
    Differs {
        time_s: at.saturating_sub(since).as_secs_f64(),
        frame: None,
        file: None,
        call: call.to_string(),
        live: outcome(live),
        replayed: outcome(replayed),
        packet: PacketName { id, has_left: call.is_of_leaving() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The entry of a connection that begins.
    fn begun(conn: u8) -> Vec<u8> {
        let mut entry = vec![conn, 0];
        for text in ["[fd00::1]:7", "[fd00::2]:9", "delayed"] {
            entry.push(u8::try_from(text.len()).expect("it is short"));
            entry.extend(text.as_bytes());
        }
        entry.extend([1, 0]);
        entry
    }

    fn running(connections: &Connections<'_>) -> Vec<usize> {
        connections.machines.values().map(|machine| machine.running.len()).collect()
    }

    #[test]
    fn connections_that_only_begin_are_bounded_over_all_machines() {
        let mut connections = Connections { most: 100, ..Connections::new(&[], None) };
        let begin = |connections: &mut Connections<'_>, machine: u16, conns: u8| {
            connections.machines.entry(machine).or_default();
            (0..conns).for_each(|conn| connections.read(machine, &begun(conn)));
        };
        begin(&mut connections, 0, 60);
        begin(&mut connections, 1, 40);
        assert_eq!((running(&connections), connections.findings.notes.len()), (vec![60, 40], 0));
        begin(&mut connections, 2, 1);
        assert_eq!((running(&connections), connections.kept), (vec![0, 0, 1], 1));
        assert!(connections.findings.notes[0].contains("more than 100 connections"));
        // Those of the others are forgotten, and one machine has no more either.
        begin(&mut connections, 2, 127);
        assert_eq!((running(&connections), connections.kept), (vec![0, 0, 100], 100));
        let findings = connections.conclude().expect("it is findings");
        assert_eq!(findings.without_arrivals, 60 + 40 + 1 + 127);
        assert!(!findings.is_damaged);
    }
}
