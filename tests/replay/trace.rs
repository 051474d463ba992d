//! Any text is read as a trace line by line, or is refused at a place inside the line.

use hopwise_core::trace::text::{
    COLUMN_NAMES, FIRST_LINE, TraceLine, TraceParseError, TraceReader, parse_line,
};

pub(crate) fn replay(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let mut reader = TraceReader::new();
    for line in text.lines() {
        let read = reader.line(line);
        if let Err(refused) = read {
            check_refusal(line, &refused, reader.lines());
        }
        check_line(line);
    }
    assert_eq!(reader.lines(), text.lines().count() as u64);
}

/// The two header lines apart, every line is read as it would be alone.
fn check_line(line: &str) {
    match parse_line(line) {
        Ok(read) => check_columns(line, &read),
        Err(refused) => check_refusal(line, &refused, 0),
    }
    let mut reader = TraceReader::new();
    for header in [FIRST_LINE, COLUMN_NAMES] {
        assert_eq!(reader.line(header), Ok(None));
    }
    assert_eq!(reader.line(line).is_ok(), parse_line(line).is_ok());
}

/// A line that was read and written again differs in leading zeros at most.
fn check_columns(line: &str, read: &TraceLine<'_>) {
    let TraceLine { now, conn, packet, event, details } = *read;
    let again = format!("{now}\t{conn}\t{packet}\t{event}\t{details}");
    if now != hopwise_core::Instant::FAR {
        assert_eq!(parse_line(&again), Ok(*read), "{line:?}");
    }
    assert_eq!(read.pairs().count(), details.split(' ').filter(|pair| !pair.is_empty()).count());
    for (key, _) in read.pairs() {
        assert!(read.value(key).is_some_and(|value| !value.is_empty()), "{line:?}: {key}");
    }
}

fn check_refusal(line: &str, refused: &TraceParseError, number: u64) {
    let columns = 1..=line.chars().count() + 1;
    assert!(columns.contains(&refused.column), "{line:?}: {refused} is not inside the line");
    assert_eq!(refused.line, number);
    assert!(refused.to_string().contains(refused.expected));
}
