//! Maps user ids to users of this machine. A user may have more ids than its own, for its containers and its
//! namespaces: /etc/subuid lists them (subuid(5)).
//!
//! The files are read at the start, and again when they have changed. A confined node may be unable to read them again;
//! it then keeps the old content. Names are looked up in /etc/passwd alone: a name service could delay clients.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

#[derive(Clone, Debug)]
pub(super) struct Users(Arc<UserCache>);

#[derive(Debug)]
struct UserCache {
    subordinates: PathBuf,
    names: PathBuf,
    known: Mutex<KnownUser>,
    /// The kernel has given the user of a socket.
    have_been_told: AtomicBool,
}

#[derive(Debug, Default)]
struct KnownUser {
    /// The stamps of both files when they were read.
    stamps: [Option<Stamp>; 2],
    ranges: Vec<IdRange>,
}

/// Changes with a file: device, inode, size, and time of change.
type Stamp = (u64, u64, u64, (i64, i64));

/// Further ids that a user has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct IdRange {
    first: u32,
    count: u32,
    user: u32,
}

impl IdRange {
    fn has(&self, id: u32) -> bool {
        id.checked_sub(self.first).is_some_and(|nth| nth < self.count)
    }
}

impl Users {
    pub(super) fn of_machine() -> Users {
        Users::in_folder(Path::new("/etc"))
    }

    pub(super) fn in_folder(folder: &Path) -> Users {
        let (subordinates, names) = (folder.join("subuid"), folder.join("passwd"));
        let users = Users(Arc::new(UserCache {
            subordinates,
            names,
            known: Mutex::default(),
            have_been_told: AtomicBool::new(false),
        }));
        users.0.read_what_is_new(&mut users.0.known.lock());
        users
    }

    pub(super) fn are_told(&self) {
        self.0.have_been_told.store(true, Ordering::Relaxed);
    }

    /// Returns whether the kernel has given the user of any socket.
    pub(super) fn have_been_told(&self) -> bool {
        self.0.have_been_told.load(Ordering::Relaxed)
    }

    /// The user that has this id, usually the id itself.
    pub(super) fn owner_of(&self, id: u32) -> u32 {
        let mut known = self.0.known.lock();
        self.0.read_what_is_new(&mut known);
        let range = known.ranges.iter().find(|range| range.has(id));
        range.map_or(id, |range| range.user)
    }
}

impl UserCache {
    fn read_what_is_new(&self, known: &mut KnownUser) {
        let stamps =
            [&self.subordinates, &self.names].map(|path| fs::metadata(path).ok().as_ref().map(stamp));
        if stamps == known.stamps {
            return;
        }
        known.stamps = stamps;
        match self.read() {
            Ok(ranges) => known.ranges = ranges,
            Err(error) => tracing::info!(
                %error,
                path = %self.subordinates.display(),
                "cannot be read; the ids that users have besides their own stay as they were"
            ),
        }
    }

    fn read(&self) -> io::Result<Vec<IdRange>> {
        let subordinates = text_of(&self.subordinates)?;
        // Without names the lines with numbers still count.
        let names = text_of(&self.names).unwrap_or_default();
        Ok(ranges(&subordinates, &names))
    }
}

fn stamp(facts: &Metadata) -> Stamp {
    (facts.dev(), facts.ino(), facts.size(), (facts.ctime(), facts.ctime_nsec()))
}

/// A missing file counts as empty.
fn text_of(path: &Path) -> io::Result<String> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error),
    }
}

/// The ranges in /etc/subuid. A user whose name is not in /etc/passwd is identified by the first of its ids.
fn ranges(subordinates: &str, names: &str) -> Vec<IdRange> {
    let mut users: BTreeMap<&str, u32> = names.lines().filter_map(named).collect();
    let read = |line| {
        let (owner, first, count) = range(line)?;
        let user = owner.parse().ok().filter(|_| !users.contains_key(owner));
        let user = user.unwrap_or_else(|| *users.entry(owner).or_insert(first));
        Some(IdRange { first, count, user })
    };
    subordinates.lines().filter_map(read).collect()
}

