//! The dependencies between files: a circle of many can be read, tested and moved only as a whole.
//!
//! A file needs another one when it names something in it, however it was imported. A module is one room with those
//! below it: a child's needs of the modules above it do not count.

use std::collections::{BTreeMap, BTreeSet};

use super::lexer::{Token, tokens};
use super::tree::File;

const LARGEST: usize = 3;
/// Folders of crates, and names of modules that hold tests and their helpers.
const CRATES: [&str; 8] = [
    "agents/src/",
    "stack/core/src/",
    "stack/mesh/src/",
    "stack/air/src/",
    "stack/host/src/",
    "stack/testing/src/",
    "lab/src/",
    "src/",
];
const OF_TESTS: [&str; 3] = ["tests", "testing", "testkit"];

type Path = Vec<String>;

/// One file as a module.
#[derive(Debug, Default)]
struct Module {
    children: BTreeSet<String>,
    /// The path of each imported name.
    imports: BTreeMap<String, Path>,
    /// Imported names that others find here.
    shown: BTreeSet<String>,
    /// Each path in its text.
    paths: Vec<Path>,
}

pub(crate) fn findings(files: &[File]) -> Vec<String> {
    CRATES.iter().flat_map(|root| of_crate(files, root)).collect()
}

fn of_crate(files: &[File], root: &str) -> Vec<String> {
    let mut modules = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let Some(path) = file.path.strip_prefix(root).and_then(|path| path.strip_suffix(".rs")) else {
            continue;
        };
        let path: Path = path.split('/').map(str::to_owned).collect();
        let is_root = ["lib", "main"].contains(&path[0].as_str());
        modules.insert(if is_root { Path::new() } else { path }, Module::read(&file.text));
    }
    let needs: BTreeMap<_, _> = modules.keys().map(|path| (path, needs(&modules, path))).collect();
    let reached: BTreeMap<_, _> = needs.keys().map(|path| (*path, reached(&needs, path))).collect();
    let mut circles = BTreeSet::new();
    for (path, there) in &reached {
        let circle: BTreeSet<_> = there.iter().filter(|other| reached[*other].contains(*path)).collect();
        if circle.len() > LARGEST {
            let names: Vec<_> = circle.iter().map(|path| path.join("/")).collect();
            circles.insert(format!("{root}: a circle of {} files: {}", circle.len(), names.join(", ")));
        }
    }
    circles.into_iter().collect()
}

/// All files that can be reached from there.
fn reached<'a>(needs: &BTreeMap<&'a Path, BTreeSet<&'a Path>>, from: &'a Path) -> BTreeSet<&'a Path> {
    let (mut found, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(path) = next.pop() {
        next.extend(needs[path].iter().filter(|path| found.insert(**path)));
    }
    found
}

/// The files whose items this file names.
fn needs<'a>(modules: &'a BTreeMap<Path, Module>, of: &Path) -> BTreeSet<&'a Path> {
    let module = &modules[of];
    let is_of_tests = |path: &Path| path.iter().any(|name| OF_TESTS.contains(&name.as_str()));
    if is_of_tests(of) {
        return BTreeSet::new();
    }
    let named = module.paths.iter().filter_map(|path| {
        let whole = match module.imports.get(path.first()?) {
            Some(import) => [import, &path[1..]].concat(),
            None => path.clone(),
        };
        found(modules, &absolute(module, of, &whole)?, 0)
    });
    named.filter(|other| !of.starts_with(other) && !is_of_tests(other)).collect()
}

/// The path from the crate's root on; `None` for an item of another crate.
fn absolute(module: &Module, at: &Path, path: &[String]) -> Option<Path> {
    let above = path.iter().take_while(|part| *part == "super").count();
    match path.first()?.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some([at, &path[1..]].concat()),
        "super" => Some([at.get(..at.len().checked_sub(above)?)?, &path[above..]].concat()),
        first if module.children.contains(first) => Some([at, path].concat()),
        _ => None,
    }
}

/// The file that has the item, also where modules above it show it.
fn found<'a>(modules: &'a BTreeMap<Path, Module>, path: &Path, depth: u8) -> Option<&'a Path> {
    let (at, module) = (0..=path.len()).rev().find_map(|len| modules.get_key_value(&path[..len]))?;
    let shown = path.get(at.len()).filter(|name| module.shown.contains(*name) && depth < 8);
    let elsewhere = shown.and_then(|name| {
        let whole = [module.imports.get(name)?, &path[at.len() + 1..]].concat();
        found(modules, &absolute(module, at, &whole)?, depth + 1)
    });
    // A module that is only named needs nothing.
    let is_looked_into = path.len() > at.len() || elsewhere.is_some();
    elsewhere.or(Some(at).filter(|_| is_looked_into))
}

