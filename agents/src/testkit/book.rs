//! Tables of the book that tests write from the code.

use std::path::PathBuf;
use std::{env, fs};

/// The environment variable that makes the tests write their tables.
const WRITE: &str = "HOPWISE_WRITE_DOCS";

/// Holds the tables of a page, those whose heads begin like that, against the ones that were made, or writes them.
#[track_caller]
pub(super) fn holds(place: &str, head: &str, made: &[String]) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(place);
    let page = fs::read_to_string(&file).expect("the page");
    let (mut whole, mut tables, mut in_table) = (String::new(), made.iter(), false);
    for line in page.split_inclusive('\n') {
        if line.starts_with(head) {
            whole.push_str(tables.next().expect("a table for each head"));
            in_table = true;
        }
        in_table &= line.starts_with('|');
        if !in_table {
            whole.push_str(line);
        }
    }
    assert_eq!(tables.next(), None, "{place} has a place for each table `{head}`");
    if whole != page && env::var_os(WRITE).is_some() {
        return fs::write(file, whole).expect("a page that can be written");
    }
    let lacking: Vec<_> = whole.lines().filter(|line| !page.contains(line)).collect();
    assert!(whole == page, "`{WRITE}=1 cargo test -p hopwise-agents the_book` mends {place}: {lacking:#?}");
}
