//! `hopwise capture merge`: one capture of many, an interface for each radio, with clocks that agree.
//!
//! The files are read twice. The first time finds the frames that several files have ([`heard`]), from which the
//! clocks follow ([`clock`], [`align`]). The second time writes all packets in order ([`joined`]). The part of a
//! file that is in memory is bounded.

mod align;
mod clock;
mod heard;
mod joined;

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use hopwise_daemon::failure::{self, Failure, remark, say};

use super::source::{CaptureItem, CaptureSource};
use align::{Aligned, Alignment};
use heard::HeardFrames;
use joined::{Joined, JoinedFile};

/// Merge captures into one file, with clocks aligned by frames that two nodes heard
#[derive(Args, Debug)]
#[command(after_help = "\
The clock of the first file counts. Frames that another file also has, sent there or heard, bound the other clock:
no frame comes before it was sent. Files without such frames are refused, but for --no-align.

Examples:
  hopwise capture merge results/c/n*.pcapng results/c/ends/*.pcapng -o all.pcapng
  hopwise capture merge a.pcapng b.pcapng -o both.pcapng --no-align
  tshark -r all.pcapng -Y 'frame.interface_name == \"n2\"'")]
pub(super) struct Arguments {
    /// Captures to join, in pcapng; the clock of the first one counts
    #[arg(required = true, num_args = 2..)]
    files: Vec<PathBuf>,
    /// File to write
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// Leave all clocks as they are
    #[arg(long)]
    no_align: bool,
    /// Print the clocks as one JSON object
    #[arg(long)]
    json: bool,
}

/// The merged file, and its parts.
#[derive(Debug, Serialize)]
struct MergedFile {
    out: String,
    frames: u64,
    files: Vec<Joint>,
    /// Frames that are before their causes, whatever the clocks are: one of them does not run evenly.
    too_early: u64,
    most_early_ns: i64,
}

/// One file in the merged one.
#[derive(Debug, Serialize)]
struct Joint {
    file: String,
    interfaces: Vec<String>,
    frames: u64,
    is_cut_off: bool,
    clock: Option<ClockSetting>,
}

/// The change of a clock, and the frames that tell it.
#[derive(Debug, Serialize)]
struct ClockSetting {
    /// The sum that was added to its first time.
    offset_ns: i64,
    drift_ppm: f64,
    /// Absent if all common frames went in one direction.
    error_ns: Option<i64>,
    common_frames: Option<usize>,
    with: Option<String>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { files, out, no_align, json } = arguments;
    refuse_twice(files, out)?;
    let (mut heard, mut first_times, mut sources) = (Vec::new(), Vec::new(), Vec::new());
    for path in files {
        let (names, first, source) = read(path)?;
        if let Some(nth) = heard.iter().position(|known: &HeardFrames| known.content() == names.content()) {
            return Err(twice(path, &files[nth]));
        }
        heard.push(names);
        first_times.push(first);
        sources.push(source);
    }
    let alignment = if *no_align {
        let files = files.iter().map(|_| Aligned::default()).collect();
        Alignment { files, too_early: 0, most_early_ns: 0 }
    } else {
        align::align(&heard).map_err(|alone| {
            Failure::refused(files[0].display().to_string(), align::refusal(&alone, files))
        })?
    };
    drop(heard);
    let joints = joints(files, &sources, &alignment, &first_times, *no_align);
    let merged = write(out, sources, &alignment, joints)?;
    if *json {
        return say(&failure::json(&merged)?);
    }
    say(&merged.page())
}

/// A file may be neither twice among the captures nor be written over.
fn refuse_twice(files: &[PathBuf], out: &Path) -> Result<(), Failure> {
    let mut known: Vec<PathBuf> = Vec::new();
    for path in files {
        let Ok(real) = path.canonicalize() else { continue };
        if let Some(nth) = known.iter().position(|other| *other == real) {
            return Err(twice(path, &files[nth]));
        }
        known.push(real);
    }
    match out.canonicalize() {
        Ok(real) if known.contains(&real) => {
            let problem = "it is one of the captures to join: expected another name after --out";
            Err(Failure::refused(out.display().to_string(), problem))
        }
        _ => Ok(()),
    }
}

fn twice(path: &Path, other: &Path) -> Failure {
    let problem = format!("it is the same as {}: expected each capture once", other.display());
    Failure::refused(path.display().to_string(), problem)
}

/// Reads a file for the first time: the names of its frames, its first time, and what it has.
fn read(path: &Path) -> Result<(HeardFrames, i64, CaptureSource), Failure> {
    let (mut source, mut heard, mut first) = (CaptureSource::open(path)?, HeardFrames::new(), None);
    while let Some(item) = source.next()? {
        if let CaptureItem::Packet(packet) = item {
            heard.hear(source.interfaces[packet.interface].link, &packet);
            first.get_or_insert(packet.at);
        }
    }
    if source.is_cut_off {
        let frames = source.frames;
        let name = path.display();
        remark(&format!(
            "{name} ends in the middle of a block, as after a kill: its {frames} frames are taken"
        ));
    }
    let none = || Failure::refused(path.display().to_string(), "it has no frames");
    Ok((heard, first.ok_or_else(none)?, source))
}

fn joints(
    files: &[PathBuf],
    sources: &[CaptureSource],
    alignment: &Alignment,
    first_times: &[i64],
    no_align: bool,
) -> Vec<Joint> {
    let mut taken: Vec<String> = Vec::new();
    let each = files.iter().zip(sources).zip(alignment.files.iter().zip(first_times));
    let joint = |((path, source), (aligned, first)): ((&PathBuf, &CaptureSource), (&Aligned, &i64))| {
        let interfaces = source.interfaces.iter().map(|interface| {
            let name = joined::unique_name(interface, path, &taken);
            taken.push(name.clone());
            name
        });
        let setting = || ClockSetting {
            offset_ns: aligned.clock.map(*first).saturating_sub(*first),
            drift_ppm: aligned.clock.drift * 1e6,
            error_ns: aligned.error_ns,
            common_frames: aligned.with.map(|(_, frames)| frames),
            with: aligned.with.map(|(nth, _)| files[nth].display().to_string()),
        };
        Joint {
            file: path.display().to_string(),
            interfaces: interfaces.collect(),
            frames: source.frames,
            is_cut_off: source.is_cut_off,
            clock: (!no_align).then(setting),
        }
    };
    each.map(joint).collect()
}

/// Reads the files again, and writes them into one.
fn write(
    out: &Path,
    sources: Vec<CaptureSource>,
    alignment: &Alignment,
    files: Vec<Joint>,
) -> Result<MergedFile, Failure> {
    let (mut blocks, mut streams) = (Vec::new(), Vec::new());
    for ((source, aligned), joint) in sources.into_iter().zip(&alignment.files).zip(&files) {
        let path = source.path().to_owned();
        let first = blocks.len();
        let said = joint.clock.as_ref().map_or("its clock as it was".to_owned(), ClockSetting::sentence);
        let named = source.interfaces.iter().zip(&joint.interfaces);
        blocks.extend(named.map(|(interface, name)| joined::interface_block(interface, name, &path, &said)));
        streams.push(JoinedFile::new(CaptureSource::open(&path)?, aligned.clock, first));
    }
    let joined =
        Joined::create(out, blocks).map_err(|error| Failure::refused(out.display().to_string(), error))?;
    let frames = joined.join(&mut streams)?;
    let Alignment { too_early, most_early_ns, .. } = *alignment;
    Ok(MergedFile { out: out.display().to_string(), frames, files, too_early, most_early_ns })
}

impl ClockSetting {
    /// The comment on the interfaces of the file.
    fn sentence(&self) -> String {
        let Some((with, frames)) = self.with.as_ref().zip(self.common_frames) else {
            return "its clock is the merged file's clock".to_owned();
        };
        let ClockSetting { offset_ns, drift_ppm, error_ns, .. } = self;
        let error = error_ns.map_or("unknown, as all of them went in one direction".to_owned(), millis);
        format!(
            "clock set by {} at its first frame, drift {drift_ppm:+.3} ppm, by {frames} frames in common with {with}; \
             error at most: {error}",
            signed(*offset_ns)
        )
    }

    fn cells(&self) -> [String; 5] {
        let error = self.error_ns.map_or("one way only".to_owned(), millis);
        let (frames, with) = match (&self.common_frames, &self.with) {
            (Some(frames), Some(with)) => (frames.to_string(), with.clone()),
            _ => ("-".to_owned(), "-".to_owned()),
        };
        [signed(self.offset_ns), format!("{:+.3}", self.drift_ppm), error, frames, with]
    }
}

fn signed(nanos: i64) -> String {
    format!("{}{}", if nanos < 0 { '-' } else { '+' }, millis(nanos.saturating_abs()))
}

fn millis(nanos: i64) -> String {
    format!("{}.{:06} ms", nanos / 1_000_000, nanos % 1_000_000)
}

impl MergedFile {
    fn page(&self) -> String {
        let head =
            ["interface", "file", "frames", "clock set by", "drift ppm", "error at most", "common", "with"];
        let rows = self.files.iter().map(|joint| {
            let clock = joint.clock.as_ref().map_or_else(|| ["-"; 5].map(str::to_owned), ClockSetting::cells);
            let first = [joint.interfaces.join(", "), joint.file.clone(), joint.frames.to_string()];
            first.into_iter().chain(clock).collect()
        });
        let mut lines = hopwise_daemon::table::lines(&head, &rows.collect::<Vec<_>>());
        lines.push(format!("{}: {} frames of {} files", self.out, self.frames, self.files.len()));
        if self.too_early > 0 {
            lines.push(format!(
                "{} common frames are before their causes, by {} at most: a clock did not run evenly or was set, or \
                 several packets have one time",
                self.too_early,
                millis(self.most_early_ns)
            ));
        }
        lines.join("\n")
    }
}
