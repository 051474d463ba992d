//! The page around tables and figures.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use super::chart::{SHAPES, escape, number};
use super::{View, delays, figures, mesh, queues, results, subject, tables};
use crate::findings::label;
use crate::hex;
use crate::scenario::point::Stop;
use crate::version;

pub(super) const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Colours of arms by day and by night; more arms begin again, with other marks and dashes. Kinds of frames have the
/// colours of stone, and losses are red: no arm has these.
const COLOURS: [(&str, &str); 8] = [
    ("#5b6472", "#a3adbb"),
    ("#1f6fd6", "#6aa9ff"),
    ("#c2570c", "#ff9a55"),
    ("#0b8a5c", "#43cf98"),
    ("#8b3fd1", "#c08cff"),
    ("#d13a9b", "#ff86cf"),
    ("#0a8499", "#4fd0e4"),
    ("#5c8a00", "#b4d94f"),
];

/// The classes of an arm's elements by its place: its colour and, beyond the first colours, its mark and dashes.
pub(super) fn class(nth: usize) -> String {
    match nth / COLOURS.len() % SHAPES {
        0 => format!("a{nth}"),
        shape => format!("a{nth} s{shape}"),
    }
}

pub(super) fn whole(view: &View<'_>) -> String {
    let trial = &view.bundle.trial;
    let title = escape(trial.title.as_deref().unwrap_or(&trial.scenario));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n{STYLE}{arms}</style>\n\
         </head>\n<body{large}>\n<header><h1>{title}</h1>{top}</header>\n{toggles}<main>\n{results}{details}{foot}\
         </main>\n<script type=\"application/json\" id=\"frames\">{frames}</script>\n<script>\n{SCRIPT}</script>\n\
         </body>\n</html>\n",
        arms = arm_styles(view),
        large = if view.is_large() { " class=\"large\"" } else { "" },
        top = top(view),
        toggles = toggles(view),
        results = results(view),
        details = details(view),
        foot = foot(view),
        frames = figures::map_data(view),
    )
}

/// The answer in a few sentences, goodput against delay, and what was run.
fn top(view: &View<'_>) -> String {
    let answer: String =
        view.findings.answer().iter().map(|said| format!("{} ", tables::prose(said))).collect();
    let answer =
        if answer.is_empty() { answer } else { format!("<p class=\"answer\">{}</p>", answer.trim_end()) };
    let subject = subject::sentence(view);
    let subject = subject.map_or(String::new(), |said| format!("<p class=\"lead\">{}</p>", escape(&said)));
    let topology = figures::topology(view).unwrap_or_default();
    let wide = if view.bundle.trial.points.len() > 1 { " wide-top" } else { "" };
    format!(
        "<div class=\"top{wide}\"><div>{answer}{subject}</div>{}{topology}</div>",
        figures::goodput_against_delay(view)
    )
}

fn results(view: &View<'_>) -> String {
    format!(
        "<section id=\"results\"><h2>Results</h2>{sweep}{results}</section>\n\
         <section id=\"reasons\"><h2>Why</h2><p class=\"lead\">What the runs counted, all seeds together. Green is \
         better than the baseline, red worse, pale nearly the same.</p>{reasons}</section>\n",
        sweep = figures::sweep(view),
        results = results::section(view),
        reasons = tables::reasons(view),
    )
}

/// Figures of all arms and of runs over time.
fn details(view: &View<'_>) -> String {
    let every = format!("<div class=\"cards\">{}</div>", figures::overall(view));
    let runs = figures::runs(view);
    let over_time = if runs.is_empty() {
        String::new()
    } else {
        format!(
            "<section id=\"time\"><h2>Over time</h2><p class=\"lead\">{}</p><label class=\"over\">\
             <input type=\"checkbox\" id=\"over\"> lay the windows over each other</label>{runs}</section>\n",
            escape(&lead_over_time(view))
        )
    };
    format!(
        "<section id=\"figures\"><h2>Every arm</h2>{}{}</section>\n{over_time}{}{}",
        view.folded("Ratios, runs, ACKs and airtime", &every),
        delays::table(view),
        mesh::section(view),
        queues::table(view)
    )
}

/// The settings, the runs, and what made them.
fn foot(view: &View<'_>) -> String {
    let parameters = format!(
        "<p class=\"lead\">First what differs between arms or points. A value in one cell holds for all arms; values \
         of several points are divided by a bar.</p>{}",
        tables::parameters(view)
    );
    format!(
        "<section id=\"parameters\"><h2>Parameters in force</h2>{}</section>\n\
         <section id=\"runs\"><h2>All runs</h2>{}</section>\n\
         <section id=\"about\"><h2>How it was made</h2>{}</section>\n",
        view.folded("Every path of the settings", &parameters),
        tables::runs(view),
        about(view)
    )
}

/// The points that are shown over time, and the points that are not.
fn lead_over_time(view: &View<'_>) -> String {
    let (shown, left) = view.points_over_time();
    let (arms, chosen) = (view.bundle.trial.arms.len(), view.arms_over_time());
    let lead = if chosen.len() < arms {
        format!("The first seed's run of {} of {arms} arms: {}", chosen.len(), chosen.join(", "))
    } else {
        "The first seed's run of every arm".to_owned()
    };
    if left.is_empty() {
        return format!("{lead}.");
    }
    let named: Vec<_> = left.iter().map(|point| label(point)).collect();
    format!(
        "{lead}; at {} of {} points. Left out here: {}. The folder `series` has their lines, and the other figures and \
         tables show every point.",
        shown.len(),
        shown.len() + left.len(),
        named.join("; ")
    )
}

