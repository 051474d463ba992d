//! The kernel's switches under /proc/sys/net, put back as they were when the daemon ends.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, Default)]
pub struct Switches {
    before: Vec<(PathBuf, String)>,
}

impl Switches {
    /// Sets a key such as `ipv4/ip_forward`.
    pub fn set(&mut self, key: &str, value: &str) -> io::Result<()> {
        let path = Path::new("/proc/sys/net").join(key);
        let before = fs::read_to_string(&path)?;
        if before.trim() != value {
            fs::write(&path, value)?;
            self.before.push((path, before));
        }
        Ok(())
    }
}

impl Drop for Switches {
    fn drop(&mut self) {
        for (path, before) in self.before.drain(..).rev() {
            if let Err(error) = fs::write(&path, before) {
                tracing::debug!(path = %path.display(), %error, "a switch was not put back");
            }
        }
    }
}
