//! README and book: every page is in the table of contents, and every link leads somewhere.

use std::path::{Component, Path, PathBuf};

use crate::tree::{File, files};

/// A stranger reads this far.
const LONGEST_README: usize = 100;
/// The lines of what holds and what does not.
const LONGEST_BALANCE: usize = 10;
const CONTENTS: &str = "docs/SUMMARY.md";

/// A link of a page: the file, from the repository's root, and the heading in it.
#[derive(Debug, PartialEq, Eq)]
struct Link {
    path: String,
    heading: Option<String>,
}

/// The links of a page to places of the repository. Links in code do not count.
fn links(page: &File) -> Vec<Link> {
    let mut found = Vec::new();
    let prose = prose(&page.text);
    for (at, _) in prose.match_indices("](") {
        let Some((target, _)) = prose[at + 2..].split_once(')') else { continue };
        let (path, heading) =
            target.split_once('#').map_or((target, None), |(path, name)| (path, Some(name)));
        if !target.contains("://") {
            let heading = heading.map(str::to_owned);
            found.push(Link { path: from_root(&page.path, path), heading });
        }
    }
    found
}

/// The text without its blocks of code and without what stands in backticks.
fn prose(text: &str) -> String {
    let blocks = text.split("\n```").step_by(2);
    let outside = blocks.map(|block| block.split('`').step_by(2).collect::<Vec<_>>().join("`"));
    outside.collect::<Vec<_>>().join("\n")
}

/// An empty path is the page itself.
fn from_root(page: &str, path: &str) -> String {
    if path.is_empty() {
        return page.to_owned();
    }
    let mut place = PathBuf::from(page);
    place.pop();
    for part in Path::new(path).components() {
        if part == Component::ParentDir {
            place.pop();
        } else {
            place.push(part);
        }
    }
    place.to_string_lossy().into_owned()
}

/// The names by which links find the headings of a page.
fn headings(text: &str) -> Vec<String> {
    let blocks = text.split("\n```").step_by(2);
    let lines = blocks.flat_map(str::lines).filter(|line| line.starts_with('#'));
    let names = lines.map(|line| line.trim_start_matches('#').trim());
    let kept = |letter: char| letter.is_alphanumeric() || "-_ ".contains(letter);
    names
        .map(|line| line.to_lowercase().chars().filter(|&c| kept(c)).collect::<String>().replace(' ', "-"))
        .collect()
}

fn is_page(file: &&File) -> bool {
    file.path.ends_with(".md")
}

fn broken(all: &[File]) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut findings = Vec::new();
    for page in all.iter().filter(is_page) {
        for Link { path, heading } in links(page) {
            let there = all.iter().find(|file| file.path == path);
            if there.is_none() && !root.join(&path).exists() {
                findings.push(format!("{}: a link to {path}, which is not there", page.path));
            }
            let (Some(there), Some(heading)) = (there, heading) else { continue };
            if !headings(&there.text).contains(&heading) {
                findings.push(format!("{}: {path} has no heading #{heading}", page.path));
            }
        }
    }
    findings
}

/// The pages that the contents leave out, name twice, or name although they are not there.
fn misnamed(all: &[File]) -> Vec<String> {
    let contents = all.iter().find(|file| file.path == CONTENTS).expect("the book has contents");
    let named: Vec<String> = links(contents).into_iter().map(|link| link.path).collect();
    let is_of_book = |file: &&File| file.path.starts_with("docs/") && file.path != CONTENTS;
    let pages: Vec<&str> =
        all.iter().filter(is_page).filter(is_of_book).map(|file| file.path.as_str()).collect();
    let count = |page: &str| named.iter().filter(|name| *name == page).count();
    let wrong = pages.iter().filter(|page| count(page) != 1);
    let wrong = wrong.map(|page| format!("{CONTENTS}: names {page} {} times, not once", count(page)));
    let absent = named.iter().filter(|name| !pages.contains(&name.as_str()));
    wrong.chain(absent.map(|name| format!("{CONTENTS}: {name} is no page of the book"))).collect()
}

#[test]
fn the_contents_name_each_page_of_the_book_once() {
    super::nothing(misnamed(&files()));
}

#[test]
fn links_of_pages_lead_to_files_and_headings() {
    super::nothing(broken(&files()));
}

#[test]
fn the_readme_is_short() {
    let readme = files().into_iter().find(|file| file.path == "README.md").expect("there is a README");
    let lines = readme.text.lines().count();
    assert!(
        lines <= LONGEST_README,
        "{lines} lines, at most {LONGEST_README}: what is longer is a page of docs"
    );
    let balance = readme.text.split_once("\n## What does not hold yet\n\n").expect("it has the section").1;
    let lines = balance.split_once("\n\n").expect("a section follows").0.lines().count();
    assert!(lines <= LONGEST_BALANCE, "{lines} lines say what holds, at most {LONGEST_BALANCE} may");
}

/// Lines of Rust in a page that rustdoc alone would hide: a reader who copies them has code that does not compile.
fn hidden(page: &File) -> Vec<String> {
    let blocks = page.text.split("\n```").skip(1).step_by(2).filter(|block| block.starts_with("rust"));
    let lines = blocks.flat_map(str::lines).filter(|line| *line == "#" || line.starts_with("# "));
    lines.map(|line| format!("{}: `{line}` is shown to readers of the page", page.path)).collect()
}

#[test]
fn examples_in_rust_hide_no_line() {
    super::nothing(files().iter().filter(is_page).flat_map(hidden));
    let text = "# A page\n```rust,no_run\n# fn main() {\n#[test]\n# }\n```\n```sh\n# a remark\n```\n";
    let page = File { path: "a.md".to_owned(), text: text.to_owned() };
    let shown =
        ["# fn main() {", "# }"].map(|line| format!("a.md: `{line}` is shown to readers of the page"));
    assert_eq!(hidden(&page), shown);
}

#[test]
fn the_citation_has_the_version() {
    let all = files();
    let text = |path: &str| &all.iter().find(|file| file.path == path).expect("it is there").text;
    let version = text("Cargo.toml").split("\nversion = \"").nth(1).and_then(|rest| rest.split('"').next());
    let cited = text("CITATION.cff").lines().find_map(|line| line.strip_prefix("version: "));
    assert_eq!(cited, version);
}

#[test]
fn what_is_missing_named_twice_or_linked_to_nothing_is_found() {
    let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
    let all = [
        file(CONTENTS, "- [A](a.md)\n- [A](a.md)\n- [X](x.md)\n"),
        file(
            "docs/a.md",
            "# A B: c\n[up](../README.md#no) `[x](y)`\n```text\n[x](y)\n# no\n```\n[here](#a-b-c)\n",
        ),
        file("docs/b/b.md", "[a](../a.md#b), [web](https://x/y)\n"),
        file("README.md", "# Yes\n"),
    ];
    let expected = [
        "docs/SUMMARY.md: names docs/a.md 2 times, not once",
        "docs/SUMMARY.md: names docs/b/b.md 0 times, not once",
        "docs/SUMMARY.md: docs/x.md is no page of the book",
    ];
    assert_eq!(misnamed(&all), expected);
    let expected = [
        "docs/SUMMARY.md: a link to docs/x.md, which is not there",
        "docs/a.md: README.md has no heading #no",
        "docs/b/b.md: docs/a.md has no heading #b",
    ];
    assert_eq!(broken(&all), expected);
}
