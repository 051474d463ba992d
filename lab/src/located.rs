//! YAML files with places: a refusal shows the place of a value, and the values that are accepted there.
//!
//! serde's YAML loses line and column wherever a value goes through `Value` (which `--set` needs). A file is therefore
//! read twice. serde finds *which* value is wrong and gives its path. A parser that keeps marks finds *where* that path
//! stands.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;

use crate::{named, plain};

mod assign;
mod secrets;
mod tree;
mod words;

use tree::YamlNode;
pub(crate) use words::either;
pub use words::one_of;

/// No configuration comes near this; a device or a disk image must not fill the memory.
const LARGEST_FILE: u64 = 16 << 20;

/// A YAML file that was read, with the place of everything in it.
#[derive(Clone, Debug)]
pub struct Document {
    name: String,
    text: Arc<str>,
    /// The text as errors show it, without secrets.
    shown: Arc<str>,
    root: Arc<YamlNode>,
    value: serde_yaml::Value,
    /// Values set over the file's own.
    assigned: Vec<assign::Assigned>,
}

#[cfg(test)]
thread_local! {
    /// Number of reads, for tests that count them.
    pub(crate) static READS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// The path to a value: keys and indices from the root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct YamlPath(Vec<PathStep>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum PathStep {
    Key(String),
    Index(usize),
}

impl YamlPath {
    /// The path of the whole document.
    pub fn root() -> YamlPath {
        YamlPath::default()
    }

    /// The path of a key in the mapping at this path.
    #[must_use]
    pub fn key(&self, key: &str) -> YamlPath {
        self.step(PathStep::Key(key.to_owned()))
    }

    /// The path of an item in the list at this path, counted from 0.
    #[must_use]
    pub fn index(&self, index: usize) -> YamlPath {
        self.step(PathStep::Index(index))
    }

    fn step(&self, step: PathStep) -> YamlPath {
        let mut steps = self.0.clone();
        steps.push(step);
        YamlPath(steps)
    }
}

/// Written as `--set` takes it: `links.0.name`.
impl fmt::Display for YamlPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, step) in self.0.iter().enumerate() {
            let dot = if nth > 0 { "." } else { "" };
            match step {
                PathStep::Key(key) => write!(f, "{dot}{key}")?,
                PathStep::Index(index) => write!(f, "{dot}{index}")?,
            }
        }
        Ok(())
    }
}

/// A problem in a file: the place, the problem, and the accepted values. Shown through miette.
#[derive(Debug, thiserror::Error)]
#[error("{}:{line}:{column}: {problem}", .file.name())]
pub struct Refusal {
    problem: String,
    accepted: Option<String>,
    file: NamedSource<String>,
    span: Range<usize>,
    /// The line of the refused value, counted from 1.
    pub line: usize,
    /// The column of the refused value, counted from 1.
    pub column: usize,
}

/// What was asked of a file, or why the file is refused.
pub type Checked<T = ()> = Result<T, Box<Refusal>>;

impl Refusal {
    fn new(name: &str, text: &str, span: Range<usize>, problem: String, accepted: Option<String>) -> Refusal {
        let before = &text[..span.start.min(text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let shown = |text: &str| plain::text(&secrets::without_keys(text));
        let file = NamedSource::new(plain::text(name), shown(text)).with_language("YAML");
        let (problem, accepted) = (shown(&problem), accepted.as_deref().map(shown));
        Refusal { problem, accepted, file, span, line, column }
    }

    /// This refusal with another text in place of its own; both have one length.
    fn showing(self, text: &str) -> Refusal {
        let shown = plain::text(&secrets::without_keys(text));
        let file = NamedSource::new(self.file.name(), shown).with_language("YAML");
        Refusal { file, ..self }
    }

    /// The refusal at a part of its present text, if that part holds `text` unchanged.
    fn within(&self, text: &str, part: Range<usize>) -> Option<Box<Refusal>> {
        let source = self.file.inner();
        let at = self.span.start + source.get(self.span.clone())?.find(text)?;
        let span = at + part.start..at + part.end;
        let (problem, accepted) = (self.problem.clone(), self.accepted.clone());
        (!part.is_empty()).then(|| Box::new(Refusal::new(self.file.name(), source, span, problem, accepted)))
    }
}

impl Diagnostic for Refusal {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.accepted.as_ref().map(|accepted| Box::new(accepted) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.file)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = LabeledSpan::new_with_span(Some("here".to_owned()), self.span.clone());
        Some(Box::new(std::iter::once(label)))
    }
}

/// Why there is no document.
#[derive(Debug)]
pub enum LoadError {
    /// The file could not be read.
    Unreadable {
        /// The path of the file.
        name: String,
        /// The system's error, in words.
        problem: String,
    },
    /// The file is no YAML.
    Refused(Box<Refusal>),
}

/// The place of the first tab in the indentation of a line.
fn tab_that_indents(text: &str) -> Option<usize> {
    let mut begins = 0;
    text.split_inclusive('\n').find_map(|line| {
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        let tab = line[..indent].find('\t').map(|at| begins + at);
        begins += line.len();
        tab
    })
}

impl Document {
    /// The file's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Reads a file of at most 16 MiB.
    pub fn load(path: &Path) -> Result<Document, LoadError> {
        let name = path.display().to_string();
        let unreadable = |problem: String| LoadError::Unreadable { name: name.clone(), problem };
        let no_file = |error: std::io::Error| unreadable(words::unreadable(&error, path));
        let text = named::read(path, LARGEST_FILE).map_err(no_file)?;
        Document::parse(&name, &text).map_err(LoadError::Refused)
    }

