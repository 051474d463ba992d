//! The graph in the format of xplot, in the colours and shapes of tcptrace.

use std::fmt::Write as _;
use std::time::Duration;

use hopwise_lab::plain;

use super::points::{Ack, Data, Points};

const NEW: &str = "white";
const AGAIN: &str = "red";
const ACKED: &str = "green";
const WINDOW: &str = "yellow";
const SACKED: &str = "purple";

/// The whole file.
pub(super) fn text(points: &Points) -> String {
    let (from, to) = points.flow;
    let title = plain::line(&format!("{from} to {to}, seen at {}", points.interface));
    let mut text = format!("dtime unsigned\ntitle\n{title}\nxlabel\ntime in s\nylabel\nsequence number\n");
    points.data.iter().for_each(|one| data(&mut text, one));
    let mut before: Option<&Ack> = None;
    for ack in &points.acks {
        step(&mut text, before, ack);
        before = Some(ack);
    }
    text.push_str("go\n");
    text
}

fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a String does not fail.
    let _ = text.write_fmt(line);
}

fn data(text: &mut String, data: &Data) {
    let (at, Data { from, to, is_again, .. }) = (seconds(data.at), data);
    let colour = if *is_again { AGAIN } else { NEW };
    put(text, format_args!("{colour}\ndarrow {at} {from}\nuarrow {at} {to}\nline {at} {from} {at} {to}\n"));
    if *is_again {
        put(text, format_args!("atext {at} {to}\nR\n"));
    }
}

/// ACKs are stairs: a line until the next one, and a line up.
fn step(text: &mut String, before: Option<&Ack>, ack: &Ack) {
    let (at, to) = (seconds(ack.at), ack.to);
    match before {
        Some(before) if before.to == to => {
            let since = seconds(before.at);
            put(text, format_args!("{ACKED}\nline {since} {to} {at} {to}\ndtick {at} {to}\n"));
        }
        Some(before) => {
            let (since, low) = (seconds(before.at), before.to);
            put(text, format_args!("{ACKED}\nline {since} {low} {at} {low}\nline {at} {low} {at} {to}\n"));
        }
        None => put(text, format_args!("{ACKED}\ndot {at} {to}\n")),
    }
    if let (Some(window), Some(low)) = (ack.window, before.and_then(|before| before.window)) {
        let since = before.map_or_else(|| at.clone(), |before| seconds(before.at));
        put(text, format_args!("{WINDOW}\nline {since} {low} {at} {low}\nline {at} {low} {at} {window}\n"));
    }
    for (left, right) in &ack.sacks {
        put(text, format_args!("{SACKED}\nline {at} {left} {at} {right}\n"));
    }
    if let Some(reason) = &ack.reason {
        put(text, format_args!("{ACKED}\nrtext {at} {to}\n{}\n", plain::line(&reason.rule)));
    }
}

fn seconds(time: Duration) -> String {
    format!("{}.{:06}", time.as_secs(), time.subsec_micros())
}
