//! Files that are written during a run: captures, the frame log, traces.

use std::cell::{Cell, RefCell};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use hopwise_air::RadioWorld;
use hopwise_air::frames::{CSV_HEADER, FrameEnding, FrameEvent, Framing};
use hopwise_core::Machine;
use hopwise_core::narrow::as_u32;
use hopwise_core::trace::TraceEvent;
use hopwise_core::trace::text::TraceText;
use hopwise_host::own_file::begin_own;
use hopwise_lab::folder;
use hopwise_lab::scenario::Prepared;
use hopwise_lab::sim::SimHost;

use captures::WatchCaptures;
use ends::{EndWatcher, NodeCapture};
use hopwise_daemon::failure::Failure;

mod captures;
mod ends;
mod pcapng;
mod words;

#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedFiles {
    pub capture: bool,
    pub(crate) frames: bool,
    pub(crate) trace: bool,
}

/// The time of day at which the world begins; by default in 1970.
#[derive(Clone, Debug, Default)]
pub(crate) struct Epoch {
    pub(crate) begins: Duration,
    /// The time that a world in real time has left out until now.
    pub(crate) left_out: Rc<Cell<Duration>>,
}

impl Epoch {
    fn at(&self, ns: u64) -> Duration {
        self.begins + self.left_out.get() + Duration::from_nanos(ns)
    }
}

/// The files, shared with the world while it runs.
pub(crate) struct RunWatch {
    files: Rc<RefCell<Files>>,
}

struct Files {
    captures: Option<WatchCaptures>,
    /// The packets that the ends of flows take and send, by node.
    ends: Vec<Option<NodeCapture>>,
    frames: Option<BufWriter<File>>,
    /// By node, with the text that waits to be written.
    traces: Vec<Option<(BufWriter<File>, TraceText)>>,
    /// The first error; nothing is written after it.
    problem: Option<io::Error>,
}

impl RunWatch {
    /// `framing` is the header of the world's packets.
    pub(crate) fn begin<M: Machine>(
        wanted: WantedFiles,
        (world, framing): (&mut RadioWorld<M>, Framing),
        (prepared, epoch): (&Prepared, Epoch),
        folder: &Path,
    ) -> Result<RunWatch, Failure> {
        let mut files = Files::create(wanted, prepared, folder).map_err(|error| unwritten(folder, &error))?;
        if wanted.capture {
            let captures = WatchCaptures::create((prepared, framing), epoch, folder);
            files.captures = Some(captures.map_err(|error| unwritten(folder, &error))?);
        }
        let files = Rc::new(RefCell::new(files));
        if wanted.capture || wanted.frames {
            let sink = Rc::clone(&files);
            world.set_frames(Box::new(move |event, packet| sink.borrow_mut().on_frame(event, packet)));
            let sink = Rc::clone(&files);
            world.endings = Some(Box::new(move |ending| sink.borrow_mut().on_ending(ending)));
        }
        if wanted.capture || wanted.trace {
            let sink = Rc::clone(&files);
            world.trace = Some(Box::new(move |node, event| sink.borrow_mut().on_trace(node, event)));
        }
        Ok(RunWatch { files })
    }

    /// Also captures the packets of flows' endpoints, and notes on their radios' frames why each left.
    pub(crate) fn capture_ends(
        &self,
        world: &mut RadioWorld<SimHost>,
        prepared: &Prepared,
        folder: &Path,
    ) -> Result<(), Failure> {
        folder::make(folder, "ends").map_err(|error| unwritten(folder, &error))?;
        let folder = folder.join("ends");
        for node in ends_of_flows(prepared) {
            let place = &mut self.files.borrow_mut().ends[node as usize];
            if place.is_none() {
                let name = prepared.name_of(node);
                *place = Some(
                    NodeCapture::create(&folder, name, node).map_err(|error| unwritten(&folder, &error))?,
                );
                let watcher = EndWatcher::new(node, Rc::clone(&self.files));
                world.with(node, |_, host| host.observe_endpoint(Box::new(watcher)));
            }
        }
        Ok(())
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

fn unwritten(folder: &Path, error: &io::Error) -> Failure {
    Failure::failed("writing results", format_args!("{}: {error}", folder.display()))
}

fn ends_of_flows(prepared: &Prepared) -> impl Iterator<Item = u32> + '_ {
    prepared.plan.flows.iter().flat_map(|flow| [flow.from, flow.to])
}

impl Files {
    fn create(wanted: WantedFiles, prepared: &Prepared, folder: &Path) -> io::Result<Files> {
        fs::create_dir_all(folder)?;
        let open = |name: String| begin_own(&folder.join(name), 0o644).map(BufWriter::new);
        let (plan, count) = (&prepared.plan, as_u32(prepared.plan.positions.len()));
        let mut files = Files {
            captures: None,
            ends: (0..count).map(|_| None).collect(),
            frames: None,
            traces: (0..count).map(|_| None).collect(),
            problem: None,
        };
        if wanted.frames {
            let mut file = open("frames.csv".to_owned())?;
            writeln!(file, "{CSV_HEADER}")?;
            files.frames = Some(file);
        }
        if wanted.trace {
            let gateway = plan.gateway.iter().map(|gateway| gateway.node);
            for node in ends_of_flows(prepared).chain(gateway) {
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

    fn on_frame(&mut self, event: &FrameEvent, packet: &[u8]) {
        self.attempt(|files| {
            if let Some(captures) = &mut files.captures {
                captures.on_frame(event, packet)?;
            }
            match &mut files.frames {
                Some(frames) => writeln!(frames, "{event}"),
                None => Ok(()),
            }
        });
    }

    fn on_ending(&mut self, ending: &FrameEnding) {
        if let Some(captures) = &mut self.captures {
            captures.on_ending(ending);
        }
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
            files.captures.iter_mut().try_for_each(WatchCaptures::flush)?;
            files.ends.iter_mut().flatten().try_for_each(NodeCapture::flush)?;
            files.frames.iter_mut().try_for_each(BufWriter::flush)?;
            files.traces.iter_mut().flatten().try_for_each(|(file, _)| file.flush())
        });
    }
}
