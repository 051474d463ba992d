//! The README's outputs of trials are the real ones: their time is virtual, and the same on every machine.

use crate::folder::{Folder, text};

fn read(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Runs a configuration and compares its output with the first text of a section of the README.
fn prints_what_the_readme_shows(folder: &Folder, config: &str, section: &str) {
    let readme = read("README.md");
    let shown = readme.split_once(&format!("\n## {section}\n")).expect("the README has the section").1;
    let shown = shown.split_once("\n```text\n").expect("it shows a table").1;
    let shown = shown.split_once("\n```").expect("the table ends").0;
    folder.write("config.yaml", &read(config));
    let run = folder.hopwise(&["trial", "config.yaml", "--out", "results"]).output().expect("it was built");
    let printed = text(&run.stdout);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let table: Vec<_> =
        printed.lines().map(str::trim_end).skip_while(|line| !line.starts_with("arm ")).collect();
    let shown: Vec<_> = shown.lines().map(str::trim_end).collect();
    assert!(
        table.starts_with(&shown),
        "{section}: README.md shows\n{}\nand\n{printed}\nis printed",
        shown.join("\n")
    );
}

#[test]
fn the_readmes_first_table_and_why_are_what_the_quickstart_prints() {
    assert!(
        read("scripts/quickstart").contains("\n\"$hopwise\" trial configs/quickstart.yaml --out \"$out\"\n")
    );
    let folder = Folder::new("readme-start");
    prints_what_the_readme_shows(&folder, "configs/quickstart.yaml", "Start");
    let explained = folder.hopwise(&["explain", "results"]).output().expect("it was built");
    let readme = read("README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let said = readme.split_once("says why, arm by arm: `").expect("it says why").1;
    let said = said.split_once(", …`").expect("it says a part of it").0;
    assert!(text(&explained.stdout).contains(said), "{said}: {}", text(&explained.stdout));
}

#[test]
fn the_readmes_trial_is_what_it_prints() {
    let folder = Folder::new("readme-trial");
    prints_what_the_readme_shows(&folder, "configs/chain.yaml", "A/B trials");
}
