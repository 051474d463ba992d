//! Marks of dots: arms beyond the first colours have another shape.

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
