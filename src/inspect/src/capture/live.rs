//! `hopwise capture live`: the capture of a running node as a stream, for another program to read.
//!
//! The daemon never waits for a reader: it writes two small files in turn next to its socket, and this command reads
//! them. A reader that is too slow loses packets, and takes no memory from the node.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use hopwise_host::own_file::{begin_own, folder_of};
use hopwise_host::wait_for;
use rustix::event::{PollFd, PollFlags};

use super::ask;
use crate::pcapng::{INTERFACE, LONGEST, SECTION};
use hopwise_daemon::failure::Failure;
use hopwise_daemon::signals;
use hopwise_node::control::client::Control;
use hopwise_node::control::{Request, Response};

/// Size of each of the two files.
const ROTATE: u64 = 8 << 20;
const FILES: u32 = 2;
/// Time between two looks for what the daemon has written.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Looks without anything new until the daemon is asked whether the capture goes on.
const ASK_AFTER: u32 = 20;
const PIECE: u64 = 64 << 10;

/// Stream the capture of a running node in pcapng format, until Ctrl-C
#[derive(Args, Debug)]
#[command(after_help = "\
A reader that is slower than the node misses packets. A node has one capture at a time.

Examples:
  hopwise capture live | wireshark -k -i -
  ssh pi3 hopwise capture live | wireshark -k -i -
  hopwise capture live | tshark -r - -X lua_script:docs/wireshark/hopwise.lua -Y hopwise.withheld")]
pub(super) struct Arguments {
    /// Name of a link to capture (default: all); repeatable
    #[arg(long, value_name = "NAME")]
    pub(super) link: Vec<String>,
    /// File or named pipe to write (default: standard output)
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, control: &Control) -> Result<(), Failure> {
    let (runtime, mut ending) = signals::runtime()?;
    let file = folder_of(&control.path()?).join(format!("live-{}.pcapng", std::process::id()));
    let request = Request::CaptureStart {
        file: file.clone(),
        links: arguments.link.clone(),
        rotate_bytes: Some(ROTATE),
        files: FILES,
    };
    ask(control, &request)?;
    let _begun = BegunCapture { control, file: &file };
    let mut out = output(arguments.output.as_deref())?;
    let mut stream =
        DaemonFiles::open(&file).map_err(|error| Failure::failed("read the daemon's capture", error))?;
    let goes_on = {
        let (control, file) = (control.clone(), file.display().to_string());
        move || match control.ask(&Request::Status) {
            Ok(Response::Status(status)) => status.capture.is_some_and(|capture| capture.file == file),
            _ => false,
        }
    };
    // A write to a reader that stands still keeps no signal waiting.
    let pumping = runtime.spawn_blocking(move || stream.pump(&mut out, &goes_on));
    let pumped = runtime.block_on(async {
        tokio::select! {
            () = ending.next() => Ok(()),
            pumped = pumping => pumped.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic())),
        }
    });
    runtime.shutdown_background();
    match pumped {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::failed("stream", error)),
        _ => Ok(()),
    }
}

fn output(path: Option<&Path>) -> Result<File, Failure> {
    let Some(path) = path else {
        let out = io::stdout().as_fd().try_clone_to_owned();
        return out.map(File::from).map_err(|error| Failure::failed("stream", error));
    };
    let is_stream = fs::metadata(path).is_ok_and(|facts| !facts.is_file());
    let opened = if is_stream { File::options().write(true).open(path) } else { begin_own(path, 0o644) };
    opened.map_err(|error| Failure::refused(path.display().to_string(), error))
}

/// A capture that is running, which ends and leaves nothing when this is dropped.
struct BegunCapture<'a> {
    control: &'a Control,
    file: &'a Path,
}

impl Drop for BegunCapture<'_> {
    fn drop(&mut self) {
        // The daemon may have ended before.
        let _ = ask(self.control, &Request::CaptureStop);
        let _ = fs::remove_file(self.file);
        let _ = fs::remove_file(older(self.file));
    }
}

/// The name that a full file gets.
fn older(path: &Path) -> PathBuf {
    hopwise_host::numbered(path, FILES - 1)
}

/// The daemon's two files as one.
struct DaemonFiles {
    path: PathBuf,
    file: File,
    inode: u64,
    /// Bytes of a block that is not whole yet.
    rest: Vec<u8>,
    is_first_file: bool,
}

impl DaemonFiles {
    fn open(path: &Path) -> io::Result<DaemonFiles> {
        let file = File::open(path)?;
        let inode = file.metadata()?.ino();
        Ok(DaemonFiles { path: path.to_owned(), file, inode, rest: Vec::new(), is_first_file: true })
    }

    /// Copies what comes until the capture or the reader ends.
    fn pump(&mut self, out: &mut File, goes_on: &dyn Fn() -> bool) -> io::Result<()> {
        let mut quiet = 0;
        loop {
            let next = self.next_file()?;
            let is_new = self.copy(out)?;
            quiet = if is_new { 0 } else { quiet + 1 };
            match next {
                Next::Is(file) => self.begin(file)?,
                Next::Gone => return Ok(()),
                Next::Not if is_gone_within(out, LOOK_EVERY)? => return Ok(()),
                Next::Not if quiet % ASK_AFTER == ASK_AFTER - 1 && !goes_on() => {
                    return self.copy(out).map(|_| ());
                }
                Next::Not => {}
            }
        }
    }

    fn begin(&mut self, file: File) -> io::Result<()> {
        self.inode = file.metadata()?.ino();
        self.file = file;
        self.rest.clear();
        self.is_first_file = false;
        Ok(())
    }

