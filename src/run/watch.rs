//! What is written while a run goes on: captures, the frame log, traces.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::rc::Rc;

use hopwise::scenario::Prepared;
use hopwise_air::frames::{CSV_HEADER, FrameEvent, Framing};
use hopwise_air::{World, radiotap};
use hopwise_core::Machine;
use hopwise_core::trace::TraceEvent;
use hopwise_core::trace::text::TraceText;

use crate::failure::Failure;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) capture: bool,
    pub(crate) frames: bool,
    pub(crate) trace: bool,
}

/// The files, shared with the world while it runs.
pub(crate) struct Watch {
    files: Rc<RefCell<Files>>,
}

struct Files {
    /// By station.
    captures: Vec<BufWriter<File>>,
    frames: Option<BufWriter<File>>,
    /// By node, with what waits to be written.
    traces: Vec<Option<(BufWriter<File>, TraceText)>>,
    /// The first thing that went wrong; nothing is written after it.
    problem: Option<io::Error>,
}

impl Watch {
    /// `framing` is what the world's packets begin with.
    pub(crate) fn begin<M: Machine>(
        wanted: Wanted,
        (world, framing): (&mut World<M>, Framing),
        prepared: &Prepared,
        folder: &Path,
    ) -> Result<Watch, Failure> {
        let failed =
            |error| Failure::failed("writing results", format_args!("{}: {error}", folder.display()));
        let files = Rc::new(RefCell::new(Files::create(wanted, prepared, folder).map_err(failed)?));
        if wanted.capture || wanted.frames {
            let files = Rc::clone(&files);
            let sink = move |event: &FrameEvent, packet: &[u8]| {
                files.borrow_mut().on_frame(event, framing, packet);
            };
            world.set_frames(Box::new(sink));
        }
        if wanted.trace {
            let files = Rc::clone(&files);
            let sink = move |node: u32, event: &TraceEvent| files.borrow_mut().on_trace(node, event);
            world.set_trace(Box::new(sink));
        }
        Ok(Watch { files })
    }

    pub(crate) fn end(self) -> Result<(), Failure> {
        let mut files = self.files.borrow_mut();
        files.flush();
        match files.problem.take() {
            Some(error) => Err(Failure::failed("writing results", error)),
            None => Ok(()),
        }
    }
}

impl Files {
    fn create(wanted: Wanted, prepared: &Prepared, folder: &Path) -> io::Result<Files> {
        fs::create_dir_all(folder)?;
        let open = |name: String| File::create(folder.join(name)).map(BufWriter::new);
        let (plan, count) = (&prepared.plan, prepared.plan.places.len() as u32);
        let mut files = Files {
            captures: Vec::new(),
            frames: None,
            traces: (0..count).map(|_| None).collect(),
            problem: None,
        };
        if wanted.capture {
            for node in 0..count {
                let mut file = open(format!("{}.pcap", prepared.name_of(node)))?;
                radiotap::write_header(&mut file)?;
                files.captures.push(file);
            }
        }
        if wanted.frames {
            let mut file = open("frames.csv".to_owned())?;
            writeln!(file, "{CSV_HEADER}")?;
            files.frames = Some(file);
        }
        if wanted.trace {
            let gateway = plan.gateway.iter().map(|gateway| gateway.node);
            for node in plan.flows.iter().flat_map(|flow| [flow.from, flow.to]).chain(gateway) {
                let file = open(format!("{}.trace.txt", prepared.name_of(node)))?;
                files.traces[node as usize] = Some((file, TraceText::new()));
            }
        }
        Ok(files)
    }

    fn attempt(&mut self, write: impl FnOnce(&mut Files) -> io::Result<()>) {
        if self.problem.is_none() {
            self.problem = write(self).err();
        }
    }

    fn on_frame(&mut self, event: &FrameEvent, framing: Framing, packet: &[u8]) {
        self.attempt(|files| {
            if let Some(capture) = files.captures.get_mut(event.station as usize) {
                radiotap::write_frame(capture, event, framing, packet)?;
            }
            match &mut files.frames {
                Some(frames) => writeln!(frames, "{event}"),
                None => Ok(()),
            }
        });
    }

    fn on_trace(&mut self, node: u32, event: &TraceEvent) {
        self.attempt(|files| {
            let Some(Some((file, text))) = files.traces.get_mut(node as usize) else { return Ok(()) };
            text.push(event);
            file.write_all(text.as_str().as_bytes())?;
            text.clear();
            Ok(())
        });
    }

    fn flush(&mut self) {
        self.attempt(|files| {
            files.captures.iter_mut().try_for_each(BufWriter::flush)?;
            files.frames.iter_mut().try_for_each(BufWriter::flush)?;
            files.traces.iter_mut().flatten().try_for_each(|(file, _)| file.flush())
        });
    }
}
