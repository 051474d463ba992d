//! The papers' claims as files and as a command.

use std::path::{Path, PathBuf};
use std::process::Command;

use hopwise_lab::claims::plans;
use hopwise_lab::located::Document;
use hopwise_lab::scenario::Scenario;

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> =
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect();
    files.sort();
    files
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "yaml")
}

/// A name in a reading is a file's, or ends in `*` for all that begin so.
#[test]
fn every_paper_has_a_reading_that_names_each_of_its_files() {
    let mut readings = 0;
    for file in files(Path::new("configs/papers")) {
        let Some(paper) = file.parent().filter(|folder| is_yaml(&file) && !folder.ends_with("papers")) else {
            continue;
        };
        let reading = paper.join("reading.md");
        let text = std::fs::read_to_string(&reading).unwrap_or_else(|e| panic!("{}: {e}", reading.display()));
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        let mut named = text.split('`').skip(1).step_by(2).map(|word| word.trim_end_matches(".yaml"));
        let is_named = named.any(|word| match word.strip_suffix('*') {
            Some(begins) => !begins.is_empty() && name.starts_with(begins),
            None => word == name,
        });
        assert!(is_named, "{} says nothing of {name}", reading.display());
        readings += 1;
    }
    assert!(readings > 30, "{readings}");
}

#[test]
fn every_figure_is_a_scenario_with_a_title_and_something_that_is_said_of_it() {
    let mut count = 0;
    for file in files(Path::new("configs/papers")) {
        if file.ends_with("not-run.yaml") || !is_yaml(&file) {
            continue;
        }
        if let Some((document, plan)) = plans::load(&file).expect("it is read") {
            let judged = plans::judge(&document, &plan).unwrap_or_else(|r| panic!("{}: {r}", file.display()));
            assert!(!judged.is_empty() && !plan.title.is_empty(), "{}", file.display());
            assert_measured(&file, judged.len());
            count += judged.len();
            continue;
        }
        can_be_run_over_a_radio_of_today(&file);
        for rules in ["ns2", "standard"] {
            let scenario = Scenario::load(&file, &[format!("mac.rules={rules}")]).expect("it is read");
            let asked = scenario.asked().unwrap_or_else(|refusal| panic!("{}: {refusal}", file.display()));
            assert!(asked.title.is_some(), "{}", file.display());
            for cell in &asked.cells {
                let there = scenario.at(cell).expect("a point");
                for arm in &asked.arms {
                    there
                        .under(arm)
                        .and_then(|arm| arm.prepare(1))
                        .unwrap_or_else(|refusal| panic!("{}: {refusal}", file.display()));
                }
            }
            let claims = scenario.claims().unwrap_or_else(|refusal| panic!("{}: {refusal}", file.display()));
            assert!(!claims.is_empty(), "{}", file.display());
            // The other setting's lines belong to these claims, too.
            count += if rules == "ns2" { claims.len() } else { 0 };
            assert_measured(&file, claims.len());
        }
    }
    assert!(count > 70, "{count}");
}

/// No reading that is left over another radio is refused.
fn can_be_run_over_a_radio_of_today(file: &Path) {
    let scenario = Scenario::load(file, &[]).expect("it is read");
    let sets = ["mac.rules=standard", "radio.profile=ht20-mcs7"].map(str::to_owned);
    let replaced = scenario.replacing(&sets);
    let replaced = replaced.unwrap_or_else(|refusal| panic!("{}: {refusal}", file.display()));
    let scenario = replaced.scenario.unwrap_or_else(|| panic!("{} has no reading left", file.display()));
    let asked = scenario.asked().unwrap_or_else(|refusal| panic!("{}: {refusal}", file.display()));
    for cell in &asked.cells {
        assert!(!cell.point.contains_key("radio.profile"), "{}", file.display());
        let there = scenario.at(cell).expect("a point");
        let planned = there.under(&asked.arms[0]).and_then(|arm| arm.prepare(1));
        let prepared = planned.unwrap_or_else(|refusal| panic!("{}: {refusal}", file.display()));
        assert_eq!(prepared.plan.phy.name, "ht20-mcs7", "{}", file.display());
    }
}

