//! Pages of the book that tests write from the program.

use std::path::Path;
use std::{env, fs};

/// The environment variable that makes the tests write their pages.
const WRITE: &str = "HOPWISE_WRITE_DOCS";

/// Holds a page of the repository against the text that was made for it, or writes it.
pub fn holds(place: &str, made: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(place);
    if env::var_os(WRITE).is_some() {
        return fs::write(file, made).expect("a page that can be written");
    }
    let page = fs::read_to_string(file).expect("the page");
    let lacking: Vec<_> = made.lines().filter(|line| !page.contains(line)).collect();
    assert!(made == page, "`{WRITE}=1 cargo test --workspace the_book` mends {place}: {lacking:#?}");
}
