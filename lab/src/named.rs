//! Files that a user names, or that a file of the user names: their text is bounded, and so is the wait for it.

use std::fs::{File, OpenOptions};
use std::io::{self, Cursor, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl, fstatfs};

use crate::folder;

/// Bytes that are read before a pipe is waited for.
const FIRST: usize = 4096;
/// The kernel's number for the file system of pipes that have no name.
const NAMELESS: u64 = 0x5049_5045;

/// The text of a file that a command line names. It may be a pipe that somebody writes to, such as the shell's `<(…)`,
/// or a device.
pub fn read(path: &Path, largest: u64) -> io::Result<String> {
    bounded(open(path)?, largest)
}

/// The same as [`read`], for a reader that bounds what it takes itself.
pub fn open(path: &Path) -> io::Result<impl Read + use<>> {
    let mut file = without_wait(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(refused("it is a folder: expected a file"));
    }
    let mut first = Vec::new();
    if !kind.is_file() {
        first.resize(FIRST, 0);
        let read = match file.read(&mut first) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Ok(0) if kind.is_fifo() && !is_nameless(&file)? => {
                return Err(refused("nobody writes to this pipe: expected a file, or a pipe with a writer"));
            }
            read => read?,
        };
        first.truncate(read);
        fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    }
    Ok(Cursor::new(first).chain(file))
}

/// The text of a regular file that another file names.
pub fn read_file(path: &Path, largest: u64) -> io::Result<String> {
    bounded(open_file(path)?, largest)
}

/// Opens a regular file, and waits for nothing.
pub fn open_file(path: &Path) -> io::Result<File> {
    let file = without_wait(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(refused("it is a folder, a pipe or a device: expected a regular file"))
}

/// Writes a file that a command line names, as a whole or not at all. No link is followed; a pipe or a device is
/// written as it is.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    if let Some(mut stream) = stream(path)? {
        return stream.write_all(bytes.as_ref());
    }
    let name = path.file_name().ok_or_else(|| refused("it is a folder: expected the name of a file"))?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    folder::write(parent.unwrap_or(Path::new(".")), name, bytes)
}

/// The pipe or the device that stands there, opened before it is looked at. Links to this process's own descriptors,
/// such as /dev/stdout, are the system's.
fn stream(path: &Path) -> io::Result<Option<File>> {
    let is_own = ["/dev/stdout", "/dev/stderr", "/dev/fd"].iter().any(|own| path.starts_with(own));
    let flags = if is_own { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = (flags | OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = match OpenOptions::new().write(true).custom_flags(flags).open(path) {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
            return Err(refused("nobody reads from this pipe: expected a file, or a pipe with a reader"));
        }
        // A link, a folder, or nothing: who writes a file there says what is wrong.
        Err(_) => return Ok(None),
        Ok(file) => file,
    };
    let kind = file.metadata()?.file_type();
    if !kind.is_fifo() && !kind.is_char_device() {
        return Ok(None);
    }
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(Some(file))
}

/// The text of an input that may have no end.
pub fn bounded(from: impl Read, largest: u64) -> io::Result<String> {
    let mut text = String::new();
    let mut from = from.take(largest + 1);
    let read = from.read_to_string(&mut text);
    if from.limit() == 0 {
        let problem = format!("it is too long: expected at most {} MiB", largest >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    read?;
    Ok(text)
}

fn without_wait(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

fn is_nameless(pipe: &File) -> io::Result<bool> {
    Ok(u64::try_from(fstatfs(pipe)?.f_type).is_ok_and(|kind| kind == NAMELESS))
}

fn refused(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, problem)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_text_ends_at_its_bound() {
        assert_eq!(bounded(&b"1234"[..], 4).ok().as_deref(), Some("1234"));
        for endless in [Path::new("/dev/zero"), Path::new("/dev/urandom")] {
            let error = read(endless, 1 << 20).expect_err("it has no end");
            assert_eq!(error.to_string(), "it is too long: expected at most 1 MiB", "{}", endless.display());
        }
        assert_eq!(read(Path::new("/dev/null"), 4).ok().as_deref(), Some(""));
    }

    #[test]
    fn a_pipe_or_a_device_takes_what_is_written_to_it() {
        write(Path::new("/dev/null"), "gone").expect("it takes all");
        assert!(write(Path::new("/dev/full"), "x").is_err() && !Path::new("/dev/full.part").exists());
    }

    #[test]
    fn a_pipe_is_read_if_somebody_has_opened_it_for_writing() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let path = std::env::temp_dir().join(format!("hopwise-named-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        let error = read(&path, 100).expect_err("nobody writes");
        assert!(error.to_string().starts_with("nobody writes to this pipe"), "{error}");
        assert!(read_file(&path, 100).is_err());
        let error = write(&path, "text").expect_err("nobody reads");
        assert!(error.to_string().starts_with("nobody reads from this pipe"), "{error}");
        let mut writer = OpenOptions::new().read(true).write(true).open(&path).expect("a pipe");
        let reader = open(&path).expect("it may write yet");
        writer.write_all(b"text").expect("there is room");
        drop(writer);
        assert_eq!(bounded(reader, 100).ok().as_deref(), Some("text"));
        fs::remove_file(path).expect("it is there");
    }
}
