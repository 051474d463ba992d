//! The arguments of `hopwise claims`.

use std::path::PathBuf;

use clap::Args;

/// Compare the statements of papers with runs: reproduced, not reproduced or contradicted
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise claims
  hopwise claims dca pgy
  hopwise claims --quick
  hopwise claims --markdown docs/claims.md

Each file in configs/papers/PAPER is a scenario with the statements of one figure (`claims:`). It runs under the MAC
rules of ns-2, which the papers used, and under those of the standard; with AODV, also under both rule sets of AODV.
A file with `plan:` is computed, not run. Earlier runs are read from results/claims.")]
pub(crate) struct Arguments {
    /// Folders of papers (default: all)
    #[arg(value_name = "PAPER")]
    pub(super) chosen: Vec<String>,
    /// Run only the fastest scenarios with two seeds, within seconds; too few for small effects
    #[arg(long)]
    pub(super) quick: bool,
    /// Folder of the papers' folders
    #[arg(long, value_name = "DIR", default_value = "configs/papers")]
    pub(super) papers: PathBuf,
    /// Folder where runs are kept
    #[arg(long, value_name = "DIR", default_value = "results/claims")]
    pub(super) out: PathBuf,
    /// Write the table to this file too, as Markdown
    #[arg(long, value_name = "FILE")]
    pub(super) markdown: Option<PathBuf>,
}

impl Arguments {
    /// Returns whether the paper is among the chosen ones.
    pub(super) fn wants(&self, paper: &str) -> bool {
        self.chosen.is_empty() || self.chosen.iter().any(|chosen| chosen == paper)
    }
}
