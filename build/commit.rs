//! The commit that a clone of git has checked out, read from its files: a build needs no git.

use std::fs;
use std::path::{Path, PathBuf};

/// Letters of a hash that are shown.
const SHOWN: usize = 12;

/// The commit that is checked out, and the files that change with it.
#[derive(Debug, Default)]
pub(crate) struct FoundCommit {
    pub(crate) hash: Option<String>,
    pub(crate) watched: Vec<PathBuf>,
}

/// Looks into `.git`, which is a folder, or a file that names one. Without it nothing is found.
pub(crate) fn of(git: &Path) -> FoundCommit {
    let named = fs::read_to_string(git).ok();
    let named = named.as_deref().and_then(|text| text.strip_prefix("gitdir:")).map(|path| beside(git, path));
    let folder = named.unwrap_or_else(|| git.to_owned());
    // A worktree shares its branches with the clone.
    let shared = fs::read_to_string(folder.join("commondir"))
        .map_or_else(|_| folder.clone(), |text| folder.join(text.trim()));
    let Ok(head) = fs::read_to_string(folder.join("HEAD")) else { return FoundCommit::default() };
    let mut watched = vec![folder.join("HEAD"), folder.join("logs/HEAD"), shared.join("packed-refs")];
    let hash = match head.trim().strip_prefix("ref:").map(str::trim) {
        Some(branch) => {
            watched.push(shared.join(branch));
            let loose = fs::read_to_string(shared.join(branch)).ok();
            loose.or_else(|| packed(&shared, branch))
        }
        None => Some(head),
    };
    // A file that is not there would make every build a new one.
    watched.retain(|path| path.exists());
    let shown = |hash: String| hash.trim().get(..SHOWN).map(str::to_owned);
    FoundCommit { hash: hash.and_then(shown), watched }
}

fn beside(git: &Path, path: &str) -> PathBuf {
    git.parent().unwrap_or(Path::new(".")).join(path.trim())
}

/// The hash of a branch that has no file of its own.
fn packed(shared: &Path, branch: &str) -> Option<String> {
    let text = fs::read_to_string(shared.join("packed-refs")).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(_, name)| *name == branch).map(|(hash, _)| hash.to_owned())
}
