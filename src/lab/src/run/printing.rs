//! Prints the result of a run for people, or for a program.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use hopwise_air::airtime::{AirtimeBook, AirtimeUse};
use hopwise_lab::cost::Cost;
use hopwise_lab::findings::in_words;
use hopwise_lab::plain::{no_room, without_least};
use hopwise_lab::result::{FlowRow, RateRow, RunResult};
use hopwise_lab::scenario::Prepared;
use hopwise_lab::sim::Results;
use serde::Serialize;

use hopwise_daemon::table::{self, known};

#[derive(Serialize)]
struct WithCost<'a> {
    #[serde(flatten)]
    result: &'a RunResult,
    cost: &'a Cost,
}

pub(super) fn result(result: &RunResult, cost: &Cost, folder: &Path, is_json: bool) -> io::Result<()> {
    if is_json { json(result, cost) } else { text(result, cost, folder) }
}

fn json(result: &RunResult, cost: &Cost) -> io::Result<()> {
    let mut out = hopwise_lab::plain::out();
    serde_json::to_writer(&mut out, &WithCost { result, cost })?;
    writeln!(out)
}

fn text(result: &RunResult, cost: &Cost, folder: &Path) -> io::Result<()> {
    let mut out = hopwise_lab::plain::out();
    writeln!(
        out,
        "{} in {}, arm {}, seed {}: {:.1} s counted",
        result.scenario, result.world, result.arm, result.seed, result.counted_s
    )?;
    write_flows(&mut out, &result.flows, table::width())?;
    for flow in &result.flows {
        write_remarks(&mut out, flow)?;
    }
    let (total, air) = (&result.total, &result.air);
    writeln!(out, "\ntotal {:.1} kbit/s, Jain {:.3}", total.goodput_kbps, total.jain)?;
    writeln!(
        out,
        "air   {} frames, {} collisions, {} packets given up, {} lost to full queues",
        known(air.frames_sent),
        known(air.collisions),
        known(air.retry_drops),
        known(air.queue_drops.map(|drops| drops - air.codel_drops.unwrap_or(0)))
    )?;
    if let (Some(given_up @ 1..), Some(late)) = (air.reorder_timeouts, air.reorder_late) {
        writeln!(
            out,
            "      {given_up} holes in aggregates given up by receivers, {late} packets that came later"
        )?;
    }
    if let (Some(dropped), Some(marked)) = (air.codel_drops, air.ce_marks) {
        writeln!(out, "      {dropped} packets that CoDel dropped, {marked} that it marked")?;
    }
    write_rates(&mut out, &result.rates)?;
    let seconds = |seconds: Option<f64>| known(seconds.map(|seconds| format!("{seconds:.1}")));
    let [all, data, acks] = [air.airtime_s, air.data_airtime_s, air.ack_airtime_s].map(seconds);
    writeln!(
        out,
        "      {all} s of airtime, all radios together: {data} s for data, {acks} s for TCP's ACKs"
    )?;
    writeln!(out, "cost  {:.2} s of CPU; files are in {}", cost.cpu_s, folder.display())
}

/// The load that rates carried, if a rate control chose them.
fn write_rates(out: &mut impl Write, rates: &[RateRow]) -> io::Result<()> {
    for link in rates.chunk_by(|a, b| (&a.node, &a.to) == (&b.node, &b.to)) {
        let packets: u64 = link.iter().map(|row| row.packets).sum();
        let share = |part: u64, whole: u64| 100.0 * part as f64 / (whole as f64).max(1.0);
        let of = |row: &RateRow| {
            let (sent, came) = (share(row.packets, packets), share(row.acknowledged, row.packets));
            format!("{} {sent:.1} % ({came:.0} % came)", row.rate)
        };
        let said: Vec<_> = link.iter().map(of).collect();
        writeln!(out, "rates {} → {}: {}", link[0].node, link[0].to, said.join(", "))?;
    }
    Ok(())
}

