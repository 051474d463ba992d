//! Drawings of plans: the gap before each ACK, and the RTO after it.

use std::fmt::Write as _;

use hopwise_agents::base_station::plan::Plan;

const COLUMNS: usize = 64;
const ROWS: usize = 10;

/// The two curves of a plan: a name, a mark and a value for each ACK.
fn series(plan: &Plan) -> [(&'static str, char, Vec<f64>); 2] {
    let mut last_s = 0.0;
    let gap = |at_s: &f64| at_s - std::mem::replace(&mut last_s, *at_s);
    let gaps = plan.release_at_s.iter().map(gap).collect();
    [("gap before the ACK", '·', gaps), ("RTO after it", '*', plan.rto_s.clone())]
}

fn highest(series: &[(&str, char, Vec<f64>)]) -> f64 {
    series.iter().flat_map(|(_, _, values)| values).fold(1e-9, |most: f64, value| most.max(*value))
}

/// One character for each ACK, or for several if they are many.
#[expect(clippy::cast_possible_truncation, reason = "the row of a chart")]
pub(super) fn terminal(plan: &Plan) -> String {
    let series = series(plan);
    let highest = highest(&series);
    let count = plan.release_at_s.len();
    let columns = count.min(COLUMNS);
    let mut grid = vec![vec![' '; columns]; ROWS];
    for (_, mark, values) in &series {
        for column in 0..columns {
            let value = values[column * count / columns];
            let row = ((value / highest) * (ROWS - 1) as f64).round() as usize;
            grid[ROWS - 1 - row.min(ROWS - 1)][column] = *mark;
        }
    }
    let mut text = String::new();
    for (nth, row) in grid.iter().enumerate() {
        let at = highest * (ROWS - 1 - nth) as f64 / (ROWS - 1) as f64;
        let _ = writeln!(text, "  {at:>10.3} s |{}", row.iter().collect::<String>().trim_end());
    }
    let names: Vec<_> = series.iter().map(|(name, mark, _)| format!("{mark} {name}")).collect();
    let _ = writeln!(text, "  {:>12} +{}", "ACK 1", "-".repeat(columns));
    let _ = writeln!(text, "  {:>12}  {}", "", names.join("   "));
    text
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 220.0;
const MARGIN: f64 = 60.0;
const COLOURS: [&str; 2] = ["#1f5fa8", "#b4401f"];

/// A panel for each plan that releases something.
pub(super) fn svg(plans: &[Plan]) -> String {
    let drawn: Vec<_> = plans.iter().filter(|plan| !plan.release_at_s.is_empty()).collect();
    let height = (HEIGHT + MARGIN) * drawn.len().max(1) as f64;
    let width = WIDTH + 2.0 * MARGIN;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n"
    );
    for (nth, plan) in drawn.iter().enumerate() {
        panel(&mut text, plan, (HEIGHT + MARGIN) * nth as f64 + MARGIN / 2.0);
    }
    text.push_str("</svg>\n");
    text
}

fn panel(text: &mut String, plan: &Plan, top: f64) {
    let series = series(plan);
    let highest = highest(&series);
    let last = (plan.release_at_s.len() - 1).max(1) as f64;
    let (bottom, right) = (top + HEIGHT, MARGIN + WIDTH);
    let _ = writeln!(
        text,
        "<path d=\"M{MARGIN} {top} V{bottom} H{right}\" fill=\"none\" stroke=\"#444\"/>\n\
         <text x=\"{MARGIN}\" y=\"{:.1}\">{}: n = {}, last RTO {:.3} s</text>\n\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{highest:.2} s</text>\n\
         <text x=\"{right}\" y=\"{:.1}\" text-anchor=\"end\">ACK {}</text>",
        top - 6.0,
        plan.mode.name(),
        plan.n,
        plan.final_rto_s,
        MARGIN - 4.0,
        top + 4.0,
        bottom + 14.0,
        plan.release_at_s.len(),
    );
    for (nth, (name, _, values)) in series.iter().enumerate() {
        let colour = COLOURS[nth];
        let point = |(at, value): (usize, &f64)| {
            format!("{:.1},{:.1}", MARGIN + WIDTH * at as f64 / last, bottom - HEIGHT * value / highest)
        };
        let points: Vec<_> = values.iter().enumerate().map(point).collect();
        let _ = writeln!(
            text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{name}</text>",
            points.join(" "),
            MARGIN + 10.0 + 150.0 * nth as f64,
            bottom + 14.0,
        );
    }
}
