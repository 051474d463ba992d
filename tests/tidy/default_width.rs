//! The sources as rustfmt's defaults lay them out. Sizes are measured there, so that they compare with other projects.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::tree::File;

/// Removed with all that is in it.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A copy of all Rust files, formatted without the project's `rustfmt.toml`.
pub(crate) fn by_default(files: &[File]) -> Vec<File> {
    let folder = Folder(std::env::temp_dir().join(format!("hopwise-tidy-{}", std::process::id())));
    let rust: Vec<_> = files.iter().filter(|file| file.is_rust()).collect();
    let at = |file: &File| folder.0.join(&file.path);
    for file in &rust {
        let place = at(file);
        fs::create_dir_all(place.parent().unwrap_or(Path::new("/"))).expect("a folder can be made");
        fs::write(&place, &file.text).expect("a file can be written");
    }
    // A file of its own keeps rustfmt from reading those of folders above.
    fs::write(folder.0.join("rustfmt.toml"), "edition = \"2024\"\n").expect("a file can be written");
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.current_dir(&folder.0).args(rust.iter().map(|file| &file.path));
    let ended = rustfmt.output().expect("rustfmt runs: it is a component of the toolchain");
    assert!(ended.status.success(), "rustfmt: {}", String::from_utf8_lossy(&ended.stderr));
    let read = |file: &&File| {
        let text = fs::read_to_string(at(file)).expect("rustfmt leaves the file");
        File { path: file.path.clone(), text }
    };
    rust.iter().map(read).collect()
}
