//! Folders that somebody wrote to fill memory, disk or time.

use serde_json::json;

use super::*;
use crate::record::series_of;

/// The end of a refusal of letters that would forge lines.
const ONE_LINE: &str = crate::plain::NAME;

fn refused(root: &Folders, trial: Trial) -> String {
    let error = read(&[&root.write("refused", &trial, &bundle().records)]).expect_err("it is refused");
    error.to_string()
}

#[test]
fn figures_that_are_unknown_or_there_twice_are_refused_with_the_accepted_names() {
    let (root, whole) = (Folders::of("figures"), bundle());
    let of = |figures: &[&str]| {
        let figures = figures.iter().map(|name| (*name).to_owned()).collect();
        refused(&root, Trial { figures, ..whole.trial.clone() })
    };
    let twice = of(&["goodput_kbps", "rtt_ms", "goodput_kbps"]);
    assert!(
        twice.ends_with("figures[2] is `goodput_kbps`, which is there already: expected each figure once")
    );
    for (figures, wanted) in [
        (&["rtt_ms", "speed"][..], "figures[1] is `speed`, expected one of goodput_kbps, "),
        (&["delivered_bytes"], "figures[0] is `delivered_bytes`, expected one of goodput_kbps, "),
        (&[], "`figures` is empty, expected some of goodput_kbps, "),
    ] {
        let said = of(figures);
        assert!(said.contains(wanted), "{said}");
    }
}

#[test]
fn names_that_would_fill_a_report_are_refused() {
    let (root, whole) = (Folders::of("names"), bundle());
    let of = |change: &dyn Fn(&mut Trial)| {
        let mut trial = whole.trial.clone();
        change(&mut trial);
        refused(&root, trial)
    };
    let long = "n".repeat(70_000);
    for (said, wanted) in [
        (
            of(&|trial| trial.arms[1] = long.clone()),
            "an entry of `arms` has 70000 bytes, expected at most 1000",
        ),
        (of(&|trial| drop(trial.points[0].insert(long.clone(), json!(1)))), "bytes, expected at most 4000"),
        (of(&|trial| trial.title = Some(long.clone())), "a text has 70000 bytes, expected at most 4000"),
        (of(&|trial| trial.arms[1] += "\nfaster"), ONE_LINE),
        (of(&|trial| trial.scenario += "\u{9b}"), ONE_LINE),
        (of(&|trial| trial.title = Some("\u{202e}".to_owned())), ONE_LINE),
        (of(&|trial| trial.arm_paths = vec!["a\u{2028}b".to_owned()]), ONE_LINE),
        (of(&|trial| drop(trial.points[0].insert("\u{2066}".to_owned(), json!(1)))), ONE_LINE),
        (
            of(&|trial| trial.arm_paths = vec!["path".to_owned(); 1001]),
            "`arm_paths` has 1001 entries, expected at most 1000",
        ),
        (
            of(&|trial| {
                trial.arms = (0..200).map(|nth| format!("{nth}{}", &long[..990])).collect();
                trial.points = (0..200).map(|nth| [("hops".to_owned(), json!(nth))].into()).collect();
            }),
            "the names of all cells of `points` and `arms` have 38 MiB, expected at most 32 MiB",
        ),
    ] {
        assert!(said.ends_with(wanted), "{said}");
    }
}

#[test]
fn runs_of_an_arm_at_a_point_share_their_settings() {
    let (root, whole) = (Folders::of("shared"), bundle());
    let joined = read(&[&root.write("whole", &whole.trial, &whole.records)]).expect("a trial");
    let first = &joined.records[0];
    let is_like = |record: &&Record| record.arm == first.arm && record.point == first.point;
    let alike: Vec<_> = joined.records.iter().filter(is_like).collect();
    assert!(alike.len() > 1 && alike.iter().all(|record| std::ptr::eq(&*record.settings, &*first.settings)));
}

#[test]
fn a_series_that_is_a_hard_link_is_refused_and_a_run_beyond_an_arms_first_shows_none() {
    let (root, whole) = (Folders::of("linked"), bundle());
    let text = "what,who,at_s,value\nq,n0,1,5\n";
    let with = |record: &Record| Record {
        series: Some(series_of(&record.id)),
        series_sum: Some(crate::seal::sum(text)),
        ..record.clone()
    };
    let records: Vec<_> = whole.records.iter().map(with).collect();
    let folder = root.write("linked", &whole.trial, &records);
    std::fs::create_dir(folder.join("series")).expect("a folder");
    for record in &records {
        std::fs::write(folder.join(series_of(&record.id)), text).expect("a file");
    }
    let cells = whole.trial.points.len() * whole.trial.arms.len();
    assert_eq!(read(&[&folder]).expect("a trial").series.len(), cells);
    let [first, second] = [0, 1].map(|nth| folder.join(series_of(&records[nth].id)));
    std::fs::remove_file(&second).expect("it is there");
    std::fs::hard_link(&first, &second).expect("a link");
    let error = read(&[&folder]).expect_err("a link");
    assert!(error.to_string().contains("it is a hard link, a file with several names: expected"), "{error}");
}