/// The page of the paper has a section for the file, with its claims, or it says that the file is a newer one. It says
/// so if and only if the digest of the file that it tells is not the file's.
fn assert_measured(file: &Path, claims: usize) {
    let paper =
        file.parent().and_then(Path::file_name).expect("a paper's folder").to_string_lossy().into_owned();
    let page = std::fs::read_to_string(format!("docs/claims/{paper}.md")).expect("a page");
    let name = file.file_name().expect("a name").to_string_lossy().into_owned();
    let mut sections = page.split("\n## ");
    let of_file =
        |section: &&str| section.lines().next().is_some_and(|head| head.ends_with(&format!("(`{name}`)")));
    let section =
        sections.find(of_file).unwrap_or_else(|| panic!("docs/claims/{paper}.md has nothing of {name}"));
    let is_marked = section.contains("**The file has changed since.**");
    if let Some((_, told)) = section.split_once("of a file with\ndigest ") {
        let digest = Document::load(file).expect("it is read").digest();
        let is_same = told.get(..16) == digest.get(..16);
        assert_eq!(is_same, !is_marked, "docs/claims/{paper}.md and {name}: scripts/claims makes it anew");
    }
    if !is_marked {
        let told = rows(section).count();
        assert_eq!(told, claims, "docs/claims/{paper}.md is of another {name}; scripts/claims makes it anew");
    }
}

/// The lines that begin a claim.
fn rows(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| line.contains("| **") && !line.starts_with("|  |"))
}

/// The claims of all papers' pages with their verdicts under the papers' own rules, which stand first.
fn measured() -> Vec<(String, String)> {
    let mut claims = Vec::new();
    let is_of_paper = |path: &&PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".md") && !name.starts_with("over-")
    };
    for page in files(Path::new("docs/claims")).iter().filter(is_of_paper) {
        let text = std::fs::read_to_string(page).expect("a page");
        for line in rows(&text) {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            let [_, says, .., verdict] = cells[..] else { panic!("seven cells: {line}") };
            let verdict = verdict.trim_start_matches('*').split("**").next().unwrap_or_default();
            claims.push((says.to_owned(), verdict.to_owned()));
        }
    }
    claims
}

/// The state, what is printed, and the errors of a command with these words.
type Run<'a> = &'a dyn Fn(&[&str]) -> (Option<i32>, String, Vec<u8>);

fn kept_runs_are_judged_as_they_were(run: Run<'_>, out: &Path, (told, text): (&str, &str)) {
    let (status, kept, _) = run(&["claims", "delayed_ack_chain", "--kept"]);
    let kept = kept.replace("; 3 figures left out by --quick", "");
    assert_eq!((status, kept.as_str()), (Some(0), told), "kept runs are judged as they were");
    let page = std::fs::read_to_string(out.join("pages/delayed_ack_chain.md")).expect("the page");
    assert_eq!(page, text, "the page names the build of the runs, which was this one");
    let figure = out.join("runs/quick/delayed_ack_chain/fig08/figure.yaml");
    let own = std::fs::read("configs/papers/delayed_ack_chain/fig08.yaml").expect("the file");
    assert_eq!(std::fs::read(&figure).expect("its copy"), own, "the folder has what made it");
    let (status, _, error) = run(&["claims", "tda/fig03-near", "--kept"]);
    let error = String::from_utf8_lossy(&error).into_owned();
    assert!(status == Some(2) && error.contains("without --kept the runs are made"), "{error}");
}