fn about(view: &View<'_>) -> String {
    let trial = &view.bundle.trial;
    let (planned, there) = view.bundle.runs();
    let seeds: Vec<_> = trial.seeds.iter().map(u64::to_string).collect();
    let stop = match trial.stop {
        Stop::AllSeeds => "after all seeds",
        Stop::WhenSure => "when sure, looked at after every block",
    };
    let figures =
        (!crate::record::is_goodput(&trial.figures)).then(|| ("verdicts by", trial.figures.join(", ")));
    let runs = if there == planned { format!("{there}") } else { format!("{there} of {planned}") };
    // If another version draws the report, the page names both.
    let drawn_by = if trial.version == version::of_program() {
        String::new()
    } else {
        format!(", drawn by {}", version::with_commit())
    };
    let mut html = String::from("<dl>");
    for (term, text) in [
        ("scenario", format!("{} in {}", trial.scenario, trial.world)),
        ("runs", runs),
        ("seeds", seeds.join(", ")),
        ("margin", format!("{} %", number(trial.margin * 100.0))),
        ("stop", stop.to_owned()),
    ]
    .into_iter()
    .chain(figures)
    .chain([(
        "made by",
        format!("hopwise {}{drawn_by}", version::beside(&trial.version, trial.commit.as_deref())),
    )]) {
        let _ = write!(html, "<div><dt>{term}</dt><dd>{}</dd></div>", escape(&text));
    }
    html.push_str(&hashed("settings", ("", ""), "SHA-256 of settings and seeds", &settings_hash(view)));
    // Every probe of the certificate has passed.
    html.push_str(&hashed("radio", ("certified ✓ (", ")"), "certificate", &trial.certificate));
    html + "</dl>"
}

/// The hash of all settings in force, without the program's version: two reports with equal hashes had equal runs.
fn settings_hash(view: &View<'_>) -> String {
    let mut hash = Sha256::new();
    let trial = &view.bundle.trial;
    for (point, arm) in trial.points.iter().flat_map(|point| trial.arms.iter().map(move |arm| (point, arm))) {
        let mut settings =
            view.runs(point, arm).next().map(|record| record.settings.clone()).unwrap_or_default();
        settings.as_object_mut().map(|of| of.remove("hopwise"));
        hash.update(format!("{arm}\n{}\n", *settings));
    }
    for seed in &trial.seeds {
        hash.update(format!("{seed}\n"));
    }
    hex(&hash.finalize())
}

/// A hash by its first digits, in the words around them. The whole is under the pointer, with what it is of.
fn hashed(term: &str, words: (&str, &str), of: &str, hash: &str) -> String {
    const DIGITS: usize = 8;
    let first: String = hash.chars().take(DIGITS).collect();
    let more = if first.len() < hash.len() { "…" } else { "" };
    let (before, after) = words;
    let (whole, first) = (escape(hash), escape(&first));
    format!("<div><dt>{term}</dt><dd title=\"{of} {whole}\">{before}{first}{more}{after}</dd></div>")
}

/// Switches for the arms in the figures; they work without scripts.
fn toggles(view: &View<'_>) -> String {
    let mut html = String::new();
    for (nth, arm) in view.bundle.trial.arms.iter().enumerate() {
        let _ = write!(
            html,
            "<label class=\"{}\"><input type=\"checkbox\" id=\"show-{nth}\" checked>{}{}</label>",
            class(nth),
            tables::SWATCH,
            escape(arm)
        );
    }
    // More switches than a line or two would hide the page behind them.
    let count = view.bundle.trial.arms.len();
    if count > MOST_SWITCHES {
        html = format!("<details><summary>{count} arms</summary><div>{html}</div></details>");
    }
    format!("<nav class=\"toggles\" aria-label=\"arms shown\">{html}</nav>\n")
}

/// Switches beyond these are folded.
const MOST_SWITCHES: usize = 12;

pub(super) fn arm_styles(view: &View<'_>) -> String {
    let (arms, over) = (view.bundle.trial.arms.len(), view.arms_over_time());
    let mut css = String::new();
    let mut dark = String::new();
    for nth in 0..arms {
        let (day, night) = COLOURS[nth % COLOURS.len()];
        let _ = writeln!(css, ".a{nth}{{--c:{day}}}");
        let _ = writeln!(dark, ".a{nth}{{--c:{night}}}");
        let _ = writeln!(css, "body:has(#show-{nth}:not(:checked)) figure .a{nth}{{display:none}}");
        // Laid over each other, panels have their headings side by side.
        let share = 100.0 / over.len() as f64;
        if let Some(place) = over.iter().position(|arm| *arm == view.bundle.trial.arms[nth]) {
            let left = share * place as f64;
            let style = format!("margin-left:{left:.1}%;width:{share:.1}%");
            let _ = writeln!(css, "body:has(#over:checked) .lines .a{nth} h4{{{style}}}");
        }
    }
    let _ = writeln!(css, "@media (prefers-color-scheme:dark){{@media not print{{\n{dark}}}}}");
    css
}
