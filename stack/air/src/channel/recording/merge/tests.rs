use proptest::prelude::*;

use super::super::super::RecordedField;
use super::*;

const HEAD: &str = "time_s,from,to,signal_dbm,noise_dbm,packets,busy\n";
const GATE: &str = "02:00:00:00:00:01";
const ROOF: &str = "02:00:00:00:00:02";

/// A recording of a host, as `hopwise mesh record` writes it.
fn of_host(name: &str, address: &str, began_s: f64, rows: &str) -> String {
    format!("# hopwise field 1, every 0.1 s\n# began {began_s:.3} s\n# node {name} {address}\n{HEAD}{rows}")
}

fn merged(texts: &[&str], given: &[(&str, &str)]) -> Result<MergedRecording, MergeError> {
    let names = ["a.csv", "b.csv", "c.csv"];
    let sources: Vec<_> = names.iter().zip(texts).map(|(name, text)| RecordingFile { name, text }).collect();
    let given =
        given.iter().map(|(address, name)| (address.parse().expect("an address"), (*name).to_owned()));
    merge(&sources, &given.collect::<Vec<_>>())
}

fn rows(merged: &MergedRecording) -> Vec<&str> {
    merged.text.lines().skip_while(|line| !line.starts_with("time_s")).skip(1).collect()
}

#[test]
fn the_receiver_tells_signals_and_the_sender_packets_in_one_row_of_a_common_time() {
    let gate = of_host("gate", GATE, 1_000.0, &format!("0,{ROOF},gate,-60,-95,,0.2\n0,gate,{ROOF},,,7,\n"));
    // Its clock is 30 ms late, and it begins an interval later.
    let late = format!("0.000,gate,roof,-71,,,\n0.100,{GATE},roof,-72,,,0.3\n");
    let roof = of_host("roof", ROOF, 1_000.03, &late);
    let merged = merged(&[&gate, &roof], &[]).expect("they agree");
    assert_eq!(
        rows(&merged),
        [
            "0.000,gate,roof,-71,,,,,7,,,,",
            "0.000,roof,gate,-60,-95,,,,,,,,0.2",
            "0.100,gate,roof,-72,,,,,,,,,0.3",
        ]
    );
    let head = "# hopwise field 1, every 0.1 s\n# nodes gate,roof\n# began 1000.000 s\n# node gate 02:";
    assert!(merged.text.starts_with(head), "{}", merged.text);
    let link = |from: &str, to: &str, signals, counts| MergedLink {
        from: from.to_owned(),
        to: to.to_owned(),
        signals,
        counts,
    };
    assert_eq!(merged.links, [link("gate", "roof", 2, 1), link("roof", "gate", 1, 0)]);
    assert_eq!((merged.rows, merged.length_ns), (3, 100_000_000));
    let node =
        |name: &str| ["gate", "roof"].iter().zip(0..).find(|(known, _)| **known == name).map(|(_, n)| n);
    assert!(RecordedField::parse(&merged.text, &node).is_ok());
    // The result is itself a recording that can be joined.
    let again = self::merged(&[&merged.text], &[]).expect("it is one");
    assert_eq!(again.text, merged.text);
}

#[test]
fn a_clock_that_was_set_moves_all_rows_of_its_file() {
    let gate = of_host("gate", GATE, 1_000.0, "0,roof,gate,-60,,,\n5,roof,gate,-61,,,\n");
    let roof = of_host("roof", ROOF, 7.0, "0,gate,roof,-70,,,\n# began 1002.000 s\n3,gate,roof,-71,,,\n");
    let merged = merged(&[&gate, &roof], &[]).expect("they agree");
    let times: Vec<_> = rows(&merged).iter().map(|row| row[..10].to_owned()).collect();
    // Rows before the later beginning are left out.
    assert_eq!(times, ["0.000,gate", "3.000,gate", "3.000,roof"]);
    assert_eq!((merged.began_ns, merged.skipped), (1_002_000_000_000, Some((2_000_000_000, 1))));
}

#[test]
fn recordings_of_a_node_one_after_the_other_begin_with_the_first_one() {
    let first = of_host("gate", GATE, 1_000.0, "0,roof,gate,-60,,,\n");
    let later = of_host("gate", GATE, 1_030.0, "0,roof,gate,-61,,,\n");
    let merged = merged(&[&later, &first], &[]).expect("they agree");
    assert_eq!((rows(&merged).len(), merged.length_ns, merged.skipped), (2, 30_000_000_000, None));
    let roof = of_host("roof", ROOF, 1_031.0, "");
    let error = self::merged(&[&first, &roof], &[]).expect_err("they have no time in common");
    assert!(error.file == 1 && error.error.problem.contains("after the last row of the others"), "{error:?}");
}