    /// The file behind this one. If two came since, the first of them is the older one now.
    fn next_file(&self) -> io::Result<Next> {
        if fs::metadata(&self.path).is_ok_and(|facts| facts.ino() == self.inode) {
            return Ok(Next::Not);
        }
        let open = |path: &Path| match File::open(path) {
            Ok(file) => file.metadata().map(|facts| Some((facts.ino(), file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        let newest = open(&self.path)?;
        let older = open(&older(&self.path))?;
        Ok(match (newest, older) {
            (Some((_, newest)), Some((inode, _))) if inode == self.inode => Next::Is(newest),
            (_, Some((inode, older))) if inode != self.inode => Next::Is(older),
            (Some((_, newest)), None) => Next::Is(newest),
            // Between two names, while the daemon rotates.
            (None, Some(_)) => Next::Not,
            (None, None) | (Some(_), Some(_)) => Next::Gone,
        })
    }

    /// Hands on all whole blocks that are there. Returns whether anything was new.
    fn copy(&mut self, out: &mut dyn Write) -> io::Result<bool> {
        let mut is_new = false;
        while (&self.file).take(PIECE).read_to_end(&mut self.rest)? > 0 {
            is_new = true;
            self.hand_on(out)?;
        }
        out.flush().map(|()| is_new)
    }

    /// A later file describes the interfaces again, and the reader knows them.
    fn hand_on(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let mut from = 0;
        while let Some((kind, len)) = block(&self.rest[from..])? {
            let Some(bytes) = self.rest.get(from..from + len) else { break };
            if self.is_first_file || !matches!(kind, SECTION | INTERFACE) {
                out.write_all(bytes)?;
            }
            from += len;
        }
        self.rest.drain(..from);
        Ok(())
    }
}

/// The file behind a file.
enum Next {
    Not,
    Is(File),
    /// The daemon's files are no longer there.
    Gone,
}

/// The type and the length of the block that begins there. The daemon writes in this machine's order of bytes.
fn block(bytes: &[u8]) -> io::Result<Option<(u32, usize)>> {
    let word = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    let (Some(kind), Some(len)) = (word(0), word(4)) else { return Ok(None) };
    match usize::try_from(len) {
        Ok(len) if (12..=LONGEST).contains(&len) && len.is_multiple_of(4) => Ok(Some((kind, len))),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a block of {len} bytes in the daemon's file"),
        )),
    }
}

/// Waits for that time, or until nobody reads the pipe any more. Returns whether that is so.
fn is_gone_within(out: &File, most: Duration) -> io::Result<bool> {
    let mut polled = [PollFd::new(out, PollFlags::empty())];
    wait_for(&mut polled, most)?;
    Ok(polled[0].revents().contains(PollFlags::ERR))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(kind: u32, body: &[u8]) -> Vec<u8> {
        let len = u32::try_from(12 + body.len()).expect("short").to_ne_bytes();
        [&kind.to_ne_bytes()[..], &len, body, &len].concat()
    }

    fn stream(name: &str, begin: &[u8]) -> (PathBuf, DaemonFiles) {
        let folder = std::env::temp_dir().join(format!("hopwise-live-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("live-1.pcapng");
        fs::write(&path, begin).expect("a file");
        let stream = DaemonFiles::open(&path).expect("it is there");
        (path, stream)
    }

    fn step(stream: &mut DaemonFiles) -> Vec<u8> {
        let mut out = Vec::new();
        let next = stream.next_file().expect("a folder");
        stream.copy(&mut out).expect("memory");
        if let Next::Is(file) = next {
            stream.begin(file).expect("a file");
        }
        out
    }

    #[test]
    fn two_files_in_turn_are_one_stream_with_one_section() {
        let head = [bytes(SECTION, &[0; 16]), bytes(INTERFACE, &[1; 8])].concat();
        let packets: Vec<_> = (0..6).map(|nth| bytes(6, &[nth; 20])).collect();
        let (path, mut stream) = stream("turn", &[&head[..], &packets[0], &packets[1][..7]].concat());
        let mut all = step(&mut stream);
        let append = |more: &[u8]| {
            let mut file = File::options().append(true).open(&path).expect("it is there");
            file.write_all(more).expect("a disk");
        };
        append(&packets[1][7..]);
        all.extend(step(&mut stream));
        let rotate = |packet: &[u8]| {
            fs::rename(&path, older(&path)).expect("it is there");
            fs::write(&path, [&head[..], packet].concat()).expect("a file");
        };
        append(&packets[2]);
        rotate(&packets[3]);
        // One rotation, then two at once.
        (0..2).for_each(|_| all.extend(step(&mut stream)));
        rotate(&packets[4]);
        rotate(&packets[5]);
        (0..4).for_each(|_| all.extend(step(&mut stream)));
        assert_eq!(all, [&head[..], &packets.concat()].concat());
        fs::remove_dir_all(folder_of(&path)).expect("it is there");
        assert!(matches!(stream.next_file(), Ok(Next::Gone)));
    }

    #[test]
    fn a_block_whose_length_cannot_be_ends_the_stream() {
        for len in [0_u32, 8, 13, 1 << 30] {
            let begin = [SECTION.to_ne_bytes(), len.to_ne_bytes(), [0; 4]].concat();
            assert!(block(&begin).is_err(), "{len}");
        }
        assert_eq!(block(&[1, 0, 0]).expect("too short to tell"), None);
    }
}
