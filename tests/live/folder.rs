//! A folder that goes with its test.

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::namespace::prefix;

/// A folder for temporary files, which no other test has. It is removed with its guard.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(test: &str) -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // The path of a socket of ssh below it may have a hundred bytes.
        let name = prefix(&test[..test.len().min(4)]);
        let path = std::env::temp_dir().join(format!("{name}-{number}"));
        fs::create_dir_all(&path).expect("the temporary folder can be written");
        Folder(path)
    }

    /// A folder that daemons may write, which are ordinary users.
    pub(crate) fn of_everybody(test: &str) -> Folder {
        let folder = Folder::new(test);
        fs::set_permissions(&*folder, fs::Permissions::from_mode(0o777)).expect("it is ours");
        folder
    }

    /// The path of a file in it.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
