//! Rows of text in columns.

/// The header and the rows. Each column is as wide as its widest cell.
pub(crate) fn lines(columns: &[&str], rows: &[Vec<String>]) -> Vec<String> {
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
