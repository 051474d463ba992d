//! Live commands of examples and of the book, run as they stand there.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use crate::field::{HOPWISE, text};
use crate::namespace::{Namespace, Running, prefix};

/// The section of a page of the repository.
fn section(page: &str, section: &str) -> String {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let page = fs::read_to_string(place).expect("it is there");
    let rest = page.split(&format!("\n## {section}\n")).nth(1).expect("the page has the section");
    rest.split("\n## ").next().expect("a text").to_owned()
}

/// The text between the nth of these fences and its end.
fn fenced(text: &str, kind: &str, nth: usize) -> String {
    let block = text.split(&format!("```{kind}\n")).nth(nth + 1).and_then(|rest| rest.split("```").next());
    block.expect("a block").to_owned()
}

/// The commands of the example, without its comments.
fn live_mesh() -> String {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/live-mesh.sh");
    let script = fs::read_to_string(place).expect("it is there");
    script.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
}

/// The commands with the scenario's namespaces under another prefix: other runs of this test have names of their own.
fn renamed(block: &str, name: &str) -> String {
    let scenario = "configs/chain.yaml";
    assert!(block.contains(scenario) && block.contains(" chain-n"), "{block}");
    block.replace(scenario, &format!("{scenario} --prefix {name}")).replace(" chain-n", &format!(" {name}-n"))
}

/// Runs commands in bash, in the folder of the clone.
fn bash(host: &Namespace, steps: &str) -> Output {
    let folder = PathBuf::from(HOPWISE).parent().expect("a folder").to_string_lossy().into_owned();
    let script = format!("PATH={folder}:$PATH\ntrap 'kill $(jobs -p) 2> /dev/null; wait' EXIT\n{steps}");
    let mut command = host.command(&["bash", "-c", &script]);
    command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("bash runs")
}

#[test]
fn the_live_mesh_carries_both_agents_over_three_hops() {
    needs!["ip", "grep"];
    let block = live_mesh();
    assert_eq!(block.lines().count(), 11, "{block}");
    let name = prefix("readme");
    let host = Namespace::new();
    let done = bash(&host, &renamed(&block, &name));
    let (shown, log) = (text(&done.stdout), text(&done.stderr));
    let flows: Vec<_> = shown.lines().filter(|line| line.contains("newreno tell-cwnd")).collect();
    assert_eq!(flows.len() % 2, 0, "both ends print a flow: {shown}{log}");
    for receiver in [" immediate ", " dca "] {
        let flow = flows.iter().find(|line| line.contains(receiver));
        let flow = flow.unwrap_or_else(|| panic!("no flow had{receiver}: {shown}{log}"));
        assert!(flow.contains(" 3 ("), "three hops: {flow}");
    }
    let left = host.output(&["ip", "netns", "list"]);
    assert!(!text(&left.stdout).contains(&name), "{}", text(&left.stdout));
}

/// Somebody else's radios have the names already: nothing of the block runs in them.
#[test]
fn the_live_mesh_runs_nothing_in_the_network_of_another() {
    needs!["ip"];
    let (name, host) = (prefix("taken"), Namespace::new());
    let words = ["air", "netns", "configs/chain.yaml", "--set", "topology.hops=3", "--prefix", &name];
    let mut theirs = host.command(&[&[HOPWISE], &words[..]].concat());
    theirs.current_dir(env!("CARGO_MANIFEST_DIR")).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut theirs = Running(theirs.spawn().expect("it runs"));
    let mut log = BufReader::new(theirs.0.stderr.take().expect("it is piped")).lines().map_while(Result::ok);
    assert!(log.any(|line| line.contains("ready")), "their radios are there");
    for (page, commands) in [
        ("examples/live-mesh.sh", live_mesh()),
        ("docs/live-mesh.md", fenced(&section("docs/live-mesh.md", "Ping and iperf3"), "sh", 0)),
    ] {
        let done = bash(&host, &renamed(&commands, &name));
        let (shown, log) = (text(&done.stdout), text(&done.stderr));
        assert_eq!(done.status.code(), Some(1), "{page}: {shown}{log}");
        assert!(shown.is_empty() && log.contains("--prefix"), "{page}: {shown}{log}");
    }
    theirs.interrupt();
}