fn a_section_says_what_made_it(text: &str) {
    let certificate = hopwise_lab::sim::certificate_hash();
    let file = Document::load(Path::new("configs/papers/delayed_ack_chain/fig08.yaml"));
    let digest = file.expect("it is read").digest();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("Linux");
    for part in [
        "by hopwise\n",
        &format!(", certificate {}, of a file with\ndigest {}.\n", &certificate[..16], &digest[..16]),
        " runs take ",
        " s of a core.\nThey were made on 20",
        &format!(", Linux {}.\n", kernel.trim()),
    ] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

fn papers_and_figures_that_there_are_not_are_refused(run: Run<'_>) {
    for (chosen, problem) in [
        ("nobody", "no paper is called `nobody`: ack_holding, dca"),
        ("tda/fig99", "no figure of tda is called `fig99`: fig03-far, "),
    ] {
        let (status, _, error) = run(&["claims", chosen]);
        assert_eq!(status, Some(2));
        let error = String::from_utf8_lossy(&error).into_owned();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn a_quick_look_at_a_paper_says_what_is_claimed_measured_and_why() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("claims");
    let _ = std::fs::remove_dir_all(&out);
    let pages = out.join("pages").display().to_string();
    let folder = out.join("runs").display().to_string();
    std::fs::create_dir_all(&out).expect("a folder");
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_hopwise"))
            .args(arguments)
            .args(["--quick", "--out", &folder, "--pages", &pages])
            .output()
            .expect("it starts");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), output.stderr)
    };
    let (status, told, _) = run(&["claims", "delayed_ack_chain/fig08"]);
    assert_eq!(status, Some(0), "{told}");
    assert!(
        told.contains("over 10 % more than one for each\n  claimed             at least +10.0 %\n"),
        "{told}"
    );
    assert!(told.contains("under the papers' own rules: "), "{told}");
    let (again, told_again, _) = run(&["claims", "delayed_ack_chain"]);
    let without = told_again.replace("; 3 figures left out by --quick", "");
    assert_eq!((again, &without), (status, &told), "what has been run is read");
    assert_ne!(told_again, told, "three figures are slow");
    // A slow figure is run where it is named: with --kept its runs are missed.
    let (status, _, error) = run(&["claims", "delayed_ack_chain/fig08-near", "--kept"]);
    let error = String::from_utf8_lossy(&error).into_owned();
    assert!(status == Some(2) && error.contains("without --kept the runs are made"), "{error}");
    let text = std::fs::read_to_string(out.join("pages/delayed_ack_chain.md")).expect("the page");
    assert!(text.contains("| figure | claim |") && text.contains("**"), "{text}");
    a_section_says_what_made_it(&text);
    kept_runs_are_judged_as_they_were(&run, &out, (&told, &text));
    let csv = out.join("runs/quick/delayed_ack_chain/fig08/claims.csv");
    assert!(
        std::fs::read_to_string(&csv).expect("the table").contains("delayed_ack_chain,Fig. 8,"),
        "{csv:?}"
    );
    let (status, both, _) = run(&["claims", "delayed_ack_chain", "tda"]);
    assert_eq!(status, Some(0));
    assert!(["delayed_ack_chain Fig. 8: ", "tda Fig. 3"].iter().all(|paper| both.contains(paper)), "{both}");
    papers_and_figures_that_there_are_not_are_refused(&run);
    let _ = std::fs::remove_dir_all(&out);
}

#[test]
fn a_folder_without_papers_is_refused() {
    let done = Command::new(env!("CARGO_BIN_EXE_hopwise")).args(["claims", "--papers", "docs"]).output();
    let done = done.expect("it starts");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(2) && said.contains("it has no folder of a paper"), "{said}");
}

#[test]
fn figures_that_are_arithmetic_are_computed_with_the_papers_errata() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("plans");
    let papers = out.join("papers");
    let _ = std::fs::remove_dir_all(&out);
    std::fs::create_dir_all(papers.join("ack_holding")).expect("a folder");
    for figure in ["fig02", "fig05", "fig06", "fig07", "fig08"] {
        let name = format!("ack_holding/{figure}.yaml");
        std::fs::copy(Path::new("configs/papers").join(&name), papers.join(&name)).expect("a figure");
    }
    std::fs::write(papers.join("not-run.yaml"), "[]").expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_hopwise"))
        .args(["claims", "--papers", &papers.display().to_string(), "--out", &out.display().to_string()])
        .output()
        .expect("it starts");
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{told}");
    for part in [
        "ack_holding Fig. 2: ",
        "  claimed             at most 1\n  arithmetic          2: contradicted, the arithmetic says the opposite\n",
        "ack_holding Fig. 5: ",
        "  arithmetic          3 … 12 in 8 readings: reproduced in 2 of 8 readings, where μ0 = 3 s",
        "    μ0 = 1 s and σ0 = 0.3 s: 8: not reproduced",
        "ack_holding Fig. 8: ",
    ] {
        assert!(told.contains(part), "{part} is missing in {told}");
    }
    let _ = std::fs::remove_dir_all(&out);
}

