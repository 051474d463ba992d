//! The header of an agent's file, split into its paragraphs. `hopwise agents show` prints them.

/// Invariant 1: every registered agent's file has all three paragraphs; a test checks this.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The paper or RFC with its full title.
    pub source: String,
    /// The whole rule; [`Descriptor::rule`](crate::Descriptor::rule) sums it up in a line.
    pub rule: String,
    /// The differences between the agent and its source, with reasons.
    pub deviations: String,
}

impl Header {
    /// A paragraph begins with its name and a colon. It ends at an empty line, at a table or at the next paragraph.
    pub(super) fn read(file: &str) -> Header {
        let mut header = Header::default();
        let mut others = String::new();
        let mut name = "";
        for line in file.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim) {
            let mut words = line;
            if line.is_empty() || line.starts_with('|') {
                (name, words) = ("", "");
            } else if let Some((start, rest)) = line.split_once(": ")
                && NAMES.contains(&start)
            {
                (name, words) = (start, rest);
            }
            let paragraph = match name {
                "Source" => &mut header.source,
                "Rule" => &mut header.rule,
                "Deviations" => &mut header.deviations,
                _ => &mut others,
            };
            if !paragraph.is_empty() && !words.is_empty() {
                paragraph.push(' ');
            }
            paragraph.push_str(words);
        }
        header
    }
}

const NAMES: [&str; 4] = ["Source", "Rule", "Parameters", "Deviations"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_taken_apart_into_its_paragraphs() {
        let file = "//! `x`: does: this.\n//!\n//! Source: a paper,\n//! in two lines.\n//!\n//! Rule: it does.\n\
                    //! Parameters: none.\n//! Deviations: one\n//!\n//! | not | this |\n//! | Rule: | nor this |\n\
                    use x;\n//! Source: too late.\n";
        let header = Header::read(file);
        assert_eq!(header.source, "a paper, in two lines.");
        assert_eq!(header.rule, "it does.");
        assert_eq!(header.deviations, "one");
    }
}
