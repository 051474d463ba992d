//! Gives the program the commit that it is built from, if it is built in a clone.

#[path = "build/commit.rs"]
mod commit;

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build/commit.rs");
    let found = commit::of(Path::new(".git"));
    for path in &found.watched {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    if let Some(hash) = found.hash {
        println!("cargo::rustc-env=HOPWISE_COMMIT={hash}");
    }
}