#[test]
fn stations_without_a_name_are_left_out_and_told_and_a_given_name_counts_most() {
    let stranger = "06:00:00:00:00:07";
    let text = of_host("gate", GATE, 1_000.0, &format!("0,{stranger},gate,-60,,,\n0,{ROOF},gate,-61,,,\n"));
    let merged = |given: &[(&str, &str)]| merged(&[&text], given);
    let named = merged(&[(ROOF, "roof"), (GATE, "door")]).expect("one link has names");
    // Rows say `gate` themselves, and no address.
    assert_eq!(rows(&named), ["0.000,roof,gate,-61,,,,,,,,,"]);
    assert_eq!(named.strangers, [stranger.parse().expect("an address")]);
    let error = merged(&[]).expect_err("nothing is left").error.problem;
    assert!(
        error.contains("between nodes with names, expected --node ADDRESS=NAME for some of 02:00"),
        "{error}"
    );
}

#[test]
fn a_line_that_was_cut_is_left_out_and_told() {
    let text = of_host("gate", GATE, 1_000.0, "0,roof,gate,-60,,,\n0.1,roof,ga");
    let merged = merged(&[&text], &[]).expect("its lines before are whole");
    assert_eq!((rows(&merged).len(), merged.cut), (1, vec![(0, 6)]));
}

/// Joins a recording with each of these, which is refused at a line of one of the two.
fn refused<'a>(cases: impl IntoIterator<Item = (String, (usize, usize), &'a str)>) {
    for (second, place, problem) in cases {
        let error = merged(&[FIRST, &second], &[]).expect_err(problem);
        assert_eq!((error.file, error.error.line), place, "{problem}: {error:?}");
        assert!(error.error.problem.contains(problem), "{problem}: {error:?}");
    }
}

const FIRST: &str = "# hopwise field 1, every 0.1 s\n# began 1000.000 s\n# node gate 02:00:00:00:00:01\n\
                     time_s,from,to,signal_dbm,noise_dbm,packets,busy\n0,roof,gate,-60,,,\n";

fn of_gate(began_s: f64, rows: &str) -> String {
    of_host("gate", GATE, began_s, rows)
}

#[test]
fn recordings_that_contradict_are_refused_with_both_places() {
    refused([
        (of_gate(1e3, "0,roof,gate,-71,,,\n"), (1, 5), "roof->gate is `-71` here and `-60` in a.csv:5"),
        (
            of_gate(1e3, "0.1,roof,gate,-71,,,\n0.12,roof,gate,-72,,,\n"),
            (1, 6),
            "in b.csv:5, within one interval",
        ),
        (of_gate(1_500.0, "0,roof,gate,-71,,,\n"), (1, 1), "it begins 500 s after the end of a.csv"),
        (of_gate(500.0, "0,roof,gate,-71,,,\n"), (0, 1), "it begins 500 s after the end of b.csv"),
        (of_host("door", GATE, 1e3, "0,roof,gate,-60,,,\n"), (1, 1), "called `door`, and `gate` before"),
        (FIRST.replace("0.1 s", "1 s"), (1, 1), "a.csv has an interval of 0.1 s"),
    ]);
    // The same file twice tells nothing else.
    assert_eq!(merged(&[FIRST, FIRST], &[]).expect("they agree").rows, 1);
}

#[test]
fn a_file_that_is_wrong_is_refused_with_its_line() {
    refused([
        (of_gate(1e3, "0.1,roof,gate,-71,,,\n0,roof,gate,-71,,,\n"), (1, 6), "the time goes back to `0` s"),
        (of_gate(1e3, "0,roof,gate,loud,,,\n"), (1, 5), "`loud` is no signal in dBm"),
        (of_gate(1e3, "0,roof,gate,-60,,-1,\n"), (1, 5), "`-1` is no count"),
        (of_gate(1e3, &format!("0,{GATE},gate,-60,,,\n")), (1, 5), "a link from `gate` to itself"),
        (FIRST.replace("# began 1000.000 s\n", ""), (1, 1), "no line `# began SECONDS s`"),
        (FIRST.replace("# began 1000.000", "# began soon"), (1, 2), "`# began soon s`, expected"),
        (String::new(), (1, 1), "expected `# hopwise field 1"),
    ]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn no_text_makes_a_merge_panic(
        text in "([0-9.,\n# -]|gate,|roof,|-60|# began 9 s\n|é){0,60}",
        began_s in 0.0..4e9,
    ) {
        let _ = merged(&[&text], &[]);
        let host = of_host("gate", GATE, began_s, &text);
        let _ = merged(&[&host, &of_host("roof", ROOF, 1_000.0, "0,gate,roof,-60,,,\n")], &[]);
    }
}
