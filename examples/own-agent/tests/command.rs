//! The program with an agent of its own knows it as `hopwise` knows ours, and its page says what it does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");
/// The beginning of the page's commands that run the program.
const RUN: &str = "cargo run -p own-agent -- ";

/// A folder of one test, with the scenario where it lies in the repository.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let folder = Folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join(test));
        let _ = fs::remove_dir_all(&folder.0);
        folder.write("examples/own-agent/growing.yaml", &read("growing.yaml"));
        folder
    }

    fn write(&self, name: &str, text: &str) {
        let place = self.0.join(name);
        fs::create_dir_all(place.parent().expect("a folder")).expect("a new folder");
        fs::write(place, text).expect("a file");
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_own-agent"));
        command.args(words).current_dir(&self.0).stdin(Stdio::null()).output().expect("it was built")
    }

    #[track_caller]
    fn done(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    #[track_caller]
    fn refused(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", text(&output.stdout));
        text(&output.stderr)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file, by its path from this crate.
fn read(name: &str) -> String {
    let place = Path::new(CRATE).join(name);
    fs::read_to_string(&place).unwrap_or_else(|error| panic!("{}: {error}", place.display()))
}

fn page() -> String {
    read("../../docs/own-agent.md")
}

/// The words of a command. A pair of single quotes holds one word together.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut quoted) = (Vec::new(), false);
    for part in line.split('\'') {
        if quoted {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
        quoted = !quoted;
    }
    words
}

#[test]
fn the_page_shows_the_files_as_they_are() {
    let page = page();
    for (name, language) in [("src/main.rs", "rust"), ("src/growing.rs", "rust"), ("growing.yaml", "yaml")] {
        let shown = format!("```{language}\n{}```\n", read(name));
        assert!(page.contains(&shown), "docs/own-agent.md shows another {name}");
    }
}

#[test]
fn the_commands_of_the_page_do_what_it_shows() {
    let (page, folder) = (page(), Folder::new("page"));
    let mut printed = String::new();
    for line in page.lines().filter_map(|line| line.strip_prefix(RUN)) {
        let line = line.split("  #").next().expect("a command");
        let words = words(line);
        printed.push_str(&folder.done(&words.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    assert!(!printed.is_empty(), "the page has commands");
    let printed = printed.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    for shown in page.split("\n```text\n").skip(1) {
        let shown = shown.split_once("\n```").expect("the text ends").0;
        assert!(printed.contains(shown), "docs/own-agent.md shows\n{shown}\nand\n{printed}\nis printed");
    }
}

#[test]
fn the_own_agent_is_listed_shown_and_completed_as_ours_are() {
    let folder = Folder::new("listed");
    let all = folder.done(&["agents"]);
    let of_receivers = all.split("Sender agents").next().expect("a list");
    assert!(of_receivers.contains("\n  growing ") && of_receivers.contains("\n  delayed "), "{all}");
    let shown = folder.done(&["agents", "show", "growing"]);
    for part in
        ["growing: a receiver agent", "n is 1 again", "its name may be left out", "since no paper has it"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(folder.refused(&["agents", "show", "growin"]).contains("did you mean `growing`?"));
    let schema = folder.done(&["keys", "schema"]);
    assert!(schema.contains("\"growing\"") && schema.contains("\"delayed\""));
}

#[test]
fn a_mistake_in_its_spec_is_refused_at_its_place() {
    let folder = Folder::new("refused");
    for (spec, wrong, accepted) in [
        ("growing:0", "`most` cannot be `0`", "a whole number of segments from 1 to 65535, as in `most=8`"),
        ("growing:least=3", "`growing` has no parameter `least`", "most, hold"),
        ("growin", "no receiver agent is called `growin`", "did you mean `growing`?"),
    ] {
        let scenario = read("growing.yaml").replace("receiver: growing,", &format!("receiver: \"{spec}\","));
        folder.write("wrong.yaml", &scenario);
        let has_it = |line: &str| line.contains(&format!("\"{spec}\""));
        let line = 1 + scenario.lines().position(has_it).expect("it is in the scenario");
        let said = folder.refused(&["trial", "wrong.yaml"]);
        let said = said.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        assert!(said.contains(wrong) && said.contains(accepted), "{spec}: {said}");
        assert!(said.contains(&format!("wrong.yaml:{line}:")), "{spec}: {said}");
    }
}

#[test]
fn its_text_is_a_part_of_the_version_that_results_carry() {
    let folder = Folder::new("version");
    let said = folder.done(&["--version"]);
    // The commit follows, where the build knows one.
    let version = said.split_whitespace().nth(1).expect("a version behind the name");
    let (_, hash) = version.rsplit_once('.').expect("a hash of the agents behind that of our sources");
    assert!(hash.len() == 16 && hash.chars().all(|c| c.is_ascii_hexdigit()), "{version}");
    let short = ["--arm", "growing", "--set", "run.duration=2s", "--set", "run.warmup=1s", "--out", "out"];
    folder.done(&[&["run", "examples/own-agent/growing.yaml"], &short[..]].concat());
    let record = fs::read_to_string(folder.0.join("out/settings.json")).expect("a run has settings");
    assert!(record.contains(&format!("\"{version}\"")), "{version}: {record}");
}

#[test]
fn a_node_may_have_it_in_its_rules() {
    let folder = Folder::new("node");
    let node = "node: { name: n2, address: [10.7.0.2/24] }\nlinks: [{ kind: tun, name: hw0, kernel: [10.7.0.1/24] }]\n";
    for (spec, status) in [("growing:4", Some(0)), ("growing:0", Some(2))] {
        folder.write("node.yaml", &format!("{node}rules: [{{ receiver: \"{spec}\" }}]\n"));
        let output = folder.run(&["node", "node.yaml", "--check"]);
        assert_eq!(output.status.code(), status, "{spec}: {}", text(&output.stderr));
    }
}
