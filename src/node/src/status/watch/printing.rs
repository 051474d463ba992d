//! Draws one frame: links and connections.

use std::time::Duration;

use hopwise_lab::plain;
use hopwise_lab::units::Size;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table, Widget};

use crate::snapshot::{ConnSnapshot, LinkSnapshot, Snapshot};
use crate::status::printing::{COLUMNS, cells};
use hopwise_daemon::table::{self, Fitted};

/// The width of one frame without a terminal that gives one.
const COLUMNS_OF_TEXT: u16 = 180;
const HEAD_LINES: u16 = 2;
/// The columns by their turns to go where the terminal is narrow. Those that tell connections apart stay.
const GOES: [Option<u8>; COLUMNS.len()] =
    [None, None, None, Some(4), Some(7), Some(5), Some(1), Some(0), Some(6), Some(3), Some(8), Some(2)];
const RATE: &str = "kbit/s";

/// One frame as text, as wide as the terminal.
pub(super) fn text(snapshot: &Snapshot, before: &Snapshot) -> String {
    let rows = u16::try_from(snapshot.connections.len()).unwrap_or(u16::MAX - 8);
    let width = table::width().and_then(|width| u16::try_from(width).ok()).unwrap_or(COLUMNS_OF_TEXT);
    let area = Rect::new(0, 0, width, rows + HEAD_LINES + 1);
    let mut buffer = Buffer::empty(area);
    draw(snapshot, Some(before), area, &mut buffer);
    text_of(&buffer)
}

pub(crate) fn draw(snapshot: &Snapshot, before: Option<&Snapshot>, area: Rect, buffer: &mut Buffer) {
    let [head, body] = Layout::vertical([Constraint::Length(HEAD_LINES), Constraint::Min(1)]).areas(area);
    let Fitted { heads, rows, widths, left_out } = connections(snapshot, before, area.width);
    let (Snapshot { node, uptime_s, .. }, connections) = (snapshot, snapshot.connections_line());
    let drops = snapshot.drops.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
    let lacks =
        if left_out.is_empty() { String::new() } else { format!("  no room: {}", left_out.join(", ")) };
    let lines = [
        format!("{node}  up {uptime_s:.0} s  {connections}  {drops} drops{lacks}"),
        link_rates(snapshot, before),
    ];
    let lines = lines.map(|line| Line::from(plain::cut(&plain::line(&line), area.width.into())));
    Paragraph::new(lines.to_vec()).render(head, buffer);
    let header = Row::new(heads).style(Style::new().add_modifier(Modifier::BOLD));
    let widths = widths.into_iter().map(Constraint::Length);
    let table = Table::new(rows.into_iter().map(Row::new), widths).header(header);
    Widget::render(table.column_spacing(table::BETWEEN), body, buffer);
}

/// The connections in columns that fit, with their rates between the state and the agents.
fn connections(snapshot: &Snapshot, before: Option<&Snapshot>, width: u16) -> Fitted {
    const STATE: usize = 4;
    let mut columns: Vec<_> = COLUMNS.into_iter().zip(GOES).collect();
    columns.insert(STATE, (RATE, Some(9)));
    let row = |conn: &ConnSnapshot| {
        let mut row = cells(conn);
        row.insert(STATE, table::known(rate(conn, snapshot, before).map(|rate| format!("{rate:.0}"))));
        row
    };
    table::fitted(&columns, &snapshot.connections.iter().map(row).collect::<Vec<_>>(), width)
}

/// The data in kbit/s that a connection delivered or got acknowledged since the previous frame, or since it began.
fn rate(conn: &ConnSnapshot, now: &Snapshot, before: Option<&Snapshot>) -> Option<f64> {
    let before = before?;
    let is_it = |old: &&ConnSnapshot| {
        (old.shard, old.id, &old.local, &old.remote) == (conn.shard, conn.id, &conn.local, &conn.remote)
    };
    let carried = |conn: &ConnSnapshot| conn.bytes_delivered.saturating_add(conn.bytes_acked);
    let old = before.connections.iter().find(is_it).map_or(0, carried);
    let bytes_per_s = per_second(carried(conn).saturating_sub(old), now.uptime_s - before.uptime_s)?;
    Some(bytes_per_s as f64 * 8.0 / 1e3)
}