    /// The file with what `read` makes of it. The file later shows the places of keys.
    pub fn load_with<T>(
        path: &Path,
        read: impl FnOnce(&Document) -> Checked<T>,
    ) -> Result<(Document, T), LoadError> {
        let document = Document::load(path)?;
        let made = read(&document).map_err(LoadError::Refused)?;
        Ok((document, made))
    }

    /// Reads a text; refuses one that is no YAML.
    pub fn parse(name: &str, text: &str) -> Checked<Document> {
        let accepted = "YAML: the same indent for keys that stand together, a bracket for each bracket, and quotes \
                        around a text with `: ` or ` #` in it";
        let refuse_for = |span, problem, accepted: &str| {
            let refusal = Refusal::new(name, text, span, problem, Some(accepted.to_owned()));
            Box::new(refusal.showing(&secrets::hidden_from_first(text)))
        };
        let refuse = |span, problem| refuse_for(span, problem, accepted);
        let root = tree::parse(text).map_err(|tree::TreeError { at, problem, accepted }| match accepted {
            Some(accepted) => refuse_for(at, problem, &accepted),
            None if problem.contains("found a tab") || problem.starts_with("tabs") => {
                // The parser points to where the scalar before the tab began.
                let at = tab_that_indents(text).map_or(at, |tab| tab..tab + 1);
                refuse_for(at, problem, "spaces in place of the tab: YAML indents by spaces alone")
            }
            None => refuse(at, problem),
        })?;
        let value: serde_yaml::Value = serde_yaml::from_str(text).map_err(|error| {
            let at = error.location().map_or(0, |location| location.index()).min(text.len());
            let at = (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            refuse(at..at, without_place(&error.to_string()))
        })?;
        let (shown, root) = (secrets::hidden(text, &root).into(), Arc::new(root));
        Ok(Document { name: name.to_owned(), text: text.into(), shown, root, value, assigned: Vec::new() })
    }

    /// The content of the file as a `T`. Unknown keys and wrong values are refused at their place.
    pub fn read<T: DeserializeOwned>(&self) -> Checked<T> {
        #[cfg(test)]
        READS.with(|reads| reads.set(reads.get() + 1));
        serde_path_to_error::deserialize(self.value.clone()).map_err(|error| {
            let path = path_of(error.path());
            let problem = error.inner().to_string();
            let may_be_secret = self.root.is_leaf() || secrets::is_secret(&path);
            if may_be_secret && problem.contains(['`', '"']) {
                let wanted = problem.split_once(", expected ").map_or("a text", |(_, wanted)| wanted);
                let accepted = format!("expected {}, {}", words::wanted(wanted), secrets::ACCEPTED);
                return self.refuse(&path, secrets::PROBLEM, &accepted);
            }
            // serde names the accepted values in one sentence with the problem: "unknown field `x`, expected one of
            // `a`, `b`".
            match problem.split_once(", expected ") {
                // YAML reads the text after an unquoted comma within { } as a key of its own.
                Some((wrong, _)) if wrong.starts_with("unknown field") && wrong.contains('=') => {
                    let advice = "in { } a comma ends a value: quote a spec that has one, as in \
                                  \"delayed:d=3,hold=200ms\"";
                    self.refuse_key(&path, wrong, advice)
                }
                Some((wrong, wanted)) if wrong.starts_with("unknown field") => {
                    self.refuse_key(&path, wrong, &with_nearest(wrong, wanted))
                }
                Some((wrong, wanted)) => {
                    self.refuse(&path, words::problem(wrong), &with_nearest(wrong, &words::wanted(wanted)))
                }
                None => self.refuse_at(&path, Mark::Value, words::problem(&problem), words::advice(&problem)),
            }
        })
    }

    /// Refuses the value at `path`, for a reason that serde does not know.
    pub fn refuse(&self, path: &YamlPath, problem: impl fmt::Display, accepted: &str) -> Box<Refusal> {
        self.refuse_at(path, Mark::Value, problem.to_string(), Some(accepted.to_owned()))
    }

    /// Refuses the presence of `path`: shown at its key.
    pub fn refuse_key(&self, path: &YamlPath, problem: impl fmt::Display, accepted: &str) -> Box<Refusal> {
        self.refuse_at(path, Mark::Key, problem.to_string(), Some(accepted.to_owned()))
    }

    /// Refuses the first of these values because of the rest. The refusal is shown at the one that was set last over
    /// the file's own, since it caused the conflict.
    pub(crate) fn refuse_among(
        &self,
        paths: &[YamlPath],
        problem: impl fmt::Display,
        accepted: &str,
    ) -> Box<Refusal> {
        self.among(paths, Mark::Value, problem.to_string(), accepted)
    }

    /// The same, if the first one should not be present.
    pub(crate) fn refuse_key_among(
        &self,
        paths: &[YamlPath],
        problem: impl fmt::Display,
        accepted: &str,
    ) -> Box<Refusal> {
        self.among(paths, Mark::Key, problem.to_string(), accepted)
    }

    fn among(&self, paths: &[YamlPath], mark: Mark, problem: String, accepted: &str) -> Box<Refusal> {
        let accepted = Some(accepted.to_owned());
        match self.set_last(paths) {
            Some((nth, path)) if nth > 0 => {
                let problem = format!("with this, `{}` does not hold: {problem}", paths[0]);
                self.refuse_at(&path, Mark::Value, problem, accepted)
            }
            _ => self.refuse_at(&paths[0], mark, problem, accepted),
        }
    }

    /// One line that points at a sound value, for a remark about it.
    pub fn pointing_at(&self, path: &YamlPath) -> String {
        self.refuse(path, format_args!("`{path}`"), "").to_string()
    }

    /// The place of the nth value at `path`, which may hold a list or one value alone.
    #[must_use]
    pub fn nth_at(&self, path: &YamlPath, nth: usize) -> YamlPath {
        let is_list = self.value_of(path).is_some_and(serde_yaml::Value::is_sequence);
        if is_list { path.index(nth) } else { path.clone() }
    }

    fn refuse_at(
        &self,
        path: &YamlPath,
        mark: Mark,
        problem: String,
        accepted: Option<String>,
    ) -> Box<Refusal> {
        let mut path = path.clone();
        // A value that refers elsewhere may lead to another assigned one; there are no more steps than assignments.
        for _ in 0..self.assigned.len() {
            let assigned = self.assigned_to(&path).or_else(|| self.assigned_below(&path));
            match assigned.map(|assigned| assigned.shown(&path, mark, (&problem, accepted.as_ref()))) {
                Some(assign::RefusalPlace::InText(refusal)) => return refusal,
                Some(assign::RefusalPlace::At(elsewhere)) => path = elsewhere,
                None => break,
            }
        }
        let span = match mark {
            Mark::Value => self.root.span(&path.0),
            Mark::Key => self.root.key_span(&path.0),
        };
        Box::new(Refusal::new(&self.name, &self.text, span, problem, accepted).showing(&self.shown))
    }
}

/// The text that is underlined.
#[derive(Clone, Copy)]
enum Mark {
    Key,
    Value,
}

/// The values that serde accepts, after the name among them that is nearest to the wrong one.
fn with_nearest(wrong: &str, wanted: &str) -> String {
    let quoted = |text: &'_ str| text.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let (given, names) = (quoted(wrong), quoted(wanted));
    let nearest = match &given[..] {
        [given] => hopwise_agents::spec::nearest(given, names.iter().map(String::as_str)),
        _ => None,
    };
    match nearest {
        Some(name) => format!("did you mean `{name}`? expected {wanted}"),
        None => format!("expected {wanted}"),
    }
}

fn path_of(path: &serde_path_to_error::Path) -> YamlPath {
    let steps = path.iter().map_while(|segment| match segment {
        Segment::Seq { index } => Some(PathStep::Index(*index)),
        Segment::Map { key } | Segment::Enum { variant: key } => Some(PathStep::Key(key.clone())),
        Segment::Unknown => None,
    });
    YamlPath(steps.collect())
}

/// The parser's message without its own line and column, which are shown separately.
fn without_place(message: &str) -> String {
    message.split(" at line ").next().unwrap_or(message).to_owned()
}

#[cfg(test)]
mod tests;
