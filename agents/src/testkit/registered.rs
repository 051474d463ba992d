//! Checks of every registered agent: a doc header, a test case, a row in `docs/agents.md`, and described parameters.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::Command;

use hopwise_core::agent::{AgentMaker, BaseStationMaker, HostPair};

use super::{book, specs};
use crate::descriptor::{Descriptor, Kind};
use crate::param::{DefaultValue, Param};
use crate::registry;
use crate::{Profile, StandardAgents};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const BETWEEN: HostPair = HostPair { link: 0, local: HERE, peer: HERE };

/// The path of the agent's file without its extension, which is also the folder for its parts.
fn stem_of(agent: &Descriptor) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("src")
        .join(agent.kind().to_string().replace('-', "_"));
    folder.join(agent.name.replace('-', "_"))
}

fn source_of(agent: &Descriptor) -> String {
    let stem = stem_of(agent);
    let file = stem.with_extension("rs");
    let source = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    // A large set of tests stands in a file of its own.
    source + &fs::read_to_string(stem.join("tests.rs")).unwrap_or_default()
}

#[test]
fn every_agent_has_a_file_with_a_doc_header_and_a_testkit_case() {
    for agent in registry::all() {
        let source = source_of(agent);
        let header: Vec<_> = source.lines().take_while(|line| line.starts_with("//!")).collect();
        assert!(
            !header.iter().any(|line| line.contains("| parameter |")),
            "{}: `params!` is the table",
            agent.name
        );
        assert!(
            header.first().is_some_and(|line| line.contains(&format!("`{}", agent.name))),
            "{}",
            agent.name
        );
        let registry::AgentHeader { source: paper, rule, deviations } = registry::header(agent);
        assert!(![&paper, &rule, &deviations].iter().any(|text| text.is_empty()), "{}", agent.name);
        for text in [&paper, &rule, &deviations] {
            assert!(!text.contains("//") && text.ends_with(['.', ':', ')']), "{}: {text}", agent.name);
        }
        let (_, tests) =
            source.split_once("mod tests").unwrap_or_else(|| panic!("{} has no tests", agent.name));
        let kits: &[&str] = match agent.kind() {
            Kind::Receiver => &["check(", "scripts! {"],
            Kind::Sender => &["Bench::"],
            Kind::BaseStation => &["Desk::"],
        };
        assert!(kits.iter().any(|kit| tests.contains(kit)), "{} has no testkit case", agent.name);
    }
}

#[test]
fn the_book_has_a_table_of_each_kind_of_agent() {
    let tables = [Kind::Receiver, Kind::Sender, Kind::BaseStation].map(markdown_table);
    book::holds("docs/agents.md", "| agent | rule |", &tables);
}

/// The table of this kind in `docs/agents.md`: its head, and a row for each agent.
fn markdown_table(kind: Kind) -> String {
    let mut table =
        String::from("| agent | rule | source | parameters | `as-printed` |\n|---|---|---|---|---|\n");
    let all = registry::all().filter(|agent| agent.kind() == kind);
    all.for_each(|agent| table.push_str(&markdown_row(agent)));
    table
}

fn markdown_row(agent: &Descriptor) -> String {
    let (inner, rule, source) = (if agent.wraps() { "(SPEC)" } else { "" }, agent.rule, agent.source);
    let params: Vec<_> = agent.params.iter().map(markdown_param).collect();
    let printed = match agent.as_printed() {
        Some("") => "the defaults".to_owned(),
        Some(text) => format!("`{text}`"),
        None => String::new(),
    };
    format!("| `{}{inner}` | {rule} | {source} | {} | {printed} |\n", agent.name, params.join(", "))
}

fn markdown_param(param: &Param) -> String {
    match param.default {
        DefaultValue::Is(value) => format!("`{}={value}`", param.name),
        DefaultValue::Unset(means) => format!("`{}` ({means})", param.name),
        DefaultValue::Required => format!("`{}` (needed)", param.name),
    }
}

/// Each row of the tables of agents names agents that there are.
#[test]
fn the_bibliography_tells_of_agents_that_there_are() {
    let place = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/bibliography.md");
    let papers = fs::read_to_string(&place).expect("the page");
    let tables = papers.split("\n\n").filter(|part| part.starts_with("| agent |"));
    let rows = tables.flat_map(str::lines).filter_map(|line| line.strip_prefix("| `")?.split_once(" |"));
    let names = rows.flat_map(|(cell, _)| cell.split(", ").map(|name| name.trim_matches('`').to_owned()));
    let names: Vec<_> = names.collect();
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        assert!(registry::all().any(|agent| agent.name == name), "docs/bibliography.md has {name}");
    }
}

/// `cargo fmt` does not see modules that a macro declares.
#[test]
fn rustfmt_has_formatted_every_agent() {
    let files: Vec<_> = registry::all().map(|agent| stem_of(agent).with_extension("rs")).collect();
    match Command::new("rustfmt").args(["--check", "--edition", "2024"]).args(&files).output() {
        Err(error) => println!("skipped: rustfmt_has_formatted_every_agent: no rustfmt: {error}"),
        Ok(said) => {
            let said = String::from_utf8_lossy(&said.stdout).into_owned();
            assert!(said.is_empty(), "`rustfmt --edition 2024 agents/src/*/*.rs` mends this:\n{said}");
        }
    }
}

/// Rules and scenarios use these names, so they must stay.
#[test]
fn every_agent_of_the_papers_is_registered() {
    let receivers = [
        "immediate",
        "delayed",
        "altman-jimenez",
        "daa",
        "dca",
        "tda",
        "ada",
        "adw",
        "aad",
        "tack",
        "tarr",
        "train",
        "dup-count",
    ];
    let senders = [
        "newreno",
        "reno",
        "cubic",
        "westwood",
        "train",
        "limit",
        "cwl",
        "paced",
        "tcp-ap",
        "elfn",
        "pgy",
        "daa-peer",
        "tell-cwnd",
        "ask-rate",
    ];
    for (kind, papers) in [(Kind::Receiver, &receivers[..]), (Kind::Sender, &senders[..])] {
        assert!(
            registry::names(kind).filter(|name| papers.contains(name)).eq(papers.iter().copied()),
            "{kind}"
        );
    }
}

#[test]
fn every_agent_is_made_under_every_profile() {
    for profile in [Profile::Modern, Profile::Ns2] {
        let maker = StandardAgents::new(profile);
        for spec in specs::shortest(Kind::Receiver) {
            maker.receiver(&spec).expect("a spec")();
            let shadows = maker.shadows(&format!("[{spec:?}, immediate]")).expect("a list");
            assert_eq!(shadows().len(), 2);
        }
        for spec in specs::shortest(Kind::BaseStation) {
            maker.base_station(&spec).expect("a spec")();
        }
        for list in specs::shortest(Kind::Sender) {
            maker.senders(&list).expect("a list")(BETWEEN);
        }
    }
}

#[test]
fn names_are_unique_in_a_kind() {
    let mut names = BTreeSet::new();
    for agent in registry::all() {
        let name = (agent.name, agent.kind());
        assert!(names.insert(name), "two agents of a kind are called {}", agent.name);
    }
}

#[test]
fn the_defaults_are_registered() {
    assert_eq!(crate::validate_receiver(registry::DEFAULT_RECEIVER).unwrap(), registry::DEFAULT_RECEIVER);
    assert_eq!(crate::validate_senders(registry::DEFAULT_SENDERS).unwrap(), registry::DEFAULT_SENDERS);
}
