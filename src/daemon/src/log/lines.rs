//! Lines on their way to standard error, whose reader may be slow, stopped or gone.
//!
//! A thread hands a line over and goes on. One other thread writes. Lines beyond the bound are lost, and so are lines
//! that cannot be written. They are counted, and the next written line reports the count.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::mem;
use std::thread;
use std::time::Duration;

use hopwise_host::Clock;
use parking_lot::{Condvar, Mutex};

/// The largest number of waiting bytes, some thousand lines.
const MOST_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Lines {
    waiting: Mutex<LineQueue>,
    changed: Condvar,
}

/// The work of a thread.
type ThreadBody = Box<dyn FnOnce() + Send>;

#[derive(Debug)]
struct LineQueue {
    entries: VecDeque<LogEntry>,
    /// Including the entry that is being written.
    bytes: usize,
    /// Lost lines that the log has not reported yet.
    lost: u64,
    has_writer: bool,
}

#[derive(Debug)]
struct LogEntry {
    text: Vec<u8>,
    /// Lines that are lost if the entry cannot be written, and the lost lines that the entry reports.
    lines: u64,
}

impl Lines {
    pub(super) const fn new() -> Lines {
        let waiting = LineQueue { entries: VecDeque::new(), bytes: 0, lost: 0, has_writer: false };
        Lines { waiting: Mutex::new(waiting), changed: Condvar::new() }
    }

    /// Adds one line, or several that belong together, without waiting.
    pub(super) fn push(&self, line: &[u8]) {
        if !line.is_empty() {
            self.waiting.lock().push(line);
            self.changed.notify_all();
        }
    }

    /// Starts the writing thread, unless there is one.
    pub(super) fn begin_writer(&'static self, to: impl Write + Send + 'static) -> io::Result<()> {
        let begin = |run: ThreadBody| thread::Builder::new().name("log".into()).spawn(run).map(drop);
        self.begin_writer_by(begin, to)
    }

    /// A failed start leaves no mark, so a later call tries again.
    fn begin_writer_by(
        &'static self,
        begin: impl FnOnce(ThreadBody) -> io::Result<()>,
        mut to: impl Write + Send + 'static,
    ) -> io::Result<()> {
        let mut waiting = self.waiting.lock();
        if waiting.has_writer {
            return Ok(());
        }
        begin(Box::new(move || {
            let mut is_within_line = false;
            loop {
                self.write_next(&mut to, &mut is_within_line);
            }
        }))?;
        waiting.has_writer = true;
        Ok(())
    }

    /// Waits until all is written or `within` is over.
    pub(super) fn flush(&self, within: Duration) {
        let clock = Clock::start();
        let until = clock.now() + within;
        let mut waiting = self.waiting.lock();
        waiting.push(b"");
        self.changed.notify_all();
        while waiting.bytes > 0 && clock.now() < until {
            self.changed.wait_for(&mut waiting, until.since(clock.now()));
        }
    }

    /// Waits for an entry and writes it.
    fn write_next(&self, to: &mut impl Write, is_within_line: &mut bool) {
        let entry = {
            let mut waiting = self.waiting.lock();
            loop {
                match waiting.entries.pop_front() {
                    Some(entry) => break entry,
                    None => self.changed.wait(&mut waiting),
                }
            }
        };
        let written = write(to, &entry.text, is_within_line);
        let mut waiting = self.waiting.lock();
        waiting.bytes -= entry.text.len();
        if written.is_err() {
            waiting.lost += entry.lines;
        }
        self.changed.notify_all();
    }
}

impl LineQueue {
    /// An empty line only reports the count.
    fn push(&mut self, line: &[u8]) {
        let own = u64::from(!line.is_empty());
        if self.bytes + line.len() > MOST_BYTES {
            self.lost += own;
            return;
        }
        let lost = mem::take(&mut self.lost);
        let mut text = Vec::with_capacity(line.len());
        if lost > 0 {
            text.extend_from_slice(format!(" WARN log: {lost} lines could not be written\n").as_bytes());
        }
        text.extend_from_slice(line);
        if !text.is_empty() {
            self.bytes += text.len();
            self.entries.push_back(LogEntry { text, lines: lost + own });
        }
    }
}

