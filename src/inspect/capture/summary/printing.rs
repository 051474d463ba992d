//! Prints the summary for people: a table for each kind that occurs.

use std::fmt::Write as _;

use super::{Acks, Dropped, Sent, Summary, Withheld};
use crate::inspect::capture::mac::{Lost, Tries};

impl Summary {
    pub(crate) fn page(&self) -> String {
        let mut page = format!("{} frames\n", self.frames);
        let held = ["ACKs of", "agent", "rule", "count", "mean held ms", "longest ms", "merged"];
        table(&mut page, &held, self.acks.iter().map(acks).collect());
        let withheld_of = ["ACKs withheld of", "agent", "rule", "count"];
        table(&mut page, &withheld_of, self.withheld.iter().map(withheld).collect());
        let data = ["data of", "sent as", "lost by", "packets"];
        table(&mut page, &data, self.sent.iter().map(sent).collect());
        table(&mut page, &["dropped of", "reason", "count"], self.dropped.iter().map(dropped).collect());
        let tries_for = ["tries for", "frame", "tries", "again", "given up"];
        table(&mut page, &tries_for, self.tries.iter().map(tries).collect());
        let no_answer = ["no answer of", "frame", "lost to", "count"];
        table(&mut page, &no_answer, self.lost.iter().map(lost).collect());
        page
    }
}

fn acks(acks: &Acks) -> Vec<String> {
    let Acks { connection, agent, rule, count, mean_held_ms, longest_held_ms, merged, .. } = acks;
    let ms = |ms: &Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.3}"));
    let held = [ms(mean_held_ms), ms(longest_held_ms), merged.to_string()];
    [vec![connection.clone(), agent.clone(), rule.clone(), count.to_string()], held.to_vec()].concat()
}

fn withheld(withheld: &Withheld) -> Vec<String> {
    let Withheld { connection, agent, rule, count } = withheld;
    vec![connection.clone(), agent.clone(), rule.clone(), count.to_string()]
}

fn sent(sent: &Sent) -> Vec<String> {
    let Sent { connection, what, lost_by, packets } = sent;
    vec![connection.clone(), what.clone(), lost_by.clone().unwrap_or_default(), packets.to_string()]
}

fn dropped(dropped: &Dropped) -> Vec<String> {
    let Dropped { connection, reason, count } = dropped;
    vec![connection.clone(), reason.clone(), count.to_string()]
}

fn tries(tries: &Tries) -> Vec<String> {
    let Tries { to, frame, tries, again, given_up } = tries;
    vec![to.clone(), frame.clone(), tries.to_string(), again.to_string(), given_up.to_string()]
}

fn lost(lost: &Lost) -> Vec<String> {
    let Lost { to, frame, lost_to, count } = lost;
    vec![to.clone(), frame.clone(), lost_to.clone(), count.to_string()]
}

fn table<const N: usize>(page: &mut String, columns: &[&str; N], rows: Vec<Vec<String>>) {
    if rows.is_empty() {
        return;
    }
    for line in crate::table::lines(columns, &rows) {
        // Writing to a String cannot fail.
        let _ = writeln!(page, "{line}");
    }
}
