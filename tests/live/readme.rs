//! The README's live mesh, run as it stands there.

use std::fs;
use std::path::PathBuf;

use crate::field::{HOPWISE, text};
use crate::namespace::{Namespace, can_run, prefix};

/// The block of commands of a section of the README.
fn block(section: &str) -> String {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).expect("it is there");
    let rest =
        readme.split(&format!("\n## {section}\n")).nth(1).expect("the README has the section").to_owned();
    let block = rest.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next());
    block.expect("it has commands").to_owned()
}

#[test]
fn the_readmes_live_mesh_carries_both_agents_over_three_hops() {
    if !can_run("the_readmes_live_mesh_carries_both_agents_over_three_hops", &["ip", "grep"]) {
        return;
    }
    let block = block("A live mesh in eleven lines");
    assert_eq!(block.lines().count(), 11, "{block}");
    // Other runs of this test have namespaces with names of their own.
    let name = prefix("readme");
    let scenario = "configs/chain.yaml";
    assert!(block.contains(scenario) && block.contains(" chain-n"), "{block}");
    let steps = block
        .replace(scenario, &format!("{scenario} --prefix {name}"))
        .replace(" chain-n", &format!(" {name}-n"));
    let folder = PathBuf::from(HOPWISE).parent().expect("a folder").to_string_lossy().into_owned();
    let script = format!("PATH={folder}:$PATH\ntrap 'kill $(jobs -p) 2> /dev/null; wait' EXIT\n{steps}");
    let host = Namespace::new();
    let mut command = host.command(&["bash", "-c", &script]);
    let done = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("bash runs");
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