/// Writes the text, on a line of its own even after a broken one.
fn write(to: &mut impl Write, text: &[u8], is_within_line: &mut bool) -> io::Result<()> {
    let parts = [if *is_within_line { &b"\n"[..] } else { b"" }, text];
    for mut part in parts {
        while !part.is_empty() {
            match to.write(part) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => {
                    *is_within_line = part[bytes - 1] != b'\n';
                    part = &part[bytes..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// A writer that takes a number of bytes, and is full then.
    #[derive(Clone, Debug, Default)]
    struct Disk {
        held: Arc<Mutex<Vec<u8>>>,
        room: Arc<Mutex<usize>>,
    }

    impl Disk {
        fn with(room: usize) -> Disk {
            Disk { room: Arc::new(Mutex::new(room)), ..Disk::default() }
        }

        fn text(&self) -> String {
            String::from_utf8_lossy(&self.held.lock()).into_owned()
        }
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut room = self.room.lock();
            let taken = bytes.len().min(*room);
            if taken == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            *room -= taken;
            self.held.lock().extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn write_all_of(lines: &Lines, to: &mut Disk, is_within_line: &mut bool) {
        while !lines.waiting.lock().entries.is_empty() {
            lines.write_next(to, is_within_line);
        }
    }

    #[test]
    fn what_does_not_fit_on_the_disk_is_counted_and_told_once_there_is_room() {
        let (lines, mut disk, mut is_within_line) = (Lines::new(), Disk::with(9), false);
        for line in ["first\n", "second\n", "third\n"] {
            lines.push(line.as_bytes());
            write_all_of(&lines, &mut disk, &mut is_within_line);
        }
        assert_eq!(disk.text(), "first\nsec");
        *disk.room.lock() = 1000;
        lines.push(b"fourth\n");
        write_all_of(&lines, &mut disk, &mut is_within_line);
        assert_eq!(disk.text(), "first\nsec\n WARN log: 2 lines could not be written\nfourth\n");
    }

    #[test]
    fn lines_that_nobody_reads_are_bounded_and_their_count_stands_where_they_are_missing() {
        let (lines, mut disk) = (Lines::new(), Disk::with(usize::MAX));
        let line = [&[b'.'; 1023][..], b"\n"].concat();
        let fit = MOST_BYTES / line.len();
        for _ in 0..fit + 7 {
            lines.push(&line);
        }
        assert_eq!(lines.waiting.lock().bytes, MOST_BYTES);
        write_all_of(&lines, &mut disk, &mut false);
        lines.push(b"after\n");
        write_all_of(&lines, &mut disk, &mut false);
        let text = disk.text();
        assert_eq!(text.lines().filter(|line| line.starts_with('.')).count(), fit);
        assert!(text.ends_with(".\n WARN log: 7 lines could not be written\nafter\n"));
        assert_eq!(lines.waiting.lock().bytes, 0);
    }

    #[test]
    fn a_flush_waits_for_the_thread_and_tells_of_what_was_lost_last() {
        static LINES: Lines = Lines::new();
        let disk = Disk::with(1000);
        LINES.push(b"before there is a thread\n");
        LINES.waiting.lock().lost = 3;
        LINES.begin_writer(disk.clone()).expect("a thread begins");
        LINES.flush(Duration::from_secs(300));
        assert_eq!(disk.text(), "before there is a thread\n WARN log: 3 lines could not be written\n");
    }

    #[test]
    fn a_thread_that_does_not_begin_is_begun_later() {
        static LINES: Lines = Lines::new();
        let disk = Disk::with(1000);
        LINES.push(b"the machine has no thread left\n");
        let none = |_: ThreadBody| Err(io::ErrorKind::WouldBlock.into());
        assert!(LINES.begin_writer_by(none, disk.clone()).is_err());
        LINES.begin_writer(disk.clone()).expect("a thread begins");
        LINES.flush(Duration::from_secs(300));
        assert_eq!(disk.text(), "the machine has no thread left\n");
    }

    /// A pipe without a reader, which blocks the writing thread.
    struct Stuck;

    impl Write for Stuck {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            loop {
                thread::park();
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_flush_waits_no_longer_than_it_may_for_a_reader_that_has_stopped() {
        static LINES: Lines = Lines::new();
        LINES.begin_writer(Stuck).expect("a thread begins");
        LINES.push(b"unread\n");
        LINES.flush(Duration::from_millis(10));
        assert_eq!(LINES.waiting.lock().bytes, 7);
    }
}
