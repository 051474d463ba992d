//! The arguments of `hopwise claims`.

use std::path::PathBuf;

use clap::Args;
use hopwise_air::phy::Phy;
use hopwise_lab::located::one_of;

use hopwise_daemon::numbers;

/// Check the claims of papers by simulation
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hopwise claims
  hopwise claims dca/fig15 pgy
  hopwise claims --quick
  hopwise claims dca --pages docs/claims
  hopwise claims dca/fig15 --radio ht20-mcs7
  hopwise claims dca --radio ht20-mcs7 --first-reading --shorter 20
  hopwise claims dca --kept --pages docs/claims
  hopwise claims dca/fig02 --figures results/figures

Each file in configs/papers/PAPER is a scenario with the statements of one figure (`claims:`). It runs under the MAC
rules of ns-2, which the papers used, and under the standard's rules; with AODV, also under both rule sets of AODV.
Settings that a paper leaves open (`sweep:`) are run with each of their values. A claim is then reproduced everywhere,
or where it is said; it is contradicted only if it is so everywhere. A file with `plan:` is computed, not run.
A claim that its interval leaves undecided is run with twice the seeds under its paper's own rules, up to 40, as long as
40 are likely to decide it.
With --figures runs under the paper's own rules become PAPER-FIGURE-WHAT.svg: goodput over a number that varies,
and at up to four points the window of each arm's first seed over time, and what was acknowledged.
With --radio each claim is judged under the paper's own rules, and over radios of that profile under the standard's.
These send no RTS, as Linux does by default. A reading that sets another profile or another RTS threshold than its file
is not run over them, and neither is a file whose points or arms differ in one. The output says how many readings that
are. A second of such radios takes 10 to 30 times the computing time of a second of the papers' radios, and has as many
more segments: --shorter makes up for it.
Runs are kept in results/claims. The folder of a figure has its file, its table (claims.csv) and its picture
(claims.svg), too. Runs of this build that are there are read, and a command that was interrupted goes on. With --kept
runs of other builds are read as well: a section of a page names the build that made them.")]
pub struct Arguments {
    /// Papers, or single figures of them by their files (default: all)
    #[arg(value_name = "PAPER[/FIGURE]")]
    pub(super) chosen: Vec<String>,
    /// Run only the fastest scenarios and figures that are named, their first reading with two seeds; too few for
    /// small effects
    #[arg(long)]
    pub(super) quick: bool,
    /// Folder of the papers' folders
    #[arg(long, value_name = "DIR", default_value = "configs/papers")]
    pub(super) papers: PathBuf,
    /// Folder where runs are kept
    #[arg(long, value_name = "DIR", default_value = "results/claims")]
    pub(super) out: PathBuf,
    /// Judge each claim over radios of this profile as well, such as ht20-mcs7
    #[arg(long, value_name = "PROFILE", value_parser = radio)]
    pub(super) radio: Option<&'static str>,
    /// Run an Nth of a figure's time over the other radio, at least 15 s. A figure in which nodes move, links go
    /// down or flows stop keeps its time
    #[arg(long, value_name = "N", requires = "radio", value_parser = numbers::whole(2..=1_000_u32))]
    pub(super) shorter: Option<u32>,
    /// Run only the first reading: settings that a paper leaves open have the first of their values in the file
    #[arg(long, requires = "radio", conflicts_with = "quick")]
    pub(super) first_reading: bool,
    /// Judge the runs that are there, by whichever build they were made, and run nothing
    #[arg(long)]
    pub(super) kept: bool,
    /// Replace the sections of these figures in this folder's PAPER.md, or with --radio in its over-PROFILE.md. Where
    /// readings are compared, their pictures are written there too.
    #[arg(long, value_name = "DIR")]
    pub(super) pages: Option<PathBuf>,
    /// Draw the runs of each figure in the forms that papers have, into SVG files of this folder
    #[arg(long, value_name = "DIR")]
    pub(super) figures: Option<PathBuf>,
}

impl Arguments {
    /// Returns whether a figure is among the chosen ones, or anything of the paper.
    pub(super) fn wants(&self, paper: &str, figure: Option<&str>) -> bool {
        let is_chosen = |chosen: &String| match chosen.split_once('/') {
            Some((of, name)) => of == paper && figure.is_none_or(|figure| figure == name),
            None => chosen == paper,
        };
        self.chosen.is_empty() || self.chosen.iter().any(is_chosen)
    }

    /// Returns whether a figure is chosen by its own name.
    pub(super) fn names(&self, paper: &str, figure: &str) -> bool {
        self.chosen.iter().any(|chosen| chosen.split_once('/') == Some((paper, figure)))
    }
}

/// The name of a profile.
fn radio(name: &str) -> Result<&'static str, String> {
    Phy::named(name).map(|phy| phy.name).ok_or_else(|| {
        format!("{}; {}", Phy::why_unnamed(name), one_of(name, &Phy::names().collect::<Vec<_>>()))
    })
}
