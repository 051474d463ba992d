//! The trace of a node's endpoint as text, as a run in virtual time writes it.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use hopwise_core::trace::TraceEvent;
use hopwise_core::trace::text::TraceText;
use hopwise_host::own_file::begin_own;
use hopwise_host::{Observer, SeenPacket};
use parking_lot::Mutex;

use hopwise_daemon::failure::Failure;

/// Text is handed on in parts of about this length.
const PART_BYTES: usize = 1 << 16;

/// A thread of the trace's own writes the file, so that a slow disk delays no program.
#[derive(Debug)]
pub(crate) struct Traced {
    written: Arc<Mutex<PendingText>>,
    writer: JoinHandle<io::Result<()>>,
}

/// The text that the writer does not have yet. Without a sender the trace is over.
#[derive(Debug)]
struct PendingText {
    text: TraceText,
    say: Option<Sender<String>>,
}

impl Traced {
    pub(crate) fn begin(path: &Path) -> Result<Traced, Failure> {
        let failed = |error| Failure::failed("begin a trace", format_args!("{}: {error}", path.display()));
        let file = begin_own(path, 0o644).map_err(failed)?;
        let (say, hear) = channel();
        let written = Arc::new(Mutex::new(PendingText { text: TraceText::new(), say: Some(say) }));
        let writing = thread::Builder::new().name("trace".into());
        let writer = writing.spawn(move || write(file, &hear)).map_err(failed)?;
        Ok(Traced { written, writer })
    }

    /// The node's driver needs it.
    pub(crate) fn observer(&self) -> Box<dyn Observer> {
        Box::new(SharedText(Arc::clone(&self.written)))
    }

    /// Writes what is left.
    pub(crate) fn end(self) -> Result<(), Failure> {
        let mut written = self.written.lock();
        written.hand_on();
        written.say = None;
        drop(written);
        let wrote = self.writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        wrote.map_err(Failure::during("write a trace"))
    }
}

#[derive(Debug)]
struct SharedText(Arc<Mutex<PendingText>>);

impl Observer for SharedText {
    fn on_packet(&mut self, _: &SeenPacket<'_>) {}

    fn on_trace(&mut self, event: &TraceEvent) {
        let mut written = self.0.lock();
        written.text.push(event);
        if written.text.as_str().len() >= PART_BYTES {
            written.hand_on();
        }
    }
}

impl PendingText {
    fn hand_on(&mut self) {
        if let Some(say) = &self.say {
            // A writer that has failed tells so at the end.
            let _ = say.send(self.text.as_str().to_owned());
        }
        self.text.clear();
    }
}

fn write(mut file: File, hear: &Receiver<String>) -> io::Result<()> {
    hear.iter().try_for_each(|text| file.write_all(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn all_parts_of_a_trace_are_written_in_order_and_an_error_is_told_at_the_end() {
        let path = std::env::temp_dir().join(format!("hopwise-traced-{}", std::process::id()));
        let (say, hear) = channel();
        let file = File::create(&path).expect("a folder for files");
        let writer = thread::spawn(move || write(file, &hear));
        let mut written = PendingText { text: TraceText::new(), say: Some(say) };
        let head = written.text.as_str().to_owned();
        written.hand_on();
        written.hand_on();
        let written = Arc::new(Mutex::new(written));
        Traced { written: Arc::clone(&written), writer }.end().expect("it is written");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), head);
        written.lock().hand_on();
        fs::remove_file(&path).expect("it is there");
        let (say, hear) = channel();
        let full = File::options().write(true).open("/dev/full").expect("Linux has it");
        let writer = thread::spawn(move || write(full, &hear));
        let written = PendingText { text: TraceText::new(), say: Some(say) };
        let failure =
            Traced { written: Arc::new(Mutex::new(written)), writer }.end().expect_err("it is full");
        assert!(failure.to_string().contains("write a trace"), "{failure}");
    }
}
