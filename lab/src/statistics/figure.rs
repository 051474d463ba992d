//! The figure that arms are compared by.

/// The side of a figure that is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The larger value is better.
    More,
    /// The smaller value is better.
    Less,
}

impl Better {
    /// The word in files.
    pub const fn name(self) -> &'static str {
        match self {
            Better::More => "more",
            Better::Less => "less",
        }
    }
}

/// A figure of a run, as comparisons name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The name in results.
    pub name: &'static str,
    /// Empty for shares and counts.
    pub unit: &'static str,
    /// The side that is better.
    pub better: Better,
}

/// The figure of a trial that names no other one.
pub(crate) const GOODPUT: Figure = Figure { name: "goodput_kbps", unit: "kbit/s", better: Better::More };

impl Figure {
    /// Returns whether it is the figure of trials that name none.
    pub(crate) fn is_goodput(&self) -> bool {
        *self == GOODPUT
    }

    /// A value with its unit.
    pub fn with_unit(&self, value: f64) -> String {
        let value = shown(value);
        if self.unit.is_empty() { value } else { format!("{value} {}", self.unit) }
    }
}

/// A value with four digits.
pub fn shown(value: f64) -> String {
    format!("{value:.*}", digits(value))
}

/// The digits behind the point with which the largest value of a column has four digits: the others then align.
pub fn digits(most: f64) -> usize {
    match most.abs() {
        large if large >= 1000.0 => 0,
        large if large >= 100.0 => 1,
        some if some >= 10.0 => 2,
        _ => 3,
    }
}