#[test]
fn maps_take_more_than_their_text_and_series_of_names_more_than_samples() {
    let mut maps = json!({});
    for _ in 0..100 {
        maps = json!({ "": maps });
    }
    assert!(crate::scenario::settings::memory(&maps) > 100 * 600);
    let series =
        |row: fn(u32) -> String| (0..100).map(row).fold("head\n".to_owned(), |text, row| text + &row);
    let places = |text: &str| Series::parse_within(text, usize::MAX).map(|(_, places)| places);
    assert_eq!(places(&series(|nth| format!("q,n,{nth},1\n"))), Some(111));
    let of_names = series(|nth| format!("q,n{nth},1,1\n"));
    assert_eq!(places(&of_names), Some(1200));
    assert!(
        Series::parse_within(&of_names, 1199).is_none() && Series::parse_within(&of_names, 1200).is_some()
    );
    let frames = series(|nth| format!("frame:data,a>b,{nth},1\n"));
    assert_eq!(places(&frames), Some(700));
}

/// A file that is no text may be as long as a record.
#[test]
fn files_beside_the_runs_of_an_unfinished_trial_are_read_within_a_bound() {
    let (root, whole) = (Folders::of("unfinished"), bundle());
    let folder = root.write("unfinished", &whole.trial, &[]);
    std::fs::remove_file(folder.join("records.jsonl")).expect("it is there");
    std::fs::create_dir(folder.join("runs")).expect("a folder");
    let write =
        |name: &str, bytes: &[u8]| std::fs::write(folder.join("runs").join(name), bytes).expect("a file");
    let run = &whole.records[0];
    write(&format!("{}.json", run.id), run.line().as_bytes());
    (0..255).for_each(|nth| write(&format!("{nth}.part"), b"\xff"));
    assert_eq!(read(&[&folder]).expect("a run has ended").records.len(), 1);
    write("255.part", b"\xff");
    let error = read(&[&folder]).expect_err("nobody reads so much").to_string();
    assert!(error.ends_with("runs: its files are too long together: expected at most 1024 MiB"), "{error}");
}

/// The label is longer than any column may be wide.
#[test]
fn a_cell_that_is_wider_than_any_column_is_cut() {
    let wide = "w".repeat(70_000);
    let text = crate::findings::columns(&[
        vec![wide.clone(), wide.clone(), wide],
        vec!["a".to_owned(), "b".to_owned(), "c".to_owned()],
    ]);
    let widths: Vec<_> = text.lines().map(|line| line.chars().count()).collect();
    assert_eq!(widths, [3 * 65_535 + 4, 2 * 65_535 + 5]);
    assert!(text.lines().next().is_some_and(|line| line.ends_with("w…")));
}

#[test]
fn a_figure_s_name_from_a_series_is_text() {
    let html = super::super::figure("fig-seq-0-\"><script>alert(1)</script>", "title", "", "reading");
    assert!(html.starts_with("<figure id=\"fig-seq-0-&quot;&gt;&lt;script&gt;"), "{html}");
}

#[test]
fn no_text_turns_what_follows_in_a_page() {
    use crate::report::escape;
    assert_eq!(escape("a\u{202e}<b>\u{2069}\u{9b}\n"), "a???&lt;b&gt;?????\n");
}

#[test]
fn a_key_of_the_settings_that_would_stand_in_thousands_of_paths_is_refused() {
    let root = Folders::of("keys");
    let of = |len: usize| {
        let settings = json!({ "&".repeat(len): { "a": 1, "b": 2 } });
        let records: Vec<_> = bundle().records;
        let records: Vec<_> = records
            .into_iter()
            .map(|record| Record { settings: settings.clone().into(), ..record })
            .collect();
        read(&[&root.write(&format!("keys-{len}"), &bundle().trial, &records)]).map(drop)
    };
    let error = of(2_000).expect_err("it is refused").to_string();
    assert!(error.contains("a key of the settings has 2003 bytes, expected at most 1000"), "{error}");
    of(900).expect("it is short");
}
