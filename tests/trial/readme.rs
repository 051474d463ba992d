//! The outputs that README and book show are the real ones: their time is virtual, and no machine changes it.

use crate::folder::{Folder, text};

fn read(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The first text of a section of a page, line by line.
fn shown(page: &str, section: &str) -> Vec<String> {
    let text = read(page);
    let text = text.split_once(&format!("\n## {section}\n")).expect("the page has the section").1;
    let text = text.split_once("\n```text\n").expect("it shows a text").1;
    let text = text.split_once("\n```").expect("the text ends").0;
    text.lines().map(|line| line.trim_end().to_owned()).collect()
}

/// Runs a trial and compares its output with the first text of a section.
fn prints_what_the_page_shows(folder: &Folder, config: &str, page: &str, section: &str) {
    let shown = shown(page, section);
    folder.write("config.yaml", &read(config));
    let run = folder.hopwise(&["trial", "config.yaml", "--out", "results"]).output().expect("it was built");
    let printed = text(&run.stdout);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let table: Vec<_> =
        printed.lines().map(str::trim_end).skip_while(|line| !line.starts_with("arm ")).collect();
    assert!(
        table.starts_with(&shown.iter().map(String::as_str).collect::<Vec<_>>()),
        "{page}, {section}: {printed}"
    );
}

#[test]
fn the_readmes_first_table_and_why_are_what_the_quickstart_prints() {
    assert!(
        read("scripts/quickstart").contains("\n\"$hopwise\" trial configs/quickstart.yaml --out \"$out\"\n")
    );
    let folder = Folder::new("readme-start");
    prints_what_the_page_shows(&folder, "configs/quickstart.yaml", "README.md", "Start");
    let explained = folder.hopwise(&["report", "--why", "results"]).output().expect("it was built");
    let explained = text(&explained.stdout);
    let heads: Vec<_> = explained.lines().next().expect("heads").split_whitespace().collect();
    let figure = |row: &str, arm: &str| {
        let cells = explained.lines().find_map(|line| line.strip_prefix(row)).expect(row);
        let place = heads.iter().position(|head| *head == arm).expect(arm);
        cells.split_whitespace().nth(place).expect("a cell for each arm").to_owned()
    };
    let collisions = |arm| figure("collisions, of 100 segments", arm);
    let readme = read("README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let said = format!(
        "For 100 new segments {} frames collide with `delayed` and {} with `train`.",
        collisions("delayed"),
        collisions("train")
    );
    assert!(readme.contains(&said), "{said}: {explained}");
    let page = read("docs/why-acks-collide.md");
    for row in ["collisions, of 100 segments", "air for its ACKs, ms"] {
        let cells = ["immediate", "delayed", "tda"].map(|arm| figure(row, arm));
        let row = format!("\n| {row} | {} |\n", cells.join(" | "));
        assert!(page.contains(&row), "{row}: {explained}");
    }
}

/// The figures next to Linux's come from the table that says how they were measured.
#[test]
fn the_readmes_figures_beside_linux_stand_in_the_table_of_worlds() {
    let (readme, worlds) = (read("README.md"), read("docs/notebook/linux.md"));
    let table =
        worlds.split_once("\n`hopwise trial configs/live/hops.yaml --late 40ms").expect("a command").1;
    let row = table.lines().find_map(|line| line.strip_prefix("| 4 | ")).expect("four hops");
    let means: Vec<_> = row.split('|').filter_map(|cell| cell.split_whitespace().next()).collect();
    let [.., train, cubic, bbr] = means[..] else { panic!("{row}") };
    let said = format!("`train` carries {train} kbit/s, the kernel's CUBIC {cubic} and its BBR {bbr}.");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&readme).contains(&said), "{said}");
}

