//! Prints agents for people, or for a program.

use std::io::{self, Write};

use hopwise_agents::Descriptor;
use hopwise_agents::param::{DefaultValue, Param};
use hopwise_agents::registry::{self, Kind};
use serde_json::{Value, json};

use hopwise_daemon::table;

const NAME_WIDTH: usize = 18;

pub(super) fn list(agents: &[&Descriptor], out: &mut dyn Write) -> io::Result<()> {
    let kinds = [
        (Kind::Receiver, "Receiver agents: when to acknowledge"),
        (Kind::Sender, "Sender agents: how much, and not before when"),
        (Kind::BaseStation, "Base-station agents: what is done for a link that fades"),
    ];
    for (nth, (kind, title)) in kinds.into_iter().enumerate() {
        if nth > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{title}")?;
        for agent in agents.iter().filter(|agent| agent.kind() == kind) {
            hanging(out, &format!("  {:<NAME_WIDTH$}", written(agent)), agent.rule)?;
        }
    }
    writeln!(out, "\nThe default is {} with {}.", registry::DEFAULT_RECEIVER, registry::DEFAULT_SENDERS)?;
    writeln!(out, "`hopwise agents show NAME` tells more of one.")
}

/// The beginning of the agent's spec; a wrapper's name is followed by `(SPEC)`.
fn written(agent: &Descriptor) -> String {
    format!("{}{}", agent.name, if agent.wraps() { "(SPEC)" } else { "" })
}

/// Prints agents of one name, one after the other.
pub(super) fn each(agents: &[&Descriptor], out: &mut dyn Write) -> io::Result<()> {
    for (nth, agent) in agents.iter().enumerate() {
        if nth > 0 {
            writeln!(out)?;
        }
        one(agent, out)?;
    }
    Ok(())
}

pub(super) fn one(agent: &Descriptor, out: &mut dyn Write) -> io::Result<()> {
    let header = registry::header(agent);
    writeln!(out, "{}: a {} agent{}", written(agent), agent.kind(), role(agent))?;
    hanging(out, "  ", agent.rule)?;
    for (title, text) in [("Rule", &header.rule), ("Source", &header.source)] {
        writeln!(out, "\n{title}")?;
        hanging(out, "  ", text)?;
    }
    // The bibliography has ours alone.
    if !registry::in_force().own.iter().any(|(own, _)| std::ptr::eq(*own, agent)) {
        hanging(out, "  ", "Year, venue and DOI: see docs/bibliography.md")?;
    }
    writeln!(out, "\nParameters")?;
    for param in agent.params {
        parameter(agent, param, out)?;
    }
    if agent.params.is_empty() {
        writeln!(out, "  none")?;
    }
    if let Some(text) = agent.as_printed() {
        let means = if text.is_empty() { "the defaults" } else { text };
        writeln!(out, "\nAs printed\n  {}:as-printed is {means}", written(agent))?;
    }
    writeln!(out, "\nDeviations")?;
    hanging(out, "  ", &header.deviations)
}

fn role(agent: &Descriptor) -> &'static str {
    if agent.wraps() {
        " around another"
    } else if agent.owns_cwnd() {
        " that owns the congestion window: the first of a list"
    } else {
        ""
    }
}

fn parameter(agent: &Descriptor, param: &Param, out: &mut dyn Write) -> io::Result<()> {
    let default = match param.default {
        DefaultValue::Is(value) => format!("default {value}"),
        DefaultValue::Required => "needed".to_owned(),
        DefaultValue::Unset(means) => format!("default: {means}"),
    };
    let ns2 = param.ns2.map_or(String::new(), |value| format!(", under profile ns2 {value}"));
    let alone = if agent.shorthand == Some(param.name) { "; its name may be left out" } else { "" };
    let text = format!("{}: {} ({default}{ns2}{alone})", param.doc, param.form);
    hanging(out, &format!("  {:<NAME_WIDTH$}", param.name), &text)
}

pub(super) fn array(agents: &[&Descriptor], out: &mut dyn Write) -> io::Result<()> {
    let all: Vec<_> = agents.iter().map(|agent| value(agent)).collect();
    writeln!(out, "{:#}", Value::Array(all))
}

pub(super) fn objects(agents: &[&Descriptor], out: &mut dyn Write) -> io::Result<()> {
    agents.iter().try_for_each(|agent| writeln!(out, "{:#}", value(agent)))
}

fn value(agent: &Descriptor) -> Value {
    let header = registry::header(agent);
    json!({
        "name": agent.name,
        "kind": agent.kind().to_string(),
        "wraps": agent.wraps(),
        "owns_cwnd": agent.owns_cwnd(),
        "summary": agent.rule,
        "rule": header.rule,
        "source": header.source,
        "deviations": header.deviations,
        "shorthand": agent.shorthand,
        "as_printed": agent.as_printed(),
        "parameters": agent.params.iter().map(parameter_value).collect::<Vec<_>>(),
    })
}

fn parameter_value(param: &Param) -> Value {
    let default = match param.default {
        DefaultValue::Is(value) => Value::from(value.to_string()),
        DefaultValue::Required => Value::Null,
        DefaultValue::Unset(means) => Value::from(means),
    };
    json!({
        "name": param.name,
        "default": default,
        "ns2_default": param.ns2.map(|value| value.to_string()),
        "needed": param.default == DefaultValue::Required,
        "accepted": param.form.to_string(),
        "meaning": param.doc,
    })
}

/// Prints wrapped text behind `lead`, with all later lines indented by its width.
fn hanging(out: &mut dyn Write, lead: &str, text: &str) -> io::Result<()> {
    writeln!(out, "{}", table::hanging(lead, text))
}
