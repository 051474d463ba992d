//! Records that were changed by hand, and names that would steer a spreadsheet or a terminal.

use std::process::Output;

use hopwise_lab::seal::seal;
use serde_json::Value;

use crate::folder::{Folder, SCENARIO, text};

fn hopwise(folder: &Folder, words: &[&str]) -> Output {
    folder.hopwise(words).output().expect("the command was built with the tests")
}

/// The first file of the trial whose name begins with this.
fn first(folder: &Folder, out: &str, begins: &str) -> String {
    let names = folder.files(out).into_keys();
    names.into_iter().find(|name| name.starts_with(begins)).unwrap_or_else(|| panic!("no {begins}"))
}

/// Changes the first digit behind `name`.
fn bend(folder: &Folder, file: &str, name: &str) {
    let path = folder.path(file);
    let whole = std::fs::read_to_string(&path).expect("a file");
    let at = whole.find(name).expect("it is there") + name.len();
    let digit = if whole[at..].starts_with('9') { "8" } else { "9" };
    std::fs::write(&path, format!("{}{digit}{}", &whole[..at], &whole[at + 1..])).expect("a file");
}

#[test]
fn a_changed_digit_in_a_record_is_noticed_and_its_run_made_again() {
    let folder = Folder::new("bent");
    folder.done(&["--seeds", "2", "--out", "t"]);
    let before = folder.files("t");
    let run = first(&folder, "t", "runs/");
    bend(&folder, &format!("t/{run}"), "\"bytes_delivered\":");
    let done = folder.trial(&["--seeds", "2", "--out", "t", "--resume"]);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(said.contains(&run) && said.contains("not as it was written"), "{said}");
    assert!(said.contains("5 of 6 runs are there already"), "{said}");
    assert!(before == folder.files("t"), "the run came to what it had come to");
}

#[test]
fn a_record_that_no_run_of_the_trial_has_left_is_made_again_although_its_checksum_holds() {
    let folder = Folder::new("forged");
    folder.done(&["--seeds", "2", "--out", "t"]);
    let before = folder.files("t");
    let run = first(&folder, "t", "runs/");
    let path = folder.path(&format!("t/{run}"));
    let whole = std::fs::read_to_string(&path).expect("a file");
    let forged: [fn(&mut Value); 7] = [
        |record| record["arm"] = "nobody".into(),
        |record| record["seed"] = 77.into(),
        |record| record["result"]["total"]["goodput_kbps"] = 1e300.into(),
        |record| record["series"] = "/etc/passwd".into(),
        |record| record["settings"]["foo"] = 1.into(),
        |record| record["result"]["scenario"] = "x".repeat(5000).into(),
        |record| record["settings"] = vec![Value::Array(Vec::new()); 2 << 20].into(),
    ];
    for (nth, forge) in forged.into_iter().enumerate() {
        let mut record: Value = serde_json::from_str(&whole).expect("JSON");
        record.as_object_mut().expect("an object").remove("sum");
        forge(&mut record);
        std::fs::write(&path, seal(&record.to_string()) + "\n").expect("a file");
        let done = folder.trial(&["--seeds", "2", "--out", "t", "--resume"]);
        let said = text(&done.stderr);
        assert_eq!(done.status.code(), Some(0), "{nth}: {said}");
        assert!(said.contains("5 of 6 runs are there already"), "{nth}: {said}");
        assert!(before == folder.files("t"), "{nth}: the run came to what it had come to");
    }
}

#[test]
fn a_report_is_drawn_from_nothing_that_was_changed() {
    let folder = Folder::new("bent-report");
    folder.done(&["--seeds", "2", "--out", "t"]);
    let series = first(&folder, "t", "series/");
    for (file, name) in [
        ("records.jsonl", "\"bytes_delivered\":"),
        ("trial.json", "\"margin\": 0."),
        (series.as_str(), "\nx_m,n0,"),
    ] {
        let file = format!("t/{file}");
        let before = std::fs::read(folder.path(&file)).expect("a file");
        bend(&folder, &file, name);
        for words in [&["report", "t"][..], &["report", "--why", "t"]] {
            let done = hopwise(&folder, words);
            let said = text(&done.stderr);
            assert_eq!(done.status.code(), Some(2), "{words:?} {file}: {said}");
            assert!(said.contains(&file) && said.contains("changed since it was written"), "{said}");
        }
        std::fs::write(folder.path(&file), before).expect("a file");
    }
    assert_eq!(hopwise(&folder, &["report", "t"]).status.code(), Some(0));
}

#[test]
fn a_name_is_no_formula_where_cells_end_at_commas_semicolons_or_tabs() {
    let folder = Folder::new("names");
    let named = SCENARIO.replace("  every:", "  \"=1+1\":").replace("  dca:", "  \"x; =2\":");
    folder.write("small.yaml", &named);
    folder.done(&["--seeds", "2", "--out", "t"]);
    let records = text(&folder.files("t")["records.csv"]);
    assert!(records.contains(",\"'=1+1\",") && records.contains(",\"x;' =2\","), "{records}");
    assert!(!records.contains(",=1") && !records.contains("; =2"), "{records}");
}

#[test]
fn a_name_of_several_lines_or_directions_is_refused_and_steers_no_terminal() {
    let folder = Folder::new("steers");
    let files = [
        ("title.yaml", SCENARIO.replace("A small trial", "\"\\e]0;mine\\a\\e[2J\""), "there is U+001B in it"),
        ("lines.yaml", SCENARIO.replace("A small trial", "\"one\\ntwo\""), "there is U+000A in it"),
        ("arm.yaml", SCENARIO.replace("  dca:", "  \"dca\\nfaster\":"), "there is U+000A in it"),
        ("turned.yaml", SCENARIO.replace("  dca:", "  dca\u{202e}:"), "there is U+202E in it"),
        ("a\nb.yaml", SCENARIO.to_owned(), "the name of the file: there is U+000A in it"),
    ];
    let words = files.iter().map(|(name, text, problem)| {
        folder.write(name, text);
        (vec!["trial", *name], *problem)
    });
    let set = vec!["trial", "small.yaml", "--set", "arms.\u{1b}[31mred.receiver=\u{1b}[2J"];
    let unknown = vec!["run", "small.yaml", "--arm", "\u{1b}[31mno\u{202e}", "--out", "r"];
    for (words, problem) in words.chain([(set, "there is U+001B in it"), (unknown, "[31mno")]) {
        let done = hopwise(&folder, &words);
        let said = text(&done.stdout) + &text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(problem), "{words:?}: {said}");
        let steers = |letter: char| letter.is_control() && letter != '\n' || letter == '\u{202e}';
        assert_eq!(said.lines().find(|line| line.contains(steers)), None);
    }
}