/// A figure of a few seconds, with a sweep if there is one.
fn short_figure(sweep: &str) -> String {
    format!(
        "title: Fig. 1\ntopology: {{ kind: chain, hops: 2 }}\n\
         radio: {{ profile: dsss-2mbps, queue_packets: 50, rts_threshold: 0 }}\ntcp: {{ profile: ns2 }}\n\
         traffic: [{{ from: first, to: last, kind: bulk }}]\n\
         arms: {{ every: {{ receiver: immediate, sender: [newreno] }}, \
         two: {{ receiver: delayed, sender: [newreno] }} }}\n\
         {sweep}run: {{ duration: 3s, seeds: 2 }}\n\
         claims: [{{ says: Fewer ACKs carry no less, arm: two, bound: at-least, ratio: 1.0, tolerance: 50% }},\n  \
         {{ says: It carries 2 Mbit/s at most, arm: two, bound: at-most, measure: goodput, value: 2000 }}]\n"
    )
}

/// A folder with a paper of three short figures. The second one has a reading with another radio, and the points of the
/// third have two.
fn short_papers(out: &Path) -> PathBuf {
    let papers = out.join("papers");
    let _ = std::fs::remove_dir_all(out);
    std::fs::create_dir_all(papers.join("one")).expect("a folder");
    std::fs::write(papers.join("one/fig1.yaml"), short_figure("").replace("3s", "18s")).expect("a figure");
    let swept = "sweep: { radio.profile: [dsss-2mbps, dsss-11mbps] }\n";
    std::fs::write(papers.join("one/fig2.yaml"), short_figure(swept)).expect("a figure");
    let points = swept.replace("sweep", "matrix");
    std::fs::write(papers.join("one/fig3.yaml"), short_figure(&points)).expect("a figure");
    papers
}

fn readings_with_a_radio_of_their_own_are_left_out(told: &str, out: &Path) {
    for part in [
        "one/fig2: not run over ht20-mcs7 in 1 of 2 readings, which sets another radio.profile\n",
        "one/fig3: not run over ht20-mcs7 in 1 of 1 readings, which sets another radio.profile\n",
        " contradicted; not run in 2 readings\n",
    ] {
        assert!(told.contains(part), "{part} is missing in {told}");
    }
    let table = std::fs::read_to_string(out.join("full/one/fig2/claims-ht20-mcs7.csv")).expect("the table");
    let lines = |rules: &str| table.lines().filter(|line| line.contains(&format!(",{rules},"))).count();
    assert_eq!((lines("ns2"), lines("ht20-mcs7")), (4, 2), "a line for each claim and reading: {table}");
    assert!(!out.join("full/one/fig3").exists(), "its points have two radios");
}

/// The status of a command, its output and its remarks.
type Told = (Option<i32>, String, String);

fn a_page_has_the_first_readings_in_a_part_of_their_time(run: &dyn Fn(&[&str]) -> Told, out: &Path) {
    let pages = out.join("pages");
    let pages = ["--pages", &pages.display().to_string()].map(str::to_owned);
    let args = ["--radio", "ht20-mcs7", "--first-reading", "--shorter", "3", &pages[0], &pages[1]];
    let (status, told, remarks) = run(&args);
    assert_eq!(status, Some(0), "{told}{remarks}");
    let page = std::fs::read_to_string(out.join("pages/over-ht20-mcs7.md")).expect("the page");
    let command = "`hopwise claims one/fig2 --radio ht20-mcs7 --first-reading --shorter 3` makes it again.";
    for part in ["\n## Fig. 1 (`one/fig1.yaml`)\n", "\n## Fig. 1 (`one/fig2.yaml`)\n", command] {
        assert!(page.contains(part), "{part} is missing in {page}");
    }
    assert!(!page.contains("fig3") && !page.contains("in 2 readings"), "{page}");
    let rows = |rules: &str| page.lines().filter(|line| line.contains(&format!(" | {rules} | "))).count();
    assert_eq!((rows("ns2"), rows("ht20-mcs7")), (4, 4), "two rows for each claim: {page}");
    let lasts = |rules: &str| {
        let path = out.join(format!("first-reading/one/fig1/{rules}/records.jsonl"));
        let records = std::fs::read_to_string(path).expect("records");
        let (_, after) = records.split_once("\"duration\":\"").expect("the time of a run");
        after.split('"').next().unwrap_or_default().to_owned()
    };
    assert_eq!(lasts("ns2"), "18s", "the papers' rules have the whole time");
    assert_eq!(lasts("ht20-mcs7-shorter-3"), "15s");
    let (_, again, _) = run(&args);
    assert_eq!(
        page,
        std::fs::read_to_string(out.join("pages/over-ht20-mcs7.md")).expect("the page"),
        "{again}"
    );
}

