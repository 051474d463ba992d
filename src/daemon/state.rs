//! Small files of a daemon's state, written so that no other user can redirect the write.
//!
//! The text goes into a new file, which then takes the name. A link at either name is replaced, never followed, and a
//! reader sees the old text or the new one. The file stays open, and later texts are written in place: its folder may
//! be closed to the daemon by then. A text is shorter than a disk's unit of writing.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use hopwise_host::own_file;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, renameat, unlinkat};

pub(crate) fn write(path: &Path, text: &str) -> io::Result<File> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = open_folder(path)?;
    let mut new = OsString::from(".");
    new.push(name);
    new.push(".new");
    match unlinkat(&folder, &new, AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(&folder, &new, flags, Mode::from_raw_mode(0o600))?;
    let mut file = File::from(file);
    file.write_all(text.as_bytes())?;
    renameat(folder.as_fd(), &new, folder.as_fd(), name)?;
    Ok(file)
}

/// Replaces the text of an open file.
pub(crate) fn rewrite(file: &File, text: &str) -> io::Result<()> {
    file.write_all_at(text.as_bytes(), 0)?;
    file.set_len(text.len() as u64)
}

/// Makes a missing folder. It is held open, so that it cannot be replaced meanwhile.
fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let folder = own_file::folder_of(path);
    fs::create_dir_all(folder)?;
    Ok(openat(CWD, folder, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopwise_host::own_file::open_own;
    use std::fs::OpenOptions;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_at_the_name_is_replaced_and_what_it_names_stays() {
        let folder = std::env::temp_dir().join(format!("hopwise-state-links-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let (path, target) = (folder.join("route"), folder.join("precious"));
        fs::write(&target, "precious").expect("a file");
        symlink(&target, &path).expect("a link");
        symlink(&target, folder.join(".route.new")).expect("a link");
        let read = |path: &Path| open_own(path, OpenOptions::new().read(true)).map(drop);
        assert!(read(&path).is_err() && read(&folder).is_err());
        assert!(read(&target).is_ok());
        fs::hard_link(&target, folder.join("second")).expect("another name");
        assert!(read(&target).is_err(), "it has two names");
        write(&path, "7\n").expect("it is written");
        assert_eq!(fs::read_to_string(&target).expect("a file"), "precious");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "7\n");
        assert!(fs::symlink_metadata(&path).expect("facts").is_file());
        let file = write(&path, "80\n").expect("it is written again");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "80\n");
        rewrite(&file, "9\n").expect("it is open");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "9\n");
        fs::remove_dir_all(folder).expect("it is there");
    }
}
