//! Prometheus' text format, as a page of lines.

use std::fmt::{self, Write as _};

/// A label's value as it stands between quotes.
pub(crate) fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// A page that grows.
#[derive(Debug, Default)]
pub(crate) struct Page(String);

impl Page {
    /// The whole page.
    pub(crate) fn text(self) -> String {
        self.0
    }

    /// A counter with a line for each value of a label.
    pub(crate) fn counter_by<'a>(
        &mut self,
        name: &str,
        help: &str,
        counts: impl IntoIterator<Item = (&'a str, &'a str, u64)>,
    ) {
        self.family(name, "counter", help);
        for (label, value, count) in counts {
            self.line(name, format_args!("{label}=\"{value}\""), count);
        }
    }

    /// The head of a family, whose lines follow.
    pub(crate) fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    pub(crate) fn line(&mut self, name: &str, labels: fmt::Arguments<'_>, value: impl fmt::Display) {
        let labels = labels.to_string();
        let (open, close) = if labels.is_empty() { ("", "") } else { ("{", "}") };
        let _ = writeln!(self.0, "{name}{open}{labels}{close} {value}");
    }
}
