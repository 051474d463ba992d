//! Rows of text in columns for people, and pages of metrics in Prometheus' text format.
//!
//! Tables are written by hand: columns are left out where a terminal is narrow, which crates for tables wrap.

use std::env;
use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal, Write};

use hopwise_lab::plain;
use hopwise_lab::plain::{without_least, wrapped};
use ratatui::crossterm::terminal;

/// The longest cell, in letters: a text of a file, a peer or a daemon may have any length.
const LONGEST_CELL: usize = 256;

/// The number of columns of the terminal that standard output is; none for a file or a pipe.
pub fn width() -> Option<usize> {
    let (columns, _) = io::stdout().is_terminal().then(terminal::size)?.ok()?;
    (columns > 0).then(|| columns.into())
}

/// The width of texts in a file or a wide terminal, and the least that a narrow one gets.
const WIDTHS: (usize, usize) = (100, 40);

/// The text behind `lead`, as wide as the terminal, with all later lines indented by the lead's width.
pub fn hanging(lead: &str, text: &str) -> String {
    wrapped(lead, text, width().unwrap_or(WIDTHS.0).clamp(WIDTHS.1, WIDTHS.0))
}

/// The text in lines that fit the terminal; in a file it is one line.
pub fn broken(text: &str) -> String {
    width().map_or_else(|| text.to_owned(), |width| wrapped("", text, width))
}

/// The header and the rows. Each column is as wide as its widest cell.
pub fn lines(columns: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| shown(cell)).collect()).collect();
    let width = |nth: usize| {
        let cells = rows.iter().filter_map(|row| row.get(nth)).map(|cell| cell.chars().count());
        cells.chain([columns[nth].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<_> = cells.zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        padded.join("  ").trim_end().to_owned()
    };
    let head = line(&mut columns.iter().copied());
    std::iter::once(head).chain(rows.iter().map(|row| line(&mut row.iter().map(String::as_str)))).collect()
}

/// The columns of a table in a terminal of that width. Those with the least turn of `goes` are left out; if the rest
/// is still too wide, the widest cells are cut, and say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fitted {
    pub heads: Vec<&'static str>,
    pub rows: Vec<Vec<String>>,
    pub widths: Vec<u16>,
    pub left_out: Vec<&'static str>,
}

/// The space between two columns.
pub const BETWEEN: u16 = 2;

