//! The version of a program: results of two builds are never taken for each other's.

use std::sync::{LazyLock, OnceLock};

use hopwise_agents::registry::{self, Listed};
use sha2::{Digest, Sha256};

use crate::hex;

/// The version of our sources, with a hash of them. A program's own agents are not in it: see [`of_program`].
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("HOPWISE_SOURCES"));

/// The version of this program: our sources' version, and a hash of its own agents if it has some.
pub fn of_program() -> &'static str {
    static OF_PROGRAM: LazyLock<String> = LazyLock::new(|| with(registry::in_force().own));
    &OF_PROGRAM
}

static COMMIT: OnceLock<&'static str> = OnceLock::new();

/// Tells the commit that the program was built from: the program knows it, and says it once at its start. Two builds of
/// equal sources are one version, whatever their commits.
pub fn of_commit(commit: &'static str) {
    let _ = COMMIT.set(commit);
}

/// The commit that this program was built from, if it was built in a clone.
pub fn commit() -> Option<&'static str> {
    COMMIT.get().copied()
}

/// The version for people: with the commit.
pub fn with_commit() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| beside(of_program(), commit()));
    &TEXT
}

/// A version with its commit.
pub(crate) fn beside(version: &str, commit: Option<&str>) -> String {
    commit.map_or_else(|| version.to_owned(), |commit| format!("{version} (commit {commit})"))
}

fn with(own: &[Listed]) -> String {
    if own.is_empty() {
        return VERSION.to_owned();
    }
    let mut hash = Sha256::new();
    for (agent, file) in own {
        for text in [agent.name, &agent.kind().to_string(), file] {
            hash.update(text.len().to_le_bytes());
            hash.update(text);
        }
    }
    format!("{VERSION}.{}", &hex(&hash.finalize())[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_the_commit_beside_the_version() {
        assert_eq!(beside("0.1.0+a", Some("0123456789ab")), "0.1.0+a (commit 0123456789ab)");
        assert_eq!(beside("0.1.0+a", None), "0.1.0+a");
    }

    #[test]
    fn a_changed_agent_of_ones_own_makes_another_version() {
        let agent = registry::all().next().expect("there are agents");
        let versions = [with(&[]), with(&[(agent, "a")]), with(&[(agent, "b")]), with(&[(agent, "a"); 2])];
        assert_eq!(versions[0], VERSION);
        for (nth, one) in versions.iter().enumerate() {
            assert!(one.starts_with(VERSION) && !versions[..nth].contains(one), "{versions:?}");
        }
    }
}
