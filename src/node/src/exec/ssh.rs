//! The files that the machine's ssh_config includes. ssh takes them from root or from its user alone, and in the
//! command's user namespace root's files seem to be another's. The command sees copies that are its user's own.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const FILE: &str = "/etc/ssh/ssh_config";
const ROOT: u32 = 0;
/// Bounds the copies, which take some milliseconds each at the most.
const MOST: usize = 256;
/// Others may write such a file, which ssh refuses whoever its owner is.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The texts of root's files by their paths.
pub(super) fn included() -> BTreeMap<PathBuf, Vec<u8>> {
    included_in(Path::new(FILE), ROOT)
}

fn included_in(file: &Path, owner: u32) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut unread) = (BTreeMap::new(), fs::read(file).into_iter().collect::<Vec<_>>());
    // ssh looks here for names that the files of this folder or others include.
    let folder = file.parent().unwrap_or(Path::new("/"));
    while let Some(text) = unread.pop() {
        for path in includes(&String::from_utf8_lossy(&text)).flat_map(|name| files(&folder.join(name))) {
            let Ok(path) = fs::canonicalize(path) else { continue };
            if found.len() < MOST
                && !found.contains_key(&path)
                && is_sound(&path, owner)
                && let Ok(text) = fs::read(&path)
            {
                unread.push(text.clone());
                found.insert(path, text);
            }
        }
    }
    found
}

/// The names and patterns in `Include` lines.
fn includes(text: &str) -> impl Iterator<Item = String> {
    let words = text.lines().filter_map(|line| {
        let (keyword, rest) = line.trim_start().split_once([' ', '\t', '='])?;
        keyword.eq_ignore_ascii_case("include").then_some(rest)
    });
    let names = words.flat_map(|rest| rest.split([' ', '\t', '=', '"']));
    names.filter(|name| !name.is_empty()).map(str::to_owned)
}

/// The file, or all of its folder if its name is a pattern: a copy that ssh does not read does no harm.
fn files(path: &Path) -> Vec<PathBuf> {
    let is_pattern = path.file_name().is_some_and(|name| name.to_string_lossy().contains(['*', '?', '[']));
    match path.parent().filter(|_| is_pattern) {
        Some(folder) => {
            fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
        }
        None => vec![path.to_owned()],
    }
}

fn is_sound(path: &Path, owner: u32) -> bool {
    let is_owners = |facts: fs::Metadata| facts.uid() == owner && facts.mode() & WRITABLE_BY_OTHERS == 0;
    fs::metadata(path).is_ok_and(|facts| facts.is_file() && is_owners(facts))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::process::geteuid;

    use super::*;

    #[test]
    fn files_are_found_by_pattern_by_name_and_from_one_to_the_next_unless_others_may_write_them() {
        let folder = std::env::temp_dir().join(format!("hopwise-ssh-{}", std::process::id()));
        fs::create_dir_all(folder.join("more.d")).expect("it can be made");
        let folder = fs::canonicalize(folder).expect("it is there");
        let write = |name: &str, text: &str| {
            fs::write(folder.join(name), text).expect("it can be written");
            let anybody_reads = fs::Permissions::from_mode(0o644);
            fs::set_permissions(folder.join(name), anybody_reads).expect("it is ours");
        };
        write("ssh_config", "# Include no\n  include more.d/*.conf\nHost *\n  Include=\"named\" lacking\n");
        write("more.d/a.conf", "SendEnv LANG\nInclude deeper\n");
        write("deeper", "include more.d/a.conf\n");
        symlink(folder.join("led_to"), folder.join("more.d/b.conf")).expect("it can be made");
        for name in ["led_to", "named", "no", "more.d/open.conf"] {
            write(name, name);
        }
        let open = fs::Permissions::from_mode(0o664);
        fs::set_permissions(folder.join("more.d/open.conf"), open).expect("it is ours");
        let user = geteuid().as_raw();
        let found = included_in(&folder.join("ssh_config"), user);
        let expected = ["deeper", "led_to", "more.d/a.conf", "named"].map(|name| folder.join(name));
        assert_eq!(found.keys().cloned().collect::<Vec<_>>(), expected);
        assert_eq!(found[&expected[1]], b"led_to");
        assert_eq!(included_in(&folder.join("ssh_config"), user + 1), BTreeMap::new());
        fs::remove_dir_all(folder).expect("it is there");
    }
}
