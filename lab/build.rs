//! Gives the program a hash of its sources: results of two builds are never taken for each other's. A package from an
//! index has the sources of this crate alone beside it, and its version stands for the other crates.

use std::fs;
use std::path::{Path, PathBuf};

const SOURCES: [&str; 8] = [
    "../src",
    "src",
    "../agents/src",
    "../stack/core/src",
    "../stack/mesh/src",
    "../stack/air/src",
    "../stack/host/src",
    "../configs/calibration",
];

fn main() {
    let mut files = vec![PathBuf::from("../Cargo.lock")];
    for folder in SOURCES {
        println!("cargo::rerun-if-changed={folder}");
        collect(Path::new(folder), &mut files);
    }
    println!("cargo::rerun-if-changed=../Cargo.lock");
    files.sort();
    let mut hash = fnv(FNV_OFFSET, env!("CARGO_PKG_VERSION").as_bytes());
    for file in files {
        hash = fnv(hash, file.to_string_lossy().as_bytes());
        hash = fnv(hash, &fs::read(&file).unwrap_or_default());
    }
    println!("cargo::rustc-env=HOPWISE_SOURCES={:016x}", hash as u64 ^ (hash >> 64) as u64);
}

/// Collects all files below the folder; none if it is missing. A link leads to what another entry has.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() && !path.is_symlink() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// FNV-1a with 128 bits. It guards against chance, not against an author who makes two sources alike.
const FNV_OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const FNV_PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

fn fnv(hash: u128, bytes: &[u8]) -> u128 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(FNV_PRIME))
}
