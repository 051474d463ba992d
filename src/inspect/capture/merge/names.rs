//! The interfaces of a merged capture: one name each, and the file from which it came.

use std::borrow::Cow;
use std::path::Path;

use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};

use crate::inspect::capture::source::Interface;

/// Times are in nanoseconds.
const NANOSECONDS: u8 = 9;

/// A name that no other interface has: its own one, or with that of its file.
pub(super) fn unique(interface: &Interface, path: &Path, taken: &[String]) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let own = interface.name.clone().unwrap_or_else(|| stem.clone());
    // The file of an interface often has its name.
    let place = if stem == own { folder.into_owned() } else { stem };
    let longer = [own.clone(), format!("{place}/{own}"), format!("{}/{own}", path.display())];
    let free = longer.into_iter().find(|name| !taken.contains(name));
    free.unwrap_or_else(|| format!("{}/{own}/{}", path.display(), taken.len()))
}

/// The description of an interface in the merged file. `clock` says how its times were changed.
pub(super) fn block(
    interface: &Interface,
    name: &str,
    path: &Path,
    clock: &str,
) -> InterfaceDescriptionBlock<'static> {
    let mut from = format!("from {}", path.display());
    let mut options = vec![InterfaceDescriptionOption::IfName(Cow::Owned(name.to_owned()))];
    for option in &interface.options {
        match option {
            InterfaceDescriptionOption::IfDescription(text) => from = format!("{text}, {from}"),
            InterfaceDescriptionOption::IfName(_)
            | InterfaceDescriptionOption::IfTsResol(_)
            | InterfaceDescriptionOption::IfTsOffset(_)
            | InterfaceDescriptionOption::Unknown(_) => {}
            other => options.push(other.clone()),
        }
    }
    options.push(InterfaceDescriptionOption::IfDescription(Cow::Owned(from)));
    options.push(InterfaceDescriptionOption::IfTsResol(NANOSECONDS));
    options.push(InterfaceDescriptionOption::Comment(Cow::Owned(clock.to_owned())));
    InterfaceDescriptionBlock { linktype: interface.link, snaplen: 0, options }
}
