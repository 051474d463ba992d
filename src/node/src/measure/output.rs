//! The copy of a flow's data in a file, which has its name only once it is whole.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tokio::fs::File;
use tokio::io::AsyncWriteExt;

#[derive(Debug)]
pub(crate) struct OutputFile {
    file: File,
    path: PathBuf,
    /// The file in the folder of `path` that takes the data until the data is whole. A device or a pipe has none.
    part: Option<PartFile>,
}

/// It goes with this value.
#[derive(Debug)]
struct PartFile(PathBuf);

impl Drop for PartFile {
    fn drop(&mut self) {
        // A whole file has its name by now.
        let _ = fs::remove_file(&self.0);
    }
}

impl OutputFile {
    /// Begins a copy. A file that stands at `path` stays as it is until the copy is whole.
    pub(crate) async fn begin(path: &Path) -> io::Result<OutputFile> {
        if fs::metadata(path).is_ok_and(|facts| !facts.is_file()) {
            let opened = File::options().write(true).open(path).await;
            let file = opened.map_err(|error| named(path, &error))?;
            return Ok(OutputFile { file, path: path.to_owned(), part: None });
        }
        // A link stays, and the file that it names is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let (file, part) = beside(&path).map_err(|error| named(&path, &error))?;
        Ok(OutputFile { file: File::from_std(file), path, part: Some(part) })
    }

    pub(crate) async fn write(&mut self, data: &[u8]) -> io::Result<()> {
        self.file.write_all(data).await.map_err(|error| named(&self.path, &error))
    }

    /// The copy is whole.
    pub(crate) async fn keep(mut self) -> io::Result<()> {
        self.file.flush().await.map_err(|error| named(&self.path, &error))?;
        match &self.part {
            Some(PartFile(part)) => fs::rename(part, &self.path).map_err(|error| named(&self.path, &error)),
            None => Ok(()),
        }
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Checks that a copy can be made there, and leaves all as it is.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(facts) if facts.is_dir() => Err(io::Error::other("it is a folder, expected a file")),
        // The reader of a pipe would take this for its end.
        Ok(facts) if !facts.is_file() => Ok(()),
        _ => beside(path).map(drop),
    }
}

/// A file beside `path`, with the mode of the file that stands there: those who could not read that cannot read this.
fn beside(path: &Path) -> io::Result<(fs::File, PartFile)> {
    let old = fs::metadata(path).ok();
    let part = part_of(path);
    // A program of that number was killed here.
    let _ = fs::remove_file(&part);
    let file = fs::File::options().write(true).create_new(true).open(&part)?;
    let part = PartFile(part);
    if let Some(old) = old {
        file.set_permissions(old.permissions())?;
    }
    Ok((file, part))
}

fn part_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().map_or_else(OsString::new, ToOwned::to_owned);
    name.push(format!(".part-{}", std::process::id()));
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_replaced_by_what_is_whole_alone() {
        let folder = std::env::temp_dir().join(format!("hopwise-output-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("the temporary folder can be written");
        let path = folder.join("kept");
        fs::write(&path, "old").expect("the folder can be written");
        let read = || fs::read_to_string(&path).expect("it is there");
        let mut broken = OutputFile::begin(&path).await.expect("it can be made");
        broken.write(b"half").await.expect("it can be written");
        assert_eq!(read(), "old");
        drop(broken);
        assert_eq!((read().as_str(), part_of(&path).exists()), ("old", false));
        let mut whole = OutputFile::begin(&path).await.expect("it can be made");
        whole.write(b"new").await.expect("it can be written");
        whole.keep().await.expect("it can be kept");
        assert_eq!((read().as_str(), part_of(&path).exists()), ("new", false));
        let linked = folder.join("link");
        std::os::unix::fs::symlink(&path, &linked).expect("a link");
        let whole = OutputFile::begin(&linked).await.expect("it can be made");
        whole.keep().await.expect("it can be kept");
        assert!(linked.is_symlink() && read().is_empty());
        let error =
            OutputFile::begin(&folder.join("nosuch/x")).await.expect_err("there is no folder").to_string();
        assert!(error.contains("nosuch/x: No such file"), "{error}");
        fs::remove_dir_all(&folder).expect("it is there");
    }

    #[tokio::test]
    async fn what_is_no_file_is_written_as_it_is() {
        let mut copy = OutputFile::begin(Path::new("/dev/null")).await.expect("it is there");
        copy.write(b"gone").await.expect("it takes all");
        copy.keep().await.expect("there is nothing to keep");
    }
}
