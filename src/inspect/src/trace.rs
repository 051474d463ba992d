//! `hopwise capture trace`: reads a trace, filters it, and prints it for people or programs.

use std::io;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use hopwise_core::Instant;
use hopwise_core::trace::text::{EVENT_NAMES, TraceLine, TraceReader};
use hopwise_lab::named;
use serde_json::{Map, Value, json};

use hopwise_daemon::failure::{self, Failure};

/// Print a trace: an endpoint's events with their reasons, a line for each event
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise capture trace trace.txt --conn 1 --since 200ms --until 1.5s
  hopwise capture trace trace.txt --event ack-held --event ack-decided
  hopwise capture trace trace.txt --event dropped --json | jq .details.reason")]
pub(crate) struct Arguments {
    /// Trace to read; - reads standard input
    file: PathBuf,
    /// Number of the only connection to print; 0: events of no connection
    #[arg(long, value_name = "N", value_parser = parse_number)]
    conn: Option<u32>,
    /// Earliest time to print: 1.5s, 200ms, 300us, or plain seconds
    #[arg(long, value_name = "T", value_parser = parse_time)]
    since: Option<Instant>,
    /// Latest time to print
    #[arg(long, value_name = "T", value_parser = parse_time)]
    until: Option<Instant>,
    /// Name of an event to print; repeatable; a wrong name lists them all
    #[arg(
        long,
        value_name = "NAME",
        value_parser = PossibleValuesParser::new(EVENT_NAMES),
        hide_possible_values = true
    )]
    event: Vec<String>,
    /// Print a JSON object for each event
    #[arg(long)]
    json: bool,
}

fn parse_number(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| format!("expected the number of a connection, 0 to {}, as in the trace", u32::MAX))
}

impl Arguments {
    fn wants(&self, line: &TraceLine<'_>) -> bool {
        self.conn.is_none_or(|conn| conn == line.conn)
            && self.since.is_none_or(|since| since <= line.now)
            && self.until.is_none_or(|until| line.now <= until)
            && (self.event.is_empty() || self.event.iter().any(|name| name == line.event))
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let (Some(since), Some(until)) = (arguments.since, arguments.until)
        && until < since
    {
        return Err(Failure::refused("--until", format_args!("expected a time not before --since {since}s")));
    }
    let out = &mut BufWriter::new(hopwise_lab::plain::out());
    if arguments.file.as_os_str() == "-" {
        return copy(arguments, "standard input", &mut io::stdin().lock(), out);
    }
    let name = arguments.file.display().to_string();
    let file = named::open(&arguments.file).map_err(|error| Failure::refused(&name, error))?;
    copy(arguments, &name, &mut BufReader::new(file), out)
}

/// Lines of a trace are much shorter. A file without newlines must not fill the memory.
const LONGEST_LINE: u64 = 64 * 1024;

fn copy(
    arguments: &Arguments,
    name: &str,
    input: &mut dyn BufRead,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut reader = TraceReader::new();
    let mut bytes = Vec::new();
    let mut written = if arguments.json { Ok(()) } else { head(out) };
    while written.is_ok() {
        bytes.clear();
        let read = input.take(LONGEST_LINE).read_until(b'\n', &mut bytes);
        if read.map_err(|error| Failure::refused(name, error))? == 0 {
            break;
        }
        let next = reader.lines() + 1;
        let Some(text) = text_of(&bytes) else {
            return Err(Failure::refused(name, format_args!("line {next}: expected a line of UTF-8 text")));
        };
        match reader.line(text).map_err(|error| Failure::refused(name, error))? {
            Some(line) if arguments.wants(&line) => written = write_line(&line, arguments.json, out),
            _ => {}
        }
    }
    failure::printed(written.and_then(|()| out.flush()))?;
    if reader.lines() < 2 {
        return Err(Failure::refused(name, "expected a trace, beginning with the line `# hopwise-trace 1`"));
    }
    Ok(())
}

/// The line without its ending; `None` if it is no text, or longer than any trace line.
fn text_of(bytes: &[u8]) -> Option<&str> {
    let whole = (bytes.len() as u64) < LONGEST_LINE;
    let text = str::from_utf8(bytes).ok().filter(|_| whole)?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    Some(text.strip_suffix('\r').unwrap_or(text))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a time such as 1.5s, 200ms, 300us or, in seconds, 1.5")]
struct NoTime;

/// Nanoseconds in each unit. The longer names come first, since several end in `s`.
const UNITS: [(&str, u64); 5] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", SECOND), ("", SECOND)];
const SECOND: u64 = 1_000_000_000;

/// `1.5s`, `200ms`, `300us`, `7ns` or plain seconds. Fractions of a nanosecond are cut off.
fn parse_time(text: &str) -> Result<Instant, NoTime> {
    let with_unit = UNITS.iter().find_map(|(name, nanos)| Some((text.strip_suffix(name)?, nanos)));
    let (amount, unit) = with_unit.ok_or(NoTime)?;
    let (whole, decimals) = amount.split_once('.').unwrap_or((amount, "0"));
    let nanos = digits(whole)?.checked_mul(*unit).ok_or(NoTime)?;
    let scale =
        u32::try_from(decimals.len()).ok().and_then(|places| 10_u64.checked_pow(places)).ok_or(NoTime)?;
    let part = u128::from(digits(decimals)?) * u128::from(*unit) / u128::from(scale);
    let part = u64::try_from(part).map_err(|_| NoTime)?;
    nanos.checked_add(part).map(Instant).ok_or(NoTime)
}

fn digits(text: &str) -> Result<u64, NoTime> {
    let sound = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if sound { text.parse().map_err(|_| NoTime) } else { Err(NoTime) }
}

fn head(out: &mut dyn Write) -> io::Result<()> {
    row(out, "time_s", "conn", "packet", "event", "details")
}

fn write_line(line: &TraceLine<'_>, as_json: bool, out: &mut dyn Write) -> io::Result<()> {
    if as_json {
        return writeln!(out, "{}", object(line));
    }
    let TraceLine { now, conn, packet, event, .. } = line;
    row(out, &now.to_string(), &number(u64::from(*conn)), &number(*packet), event, &details(line))
}

fn row(out: &mut dyn Write, time: &str, conn: &str, packet: &str, event: &str, text: &str) -> io::Result<()> {
    let row = format!("{time:>14} {conn:>5} {packet:>8}  {event:<19}{text}");
    writeln!(out, "{}", row.trim_end())
}

/// 0 stands for no number, and `-` reads better.
fn number(number: u64) -> String {
    if number == 0 { "-".to_owned() } else { number.to_string() }
}

/// The pairs as written, but a reason in short form: `count 3 of 5`.
fn details(line: &TraceLine<'_>) -> String {
    let mut text = String::new();
    for (key, value) in line.pairs() {
        match key {
            "rule" | "reason" => text.push_str(value),
            "have" | "want" => text.push_str(if key == "have" { value } else { "of" }),
            _ => text.extend([key, "=", value]),
        }
        if key == "want" {
            text.extend([" ", value]);
        }
        text.push(' ');
    }
    text
}

fn object(line: &TraceLine<'_>) -> Value {
    let TraceLine { now, conn, packet, event, .. } = line;
    let details: Map<String, Value> = line.pairs().map(|(key, text)| (key.to_owned(), value(text))).collect();
    let seconds = now.0 as f64 / 1e9;
    json!({ "time_s": seconds, "conn": conn, "packet": packet, "event": event, "details": details })
}

fn value(text: &str) -> Value {
    text.parse::<u64>().map_or_else(|_| Value::from(text), Value::from)
}

#[cfg(test)]
mod tests;