/// Data that the links carried since the previous frame.
fn link_rates(snapshot: &Snapshot, before: Option<&Snapshot>) -> String {
    let part = |link: &LinkSnapshot| {
        let old = before.and_then(|before| before.links.iter().find(|old| old.name == link.name));
        let seconds = before.map_or(0.0, |before| snapshot.uptime_s - before.uptime_s);
        let (received, sent) = old.map_or((0, 0), |old| (old.received_bytes, old.sent_bytes));
        let rate = |now: u64, old: u64| match per_second(now.saturating_sub(old), seconds) {
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

fn per_second(bytes: u64, seconds: f64) -> Option<u64> {
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
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn frame(now: &Snapshot, before: &Snapshot, width: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, 6)).expect("in memory");
        terminal.draw(|frame| draw(now, Some(before), frame.area(), frame.buffer_mut())).expect("in memory");
        text_of(terminal.backend().buffer()).lines().map(str::to_owned).collect()
    }

    fn conn(id: u32, local: &str, remote: &str) -> ConnSnapshot {
        ConnSnapshot {
            id,
            local: local.into(),
            remote: remote.into(),
            state: "established".into(),
            receiver: "delayed:d=3".into(),
            sender: "[cubic:hystart=on, tell-cwnd]".into(),
            cwnd_bytes: 14_600,
            rtt_ms: Some(0.021),
            ..ConnSnapshot::default()
        }
    }

    fn snapshot(uptime_s: f64, link_bytes: u64, connections: Vec<ConnSnapshot>) -> Snapshot {
        let link = LinkSnapshot { name: "hw0".into(), received_bytes: link_bytes, ..LinkSnapshot::default() };
        Snapshot { node: "n2".into(), uptime_s, links: vec![link], connections, ..Snapshot::default() }
    }

    #[test]
    fn a_frame_shows_what_links_and_connections_carry_a_second() {
        let mut conn = conn(7, "10.7.0.2:53159", "10.9.0.2:80");
        let before = snapshot(2.0, 1024, vec![conn.clone()]);
        (conn.bytes_delivered, conn.bytes_acked) = (200_000, 50_000);
        let text = frame(&snapshot(4.0, 5120, vec![conn]), &before, 180);
        assert!(text[1].contains("hw0: in 2.0 KiB/s, out 0 B/s"), "{text:#?}");
        assert!(text[2].starts_with("id  local ") && text[3].contains("  established  1000 "), "{text:#?}");
        assert!(text[3].contains("delayed:d=3"), "{text:#?}");
    }

    /// Ends and numbers tell connections apart, so that no letter of them may be lost without a mark.
    #[test]
    fn a_narrow_frame_has_fewer_columns_and_whole_ends() {
        let all =
            vec![conn(1, "10.7.0.2:53159", "10.9.0.2:8080"), conn(12, "10.7.0.2:53160", "10.9.0.2:8080")];
        let now = snapshot(3.0, 0, all);
        for (width, first, there, absent) in [
            (140, "1   10.7.0.2:53159  10.9.0.2:8080  established  0 ", ["sender", "acks/seg"], "cwnd"),
            (80, "1   10.7.0.2:53159  10.9.0.2:8080  0 ", ["receiver", "acks/seg"], "cwnd"),
        ] {
            let text = frame(&now, &now_before(&now), width);
            assert!(text[3].starts_with(first) && text[4].contains("10.7.0.2:53160  "), "{text:#?}");
            assert!(there.iter().all(|head| text[2].contains(head)), "{text:#?}");
            let (shown, lacks) = text[0].split_once("  no room: ").expect("it says what it leaves out");
            assert!(shown.contains("n2") && lacks.contains(absent) && !text[2].contains(absent), "{text:#?}");
            assert!(text.iter().all(|line| line.chars().count() <= width.into()), "{text:#?}");
        }
    }

    #[test]
    fn ends_that_are_longer_than_the_frame_are_cut_with_a_mark() {
        let long = "[2001:db8:1111:2222:3333:4444:5555:6666]:53159";
        let now = snapshot(3.0, 0, vec![conn(1, long, long)]);
        let text = frame(&now, &now_before(&now), 80);
        let cut: Vec<_> = text[3].split("  ").collect();
        assert!(cut[1].ends_with('…') && cut[2].ends_with('…'), "{text:#?}");
    }

    fn now_before(now: &Snapshot) -> Snapshot {
        Snapshot { uptime_s: now.uptime_s - 1.0, ..now.clone() }
    }
}
