//! `hopwise agents`: which agents there are, and what they can be told.

use std::io::{self, Write};

use clap::{Args, Subcommand};
use hopwise_agents::param::{DefaultValue, Param};
use hopwise_agents::registry::{self, Descriptor};
use serde_json::{Value, json};

use crate::failure::{self, Failure};

/// List the agents that decide when to acknowledge and how much to send
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise agents
  hopwise agents show delayed
  hopwise agents --json | jq '.[].name'")]
pub(crate) struct Arguments {
    /// One JSON array
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Everything about one agent: its source, its parameters with their units and ranges
    Show { name: String },
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let shown: Vec<&Descriptor> = match &arguments.action {
        None => registry::all().to_vec(),
        Some(Action::Show { name }) => vec![registry::find(name).ok_or_else(|| unknown(name))?],
    };
    let text = match (&arguments.action, arguments.json) {
        (_, true) => {
            Value::from(shown.iter().map(|agent| as_json(agent)).collect::<Vec<_>>()).to_string() + "\n"
        }
        (None, false) => list(&shown),
        (Some(_), false) => shown.iter().map(|agent| page(agent)).collect(),
    };
    failure::printed(io::stdout().lock().write_all(text.as_bytes()))
}

fn unknown(name: &str) -> Failure {
    let names: Vec<_> = registry::all().iter().map(|agent| agent.name).collect();
    Failure::refused("hopwise agents show", format_args!("`{name}`, expected one of {}", names.join(", ")))
}

fn list(agents: &[&Descriptor]) -> String {
    let rows: Vec<_> = agents
        .iter()
        .map(|agent| vec![spelled(agent), agent.kind().to_string(), agent.rule.to_owned()])
        .collect();
    crate::table::lines(&["agent", "kind", "rule"], &rows).join("\n") + "\n"
}

fn spelled(agent: &Descriptor) -> String {
    format!("{}{}", agent.name, if agent.wraps() { "(SPEC)" } else { "" })
}

fn page(agent: &Descriptor) -> String {
    let mut page = format!("{}: {} agent, {}\n{}\n", spelled(agent), agent.kind(), agent.source, agent.rule);
    if agent.owns_cwnd() {
        page.push_str("It owns the congestion window: the first of a list of senders.\n");
    }
    if !agent.params.is_empty() {
        let rows: Vec<_> = agent
            .params
            .iter()
            .map(|param| {
                vec![param.name.to_owned(), param.form.to_string(), default(param), param.doc.to_owned()]
            })
            .collect();
        let columns = ["parameter", "takes", "default", "meaning"];
        page.push_str(&(crate::table::lines(&columns, &rows).join("\n") + "\n"));
    }
    if let Some(short) = agent.shorthand {
        page.push_str(&format!("`{0}:VALUE` is short for `{0}:{short}=VALUE`.\n", agent.name));
    }
    page
}

fn default(param: &Param) -> String {
    let modern = match param.default {
        DefaultValue::Is(value) => value.to_string(),
        DefaultValue::Unset(means) => format!("({means})"),
        DefaultValue::Required => "(needed)".to_owned(),
    };
    param.ns2.map_or(modern.clone(), |ns2| format!("{modern}, ns2: {ns2}"))
}

fn as_json(agent: &Descriptor) -> Value {
    let params: Vec<_> = agent
        .params
        .iter()
        .map(|param| {
            let takes = param.form.to_string();
            json!({ "name": param.name, "takes": takes, "default": default(param), "doc": param.doc })
        })
        .collect();
    json!({
        "name": agent.name, "kind": agent.kind().to_string(), "wraps": agent.wraps(),
        "owns_cwnd": agent.owns_cwnd(), "rule": agent.rule, "source": agent.source, "parameters": params,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_has_a_page_with_its_parameters() {
        for agent in registry::all() {
            let page = page(agent);
            assert!(page.contains(agent.rule) && page.contains(agent.source), "{page}");
            for param in agent.params {
                assert!(page.contains(param.name), "{page}");
            }
        }
        assert_eq!(list(registry::all()).lines().count(), registry::all().len() + 1);
    }

    #[test]
    fn an_agent_that_is_not_there_is_refused_with_those_that_are() {
        assert!(unknown("delaid").to_string().contains("expected one of immediate, delayed"));
    }
}