#[test]
fn claims_are_judged_over_radios_of_today_beside_the_papers_rules() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("radio-claims");
    let papers = short_papers(&out);
    let run = |more: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_hopwise"))
            .args(["claims", "--papers", &papers.display().to_string(), "--out", &out.display().to_string()])
            .args(more)
            .output()
            .expect("it starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (status, told, remarks) = run(&["--radio", "ht20-mcs7"]);
    assert_eq!(status, Some(0), "{told}{remarks}");
    // More than the papers' radios could ever carry: these radios are faster.
    let second = told.split("It carries 2 Mbit/s at most").nth(1).expect("the second claim");
    let verdict =
        |rules: &str| second.lines().find(|line| line.trim().starts_with(rules)).unwrap_or_default();
    assert!(verdict("ns2 ").contains(": reproduced"), "{told}");
    assert!(verdict("ht20-mcs7 ").contains(": not reproduced"), "{told}");
    assert!(told.contains("under the papers' own rules: ") && told.contains("\nover ht20-mcs7: "), "{told}");
    readings_with_a_radio_of_their_own_are_left_out(&told, &out);
    assert!(out.join("full/one/fig1/claims-ht20-mcs7.csv").exists(), "the table has a name of its own");
    assert!(!out.join("full/one/fig1/claims.csv").exists(), "that of the papers' rules stays");
    a_page_has_the_first_readings_in_a_part_of_their_time(&run, &out);
    for (more, problem) in [
        (&["--radio", "ht20-mcs77"][..], "no profile is called `ht20-mcs77`"),
        (&["--first-reading"], "--radio <PROFILE>"),
        (&["--shorter", "20"], "--radio <PROFILE>"),
        (&["--radio", "ht20-mcs7", "--shorter", "1"], "expected a whole number from 2 to 1000"),
    ] {
        let (status, _, error) = run(more);
        assert!(status == Some(2) && error.contains(problem), "{error}");
    }
    let _ = std::fs::remove_dir_all(&out);
}

/// What `hopwise claims` prints and remarks of a figure with two readings, and its folder under its first rules.
fn of_two_readings(out: &Path, seeds: &str, claims: &str, more: &[&str]) -> (String, String, PathBuf) {
    let papers = out.join("papers");
    std::fs::create_dir_all(papers.join("one")).expect("a folder");
    let figure = short_figure("sweep: { radio.profile: [dsss-2mbps, dsss-11mbps] }\n");
    let (before, _) = figure.split_once("claims: ").expect("claims");
    let text = format!("{}claims: [{claims}]\n", before.replace("seeds: 2", seeds));
    std::fs::write(papers.join("one/fig1.yaml"), text).expect("a figure");
    let output = Command::new(env!("CARGO_BIN_EXE_hopwise"))
        .args(["claims", "--papers", &papers.display().to_string(), "--out", &out.display().to_string()])
        .args(more)
        .output()
        .expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), out.join("full/one/fig1"))
}