#[test]
fn real_programs_run_over_the_radios_as_the_book_shows() {
    needs!["ip", "ping", "iperf3"];
    let commands = fenced(&section("docs/live-mesh.md", "Ping and iperf3"), "sh", 0);
    let (name, host) = (prefix("programs"), Namespace::new());
    // What iperf3 has written in ten seconds takes the radios minutes.
    let soon = commands.replace("iperf3 -c", "iperf3 -n 500K -c");
    assert_ne!(soon, commands);
    let done = bash(&host, &renamed(&soon, &name));
    let (shown, log) = (text(&done.stdout), text(&done.stderr));
    assert!(done.status.success(), "{shown}{log}");
    assert!(commands.contains("ttl=62") && shown.contains("ttl=62"), "{shown}{log}");
    assert!(shown.contains(" receiver"), "iperf3 came to its end: {shown}{log}");
}

/// The link loses by chance, so that figures differ from run to run, and the place of the losses does not.
#[test]
fn the_page_about_slow_transfers_finds_the_link_that_loses() {
    needs!["ip", "python3", "curl"];
    let (name, host) = (prefix("slow"), Namespace::new());
    let socket = format!("/run/hopwise/{name}.sock");
    let results = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&name).display().to_string();
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/slow.md")).expect("a page");
    let [session, summaries, merge] = [0, 1, 2].map(|nth| fenced(&page, "sh", nth));
    // The byte that is followed is of one session.
    let merge = merge.lines().next().expect("the merge");
    let steps = format!("{}{summaries}{merge} && rm $capture", renamed(&session, &name));
    let steps = steps.replace("results/slow", &results).replace("/run/hopwise/n0.sock", &socket);
    let asked = ["status", "capture start", "capture stop"];
    let steps = asked.iter().fold(steps, |steps, words| {
        steps.replace(&format!("hopwise {words}"), &format!("hopwise {words} --control {socket}"))
    });
    let done = bash(&host, &steps);
    let (shown, log) = (text(&done.stdout), text(&done.stderr));
    let has = |words: [&str; 3]| shown.lines().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(done.status.success() && has(["10.0.0.4:80", "established", "delayed"]), "{shown}{log}");
    // Whether the radios give up a frame in these seconds, and so leave a gap, is chance.
    assert!(has(["10.7.0.2:", "delayed", "count"]), "{shown}{log}");
    assert!(has(["n1 ", "data", "the channel"]) && has(["hw0", ".pcapng", "ms"]), "{shown}{log}");
    let _ = fs::remove_dir_all(&results);
}

#[test]
fn the_books_mesh_of_three_namespaces_carries_its_file_over_the_routes_that_it_shows() {
    needs!["ip"];
    let section = section("docs/live-mesh.md", "Three nodes and a file");
    let end =
        section.split("\n`test ").nth(1).and_then(|rest| rest.split('`').next()).expect("the end of it");
    let steps = format!("{}{}test {end}\n", fenced(&section, "sh", 0), fenced(&section, "sh", 1));
    let name = prefix("three");
    let steps = ["1", "2", "3", "$1"]
        .iter()
        .fold(steps, |steps, node| steps.replace(&format!(" n{node}"), &format!(" {name}{node}")));
    let host = Namespace::new();
    let done = bash(&host, &steps);
    let (shown, log) = (text(&done.stdout), text(&done.stderr));
    // Both ends print the flow. Times and rates differ from run to run, and the file does not.
    let told = fenced(&section, "text", 0);
    let delivered = told.split("  ").map(str::trim).find(|cell| cell.ends_with("iB")).expect("a size");
    for cell in [" 2 (", delivered, " dca ", "newreno tell-cwnd"] {
        assert!(told.contains(cell) && shown.contains(cell), "{cell}: {shown}{log}");
    }
    for route in fenced(&section, "text", 1).lines() {
        let is_there = shown.lines().any(|line| line.trim_end() == route);
        assert!(is_there, "no route `{route}`: {shown}{log}");
    }
    let left = host.output(&["ip", "netns", "list"]);
    assert!(!text(&left.stdout).contains(&name), "{}", text(&left.stdout));
}