/// `NAME:PASSWORD:ID:...` (passwd(5)).
fn named(line: &str) -> Option<(&str, u32)> {
    let mut fields = line.split(':');
    let name = fields.next().filter(|name| !name.is_empty())?;
    Some((name, fields.nth(1)?.parse().ok()?))
}

/// `OWNER:FIRST:COUNT`, where the owner is a name or a number.
fn range(line: &str) -> Option<(&str, u32, u32)> {
    let mut fields = line.trim().split(':');
    let owner = fields.next().filter(|owner| !owner.is_empty() && !owner.starts_with('#'))?;
    let (first, count) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    fields.next().is_none().then_some((owner, first, count))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const NAMES: &str = "root:x:0:0::/root:/bin/sh\nalice:x:4711:100::/srv/alice:/bin/sh\n";

    fn folder(test: &str, subordinates: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("hopwise-users-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("passwd"), NAMES).expect("a file");
        fs::write(folder.join("subuid"), subordinates).expect("a file");
        folder
    }

    #[test]
    fn ids_in_a_range_are_their_owners() {
        let folder = folder("ranges", "alice:100000:65536\n4712:200000:2\nalice:300000:1\n");
        let users = Users::in_folder(&folder);
        for (id, user) in [
            (0, 0),
            (4711, 4711),
            (99_999, 99_999),
            (100_000, 4711),
            (165_535, 4711),
            (165_536, 165_536),
            (200_001, 4712),
            (200_002, 200_002),
            (300_000, 4711),
            (u32::MAX, u32::MAX),
        ] {
            assert_eq!(users.owner_of(id), user, "{id}");
        }
        fs::remove_dir_all(folder).expect("it is there");
    }

    #[test]
    fn lines_that_name_no_range_are_passed_over() {
        let lines = "\n# alice:1:9\nalice\nalice:1\nalice::9\n:1:9\nalice:1:9:1\nalice:-1:9\nalice:x:9\n\
                     alice:99999999999:1\nalice:7:0\n  alice:10:1  \r\n";
        let found = [IdRange { first: 7, count: 0, user: 4711 }, IdRange { first: 10, count: 1, user: 4711 }];
        assert_eq!(ranges(lines, NAMES), found);
    }

    #[test]
    fn a_name_that_nobody_here_has_is_one_user() {
        let found = ranges("bob:100:9\neve:200:9\nbob:300:9\n", NAMES);
        assert_eq!(found.iter().map(|range| range.user).collect::<Vec<_>>(), [100, 200, 100]);
        let beyond = ranges("bob:4294967290:4294967295\n", "").first().copied();
        assert_eq!(beyond, Some(IdRange { first: 4_294_967_290, count: u32::MAX, user: 4_294_967_290 }));
    }

    #[test]
    fn what_changes_is_read_again_and_what_cannot_be_read_stays() {
        let folder = folder("change", "alice:100000:10\n");
        let path = folder.join("subuid");
        let users = Users::in_folder(&folder);
        assert_eq!((users.owner_of(100_001), users.owner_of(200_001)), (4711, 200_001));
        // As editors and usermod do it.
        let replace = |text: &str| {
            fs::write(folder.join("subuid+"), text).expect("a file");
            fs::rename(folder.join("subuid+"), &path).expect("a name");
        };
        replace("alice:200000:10\n");
        assert_eq!((users.owner_of(100_001), users.owner_of(200_001)), (100_001, 4711));
        fs::write(folder.join("passwd"), "alice:x:12:\n").expect("a file");
        assert_eq!(users.owner_of(200_001), 12);
        fs::remove_file(&path).expect("it is there");
        fs::create_dir(&path).expect("a name");
        assert_eq!(users.owner_of(200_001), 12, "a folder has no text");
        fs::remove_dir(&path).expect("it is there");
        assert_eq!(users.owner_of(200_001), 200_001, "no file, no range");
        symlink(folder.join("nowhere"), &path).expect("a name");
        assert_eq!(users.owner_of(200_001), 200_001);
        fs::remove_dir_all(folder).expect("it is there");
    }
}