/// The mean of a claim in the reading at 11 Mbit/s under these rules, and the low end of its interval.
fn mean_and_low(folder: &Path, rules: &str) -> [f64; 2] {
    let table = std::fs::read_to_string(folder.join("claims.csv")).expect("a table");
    let row = table.lines().find(|line| line.contains(&format!(",{rules},radio.profile = dsss-11mbps,")));
    let cells: Vec<&str> = row.unwrap_or_else(|| panic!("{table}")).split(',').collect();
    [8, 9].map(|nth| cells[nth].parse().expect("a number"))
}

/// The number of runs of an arm at this rate.
fn runs_of(folder: &Path, rules: &str, (arm, profile): (&str, &str)) -> usize {
    let records = std::fs::read_to_string(folder.join(rules).join("records.jsonl")).expect("records");
    let parts = [format!("\"point\":{{\"radio.profile\":\"{profile}\"}}"), format!("\"arm\":\"{arm}\"")];
    records.lines().filter(|line| parts.iter().all(|part| line.contains(part))).count()
}

#[test]
fn an_undecided_line_is_run_with_more_seeds_while_they_may_decide_it_and_no_other_one() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("decided-claims");
    let _ = std::fs::remove_dir_all(&out);
    let claim = "{ says: It carries something, arm: two, bound: at-least, measure: goodput, value: 1 }";
    let (_, _, folder) = of_two_readings(&out.join("any"), "seeds: 2", claim, &[]);
    let [[mean, low], [of_standard, low_of_standard]] =
        ["ns2", "standard"].map(|rules| mean_and_low(&folder, rules));
    assert!(low < mean && low_of_standard < of_standard, "runs scatter");
    let line = |says: &str, bound: f64| {
        format!(
            "{{ says: {says}, arm: two, at: {{ radio.profile: [dsss-11mbps] }}, bound: at-least, \
             measure: goodput, value: {bound}, tolerance: 0% }}"
        )
    };
    // Two seeds have a wide interval, which few more make much narrower. Over the standard's radio it stays.
    let [less, of_standard] =
        [(mean, low), (of_standard, low_of_standard)].map(|(mean, low)| 0.5 * (mean + low));
    let claims =
        [claim.to_owned(), line("It carries less", less), line("It carries that", of_standard)].join(", ");
    let open = out.join("open");
    let (told, remarks, folder) = of_two_readings(&open, "seeds: 2", &claims, &[]);
    let of = |arm, profile| runs_of(&folder, "ns2", (arm, profile));
    assert_eq!([of("two", "dsss-2mbps"), of("every", "dsss-2mbps")], [2, 2], "two decide: {told}{remarks}");
    assert_eq!(of("every", "dsss-11mbps"), 2, "no line needs more of this arm: {told}{remarks}");
    let runs = of("two", "dsss-11mbps");
    assert!(runs > 2 && runs <= 40, "{runs}: {told}{remarks}");
    assert!(told.contains(&format!("; 2 to {runs} seeds\n")), "{told}");
    assert_eq!(runs_of(&folder, "standard", ("two", "dsss-11mbps")), 2, "other rules have the file's seeds");
    let (again, remarks, _) = of_two_readings(&open, "seeds: 2", &claims, &[]);
    assert_eq!((&again, remarks.contains("runs")), (&told, false), "what has been run is read: {remarks}");
    let (kept, ..) = of_two_readings(&open, "seeds: 2", &claims, &["--kept"]);
    assert_eq!(kept, told, "kept runs have all their seeds");
    // The bound stays in the interval of forty, if the mean stays.
    let (told, _, folder) =
        of_two_readings(&out.join("left"), "seeds: 2", &line("It carries this", mean), &[]);
    assert_eq!(runs_of(&folder, "ns2", ("two", "dsss-11mbps")), 2, "{told}");
    assert!(
        told.contains("the interval goes beyond what is claimed, and would with 40 seeds; 2 seeds\n"),
        "{told}"
    );
    let _ = std::fs::remove_dir_all(&out);
}

/// The rows of numbers that a picture has of this shape and class, without these two.
fn numbers(svg: &str, (shape, class): (&str, &str)) -> Vec<Vec<String>> {
    let (_, after) = svg.split_once(" data-numbers=\"").expect("numbers");
    let rows =
        after.split('"').next().unwrap_or_default().lines().map(|row| row.split('|').map(str::to_owned));
    let rows = rows.map(Iterator::collect::<Vec<_>>).filter(|row| row[0] == shape && row[1..2] == [class]);
    rows.map(|row| row[2..].to_vec()).collect()
}

