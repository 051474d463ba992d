//! Checks of a configuration that only its own machine can make. A running node that reads its rules again skips them.
//! A resolver may be slow, and the rest of the file needs a restart.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use hopwise_lab::located::{Document, YamlPath};
use nix::unistd::User;

use super::NodeConfig;
use super::check::Checked;
use crate::node::links::check_filter;

/// The warning about passwords in a file that each user of this machine may read.
pub(crate) fn shown_passwords(path: &Path, config: &NodeConfig) -> Option<String> {
    let has_passwords = config.socks5.as_ref().is_some_and(|socks5| !socks5.users.is_empty());
    let mode = fs::metadata(path).ok()?.permissions().mode();
    let shown = path.display();
    (has_passwords && mode & 0o004 != 0).then(|| {
        format!("{shown}: each user of this machine can read the passwords of `users`: chmod o-r {shown}")
    })
}

pub(super) fn all(document: &Document, config: &NodeConfig) -> Checked {
    user(document, config)?;
    for (nth, link) in config.links.iter().enumerate() {
        let Some(filter) = &link.filter else { continue };
        check_filter(filter).map_err(|problem| {
            let at = YamlPath::root().key("links").index(nth).key("filter");
            let accepted = "a filter in libpcap's language (man pcap-filter), such as tcp port 80";
            document.refuse(&at, format!("`{filter}`: {problem}"), accepted)
        })?;
    }
    Ok(())
}

/// Checks that the user exists. A reader of the file may be unable to become that user: the start checks that.
fn user(document: &Document, config: &NodeConfig) -> Checked {
    match config.user.as_deref().map(|name| (name, User::from_name(name))) {
        Some((name, Ok(None))) => {
            let problem = format!("there is no user `{name}` on this machine");
            let accepted = "a user's name, such as nobody (`getent passwd` lists them), or no `user`";
            Err(document.refuse(&YamlPath::root().key("user"), problem, accepted))
        }
        _ => Ok(()),
    }
}
