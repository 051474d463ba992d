//! A daemon's log on standard error: a line for each event, and a bound for each kind of event and second.
//!
//! Events that a stranger can cause at will must not fill a disk. Lines beyond the bound are counted, and the count is
//! written with the next line of any kind. No thread of a daemon waits for the log's reader.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_host::{Clock, wait_for};
use lines::Lines;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags};
use tracing::{Level, Subscriber};
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

mod lines;

/// Lines of one kind in a window.
const MOST: u64 = 20;
const WINDOW: Duration = Duration::from_secs(1);
/// Time that the reader has for the last lines.
const FLUSHED_WITHIN: Duration = Duration::from_secs(1);

static LINES: Lines = Lines::new();
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

/// Lines are kept from here on. [`flow`] begins to write them, or at the latest the drop of [`Flushed`].
pub fn begin() {
    begin_with(Level::INFO);
}

/// Begins the log of a daemon's helper process, which logs only problems.
pub fn begin_for_helper() {
    begin_with(Level::WARN);
}

fn begin_with(most: Level) {
    let bounded = Bounded {
        format: Format::default().without_time().with_ansi(false),
        clock: Clock::start(),
        kinds: Mutex::default(),
    };
    let log = tracing_subscriber::fmt().with_writer(|| LineWriter).with_ansi(false).with_max_level(most);
    // The subscriber would write its own errors to standard error, and panic if that fails.
    log.log_internal_errors(false).event_format(bounded).init();
    panic::set_hook(Box::new(keep_panic));
    HAS_BEGUN.store(true, Ordering::Release);
}

/// Starts to write, on a thread of its own: call it when there may be a second thread.
pub fn flow() -> io::Result<()> {
    LINES.begin_writer(Stderr)
}

/// Writes text to standard error: through the log, if there is one.
pub(crate) fn tell(text: &str) {
    if HAS_BEGUN.load(Ordering::Acquire) {
        LINES.push(text.as_bytes());
    } else {
        // A program whose standard error fails cannot report that.
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

/// Keeps a panic for the log: written directly to standard error, it would wait for the reader.
fn keep_panic(panic: &panic::PanicHookInfo<'_>) {
    let thread = thread::current();
    let name = thread.name().unwrap_or("without a name");
    let trace = Backtrace::capture();
    let trace =
        if trace.status() == BacktraceStatus::Captured { format!("{trace}\n") } else { String::new() };
    LINES.push(format!("ERROR thread `{name}` {panic}\n{trace}").as_bytes());
}

/// Its drop writes the log, as far as the reader takes it within a second.
#[derive(Debug)]
pub struct Flushed;

impl Drop for Flushed {
    fn drop(&mut self) {
        // Without a thread no line is written.
        if HAS_BEGUN.load(Ordering::Acquire) && flow().is_ok() {
            LINES.flush(FLUSHED_WITHIN);
        }
    }
}

/// The writer that receives the log's lines.
struct LineWriter;

impl Write for LineWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        LINES.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Standard error without the standard library's lock, which other threads would wait for.
struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match rustix::io::write(io::stderr(), bytes) {
                // Another program that shares it has made it non-blocking.
                Err(rustix::io::Errno::AGAIN) => {
                    wait_for(&mut [PollFd::new(&io::stderr(), PollFlags::OUT)], Duration::MAX)?;
                }
                written => return Ok(written?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A kind of event is its place in the source.
type CallSite = (&'static str, Option<u32>);

struct Bounded {
    format: Format<Full, ()>,
    clock: Clock,
    kinds: Mutex<Kinds>,
}

#[derive(Debug, Default)]
struct Kinds {
    windows: BTreeMap<CallSite, CountWindow>,
}

#[derive(Debug)]
struct CountWindow {
    began: Instant,
    lines: u64,
}

impl Kinds {
    /// Returns whether one more line of that kind may be written now.
    fn may(&mut self, now: Instant, kind: CallSite) -> bool {
        let window = self.windows.entry(kind).or_insert(CountWindow { began: now, lines: 0 });
        window.lines += 1;
        window.lines <= MOST
    }

    /// Ended windows: their kinds, with the number of lines left out.
    fn over(&mut self, now: Instant) -> Vec<(CallSite, u64)> {
        let is_over = |window: &CountWindow| now.since(window.began) >= WINDOW;
        let ended = self.windows.extract_if(.., |_, window| is_over(window));
        ended
            .filter(|(_, window)| window.lines > MOST)
            .map(|(kind, window)| (kind, window.lines - MOST))
            .collect()
    }
}

impl<S, N> FormatEvent<S, N> for Bounded
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &tracing::Event<'_>,
    ) -> fmt::Result {
        let now = self.clock.now();
        let kind = (event.metadata().target(), event.metadata().line());
        let (over, may) = {
            let mut kinds = self.kinds.lock();
            (kinds.over(now), kinds.may(now, kind))
        };
        for ((target, line), count) in over {
            let line = line.unwrap_or_default();
            writeln!(writer, " INFO {target}: {count} more lines like those of line {line} were left out")?;
        }
        if may { self.format.format_event(context, writer, event) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_twenty_lines_and_a_count_and_other_kinds_are_said_all_the_same() {
        let (mut kinds, now) = (Kinds::default(), Instant::from_secs(9));
        let (route, gone) = (("route", Some(1)), ("route", Some(2)));
        assert_eq!((0..500).filter(|_| kinds.may(now, route)).count(), 20);
        assert!(kinds.may(now, gone));
        assert_eq!(kinds.over(now), []);
        let later = now + WINDOW;
        assert_eq!(kinds.over(later), [(route, 480)]);
        assert!(kinds.may(later, route));
        assert_eq!(kinds.over(later + WINDOW), []);
    }
}
