//! How many blocks would decide what these do not.

use super::location::quantile;
use super::{ALPHA, Location};

/// No advice beyond this.
const MOST: f64 = 10_000.0;
/// Two-sided 95 % of the normal distribution, from which Student's t is only a few blocks away.
const NORMAL: f64 = 1.959_964;

/// The blocks whose interval reaches half the margin to either side, if they scatter as these did: a ratio is then
/// nearly always either within the margin or apart from 1.
pub(super) fn blocks(location: &Location, bound: f64) -> Option<usize> {
    let scatter = location.error? * (location.n as f64).sqrt();
    let wanted = bound / 2.0;
    let at_least = NORMAL * scatter / wanted;
    let at_least = at_least * at_least;
    if at_least > MOST {
        return None;
    }
    let mut n = (at_least as usize).max(2);
    while quantile(n - 1, 1.0 - ALPHA)? * scatter / (n as f64).sqrt() > wanted {
        n += 1;
    }
    (n > location.n).then_some(n)
}