/// The picture comes from the table of the notebook, and README's words from the picture's row of gains.
#[test]
fn the_readmes_picture_beside_linux_has_the_figures_of_the_table() {
    let root = env!("CARGO_MANIFEST_DIR");
    let made = std::process::Command::new("scripts/chart").current_dir(root).output().expect("bash runs");
    assert!(made.status.success(), "{}", text(&made.stderr));
    assert!(text(&made.stdout) == read("docs/beside-linux.svg"), "run scripts/chart > docs/beside-linux.svg");
    let (page, picture) = (read("docs/notebook/edge.md"), text(&made.stdout));
    let row = |begins: &str| {
        let row = page.lines().find_map(|line| line.strip_prefix(begins)).expect(begins);
        row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()
    };
    for arm in ["`convoy`", "the kernel's CUBIC", "the kernel's BBR"] {
        for cell in row(&format!("| {arm} | `netns` |")) {
            let (mbps, wait_ms) = cell.split_once(", ").expect("goodput and wait");
            let has = |figure: &str| picture.contains(&format!(" class=\"figure\">{figure}</text>"));
            assert!(has(mbps) && has(wait_ms), "{arm}: {cell}");
        }
    }
    let gains = row("| `convoy` beside the kernel's CUBIC | `netns` |");
    let whole = |nth: usize| gains[nth].split(['+', '.']).nth(1).expect("a gain").to_owned();
    let said = format!(
        "carries as much as the kernel's CUBIC over one and two hops, {} % more over four and {} % more over eight.",
        whole(2),
        whole(3)
    );
    assert!(gains[..2] == ["as much", "as much"], "{gains:?}");
    let readme = read("README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(readme.contains(&said), "{said}");
}

#[test]
fn the_first_trial_is_what_it_prints() {
    let folder = Folder::new("book-trial");
    prints_what_the_page_shows(&folder, "configs/chain.yaml", "docs/first-trial.md", "Which arm is better?");
}

#[test]
fn the_first_run_shows_the_airtime_that_it_prints() {
    let folder = Folder::new("book-run");
    folder.write("chain.yaml", &read("configs/chain.yaml"));
    let run =
        folder.hopwise(&["run", "chain.yaml", "--arm", "every", "--airtime"]).output().expect("it was built");
    let printed = text(&run.stdout);
    let shown = shown("docs/first-trial.md", "One run");
    let first = printed.lines().position(|line| line.trim_end() == shown[0]);
    let printed_there = first.map(|first| printed.lines().skip(first).map(str::trim_end));
    let same =
        printed_there.is_some_and(|lines| lines.take(shown.len()).eq(shown.iter().map(String::as_str)));
    assert!(same, "docs/first-trial.md shows\n{}\nand\n{printed}\nis printed", shown.join("\n"));
}

/// Its commands of ours are run as they stand there. Those of Wireshark are not: tshark may be missing.
fn shows_what_its_commands_print(folder: &Folder, place: &str) {
    let page = read(place);
    std::fs::create_dir(folder.path("configs")).expect("a new folder");
    folder.write("configs/chain.yaml", &read("configs/chain.yaml"));
    let mut printed = String::new();
    for line in page.lines().filter_map(|line| line.strip_prefix("hopwise ")) {
        let words = line.split("  #").next().expect("a command").split_whitespace();
        let words: Vec<_> = words.flat_map(|word| expanded(folder, word)).collect();
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let done = folder.hopwise(&words).output().expect("it was built");
        assert!(done.status.success(), "{line}: {}", text(&done.stderr));
        printed.push_str(&text(&done.stdout));
    }
    for shown in page.split("\n```text\n").skip(1) {
        let shown = shown.split_once("\n```").expect("the text ends").0;
        assert!(printed.contains(shown), "{place} shows\n{shown}\nand\n{printed}\nis printed");
    }
}

#[test]
fn the_page_of_captures_shows_what_its_commands_print() {
    shows_what_its_commands_print(&Folder::new("book-captures"), "docs/captures.md");
}

#[test]
fn the_page_about_collisions_shows_what_its_commands_print() {
    shows_what_its_commands_print(&Folder::new("book-collide"), "docs/why-acks-collide.md");
}

/// The files of a pattern with one star, in their order as a shell gives them; any other word is itself.
fn expanded(folder: &Folder, word: &str) -> Vec<String> {
    let Some((start, end)) = word.split_once('*') else { return vec![word.to_owned()] };
    let (parent, start) = start.rsplit_once('/').expect("a folder");
    let files = std::fs::read_dir(folder.path(parent)).expect("it is there");
    let names = files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.filter(|name| name.starts_with(start) && name.ends_with(end)).collect();
    names.sort();
    names.iter().map(|name| format!("{parent}/{name}")).collect()
}
