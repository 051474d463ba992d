//! `hopwise trace`: reads a trace, filters it, and prints it for people or programs.

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use hopwise_core::Instant;
use hopwise_core::trace::text::{EVENT_NAMES, TraceLine, TraceReader};
use hopwise_lab::named;

use crate::failure::{self, Failure};

mod printing;
mod time;

use time::parse_time;

/// Print a trace: the actions of an endpoint and their reasons, one event a line
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise trace trace.txt --conn 1 --since 200ms --until 1.5s
  hopwise trace trace.txt --event ack-held --event ack-decided
  hopwise trace trace.txt --event dropped --json | jq .details.reason")]
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
    let mut written = if arguments.json { Ok(()) } else { printing::head(out) };
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
            Some(line) if arguments.wants(&line) => written = printing::line(&line, arguments.json, out),
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

#[cfg(test)]
mod tests;
