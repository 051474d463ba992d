//! Folders of somebody else: nothing that leads out of a trial's folder is read or written.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::folder::{Folder, text};
use crate::reports::resealed;

const PRECIOUS: &str = "precious";
const LINK: &str = "it is a link, and links are not followed here: expected a regular file";
const SPECIAL: &str = "it is a folder, a pipe or a device: expected a regular file";

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
}

/// A finished trial in `t`.
fn done(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.done(&["--seeds", "2", "--out", "t"]);
    folder
}

fn first(folder: &Folder, begins: &str) -> String {
    let names = folder.files("t").into_keys();
    names.into_iter().find(|name| name.starts_with(begins)).unwrap_or_else(|| panic!("no {begins}"))
}

/// The command ends with this status and says these words.
fn ends(folder: &Folder, words: &[&str], status: i32, wanted: &[&str]) {
    let done = folder.hopwise(words).output().expect("the command was built with the tests");
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(status), "{words:?}: {said}");
    for part in wanted {
        assert!(said.contains(part), "{words:?}: {part} is missing in {said}");
    }
}

#[test]
fn nothing_is_written_where_a_link_in_the_folder_leads() {
    let folder = done("links-out");
    folder.write("precious", PRECIOUS);
    let again = ["trial", "small.yaml", "--seeds", "2", "--out", "t", "--resume"];
    let single = ["run", "small.yaml", "--arm", "dca", "--capture", "--series", "--out", "r"];
    for (words, link) in [
        (&["report", "t"][..], "t/report.html"),
        (&["report", "t", "--out", "t/other.html"], "t/other.html"),
        (&again, "t/lock"),
        (&again, "t/costs.jsonl"),
        (&again, "t/records.csv"),
        (&again, "t/summary.json"),
        (&again, "t/report.html"),
        (&single, "r/lock"),
        (&single, "r/settings.json"),
        (&single, "r/series.csv"),
        (&["--man", "pages"], "pages/hopwise.1"),
    ] {
        let path = folder.path(link);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let _ = fs::remove_file(&path);
        symlink(folder.path("precious"), &path).expect("a link");
        let (status, place) = match link.strip_suffix("/lock") {
            Some(out) => (2, format!("{out}: no trial can be written there: lock: ")),
            None => (1, link.to_owned()),
        };
        ends(&folder, words, status, &[&place, LINK]);
        assert_eq!(fs::read_to_string(folder.path("precious")).ok().as_deref(), Some(PRECIOUS), "{link}");
        fs::remove_file(&path).expect("the link has stayed");
        let _ = fs::remove_dir_all(folder.path("r"));
    }
}

#[test]
fn nothing_is_written_into_a_folder_that_a_link_names() {
    let folder = done("folders-out");
    fs::create_dir(folder.path("elsewhere")).expect("a folder");
    let is_left_alone = || fs::read_dir(folder.path("elsewhere")).expect("a folder").count() == 0;
    let again = ["trial", "small.yaml", "--seeds", "2", "--out", "t", "--resume", "--capture"];
    for name in ["runs", "costs", "series", "captures"] {
        let (path, kept) = (folder.path(&format!("t/{name}")), folder.path("kept"));
        let was_there = fs::rename(&path, &kept).is_ok();
        // A run that has to be made again has a capture.
        let run = first(&folder, if name == "runs" { "records.jsonl" } else { "runs/" });
        fs::remove_file(folder.path("t").join(run)).expect("a file");
        symlink(folder.path("elsewhere"), &path).expect("a link");
        let wanted = format!(
            "`{name}` is a link, and links are not followed below a trial's folder: expected a folder"
        );
        ends(&folder, &again, 1, &[&wanted]);
        assert!(is_left_alone(), "{name}");
        fs::remove_file(&path).expect("the link has stayed");
        if was_there {
            fs::rename(&kept, &path).expect("a folder");
        }
        folder.done(&["--seeds", "2", "--out", "t", "--resume"]);
    }
}

