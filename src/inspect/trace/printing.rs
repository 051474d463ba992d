//! Prints one event for people, or for a program.

use std::io::{self, Write};

use hopwise_core::trace::text::TraceLine;
use serde_json::{Map, Value, json};

pub(super) fn head(out: &mut dyn Write) -> io::Result<()> {
    row(out, "time_s", "conn", "packet", "event", "details")
}

pub(super) fn line(line: &TraceLine<'_>, as_json: bool, out: &mut dyn Write) -> io::Result<()> {
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
