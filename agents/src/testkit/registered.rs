//! What every registered agent owes its readers: a doc header, a test case, a row in the README, and
//! parameters that say what they are.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use hopwise_core::agent::{AgentMaker, BaseStationMaker};

use super::specs;
use crate::descriptor::{Descriptor, Kind};
use crate::param::{DefaultValue, Param};
use crate::registry;
use crate::{Profile, StandardAgents};

/// Becomes true with the README's table of agents.
const README_HAS_THE_TABLE: bool = true;

fn source_of(agent: &Descriptor) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("src")
        .join(agent.kind().to_string().replace('-', "_"));
    let stem = folder.join(agent.name.replace('-', "_"));
    let file = stem.with_extension("rs");
    let source = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    // Many tests stand in a file of their own.
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
        let registry::Header { source: paper, rule, deviations } = registry::header(agent);
        assert!(![&paper, &rule, &deviations].iter().any(|text| text.is_empty()), "{}", agent.name);
        for text in [&paper, &rule, &deviations] {
            assert!(!text.contains("//") && text.ends_with(['.', ':', ')']), "{}: {text}", agent.name);
        }
        let (_, tests) =
            source.split_once("mod tests").unwrap_or_else(|| panic!("{} has no tests", agent.name));
        let kit = match agent.kind() {
            Kind::Receiver => "check(",
            Kind::Sender => "Bench::",
            Kind::BaseStation => "Desk::",
        };
        assert!(tests.contains(kit), "{} has no testkit case", agent.name);
    }
}

#[test]
fn every_agent_has_a_row_in_the_readme() {
    let readme = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    if !README_HAS_THE_TABLE {
        return;
    }
    let readme = fs::read_to_string(readme).expect("the README");
    for agent in registry::all() {
        let row = registry::readme_row(agent);
        assert!(readme.contains(&row), "the README lacks this row, or has another one:\n{row}");
    }
}

/// What rules and scenarios name must not go.
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
    assert!(registry::names(Kind::Receiver).eq(receivers));
    assert!(registry::names(Kind::Sender).eq(senders));
}

#[test]
fn every_agent_is_made_under_every_profile() {
    for profile in [Profile::Modern, Profile::Ns2] {
        let maker = StandardAgents::new(profile);
        for spec in specs::shortest(Kind::Receiver) {
            maker.receiver(&spec);
            assert_eq!(maker.shadows(&format!("[{spec:?}, immediate]")).len(), 2);
        }
        for spec in specs::shortest(Kind::BaseStation) {
            maker.base_station(&spec);
        }
        for list in specs::shortest(Kind::Sender) {
            assert!(!maker.senders(&list).is_empty());
        }
    }
}

#[test]
fn names_are_unique_in_a_kind_and_defaults_lie_within_their_own_ranges() {
    let mut names = BTreeSet::new();
    for agent in registry::all() {
        let name = (agent.name, agent.kind().to_string());
        assert!(names.insert(name), "two agents of a kind are called {}", agent.name);
        assert!(agent.shorthand.is_none_or(|name| agent.param(name).is_some()), "{}", agent.name);
        let mut params = BTreeSet::new();
        for param in agent.params {
            assert!(params.insert(param.name), "{} has `{}` twice", agent.name, param.name);
            assert!(!param.doc.is_empty(), "{}: nothing says what `{}` means", agent.name, param.name);
            defaults_are_accepted(agent, param);
        }
    }
}

fn defaults_are_accepted(agent: &Descriptor, param: &Param) {
    let default = match param.default {
        DefaultValue::Is(value) => Some(value),
        DefaultValue::Required | DefaultValue::Unset(_) => None,
    };
    for value in default.into_iter().chain(param.ns2) {
        let reads_back = param.form.parse(&value.to_string());
        assert_eq!(reads_back, Some(value), "{}: `{}`", agent.name, param.name);
    }
}

#[test]
fn the_defaults_are_registered() {
    let maker = StandardAgents::default();
    assert_eq!(crate::validate_receiver(registry::DEFAULT_RECEIVER).unwrap(), registry::DEFAULT_RECEIVER);
    assert_eq!(crate::validate_senders(registry::DEFAULT_SENDERS).unwrap(), registry::DEFAULT_SENDERS);
    maker.receiver(registry::DEFAULT_RECEIVER);
    maker.senders(registry::DEFAULT_SENDERS);
}
