//! The commands of how-tos and explanations are run as they stand there. A block that is not names its reason here.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::folder::{Folder, text};

/// The way a block of commands is run.
enum Run {
    /// As it stands; what the page shows below it is what it prints.
    Whole,
    /// With a second for each run, and a part of the runs: `--shard` takes it.
    Part(&'static str),
    /// Not here, for the reason given.
    Not(&'static str),
}

use Run::{Not, Part, Whole};

const LIVE: &str = "real time, minutes of it, and root: tests/live runs such trials";
const MACHINE: &str = "a virtual machine with a kernel of its own: tests/live runs one where qemu is";
const HOSTS: &str = "other hosts with radios";

/// Each page's blocks in their order, by how they begin.
const PAGES: [(&str, &[(&str, Run)]); 9] = [
    (
        "docs/trials.md",
        &[
            ("hopwise trial configs/chain.yaml --shard 1/2", Whole),
            ("hopwise trial configs/mixed.yaml --json", Part("1/6")),
        ],
    ),
    (
        "docs/notebook/delay.md",
        &[
            ("hopwise trial configs/delay.yaml", Part("1/20")),
            ("hopwise trial configs/delay-senders.yaml", Part("1/20")),
            ("hopwise trial configs/delay-pairs.yaml", Part("1/20")),
            ("hopwise trial configs/delay-routes.yaml", Part("1/20")),
            ("hopwise trial configs/delay-fade.yaml", Part("1/20")),
        ],
    ),
    ("docs/notebook/papers-promises.md", &[("hopwise trial configs/promises/", Part("1/200"))]),
    ("docs/bring-up.md", &[("ssh pi1 sudo hopwise mesh up", Not(HOSTS))]),
    (
        "docs/notebook/senders.md",
        &[
            ("hopwise trial configs/senders.yaml\n", Part("1/10")),
            ("hopwise trial configs/senders.yaml --set 'radio=", Part("1/10")),
            ("hopwise trial configs/live/senders.yaml\n", Not(MACHINE)),
            ("hopwise trial configs/live/senders.yaml --world netns --late 50ms --busy 50%\n", Not(LIVE)),
            ("hopwise trial configs/live/senders.yaml --world netns --late 50ms --busy 50% \\", Not(LIVE)),
        ],
    ),
    (
        "docs/notebook/today.md",
        &[
            ("hopwise trial configs/radios.yaml\n", Part("1/80")),
            ("hopwise trial configs/radios.yaml --set run.baseline=linux", Part("1/20")),
            ("hopwise trial configs/radios-senders.yaml\n", Part("1/40")),
            ("hopwise trial configs/radios-senders.yaml --set radio.queue.kind=fq-codel", Part("1/40")),
            ("hopwise trial configs/radios.yaml --set 'matrix=", Part("1/6")),
            ("hopwise trial configs/radios-limit.yaml", Part("1/40")),
            ("hopwise trial configs/radios.yaml --set radio.rate=minstrel", Part("1/80")),
            ("hopwise trial configs/radios.yaml --set channel.loss=10%", Part("1/80")),
            ("hopwise trial configs/radios.yaml --set 'topology={ kind: cross", Part("1/80")),
        ],
    ),
    (
        "docs/notebook/train.md",
        &[
            ("hopwise trial configs/train.yaml --seeds 10", Part("1/10")),
            ("hopwise trial configs/train.yaml --seeds 100", Part("1/100")),
            ("for turns in on off", Not("valgrind over a build for release, minutes of it")),
        ],
    ),
    (
        "docs/worlds.md",
        &[
            ("hopwise trial configs/live/chain4.yaml --for 10m", Not(LIVE)),
            ("hopwise trial configs/live/mesh4.yaml --inventory", Not(HOSTS)),
            ("hopwise trial configs/live/chain4.yaml --world hwsim", Not(MACHINE)),
            ("hopwise trial configs/live/chain4.yaml --world sim,netns", Not(LIVE)),
        ],
    ),
    (
        "docs/notebook/linux.md",
        &[
            (
                "hopwise trial configs/live/hops.yaml --world sim --set radio.arp=true --set 'arms",
                Part("1/20"),
            ),
            ("hopwise trial configs/live/hops.yaml --world sim --set radio.arp=true --set run", Part("1/20")),
        ],
    ),
];

/// A command that a shell finds first: ours, with the words of `SHORTER` behind the words of a trial.
const STAND_IN: &str = "#!/bin/sh\n[ \"$1\" != trial ] || set -- \"$@\" $SHORTER\nexec \"$HOPWISE\" \"$@\"\n";

/// A folder as the clone's root is to commands that read.
pub(super) fn clone(name: &str) -> Folder {
    let folder = Folder::new(name);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    symlink(root.join("configs"), folder.path("configs")).expect("a link");
    fs::create_dir(folder.path("bin")).expect("a folder");
    folder.write("bin/hopwise", STAND_IN);
    fs::set_permissions(folder.path("bin/hopwise"), fs::Permissions::from_mode(0o755)).expect("it is ours");
    folder
}

/// Runs commands as they stand; returns what they print.
pub(super) fn print(folder: &Folder, place: &str, commands: &str, shorter: &str) -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut bash = std::process::Command::new("bash");
    bash.args(["-e", "-o", "pipefail", "-c", commands]).current_dir(folder.path(""));
    bash.env("PATH", format!("{}:{path}", folder.path("bin").display()));
    bash.env("HOPWISE", env!("CARGO_BIN_EXE_hopwise")).env("SHORTER", shorter);
    let done = bash.output().expect("there is a bash");
    assert!(done.status.success(), "{place}: {commands}\n{}{}", text(&done.stdout), text(&done.stderr));
    text(&done.stdout)
}

/// The blocks of a page for a shell, each with the text that is shown right below it.
pub(super) fn blocks(page: &str) -> Vec<(String, Option<String>)> {
    let mut found: Vec<(String, Option<String>)> = Vec::new();
    let mut between = "";
    for (nth, part) in page.split("\n```").enumerate() {
        if nth % 2 == 0 {
            between = part;
        } else if let Some(commands) = part.strip_prefix("sh\n") {
            found.push((format!("{commands}\n"), None));
        } else if let (Some(shown), "\n") = (part.strip_prefix("text\n"), between) {
            found.last_mut().expect("commands stand before it").1 = Some(shown.to_owned());
        }
    }
    found
}

#[test]
fn how_tos_and_explanations_show_commands_that_run() {
    let folder = clone("book-pages");
    let has_jq = std::process::Command::new("jq").arg("--version").output().is_ok();
    for (place, expected) in &PAGES {
        let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(place)).expect("a page");
        let there = blocks(&page);
        let begins: Vec<&str> = expected.iter().map(|(begins, _)| *begins).collect();
        let firsts: Vec<&str> = there.iter().filter_map(|(commands, _)| commands.lines().next()).collect();
        assert_eq!(there.len(), expected.len(), "{place} has {firsts:#?}, expected here: {begins:#?}");
        for ((commands, shown), (begins, run)) in there.iter().zip(*expected) {
            assert!(commands.starts_with(begins), "{place}: {commands}, expected here: {begins}");
            if commands.contains("jq ") && !has_jq {
                println!("skipped: {place}: {begins}: no jq (on Debian: apt-get install jq)");
                continue;
            }
            let shorter = match run {
                Not(reason) => {
                    println!("not run here: {place}: {begins}: {reason}");
                    continue;
                }
                Whole => String::new(),
                Part(shard) => format!("--set run.duration=1s --set run.warmup=0s --shard {shard}"),
            };
            let printed = print(&folder, place, commands, &shorter);
            let shown = shown.as_deref().filter(|_| matches!(run, Whole)).unwrap_or_default();
            assert!(printed.contains(shown), "{place} shows\n{shown}\nand\n{printed}\nis printed");
        }
    }
}
