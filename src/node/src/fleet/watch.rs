//! The fleet live: each host is asked in its own turns, and a slow one keeps no other waiting.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hopwise_lab::plain;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table, Widget};
use tokio::runtime::Runtime;

use super::ask::Asking;
use super::report::{HostReport, Reports};
use super::view::{COLUMNS, HostOrder, remarks, rows};
use hopwise_daemon::failure::Failure;
use hopwise_daemon::table::{self, Fitted};

/// The keys and the orders that they choose.
pub(crate) const KEYS: [(char, &str, HostOrder); 5] = [
    ('n', "inventory", HostOrder::Inventory),
    ('s', "signal", HostOrder::Signal),
    ('u', "queue", HostOrder::Queue),
    ('a', "airtime", HostOrder::Airtime),
    ('c', "connections", HostOrder::Connections),
];
/// The longest wait for a key before the next frame.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The newest report of each host, and the one before it.
#[derive(Clone, Debug, Default)]
struct HostReports {
    now: Reports,
    before: Reports,
}

/// Draws until a key ends it.
pub(crate) fn watch(
    runtime: &Runtime,
    asking: Asking,
    every: Duration,
    terminal: &mut ratatui::DefaultTerminal,
) -> Result<(), Failure> {
    let names = asking.names();
    let waiting = names.iter().map(|name| HostReport::none(name, "no answer yet".to_owned())).collect();
    let waiting = Reports { hosts: waiting };
    let seen = Arc::new(Mutex::new(HostReports { now: waiting.clone(), before: waiting }));
    let board = Arc::clone(&seen);
    let following = asking.follow(runtime, every, move |nth, report| {
        let mut seen = board.lock().unwrap_or_else(PoisonError::into_inner);
        seen.before.hosts[nth] = std::mem::replace(&mut seen.now.hosts[nth], report);
    });
    let ended = draw_until_quit(&seen, every, terminal);
    runtime.block_on(async move {
        let mut following = following;
        following.shutdown().await;
        asking.close().await;
    });
    ended
}

fn draw_until_quit(
    seen: &Mutex<HostReports>,
    every: Duration,
    terminal: &mut ratatui::DefaultTerminal,
) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::failed("draw", error);
    let mut order = HostOrder::default();
    loop {
        let now = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        terminal.draw(|frame| draw(&now, order, frame.area(), frame.buffer_mut())).map_err(failed)?;
        if !event::poll(every.min(LOOK_EVERY)).map_err(failed)? {
            continue;
        }
        let Event::Key(key) = event::read().map_err(failed)? else { continue };
        match key.code {
            _ if key.kind != KeyEventKind::Press => {}
            KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
            KeyCode::Char(letter) => order = order_of(letter).unwrap_or(order),
            _ => {}
        }
    }
}

fn order_of(letter: char) -> Option<HostOrder> {
    KEYS.iter().find(|(key, _, _)| *key == letter).map(|(_, _, order)| *order)
}

fn draw(seen: &HostReports, order: HostOrder, area: Rect, buffer: &mut Buffer) {
    let remarks = remarks(&seen.now);
    let foot = u16::try_from(remarks.len()).unwrap_or(u16::MAX).min(area.height / 2);
    let parts = [Constraint::Length(1), Constraint::Min(1), Constraint::Length(foot)];
    let [head, body, foot] = Layout::vertical(parts).areas(area);
    let keys: Vec<_> = KEYS
        .iter()
        .map(|(key, name, of)| if *of == order { format!("[{key} {name}]") } else { format!("{key} {name}") })
        .collect();
    let (all, silent) = (seen.now.hosts.len(), remarks.len());
    let rows = rows(&seen.now, Some(&seen.before), order);
    let Fitted { heads, rows, widths, left_out } = table::fitted(&COLUMNS, &rows, area.width);
    let lacks =
        if left_out.is_empty() { String::new() } else { format!("   no room: {}", left_out.join(", ")) };
    let cut = |line: &str| Line::from(plain::cut(&plain::line(line), area.width.into()));
    let line =
        format!("{all} hosts, {silent} without an answer   order: {}   q ends{lacks}", keys.join("  "));
    Paragraph::new(cut(&line)).render(head, buffer);
    let header = Row::new(heads).style(Style::new().add_modifier(Modifier::BOLD));
    let table = Table::new(rows.into_iter().map(Row::new), widths.into_iter().map(Constraint::Length));
    Widget::render(table.header(header).column_spacing(table::BETWEEN), body, buffer);
    Paragraph::new(remarks.iter().map(|line| cut(line)).collect::<Vec<_>>()).render(foot, buffer);
}

#[cfg(test)]
mod tests {
    use super::super::report::{AirtimeReport, QueueReport};
    use super::*;

    fn text(seen: &HostReports, order: HostOrder) -> Vec<String> {
        let area = Rect::new(0, 0, 160, 8);
        let mut buffer = Buffer::empty(area);
        draw(seen, order, area, &mut buffer);
        let line =
            |y| (0..area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..area.height).map(line).collect()
    }

    fn host(name: &str, packets: u64, active_ms: u64, busy_ms: u64) -> HostReport {
        HostReport {
            host: name.to_owned(),
            queue: Some(QueueReport { packets, bytes: 0, drops: 0 }),
            airtime: Some(AirtimeReport { active_ms, busy_ms, ..AirtimeReport::default() }),
            ..HostReport::default()
        }
    }

    #[test]
    fn a_narrow_frame_has_fewer_columns_and_whole_names_of_hosts() {
        let names = ["pi-in-the-attic.mesh.example.org", "pi-in-the-cellar.mesh.example.org"];
        let seen = HostReports {
            now: Reports { hosts: names.map(|name| host(name, 1, 2000, 1100)).to_vec() },
            ..HostReports::default()
        };
        let area = Rect::new(0, 0, 80, 8);
        let mut buffer = Buffer::empty(area);
        draw(&seen, HostOrder::Inventory, area, &mut buffer);
        let line = |y| (0..area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        assert!(line(2).starts_with(names[0]) && line(3).starts_with(names[1]), "{}\n{}", line(2), line(3));
        assert!(line(1).contains("signal") && !line(1).contains("version"), "{}", line(1));
        assert!(line(0).ends_with('…'), "{}", line(0));
    }

    #[test]
    fn a_frame_shows_hosts_by_the_chosen_key_with_what_is_new_and_who_is_silent() {
        let silent = || HostReport::none("n3", "ssh: no route".to_owned());
        let seen = HostReports {
            now: Reports { hosts: vec![host("n1", 1, 2000, 1100), host("n2", 5, 2000, 200), silent()] },
            before: Reports { hosts: vec![host("n1", 0, 1000, 200), host("n2", 0, 1000, 100), silent()] },
        };
        let by_queue = text(&seen, order_of('u').expect("a key"));
        assert!(by_queue[0].contains("3 hosts, 1 without an answer") && by_queue[0].contains("[u queue]"));
        assert!(by_queue[2].starts_with("n2") && by_queue[3].starts_with("n1"), "{by_queue:#?}");
        // Since the frame before, not since the radio came up.
        assert!(by_queue[3].contains("90%"), "{by_queue:#?}");
        assert_eq!(by_queue[7], "n3: ssh: no route");
        assert!(text(&seen, HostOrder::Airtime)[2].starts_with("n1"));
        assert_eq!(order_of('x'), None);
    }
}