#[test]
fn a_figures_runs_are_drawn_over_what_varies_and_over_time() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("drawn-claims");
    let _ = std::fs::remove_dir_all(&out);
    std::fs::create_dir_all(out.join("papers/one")).expect("a folder");
    let varied = "matrix: { arms.two.receiver: [\"delayed:d=2\", \"delayed:d=4\"] }\n";
    std::fs::write(out.join("papers/one/fig1.yaml"), short_figure(varied)).expect("a figure");
    let args = [("--papers", "papers"), ("--out", "runs"), ("--figures", "drawn/svg")];
    let args = args.map(|(name, folder)| [name.to_owned(), out.join(folder).display().to_string()]);
    let done = Command::new(env!("CARGO_BIN_EXE_hopwise")).arg("claims").args(args.as_flattened()).output();
    let done = done.expect("it starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let mut names: Vec<_> = files(&out.join("drawn/svg"));
    names.sort();
    let read = |part: &str| {
        let mut fit = names.iter().filter(|path| path.to_string_lossy().contains(part));
        let path = fit.next().unwrap_or_else(|| panic!("no picture of {part} in {names:?}"));
        let svg = std::fs::read_to_string(path).expect("a picture");
        assert!(svg.starts_with("<svg ") && svg.contains(" xmlns=\"http://www.w3.org/2000/svg\""), "{svg}");
        assert!(svg.ends_with("</text></svg>") && svg.matches("<svg").count() == 1, "{svg}");
        svg
    };
    // Goodput over the segments to an ACK, as the runs have it.
    let records = std::fs::read_to_string(out.join("runs/full/one/fig1/ns2/records.csv")).expect("the runs");
    let column = |name: &str| {
        let head = records.lines().next().unwrap_or_default();
        head.split(',').position(|of| of == name).unwrap_or_else(|| panic!("{head}"))
    };
    let (arm, goodput) = (column("arm"), column("goodput_kbps"));
    let drawn = numbers(&read("one-fig1-sweep-1-goodput-by-receiver.svg"), ("mean", "mark a1"));
    assert_eq!(drawn.iter().map(|row| &*row[0]).collect::<Vec<_>>(), ["2", "4"], "{drawn:?}");
    for row in &drawn {
        let spec = format!("delayed:d={}", row[0]);
        let runs = records.lines().map(|run| run.split(',').collect::<Vec<_>>());
        let own = runs.filter(|run| run[arm] == "two" && run.contains(&&*spec));
        let own: Vec<f64> = own.map(|run| run[goodput].parse().expect("a number")).collect();
        let (drawn, measured) = (row[1].parse::<f64>().expect("a mean"), own.iter().sum::<f64>() / 2.0);
        assert!(own.len() == 2 && (drawn - measured).abs() < 0.01 * measured, "{drawn} for {own:?}");
    }
    // The window and the acknowledged bytes of each arm's first run.
    let window = numbers(&read("one-fig1-cwnd-0-"), ("step", "line a0"));
    assert!(window.len() > 3 && window.iter().any(|row| row[1] != window[0][1]), "{window:?}");
    let progress = numbers(&read("one-fig1-seq-0-"), ("step", "line a1"));
    let sent: Vec<f64> = progress.iter().map(|row| row[1].parse().expect("megabytes")).collect();
    assert!(sent.len() > 3 && sent.is_sorted() && sent.last() > Some(&0.1), "{sent:?}");
    let _ = std::fs::remove_dir_all(&out);
}

#[test]
fn a_claim_about_an_arm_that_there_is_not_is_refused() {
    let text = std::fs::read_to_string("configs/papers/dca/fig17.yaml").expect("a file");
    let scenario = Scenario::parse("fig17", &text.replace("arm: daa", "arm: dada"), &[]).expect("it is read");
    let refusal = scenario.claims().expect_err("no such arm").to_string();
    assert!(refusal.contains("no arm is called `dada`"), "{refusal}");
}

