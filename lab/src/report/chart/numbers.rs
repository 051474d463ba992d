//! The numbers of a chart's shapes, for readers who take them away: a line for each shape.

use std::fmt::Write as _;

/// The numbers of one shape. The script of the page makes a row of a CSV file of each.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::report) struct ShapeNumbers<'a> {
    /// The kind of the shape.
    pub(in crate::report) shape: &'a str,
    /// The classes, which name the arm.
    pub(in crate::report) class: &'a str,
    pub(in crate::report) x: Option<f64>,
    pub(in crate::report) y: Option<f64>,
    /// The ends of an interval or a bar.
    pub(in crate::report) x_ends: Option<[f64; 2]>,
    pub(in crate::report) y_ends: Option<[f64; 2]>,
    pub(in crate::report) seed: Option<u64>,
    /// The number of runs behind a mean.
    pub(in crate::report) runs: Option<usize>,
    /// Words of this shape; empty where the words of the whole line or chart hold.
    pub(in crate::report) title: &'a str,
}

impl<'a> ShapeNumbers<'a> {
    pub(in crate::report) fn at(shape: &'a str, class: &'a str, (x, y): (f64, f64)) -> ShapeNumbers<'a> {
        ShapeNumbers { shape, class, x: Some(x), y: Some(y), ..ShapeNumbers::default() }
    }
}

#[derive(Debug, Default)]
pub(in crate::report) struct Numbers {
    pub(super) text: String,
    point: String,
}

impl Numbers {
    /// Names the point of all shapes that follow.
    pub(in crate::report) fn at_point(&mut self, point: &str) {
        if self.point != point {
            point.clone_into(&mut self.point);
            let _ = writeln!(self.text, "=point|{}", words(point));
        }
    }

    /// Says the meaning of all shapes that follow and have no words of their own.
    pub(in crate::report) fn of(&mut self, what: &str) {
        let _ = writeln!(self.text, "=what|{}", words(what));
    }

    /// Keeps the numbers of a shape.
    pub(in crate::report) fn tell(&mut self, told: &ShapeNumbers<'_>) {
        let [x_low, x_high] = told.x_ends.map_or([None; 2], |ends| ends.map(Some));
        let [y_low, y_high] = told.y_ends.map_or([None; 2], |ends| ends.map(Some));
        let [x, y, x_low, x_high, y_low, y_high] = [told.x, told.y, x_low, x_high, y_low, y_high].map(cell);
        let seed = told.seed.map_or(String::new(), |seed| seed.to_string());
        let runs = told.runs.map_or(String::new(), |runs| runs.to_string());
        let cells = [told.shape, told.class, &x, &y, &words(told.title)].map(str::to_owned);
        let cells: Vec<_> = cells.into_iter().chain([x_low, x_high, y_low, y_high, seed, runs]).collect();
        // Lines over time have thousands of rows: nothing empty ends one.
        let _ = writeln!(self.text, "{}", cells.join("|").trim_end_matches('|'));
    }
}

/// A number with the digits that it needs, at most six after the point.
fn cell(number: Option<f64>) -> String {
    let Some(number) = number.filter(|number| number.is_finite()) else { return String::new() };
    format!("{number:.6}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn words(text: &str) -> String {
    text.replace(['"', '\n', '|'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_no_empty_end_and_ends_of_intervals_have_places_of_their_own() {
        let mut numbers = Numbers::default();
        numbers.at_point("a|b = 2");
        numbers.at_point("a|b = 2");
        numbers.of("cwnd");
        numbers.tell(&ShapeNumbers::at("step", "line a0", (0.5, 100.0)));
        let mean = ShapeNumbers {
            shape: "mean",
            class: "mark a1",
            x: Some(2.25),
            title: "dca",
            ..ShapeNumbers::default()
        };
        numbers.tell(&ShapeNumbers { x_ends: Some([2.0, f64::NAN]), runs: Some(5), ..mean });
        let wanted = "=point|a b = 2\n=what|cwnd\nstep|line a0|0.5|100\nmean|mark a1|2.25||dca|2|||||5\n";
        assert_eq!(numbers.text, wanted);
    }
}
