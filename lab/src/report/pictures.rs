//! Figures of a report as SVG files of their own, in the forms that papers have: goodput over what is varied, windows
//! and progress over time.

use super::page::{STYLE, arm_styles};
use super::{Bundle, View, figures};
use crate::plain::cut;

/// The figures that become files, by the beginnings of their ids.
const DRAWN: [&str; 3] = ["sweep", "cwnd", "seq"];
/// The most letters of a name. A file's has 255 bytes, and names of paper and figure stand before it.
const LONGEST: usize = 100;

/// The charts of these figures by the names of their files, without the ending.
pub fn pictures(bundle: &Bundle) -> Vec<(String, String)> {
    let view = View::of(bundle);
    let style = format!("<style>{STYLE}{}svg{{max-width:none}}</style>", arm_styles(&view));
    let html = figures::sweep(&view) + &figures::runs(&view);
    let figures = html.split("<figure id=\"fig-");
    let drawn = figures.filter(|figure| DRAWN.iter().any(|id| figure.starts_with(id)));
    drawn.flat_map(|figure| of_figure(figure, &style)).collect()
}

/// The charts of a figure of ours: texts of runs have no tags in it.
fn of_figure(figure: &str, style: &str) -> Vec<(String, String)> {
    let id = figure.split('"').next().unwrap_or_default();
    let charts = figure.split_inclusive("</svg>").filter_map(|part| part.split_once("<svg "));
    let whole = charts.filter(|(_, chart)| !chart.contains("aria-hidden"));
    let named = whole.zip(1..).map(|((before, chart), nth)| {
        let heading =
            before.rsplit_once("</h").and_then(|(text, _)| text.rsplit('>').next()).unwrap_or_default();
        let name = format!("{id} {nth} {heading}").to_lowercase();
        let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let name = cut(&words.collect::<Vec<_>>().join("-"), LONGEST);
        let title = format!("<text class=\"group\" x=\"52\" y=\"18\">{heading}</text></svg>");
        let chart = chart.replacen('>', &format!(">{style}"), 1).replacen("</svg>", &title, 1);
        (name, format!("<svg xmlns=\"http://www.w3.org/2000/svg\" {chart}"))
    });
    named.collect()
}
