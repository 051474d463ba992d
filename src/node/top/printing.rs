//! Draws one frame: links and connections.

use std::time::Duration;

use hopwise_lab::units::Size;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table, Widget};

use crate::node::snapshot::{LinkSnapshot, Snapshot};
use crate::node::status::printing::{COLUMNS, cells};

/// The size of one frame without a terminal that gives one.
const COLUMNS_OF_TEXT: u16 = 180;
const HEAD_LINES: u16 = 2;

/// One frame as text.
pub(super) fn text(snapshot: &Snapshot) -> String {
    let rows = u16::try_from(snapshot.connections.len()).unwrap_or(u16::MAX - 8);
    let area = Rect::new(0, 0, COLUMNS_OF_TEXT, rows + HEAD_LINES + 1);
    let mut buffer = Buffer::empty(area);
    draw(snapshot, None, area, &mut buffer);
    text_of(&buffer)
}

pub(in crate::node) fn draw(snapshot: &Snapshot, before: Option<&Snapshot>, area: Rect, buffer: &mut Buffer) {
    let [head, body] = Layout::vertical([Constraint::Length(HEAD_LINES), Constraint::Min(1)]).areas(area);
    let (Snapshot { node, uptime_s, .. }, connections) = (snapshot, snapshot.connections_line());
    let drops = snapshot.drops.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
    let lines = vec![
        Line::from(format!("{node}  up {uptime_s:.0} s  {connections}  {drops} drops")),
        Line::from(rates(snapshot, before)),
    ];
    Paragraph::new(lines).render(head, buffer);
    let rows: Vec<_> = snapshot.connections.iter().map(cells).collect();
    let widths = crate::table::widths(&COLUMNS, &rows).into_iter().map(Constraint::Length);
    let header = Row::new(COLUMNS).style(Style::new().add_modifier(Modifier::BOLD));
    let table =
        Table::new(rows.iter().map(|row| Row::new(row.clone())), widths).header(header).column_spacing(2);
    Widget::render(table, body, buffer);
}

/// Data that the links carried since the previous frame.
fn rates(snapshot: &Snapshot, before: Option<&Snapshot>) -> String {
    let part = |link: &LinkSnapshot| {
        let old = before.and_then(|before| before.links.iter().find(|old| old.name == link.name));
        let seconds = before.map_or(0.0, |before| snapshot.uptime_s - before.uptime_s);
        let (received, sent) = old.map_or((0, 0), |old| (old.received_bytes, old.sent_bytes));
        let rate = |now: u64, old: u64| match old_rate(now.saturating_sub(old), seconds) {
            Some(rate) => format!("{}/s", Size(rate)),
            None => Size(now).to_string(),
        };
        format!(
            "{}: in {}, out {}",
            link.name,
            rate(link.received_bytes, received),
            rate(link.sent_bytes, sent)
        )
    };
    snapshot.links.iter().map(part).collect::<Vec<_>>().join("   ")
}

fn old_rate(bytes: u64, seconds: f64) -> Option<u64> {
    let micros = Duration::try_from_secs_f64(seconds).ok()?.as_micros();
    (micros > 0).then(|| u64::try_from(u128::from(bytes) * 1_000_000 / micros).unwrap_or(u64::MAX))
}

fn text_of(buffer: &Buffer) -> String {
    let mut text = String::new();
    for y in 0..buffer.area.height {
        let line: String = (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::snapshot::ConnSnapshot;

    #[test]
    fn a_frame_shows_connections_and_what_links_carry_a_second() {
        let conn = ConnSnapshot { id: 7, receiver: "delayed:d=3".into(), ..ConnSnapshot::default() };
        let link =
            |bytes| LinkSnapshot { name: "hw0".into(), received_bytes: bytes, ..LinkSnapshot::default() };
        let at = |uptime_s, bytes| Snapshot {
            node: "n2".into(),
            uptime_s,
            links: vec![link(bytes)],
            connections: vec![conn.clone()],
            ..Snapshot::default()
        };
        let area = Rect::new(0, 0, COLUMNS_OF_TEXT, 4);
        let mut buffer = Buffer::empty(area);
        draw(&at(4.0, 5120), Some(&at(2.0, 1024)), area, &mut buffer);
        let text = text_of(&buffer);
        assert!(text.contains("hw0: in 2.0 KiB/s, out 0 B/s"), "{text}");
        assert!(text.contains("id  local"), "{text}");
        assert!(text.contains("7 ") && text.contains("delayed:d=3"), "{text}");
    }
}