/// A column of the flows: its head, its width, and its turn to go where the terminal is too narrow.
type Column = (&'static str, usize, Option<u8>);

const FLOWS: [Column; 9] = [
    ("flow", 8, None),
    ("way", 13, None),
    ("hops", 4, Some(4)),
    ("goodput kbit/s", 14, None),
    ("segments", 8, Some(2)),
    ("sent again", 10, Some(1)),
    ("timeouts", 8, Some(0)),
    ("ACKs", 8, Some(3)),
    ("RTT ms (95 %)", 13, None),
];

/// The number of columns that stand to the left.
const LEFT: usize = 2;

fn cells(flow: &FlowRow) -> [String; FLOWS.len()] {
    [
        flow.id.clone(),
        format!("{} → {}", flow.from, flow.to),
        flow.hops.map_or("?".to_owned(), |hops| hops.to_string()),
        format!("{:.1}", flow.goodput_kbps),
        known(flow.segments_sent),
        known(flow.segments_retransmitted),
        known(flow.timeouts),
        known(flow.acks_sent),
        known(round_trips(flow)),
    ]
}

/// Writes the flows. With a width, columns are left out until lines are no wider, and a line names these.
fn write_flows(out: &mut impl Write, flows: &[FlowRow], width: Option<usize>) -> io::Result<()> {
    let rows: Vec<_> =
        std::iter::once(FLOWS.map(|(head, ..)| head.to_owned())).chain(flows.iter().map(cells)).collect();
    let mut shown: Vec<usize> = (0..FLOWS.len()).collect();
    let lines = |shown: &[usize]| rows.iter().map(|row| line(row, shown)).collect::<Vec<_>>();
    let is_too_wide = |shown: &[usize]| {
        width.is_some_and(|width| lines(shown).iter().any(|line| line.chars().count() > width))
    };
    let left_out = without_least(&mut shown, |nth| FLOWS[*nth].2, is_too_wide);
    writeln!(out)?;
    lines(&shown).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    if !left_out.is_empty() {
        let heads: Vec<_> = left_out.iter().map(|nth| FLOWS[*nth].0).collect();
        writeln!(out, "{}", no_room(&heads, "run --json"))?;
    }
    Ok(())
}

fn line(row: &[String; FLOWS.len()], shown: &[usize]) -> String {
    let mut line = String::new();
    for nth in shown {
        let (cell, width) = (&row[*nth], FLOWS[*nth].1);
        let gap = ["", " ", " ", "  "][(*nth).min(LEFT + 1)];
        let _ = if *nth < LEFT {
            write!(line, "{gap}{cell:<width$}")
        } else {
            write!(line, "{gap}{cell:>width$}")
        };
    }
    line
}

/// The median with the 95 % quantile. The kernel's TCP tells a mean alone.
fn round_trips(flow: &FlowRow) -> Option<String> {
    let quantiles = flow.round_trips.map(|trips| format!("{:.0} ({:.0})", trips.median_ms, trips.p95_ms));
    quantiles.or_else(|| Some(format!("mean {:.0}", flow.rtt_ms?)))
}

/// Writes what a flow lacks, what shadows would have done, and what it completed.
fn write_remarks(out: &mut impl Write, flow: &FlowRow) -> io::Result<()> {
    for (who, lacks) in [("receiver", &flow.receiver_lacks), ("sender", &flow.sender_lacks)] {
        if !lacks.is_empty() {
            writeln!(out, "{:<8} the {who} does without {}", flow.id, in_words(lacks))?;
        }
    }
    for shadow in &flow.shadows {
        writeln!(out, "{:<8} {shadow}", flow.id)?;
    }
    if let Some(done) = &flow.completed {
        let [mean, median, p95] =
            [done.mean_s, done.median_s, done.p95_s].map(|s| known(s.map(|s| format!("{s:.3} s"))));
        let (id, count, longest) = (&flow.id, done.count, done.longest_s);
        writeln!(
            out,
            "{id:<8} {count} completed, {mean} each: half within {median}, 95 % within {p95}, all within {longest:.3} s"
        )?;
    }
    Ok(())
}

/// Marks in the picture of a radio's airtime.
const MARKS_OF_RADIO: usize = 60;

const MARKS: [(AirtimeUse, char, &str); 10] = [
    (AirtimeUse::SendsData, 'D', "sends data"),
    (AirtimeUse::SendsTcpAck, 'a', "sends TCP ACKs"),
    (AirtimeUse::SendsAck, 'A', "sends MAC ACKs"),
    (AirtimeUse::SendsRts, 'r', "sends RTS"),
    (AirtimeUse::SendsCts, 'c', "sends CTS"),
    (AirtimeUse::Receives, '#', "receives"),
    (AirtimeUse::Overhears, 'o', "overhears"),
    (AirtimeUse::Noise, '~', "noise"),
    (AirtimeUse::Collision, 'x', "collision"),
    (AirtimeUse::Idle, '.', "idle"),
];

/// The airtime of every radio, as a picture in text.
pub(super) fn airtime(results: &Results, prepared: &Prepared) -> io::Result<()> {
    let mut out = hopwise_lab::plain::out();
    writeln!(out, "\nairtime of each radio; a mark is {:.1} % of the time", 100.0 / MARKS_OF_RADIO as f64)?;
    for (node, number) in results.nodes.iter().zip(0..) {
        if let Some(airtime) = node.airtime.filter(|_| prepared.plan.positions[number as usize].is_some()) {
            writeln!(out, "{:>5} {}", prepared.name_of(number), bar(&airtime))?;
        }
    }
    legend(table::width()).iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// The meanings of the marks, in lines that are no wider than the terminal. A mark and its meaning stay together.
fn legend(width: Option<usize>) -> Vec<String> {
    const INDENT: &str = "    ";
    let mut lines = vec![INDENT.to_owned()];
    for (_, mark, name) in MARKS {
        let item = format!("  {mark} {name}");
        let has_room = |line: &&mut String| width.is_none_or(|width| line.len() + item.len() <= width);
        match lines.last_mut().filter(has_room) {
            Some(line) => line.push_str(&item),
            None => lines.push(format!("{INDENT}{item}")),
        }
    }
    lines
}

/// Marks in proportion; each kind ends at its cumulative share.
fn bar(airtime: &AirtimeBook) -> String {
    let total = airtime.total_ns().max(1);
    let (mut bar, mut so_far) = (String::new(), 0);
    for (spent, mark, _) in MARKS {
        so_far += airtime.ns(spent);
        let until = (u128::from(so_far) * MARKS_OF_RADIO as u128 / u128::from(total)) as usize;
        while bar.len() < until {
            bar.push(mark);
        }
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_gets_fewer_columns_of_flows_and_a_file_all() {
        let flow = serde_json::json!({
            "id": "f0", "from": "n0", "to": "n8", "hops": 8, "receiver": "immediate", "sender": ["newreno"],
            "goodput_kbps": 200.0, "bytes_delivered": 1_000_000, "segments_sent": 1000,
            "segments_retransmitted": 10, "timeouts": 1, "fast_retransmits": 3, "acks_sent": 500,
            "acks_repeated": 2
        });
        let flows: [FlowRow; 1] = [serde_json::from_value(flow).expect("a flow's row")];
        let text = |width| {
            let mut out = Vec::new();
            write_flows(&mut out, &flows, width).expect("written");
            String::from_utf8(out).expect("text")
        };
        let head = "flow     way           hops  goodput kbit/s  segments  sent again  timeouts      ACKs  \
                    RTT ms (95 %)";
        let row = "f0       n0 → n8          8           200.0      1000          10         1       500";
        let whole = format!("\n{head}\n{row}{:>15}\n", "-");
        assert_eq!(text(None), whole);
        assert_eq!(text(Some(100)), whole);
        let narrow = text(Some(80));
        assert!(narrow.lines().take(3).all(|line| line.chars().count() <= 80), "{narrow}");
        assert!(narrow.contains("segments      ACKs  RTT ms (95 %)\n"), "{narrow}");
        assert!(narrow.contains("\nNo room in lines so short: timeouts, sent again. A wider"), "{narrow}");
    }

    #[test]
    fn a_narrow_terminal_has_the_legend_in_several_lines_and_a_file_in_one() {
        let whole = legend(None);
        assert!(
            whole.len() == 1 && whole[0].starts_with("      D sends data  a sends TCP ACKs  "),
            "{whole:?}"
        );
        let narrow = legend(Some(80));
        assert!(narrow.len() == 2 && narrow.iter().all(|line| line.len() <= 80), "{narrow:#?}");
        let items = |lines: &[String]| lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join("  ");
        assert_eq!(items(&narrow), items(&whole));
    }
}
