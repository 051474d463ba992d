//! The results of our statistics on drawn samples, one JSON object a line. `scripts/check-statistics` compares them.

use std::io::{self, Write};

use hopwise_air::random::{NumberStream, Purpose};
use hopwise_lab::statistics::{MARGIN, Samples, compare, summarize};

const TRIALS: u64 = 200;
const ARMS: usize = 3;

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for seed in 0..TRIALS {
        let mut stream = NumberStream::new(seed, 0, Purpose::Traffic);
        let blocks = 2 + stream.below(19);
        // Every fifth trial has blocks that delivered nothing.
        let has_zeros = seed % 5 == 0;
        let mut samples = |arm: String| {
            let level = 100.0 * (1.0 + 0.1 * stream.unit());
            let value = |stream: &mut NumberStream| {
                let is_zero = has_zeros && stream.below(6) == 0;
                if is_zero { 0.0 } else { level * (0.9 + 0.2 * stream.unit()) }
            };
            Samples { arm, values: (1..=blocks).map(|block| (block, value(&mut stream))).collect() }
        };
        let baseline = samples("baseline".to_owned());
        let others: Vec<_> = (0..ARMS).map(|arm| samples(format!("arm {arm}"))).collect();
        let values = |samples: &Samples| samples.values.iter().map(|(_, value)| *value).collect::<Vec<_>>();
        let line = serde_json::json!({
            "margin": MARGIN,
            "baseline": values(&baseline),
            "arms": others.iter().map(values).collect::<Vec<_>>(),
            "summary": summarize(&values(&baseline)),
            "comparisons": compare(&baseline, &others, MARGIN),
        });
        writeln!(out, "{line}")?;
    }
    Ok(())
}
