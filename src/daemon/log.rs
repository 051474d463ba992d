//! A daemon's log on standard error: a line for each event, and a bound for each kind of event and second.
//!
//! What a stranger can cause as often as it likes must not fill a disk. Lines beyond the bound are counted, and the
//! count is written with the next line of any kind.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hopwise_core::Instant;
use hopwise_host::Clock;
use parking_lot::Mutex;
use tracing::{Level, Subscriber};
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Lines of one kind in a window.
const MOST: u64 = 20;
const WINDOW: Duration = Duration::from_secs(1);

pub(crate) fn begin() {
    begin_with(Level::INFO);
}

/// The same of a daemon's helper, of which nothing is told but what goes wrong.
pub(crate) fn begin_for_helper() {
    begin_with(Level::WARN);
}

fn begin_with(most: Level) {
    let bounded = Bounded {
        format: Format::default().without_time().with_ansi(false),
        clock: Clock::start(),
        kinds: Mutex::default(),
    };
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).with_max_level(most);
    log.event_format(bounded).init();
}

/// A kind of event is the place in the source that tells it.
type Kind = (&'static str, Option<u32>);

struct Bounded {
    format: Format<Full, ()>,
    clock: Clock,
    kinds: Mutex<Kinds>,
}

#[derive(Debug, Default)]
struct Kinds {
    windows: BTreeMap<Kind, Window>,
}

#[derive(Debug)]
struct Window {
    began: Instant,
    lines: u64,
}

impl Kinds {
    /// Whether one more line of that kind may be written now.
    fn may(&mut self, now: Instant, kind: Kind) -> bool {
        let window = self.windows.entry(kind).or_insert(Window { began: now, lines: 0 });
        window.lines += 1;
        window.lines <= MOST
    }

    /// Windows that are over: their kinds, with the lines that were left out.
    fn over(&mut self, now: Instant) -> Vec<(Kind, u64)> {
        let is_over = |window: &Window| now.since(window.began) >= WINDOW;
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