/// Fits the columns, each a head with its turn to go, into a width. A column without a turn stays.
pub fn fitted(columns: &[(&'static str, Option<u8>)], rows: &[Vec<String>], width: u16) -> Fitted {
    let cells = |nth: usize| rows.iter().filter_map(move |row| row.get(nth));
    let widest = |(nth, (head, _)): (usize, &(&str, Option<u8>))| {
        let widths = cells(nth).map(|cell| cell.chars().count()).chain([head.len()]);
        (nth, widths.max().unwrap_or(0).min(LONGEST_CELL))
    };
    let mut kept: Vec<(usize, usize)> = columns.iter().enumerate().map(widest).collect();
    let room =
        |columns: usize| usize::from(width).saturating_sub(columns.saturating_sub(1) * usize::from(BETWEEN));
    let sum = |kept: &[(usize, usize)]| kept.iter().map(|(_, width)| width).sum::<usize>();
    let is_too_wide = |kept: &[(usize, usize)]| sum(kept) > room(kept.len());
    let left_out = without_least(&mut kept, |(nth, _)| columns[*nth].1, is_too_wide);
    while is_too_wide(&kept) {
        // The last one of the widest: what names a row stands first.
        let Some((_, most)) = kept.iter_mut().max_by_key(|(_, width)| *width).filter(|(_, width)| *width > 1)
        else {
            break;
        };
        *most -= 1;
    }
    let cut = |cell: &str, width: usize| plain::cut(&plain::line(cell), width);
    let row = |row: &Vec<String>| {
        kept.iter().map(|(nth, width)| cut(row.get(*nth).map_or("", String::as_str), *width)).collect()
    };
    Fitted {
        heads: kept.iter().map(|(nth, _)| columns[*nth].0).collect(),
        rows: rows.iter().map(row).collect(),
        widths: kept.iter().map(|(_, width)| u16::try_from(*width).unwrap_or(u16::MAX)).collect(),
        left_out: left_out.into_iter().map(|(nth, _)| columns[nth].0).collect(),
    }
}

/// Colours of verdicts on a terminal: good ones green, bad ones red, open ones faint.
const COLOURS: [(&str, &str); 5] =
    [("faster", "32"), ("better", "32"), ("slower", "31"), ("worse", "31"), ("undecided", "2")];

/// Prints a table of findings. On a terminal verdicts have colours, unless `NO_COLOR` is set.
pub fn print_verdicts(text: &str) -> io::Result<()> {
    let text = plain::text(text);
    let is_wanted =
        io::stdout().is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let text = if is_wanted { coloured(&text) } else { text };
    io::stdout().write_all(text.as_bytes())
}

/// The text with colours for verdicts that are cells of a table.
fn coloured(text: &str) -> String {
    let in_line = |line: &str| {
        let found = COLOURS.iter().find_map(|(word, code)| {
            let at = line.rfind(&format!("  {word}"))? + 2;
            let end = at + word.len();
            let is_whole = line[end..].is_empty() || line[end..].starts_with([' ', ',', '\n']);
            is_whole.then_some((at, end, code))
        });
        found.map_or_else(
            || line.to_owned(),
            |(at, end, code)| {
                format!("{}\u{1b}[{code}m{}\u{1b}[0m{}", &line[..at], &line[at..end], &line[end..])
            },
        )
    };
    text.split_inclusive('\n').map(in_line).collect()
}

/// A cell of a fact that may be absent, which is no zero.
pub fn known(fact: Option<impl ToString>) -> String {
    fact.map_or_else(|| "-".to_owned(), |fact| fact.to_string())
}

fn shown(cell: &str) -> String {
    plain::cut(&plain::line(cell), LONGEST_CELL)
}

/// The value of a metric's label as it stands between quotes.
pub fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// A page of metrics in Prometheus' text format.
#[derive(Debug, Default)]
pub struct MetricsPage(String);

impl MetricsPage {
    /// The whole page.
    pub fn text(self) -> String {
        self.0
    }

    /// A family with one line, which has no labels.
    pub fn alone(&mut self, name: &str, kind: &str, help: &str, value: impl fmt::Display) {
        self.family(name, kind, help);
        self.line(name, format_args!(""), value);
    }

    /// A family with a line for each value of its only label.
    pub fn by<L: fmt::Display, N: fmt::Display>(
        &mut self,
        [name, kind, help]: [&str; 3],
        label: &str,
        lines: impl IntoIterator<Item = (L, N)>,
    ) {
        self.family(name, kind, help);
        for (of, value) in lines {
            self.line(name, format_args!("{label}=\"{}\"", escaped(&of.to_string())), value);
        }
    }

    /// The head of a family, whose lines follow.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    pub fn line(&mut self, name: &str, labels: fmt::Arguments<'_>, value: impl fmt::Display) {
        let labels = labels.to_string();
        let (open, close) = if labels.is_empty() { ("", "") } else { ("{", "}") };
        let _ = writeln!(self.0, "{name}{open}{labels}{close} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_cut_and_ends_no_line() {
        let row = |cell: &str| vec![cell.to_owned(), "b".to_owned()];
        let lines = lines(&["long", "short"], &[row(&"é".repeat(70_000)), row("x\ny")]);
        assert_eq!(lines[0].len(), LONGEST_CELL + "  short".len());
        assert_eq!(lines[1], format!("{}…  b", "é".repeat(LONGEST_CELL - 1)));
        assert!(lines[2].starts_with("x?y ") && lines[2].ends_with(" b"), "{}", lines[2]);
    }

    #[test]
    fn columns_go_by_their_turns_and_then_the_widest_cells_are_cut_and_say_so() {
        let columns = [("name", None), ("least", Some(0)), ("more", Some(1))];
        let rows = [vec!["é".repeat(12), "abcdefgh".to_owned(), "x\u{1b}".to_owned()]];
        let at = |width| fitted(&columns, &rows, width);
        assert_eq!((at(28).widths, at(28).left_out), (vec![12, 8, 4], vec![]));
        assert_eq!((at(27).heads, at(27).left_out), (vec!["name", "more"], vec!["least"]));
        assert_eq!(at(27).rows, [["é".repeat(12), "x?".to_owned()]]);
        assert_eq!(at(10).left_out, ["least", "more"]);
        assert_eq!(at(10).rows, [[format!("{}…", "é".repeat(9))]]);
        assert_eq!(at(0).widths, [1]);
    }

    #[test]
    fn a_narrow_terminal_has_short_lines_under_the_same_indent() {
        let text = wrapped("  dca          ", "one ACK for as many segments as the path has room for", 40);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines.len() > 2 && lines.iter().all(|line| line.len() <= 40), "{lines:#?}");
        assert!(lines[1..].iter().all(|line| line.starts_with("               ")), "{lines:#?}");
    }

    #[test]
    fn verdicts_that_are_cells_have_colours_and_words_in_sentences_have_none() {
        let told = coloured(
            "arm  mean  verdict\ndca  371   faster\ntda  330   undecided, p = 0.060\na faster arm\n",
        );
        let lines: Vec<_> = told.lines().collect();
        assert_eq!(lines[1], "dca  371   \u{1b}[32mfaster\u{1b}[0m");
        assert_eq!(lines[2], "tda  330   \u{1b}[2mundecided\u{1b}[0m, p = 0.060");
        assert_eq!((lines[0], lines[3]), ("arm  mean  verdict", "a faster arm"));
    }
}
