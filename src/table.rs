//! Rows of text in columns. By hand: columns are left out where a terminal is narrow, which crates for tables wrap.

use std::io::{self, IsTerminal};

use hopwise_lab::plain;
use ratatui::crossterm::terminal;

/// The longest cell, in letters: a text of a file, a peer or a daemon may have any length.
const LONGEST_CELL: usize = 256;

/// The number of columns of the terminal that standard output is; none for a file or a pipe.
pub(crate) fn width() -> Option<usize> {
    let (columns, _) = io::stdout().is_terminal().then(terminal::size)?.ok()?;
    (columns > 0).then(|| columns.into())
}

/// The header and the rows. Each column is as wide as its widest cell.
pub(crate) fn lines(columns: &[&str], rows: &[Vec<String>]) -> Vec<String> {
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

/// A cell of a fact that may be absent, which is no zero.
pub(crate) fn known(fact: Option<impl ToString>) -> String {
    fact.map_or_else(|| "-".to_owned(), |fact| fact.to_string())
}

fn shown(cell: &str) -> String {
    plain::cut(&plain::line(cell), LONGEST_CELL)
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
}