impl Module {
    fn read(text: &str) -> Module {
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let (tokens, mut module, mut at) = (tokens(text), Module::default(), 0);
        while at < tokens.len() {
            match tokens[at].text {
                "mod" if word(&tokens, at + 2) == ";" => {
                    module.children.insert(word(&tokens, at + 1).to_owned());
                }
                "use" => {
                    let is_shown = ["pub", ")"].contains(&word(&tokens, at.wrapping_sub(1)));
                    module.import(&tokens, &mut (at + 1), &Path::new(), is_shown);
                    at += tokens[at..].iter().take_while(|token| token.text != ";").count();
                }
                first if is_name(first) && word(&tokens, at.wrapping_sub(1)) != ":" => {
                    let path = path_at(&tokens, &mut at);
                    module.paths.extend((path.len() > 1).then_some(path));
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        // An import of an item, and not of a module, is a use of it.
        module.paths.extend(module.imports.values().cloned());
        module
    }

    /// One tree of a `use`.
    fn import(&mut self, tokens: &[Token<'_>], at: &mut usize, before: &Path, is_shown: bool) {
        let mut path = [before.clone(), path_at(tokens, at)].concat();
        if word(tokens, *at) == "{" {
            while ["{", ","].contains(&word(tokens, *at)) {
                *at += 1;
                if word(tokens, *at) != "}" {
                    self.import(tokens, at, &path, is_shown);
                }
            }
            *at += 1;
            return;
        }
        path.pop_if(|last| last == "self");
        let mut name = path.last().cloned().unwrap_or_default();
        if word(tokens, *at) == "as" {
            name = word(tokens, *at + 1).to_owned();
            *at += 2;
        } else if word(tokens, *at) == "*" {
            *at += 1;
        }
        if is_shown {
            self.shown.insert(name.clone());
        }
        self.imports.insert(name, path);
    }
}

fn word<'a>(tokens: &[Token<'a>], at: usize) -> &'a str {
    tokens.get(at).map_or("", |token| token.text)
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Reads `a::b::c`, and moves behind it.
fn path_at(tokens: &[Token<'_>], at: &mut usize) -> Path {
    let mut path = Path::new();
    while is_name(word(tokens, *at)) {
        path.push(word(tokens, *at).to_owned());
        *at += 1;
        if (word(tokens, *at), word(tokens, *at + 1)) != (":", ":") {
            break;
        }
        *at += 2;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_circle_of_four_is_found_and_children_that_need_their_parent_are_none() {
        let circle = [
            file("src/main.rs", "mod a;\nmod b;\nmod c;\nmod d;"),
            file("src/a.rs", "mod child;\nuse crate::b::B;\nfn f() -> child::C { B }"),
            file("src/a/child.rs", "use super::A;"),
            file("src/b.rs", "use crate::c;\nfn f() { c::go(); }"),
            file("src/c.rs", "pub use deep::Deep;\nmod deep;\nfn f() { super::d::go::<u8>(); }"),
            file("src/c/deep.rs", ""),
            file(
                "src/d.rs",
                "use crate::{a::{A as Other}, c};\n#[cfg(test)]\nmod tests {\n use crate::z::Z;\n}",
            ),
        ];
        assert_eq!(findings(&circle), ["src/: a circle of 4 files: a, b, c, d"]);
        let open: Vec<_> = circle.into_iter().filter(|file| file.path != "src/d.rs").collect();
        assert_eq!(findings(&open), [""; 0]);
        let shown = [
            file("src/main.rs", "mod a;\nmod b;\nmod c;"),
            file("src/a.rs", "use crate::b::B;"),
            file("src/b.rs", "pub use low::B;\nmod low;\nmod high;"),
            file("src/b/high.rs", "use crate::c::C;"),
            file("src/b/low.rs", ""),
            file("src/c.rs", "use crate::a::A;"),
        ];
        assert_eq!(findings(&shown), [""; 0], "the file that has it counts, and not the one that shows it");
    }
}