#[test]
fn the_page_of_papers_and_the_readme_count_what_the_pages_of_claims_say() {
    let of_papers: Vec<_> = measured().into_iter().filter(|(says, _)| !says.starts_with("*Ours:*")).collect();
    let are = |begins: &str| of_papers.iter().filter(|(_, verdict)| verdict.starts_with(begins)).count();
    let in_part = are("reproduced in ");
    let told = format!(
        "{} of {} claims are reproduced, {in_part} in part, {} undecided, {} not, {} contradicted",
        are("reproduced") - in_part,
        of_papers.len(),
        are("undecided"),
        are("not reproduced"),
        are("contradicted")
    );
    for name in ["README.md", "docs/papers.md"] {
        let text = std::fs::read_to_string(name).expect("a text").replace('\n', " ");
        assert!(text.contains(&told), "{name} does not say: {told}");
    }
}

/// Each line of a page belongs to a sentence of its paper, by the number that the reading gives it.
#[test]
fn each_claim_of_a_file_has_its_sentence_in_the_reading() {
    let table = std::fs::read_to_string("configs/papers/sentences.csv").expect("the sentences");
    for line in table.lines().skip(1) {
        let (figure, sentences) = line.split_once(',').expect("two columns");
        let (paper, _) = figure.split_once('/').expect("a paper");
        let text = std::fs::read_to_string(format!("configs/papers/{figure}.yaml")).expect("a file");
        let claims = text.lines().filter(|line| line.trim_start().starts_with("- says: ")).count();
        assert_eq!(sentences.split(' ').count(), claims, "{figure}");
        let reading =
            std::fs::read_to_string(format!("configs/papers/{paper}/reading.md")).expect("a reading");
        for sentence in sentences.split(' ') {
            assert!(reading.contains(&format!("| {sentence} | ")), "{paper}/reading.md has no {sentence}");
        }
    }
}

#[test]
fn a_claim_that_states_nothing_or_is_about_nothing_is_refused_where_it_stands() {
    let text = std::fs::read_to_string("configs/papers/dca/fig17.yaml").expect("a file");
    for (old, new, problem) in [
        ("    ratio: 1.2\n", "", "it states no number"),
        ("    ratio: 1.2\n", "    ratio: 1.2\n    value: 900\n", "it states a ratio already"),
        ("    ratio: 1.2\n", "    value: 900\n    against: tcp\n", "`against` has no meaning beside `value`"),
        (
            "    at: { topology.hops: [1] }\n",
            "    at: { topology.hop: [1] }\n",
            "`topology.hop` is the same at all points",
        ),
        ("    ratio: 1.2\n", "    ratio: -1\n", "ratio: -1 is out of range"),
        (
            "    ratio: 1.2\n",
            "    ratio: 1.2\n    premise: { arm: dada, measure: acks-lost }\n",
            "no arm is called `dada`",
        ),
        (
            "    ratio: 1.2\n",
            "    value: 900\n    premise: { arm: tcp, measure: acks-lost }\n",
            "`premise` has no meaning beside `value`",
        ),
        (
            "    ratio: 1.2\n",
            "    value: 900\n    per_at: { topology.hops: [3] }\n",
            "`per_at` has no meaning beside `value`",
        ),
        (
            "    ratio: 1.2\n",
            "    ratio: 1.2\n    over: most\n    per_at: { topology.hops: [3] }\n",
            "`per_at` has no meaning beside the ratio of a single point",
        ),
        (
            "    ratio: 1.2\n",
            "    ratio: 1.2\n    per_at: { routing.rules: [ns2] }\n",
            "the sweep varies `routing.rules`, and a reading has one value of it",
        ),
        (
            "    ratio: 1.2\n",
            "    ratio: 1.2\n    per_at: { topology.hop: [3] }\n",
            "`topology.hop` is the same at all points",
        ),
    ] {
        assert!(text.contains(old));
        let scenario = Scenario::parse("fig17", &text.replacen(old, new, 1), &[]);
        let refusal =
            scenario.and_then(|scenario| scenario.claims().map(drop)).expect_err(problem).to_string();
        assert!(refusal.contains(problem) && refusal.starts_with("fig17:"), "{refusal}");
    }
}
