//! A finding: the result of one check, with a remedy if something is wrong.

use hopwise_daemon::shell::typed;
use serde::{Deserialize, Serialize};

hopwise_core::named! {
    /// The verdict of a check.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum CheckVerdict {
        Ok = "ok",
        /// It could not be examined.
        Skipped = "skipped",
        /// It works, but worse than expected or in an unexpected way.
        Warning = "warning",
        /// A node or a trial cannot work like this.
        Failure = "FAILURE",
    }
}

/// The result of a check, as it goes over ssh in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub check: String,
    pub verdict: CheckVerdict,
    /// The name of the fault in the list of all (`faults`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fault: Option<String>,
    pub found: String,
    /// Remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Finding {
    pub fn ok(check: &str, found: impl Into<String>) -> Finding {
        Finding {
            check: check.to_owned(),
            verdict: CheckVerdict::Ok,
            fault: None,
            found: found.into(),
            fix: None,
        }
    }

    pub fn skipped(check: &str, why: impl Into<String>) -> Finding {
        Finding { verdict: CheckVerdict::Skipped, ..Finding::ok(check, why) }
    }

    /// Puts words in the place of a name in the remedy, as a shell reads them: a user may copy a command from there.
    pub fn with(mut self, name: &str, words: &str) -> Finding {
        let words: Vec<_> = words.split(' ').map(typed).collect();
        self.fix = self.fix.map(|fix| fix.replace(&format!("{{{name}}}"), &words.join(" ")));
        self
    }
}

/// A fault that a check can find.
#[derive(Debug)]
pub(super) struct CheckFault {
    pub name: &'static str,
    pub check: &'static str,
    pub verdict: CheckVerdict,
    /// Its harm.
    pub(super) spoils: &'static str,
    /// The way in which it is found.
    pub(super) found: &'static str,
    /// The remedy. `{IF}` stands for an interface, and other names in braces for other values.
    pub(super) remedy: &'static str,
}

impl CheckFault {
    /// The check did not find it.
    pub(super) fn ok(&self, found: impl Into<String>) -> Finding {
        Finding::ok(self.check, found)
    }

    /// It could not be looked for.
    pub(super) fn skipped(&self, why: impl Into<String>) -> Finding {
        Finding::skipped(self.check, why)
    }

    /// A finding of this fault.
    pub(super) fn found(&self, found: impl Into<String>) -> Finding {
        Finding {
            verdict: self.verdict,
            fault: Some(self.name.to_owned()),
            fix: Some(self.remedy.to_owned()),
            ..Finding::ok(self.check, found)
        }
    }
}