#[test]
fn a_report_waits_for_no_pipe_in_its_place() {
    let folder = done("pipe-out");
    let report = folder.path("t/report.html");
    fs::remove_file(&report).expect("the report");
    fifo(&report);
    ends(&folder, &["report", "t"], 1, &["t/report.html: ", SPECIAL]);
    ends(&folder, &["report", "t", "--out", "t/report.html"], 1, &["nobody reads from this pipe"]);
    assert!(!fs::symlink_metadata(&report).expect("it stays").is_file());
}

#[test]
fn links_and_special_files_of_a_trial_are_not_read() {
    let folder = done("links-in");
    let refused = |wanted: &[&str]| {
        for words in [&["report", "t"][..], &["report", "--why", "t"]] {
            ends(&folder, words, 2, wanted);
        }
    };
    let not_read = |name: &str| {
        let (path, kept) = (folder.path("t").join(name), folder.path("kept"));
        fs::rename(&path, &kept).expect("a file");
        for target in [kept.as_path(), Path::new("/dev/zero")] {
            symlink(target, &path).expect("a link");
            refused(&[name, LINK]);
            fs::remove_file(&path).expect("a link");
        }
        fifo(&path);
        refused(&[name, SPECIAL]);
        fs::remove_file(&path).expect("a pipe");
        fs::create_dir(&path).expect("a folder");
        refused(&[name, SPECIAL]);
        fs::remove_dir(&path).expect("a folder");
        fs::rename(&kept, &path).expect("a file");
    };
    let of_another = |name: &str| {
        let (path, kept) = (folder.path("t").join(name), folder.path("kept"));
        fs::rename(&path, &kept).expect("a folder");
        symlink(&kept, &path).expect("a link");
        refused(&[&format!(
            "`{name}` is a link, and links are not followed below a trial's folder: expected a folder"
        )]);
        fs::remove_file(&path).expect("a link");
        fs::rename(&kept, &path).expect("a folder");
    };
    for name in ["trial.json", "records.jsonl", &first(&folder, "series/")] {
        not_read(name);
    }
    of_another("series");
    fs::remove_file(folder.path("t/records.jsonl")).expect("a file");
    let run = first(&folder, "runs/");
    not_read(&run);
    of_another("runs");
    fs::rename(folder.path("t").join(&run), folder.path("t/runs/0.json")).expect("a file");
    refused(&["runs/0.json", "it is the record of another run: expected", &run]);
}

#[test]
fn a_record_names_its_own_series_and_its_sum() {
    let folder = done("series-out");
    let records = text(&folder.files("t")["records.jsonl"]);
    let (nth, line) =
        records.lines().enumerate().find(|(_, line)| line.contains("\"series\"")).expect("a first seed");
    let record: serde_json::Value = serde_json::from_str(line).expect("JSON");
    let of = |name: &str| record[name].as_str().expect("a text").to_owned();
    let (id, series, sum) = (of("id"), of("series"), of("series_sum"));
    // The sum of what the name leads to is right.
    for name in ["x.csv", "t/x.csv", "t/series/0.csv"] {
        fs::copy(folder.path("t").join(&series), folder.path(name)).expect("a file");
    }
    let absolute = folder.path("x.csv").display().to_string();
    let named =
        |other: &str| (series.clone(), other.to_owned(), format!("series is `{other}`, expected `{series}`"));
    for (from, to, wanted) in [
        named(&absolute),
        named("../x.csv"),
        named("x.csv"),
        named("series/0.csv"),
        named(&format!("series/../{series}")),
        (
            format!(",\"series_sum\":\"{sum}\""),
            String::new(),
            format!("`series_sum` is missing, expected the SHA-256 of {series}"),
        ),
        (
            format!("\"id\":\"{id}\""),
            "\"id\":\"../../x\"".to_owned(),
            "id is `../../x`, expected letters, digits and hyphens".to_owned(),
        ),
    ] {
        let changed = resealed(&line.replacen(&from, &to, 1));
        folder.write("t/records.jsonl", &records.replacen(line, &changed, 1));
        for words in [&["report", "t"][..], &["report", "--why", "t"]] {
            ends(&folder, words, 2, &[&format!("records.jsonl: line {}: {wanted}", nth + 1)]);
        }
    }
}
