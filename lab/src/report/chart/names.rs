//! Names of dots and lines in a chart, in places where they do not cover each other, and the marks of dots. Arms beyond
//! the first colours have another shape.

use std::fmt::Write as _;

use crate::report::chart::{Chart, LONGEST_NAME, escape};

/// The size of a letter of a line's or a dot's name.
const BOLD_CHARACTER: f64 = 6.8;
const NAME_HEIGHT: f64 = 11.0;

/// A box by its middle and half its size.
type Area = ((f64, f64), (f64, f64));

fn overlap(one: &Area, other: &Area) -> bool {
    let (((x, y), (wide, high)), ((their_x, their_y), (their_wide, their_high))) = (one, other);
    (x - their_x).abs() < wide + their_wide && (y - their_y).abs() < high + their_high
}

impl Chart {
    /// Names dots, given by value, name and class. A name takes the first place that covers no other name or dot.
    pub(in crate::report) fn names_beside(&mut self, dots: &[((f64, f64), &str, String)]) {
        let size = |name: &str| (name.chars().count().min(LONGEST_NAME) as f64 * BOLD_CHARACTER, NAME_HEIGHT);
        let dot = |at: &(f64, f64)| (self.at(*at), (4.0, 4.0));
        let mut taken: Vec<_> = dots.iter().map(|(at, ..)| dot(at)).collect();
        let mut places = Vec::new();
        for (at, name, _) in dots {
            let (x, y) = self.at(*at);
            let (wide, high) = size(name);
            // Boxes by their middles: right and left of the dot, further and further away.
            let sides = [-1.0, 0.0, 1.0].into_iter().flat_map(|up| [(1.0, up), (-1.0, up)]);
            let all = (0..6)
                .flat_map(|far| sides.clone().map(move |(side, up)| (side, up * (1.0 + f64::from(far)))));
            let boxes = all
                .map(|(side, up)| ((x + side * (9.0 + wide / 2.0), y + up * 9.0), (wide / 2.0, high / 2.0)));
            let fits = |own: &Area| {
                let ((x, _), (half, _)) = own;
                x - half >= self.x.from
                    && x + half <= self.width
                    && !taken.iter().any(|other| overlap(own, other))
            };
            let place = boxes.clone().find(fits).or_else(|| boxes.clone().next());
            let Some(place) = place else { continue };
            taken.push(place);
            places.push(place.0);
        }
        for ((x, y), (_, name, class)) in places.into_iter().zip(dots) {
            self.named((x, y + 3.5), "middle", name, class);
        }
    }

    fn named(&mut self, (x, y): (f64, f64), anchor: &str, name: &str, class: &str) {
        let cut = escape(&crate::plain::cut(name, LONGEST_NAME));
        let _ = write!(
            self.over,
            "<text class=\"named {class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{cut}</text>"
        );
    }

    /// Names lines at their right ends, given by value, name and class. Names that would cover each other move apart.
    pub(in crate::report) fn names_at_right(&mut self, ends: &[(f64, &str, String)]) {
        const HEIGHT: f64 = 12.0;
        let mut places: Vec<_> = ends.iter().map(|(y, name, class)| (self.y.px(*y), *name, class)).collect();
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut free = f64::NEG_INFINITY;
        let lowest = self.y.from - HEIGHT * places.len().saturating_sub(1) as f64;
        for (nth, (at, name, class)) in places.into_iter().enumerate() {
            // Later names need room below.
            let at = at.max(free).min((lowest + HEIGHT * nth as f64).max(free));
            free = at + HEIGHT;
            self.named((self.x.to + 6.0, at + 3.5), "start", name, class);
        }
    }
}

/// The shapes: a circle, and for the classes `s1`, `s2` and `s3` a square, a triangle and a rhombus.
pub(in crate::report) const SHAPES: usize = 4;

/// The mark of these classes around a place. All shapes look about as large as the circle.
pub(super) fn mark((x, y): (f64, f64), radius: f64, class: &str, inner: &str) -> String {
    let shape = class.split(' ').find_map(|name| name.strip_prefix('s')?.parse().ok()).unwrap_or(0);
    let corners: &[(f64, f64)] = match shape {
        1 => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        2 => &[(0.0, -1.2), (1.2, 0.9), (-1.2, 0.9)],
        3 => &[(0.0, -1.35), (1.35, 0.0), (0.0, 1.35), (-1.35, 0.0)],
        _ => {
            return format!(
                "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\">{inner}</circle>"
            );
        }
    };
    let corners = corners.iter().map(|(dx, dy)| format!("{:.1} {:.1}", x + dx * radius, y + dy * radius));
    let corners: Vec<_> = corners.collect();
    format!("<path class=\"{class}\" d=\"M{}Z\">{inner}</path>", corners.join("L"))
}

#[cfg(test)]
mod tests {
    use super::super::Axis;
    use super::*;

    #[test]
    fn names_of_dots_at_one_place_do_not_cover_each_other() {
        let axis = Axis { label: "", low: 0.0, high: 100.0 };
        let mut chart = Chart::new((440.0, 260.0), axis, axis);
        let names = ["immediate", "delayed", "dca", "tda", "train"];
        let dots: Vec<_> =
            (0..).zip(names).map(|(nth, name)| ((f64::from(nth), 90.0), name, String::new())).collect();
        chart.names_beside(&dots);
        let boxes: Vec<Area> = chart
            .over
            .split("<text")
            .skip(1)
            .map(|text| {
                let number = |key: &str| text.split(key).nth(1)?.split('"').next()?.parse::<f64>().ok();
                let name =
                    text.split_once('>').and_then(|(_, name)| name.split('<').next()).unwrap_or_default();
                let wide = name.len() as f64 * BOLD_CHARACTER;
                (
                    (number(" x=\"").unwrap_or(0.0), number(" y=\"").unwrap_or(0.0)),
                    (wide / 2.0, NAME_HEIGHT / 2.0),
                )
            })
            .collect();
        assert_eq!(boxes.len(), names.len());
        for (nth, one) in boxes.iter().enumerate() {
            assert!(boxes[nth + 1..].iter().all(|other| !overlap(one, other)), "{boxes:?}");
        }
    }
}
