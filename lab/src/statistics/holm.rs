//! Holm's correction: of several comparisons at once, at most 5 % find a difference that none has.

/// Corrects in the order given; a comparison without p takes no part.
pub(super) fn corrected(ps: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut known: Vec<(usize, f64)> =
        ps.iter().enumerate().filter_map(|(index, p)| Some((index, (*p)?))).collect();
    known.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (count, mut least) = (known.len(), 0.0_f64);
    let mut corrected = vec![None; ps.len()];
    for (rank, (index, p)) in known.into_iter().enumerate() {
        least = least.max((p * (count - rank) as f64).min(1.0));
        corrected[index] = Some(least);
    }
    corrected
}
