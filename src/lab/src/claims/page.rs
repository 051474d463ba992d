//! A page of `docs/claims`: a paper's page, or a modern radio's page with figures of all papers.

use hopwise_daemon::shell::typed;

use super::Arguments;

/// A page.
#[derive(Clone, Copy, Debug)]
pub(super) enum Page<'a> {
    /// The page of a paper, by its folder.
    Paper(&'a str),
    /// The page of a radio's profile.
    Radio {
        profile: &'a str,
        /// Only the first reading of each figure is on it.
        first_reading: bool,
        /// A run lasts one of that many parts of its figure's time.
        parts: u32,
    },
}

impl Page<'_> {
    /// The page for a figure of that paper.
    pub(super) fn of<'a>(arguments: &Arguments, paper: &'a str) -> Page<'a> {
        let &Arguments { radio, first_reading, shorter, .. } = arguments;
        radio.map_or(Page::Paper(paper), |profile| Page::Radio {
            profile,
            first_reading,
            parts: shorter.unwrap_or(1),
        })
    }

    /// The name of its file, without the ending.
    pub(super) fn name(&self) -> String {
        match self {
            Page::Paper(paper) => (*paper).to_owned(),
            Page::Radio { profile, .. } => format!("over-{profile}"),
        }
    }

    /// The name of a figure on it: its file without the ending, with its paper on a page of several papers.
    pub(super) fn id(&self, paper: &str, file: &str) -> String {
        match self {
            Page::Paper(_) => file.to_owned(),
            Page::Radio { .. } => format!("{paper}/{file}"),
        }
    }

    /// A figure with its paper, by its name on the page.
    fn figure(&self, id: &str) -> String {
        match self {
            Page::Paper(paper) => format!("{paper}/{id}"),
            Page::Radio { .. } => id.to_owned(),
        }
    }

    /// The path of a figure's file in the folder of papers.
    pub(super) fn path_of(&self, id: &str) -> String {
        format!("{}.yaml", self.figure(id))
    }

    /// The start of the names of a figure's pictures.
    pub(super) fn stem(&self, paper: &str, file: &str) -> String {
        match self {
            Page::Paper(_) => format!("{paper}-{file}"),
            Page::Radio { .. } => format!("{}-{paper}-{file}", self.name()),
        }
    }

    /// True if it names the figures of that paper that cannot be run.
    pub(super) fn tells_of(&self, paper: &str) -> bool {
        matches!(self, Page::Paper(of) if *of == paper)
    }

    /// The command that makes a figure again.
    pub(super) fn command(&self, id: &str) -> String {
        format!("hopwise claims {}{}", typed(&self.figure(id)), self.options())
    }

    fn options(&self) -> String {
        match self {
            Page::Paper(_) => String::new(),
            Page::Radio { profile, first_reading, parts } => {
                let first = if *first_reading { " --first-reading" } else { "" };
                let shorter = if *parts == 1 { String::new() } else { format!(" --shorter {parts}") };
                format!(" --radio {profile}{first}{shorter}")
            }
        }
    }

    /// The text before its sections.
    pub(super) fn head(&self) -> String {
        match self {
            Page::Paper(paper) => format!(
                "# The claims of {paper}\n\n`hopwise claims {paper} --pages docs/claims` writes this page. [What the \
                 papers say](../papers.md)\ntells how to read it. [A \
                 reading](../../configs/papers/{paper}/reading.md) says which settings are the\npaper's.\n\nA \
                 section names the digest of its file, and the days and the machine of its runs. One that does not is \
                 of 25 or 26\nNovember 2026: two cores of a virtual machine (AMD EPYC) made its runs. Only the time \
                 that they take depends on that.\n"
            ),
            Page::Radio { profile, .. } => format!(
                "# The papers' claims over {profile}\n\n```sh\nhopwise claims{} --pages docs/claims\n```\n\nwrites \
                 this page. [What the papers say](../papers.md) tells how to read it. Each claim has two rows: that \
                 of its\npaper's own rules, and that of radios of the profile `{profile}` under the standard's rules \
                 and without RTS.\n`--first-reading` leaves other values of open settings to the papers' own pages. \
                 `--shorter` makes runs over the new\nradio shorter, since they carry more segments in a second. A \
                 figure in which nodes move, links go down or flows stop\nkeeps its time. The outcomes are those of \
                 these radios, and accuse no paper.\n",
                self.options()
            ),
        }
    }
}
