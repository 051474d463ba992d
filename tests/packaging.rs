//! The Debian package of the command: what is in it, whose it is, and that it is the same each time.
//!
//! `scripts/check-packages` installs packages, which takes a root of Debian's; here they are only unpacked.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

const HOPWISE: &str = env!("CARGO_BIN_EXE_hopwise");
const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder of this test's own.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the build folder can be written");
    folder
}

/// Returns whether packages can be made here; otherwise prints why not.
fn can_package(test: &str) -> bool {
    let lacking = ["dpkg-deb", "readelf", "gzip"]
        .into_iter()
        .find(|command| Command::new(command).arg("--version").output().is_err());
    if let Some(command) = lacking {
        println!("skipped: {test}: there is no {command} (packages dpkg, binutils and gzip)");
    }
    lacking.is_none()
}

fn script(words: &[&str]) -> Output {
    Command::new(Path::new(ROOT).join("scripts/package"))
        .args(words)
        .env_remove("HOPWISE")
        .output()
        .expect("bash is there")
}

/// Makes a package of the command that was built with the tests.
fn package(out: &Path) -> PathBuf {
    let out = out.to_str().expect("a path in UTF-8");
    let done = script(&["--binary", HOPWISE, "--version", "9.8", "--out", out, "--quick"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    PathBuf::from(text(&done.stdout).trim_end())
}

fn dpkg_deb(words: &[&str], package: &Path) -> String {
    let done = Command::new("dpkg-deb").args(words).arg(package).output().expect("dpkg-deb is there");
    assert!(done.status.success(), "{}", text(&done.stderr));
    text(&done.stdout)
}

/// The files of a package as `dpkg-deb` lists them: the rights, the owner and the path of each.
fn files(package: &Path) -> Vec<(String, String, String)> {
    let list = dpkg_deb(&["--contents"], package);
    let parts = |line: &str| {
        let mut words = line.split_whitespace();
        let (rights, owner) = (words.next()?.to_owned(), words.next()?.to_owned());
        Some((rights, owner, words.nth(3)?.trim_start_matches('.').to_owned()))
    };
    list.lines().filter_map(parts).filter(|(rights, ..)| !rights.starts_with('d')).collect()
}

/// The commands of the book, which has the help of each, and the command itself.
fn pages() -> BTreeSet<String> {
    let book = fs::read_to_string(Path::new(ROOT).join("docs/commands.md")).expect("the page");
    let commands = book.lines().filter_map(|line| line.strip_prefix("## hopwise "));
    let names = commands.map(|command| format!("hopwise-{}", command.replace(' ', "-")));
    names.chain(["hopwise".to_owned()]).collect()
}

/// Files besides the command, its units and its manual.
const ALSO: [&str; 9] = [
    "/usr/share/bash-completion/completions/hopwise",
    "/usr/share/zsh/vendor-completions/_hopwise",
    "/usr/share/fish/vendor_completions.d/hopwise.fish",
    "/usr/share/doc/hopwise/copyright",
    "/usr/share/doc/hopwise/changelog.gz",
    "/usr/share/doc/hopwise/CHANGELOG.md.gz",
    "/usr/share/doc/hopwise/licences-of-crates.gz",
    "/usr/share/doc/hopwise/examples/chain.yaml",
    "/usr/share/wireshark/profiles/Hopwise/preferences",
];

#[test]
fn a_package_has_the_command_with_all_that_belongs_to_it() {
    let test = "a_package_has_the_command_with_all_that_belongs_to_it";
    if !can_package(test) {
        return;
    }
    let package = package(&folder(test));
    let files = files(&package);
    let under = |place: &str| -> BTreeSet<String> {
        files.iter().filter_map(|(.., path)| path.strip_prefix(place)).map(str::to_owned).collect()
    };
    assert_eq!(under("/usr/bin/"), BTreeSet::from(["hopwise".to_owned()]));
    let units =
        ["hopwise@.service", "hopwise-route@.service", "hopwise-proxy@.service", "hopwise-mesh.service"];
    let units = units.map(str::to_owned);
    assert_eq!(under("/usr/lib/systemd/system/"), BTreeSet::from(units));
    assert_eq!(under("/usr/lib/sysusers.d/"), BTreeSet::from(["hopwise.conf".to_owned()]));
    let manual: BTreeSet<_> = pages().iter().map(|name| format!("{name}.1.gz")).collect();
    assert_eq!(under("/usr/share/man/man1/"), manual);
    for path in ALSO {
        assert!(files.iter().any(|(.., found)| found == path), "{path} is missing");
    }
    let wireshark = |name: &str| files.iter().filter(|(.., path)| path.ends_with(name)).count();
    assert_eq!((wireshark("/wireshark/plugins/hopwise.lua"), wireshark("/extcap/hopwise-extcap")), (1, 1));
    for (rights, owner, path) in &files {
        assert_eq!(owner, "root/root", "{path}");
        let is_program = path == "/usr/bin/hopwise" || path.ends_with("-extcap");
        assert_eq!(rights, if is_program { "-rwxr-xr-x" } else { "-rw-r--r--" }, "{path}");
    }
}

#[test]
fn what_an_administrator_may_change_is_kept_and_units_find_it() {
    let test = "what_an_administrator_may_change_is_kept_and_units_find_it";
    if !can_package(test) {
        return;
    }
    let folder = folder(test);
    let package = package(&folder);
    let (control, tree) = (folder.join("control"), folder.join("tree"));
    for (word, place) in [("--control", &control), ("--extract", &tree)] {
        let done = Command::new("dpkg-deb").arg(word).args([&package, place]).status();
        assert!(done.expect("dpkg-deb is there").success());
    }
    let kept = fs::read_to_string(control.join("conffiles")).expect("it is listed");
    let names = ["mesh", "node", "proxy", "route"].map(|name| format!("/etc/hopwise/{name}.yaml\n"));
    assert_eq!(kept, names.concat());
    for name in ["preinst", "postinst", "prerm", "postrm"] {
        let script = control.join(name);
        if script.exists() {
            assert!(Command::new("sh").arg("-n").arg(&script).status().expect("a shell").success(), "{name}");
        }
    }
    let depends = dpkg_deb(&["--field"], &package);
    assert!(depends.contains("libc6 (>= 2."), "{depends}");
    assert_eq!(depends.contains("libpcap0.8"), cfg!(feature = "pcap"), "{depends}");
    assert_unit_of_interfaces(&tree);
    for (unit, kind) in [("hopwise@", "node"), ("hopwise-route@", "route"), ("hopwise-proxy@", "proxy")] {
        let unit = tree.join(format!("usr/lib/systemd/system/{unit}.service"));
        let unit = fs::read_to_string(unit).expect("it is in the package");
        assert!(
            unit.contains(&format!("ExecStart=/usr/bin/hopwise {kind} /etc/hopwise/%i.yaml\n")),
            "{unit}"
        );
        // `hopwise@node` removes the socket that a killed daemon left.
        let config = fs::read_to_string(tree.join(format!("etc/hopwise/{kind}.yaml"))).expect("it is there");
        assert!(config.contains(&format!("control: /run/hopwise/{kind}.sock")), "{config}");
    }
}

/// It is that of the Ansible role, with the defaults of its variables.
fn assert_unit_of_interfaces(tree: &Path) {
    let unit = fs::read_to_string(tree.join("usr/lib/systemd/system/hopwise-mesh.service"));
    let unit = unit.expect("it is in the package");
    for line in [
        "ConditionPathExists=/etc/hopwise/mesh.yaml\n",
        "ExecStart=/usr/bin/hopwise mesh up --no-confirm --state /run/hopwise-mesh /etc/hopwise/mesh.yaml\n",
        "ExecStop=/usr/bin/hopwise mesh down --state /run/hopwise-mesh\n",
        "Restart=on-failure\n",
    ] {
        assert!(unit.contains(line), "{line}: {unit}");
    }
    assert!(!unit.contains('{'), "{unit}");
}

#[test]
fn the_same_command_gives_the_same_package() {
    let test = "the_same_command_gives_the_same_package";
    if !can_package(test) {
        return;
    }
    let folder = folder(test);
    let [one, other] = ["one", "other"].map(|name| package(&folder.join(name)));
    assert!(fs::read(one).expect("a package") == fs::read(other).expect("a package"), "their bytes differ");
    fs::remove_dir_all(folder).expect("it is ours");
}

#[test]
fn words_that_are_not_understood_are_refused_with_what_would_be() {
    if !can_package("words_that_are_not_understood_are_refused_with_what_would_be") {
        return;
    }
    for (words, wanted) in [
        (&["sparc"][..], "sparc: expected amd64, arm64, armhf, --out"),
        (&["--version"], "--version: expected a value"),
        (&["--version", "new"], "--version: new: expected a version of Debian's"),
        (&["--binary", "/no/such", "amd64"], "/no/such: expected a command that may be executed"),
        (&["--binary", HOPWISE, "amd64", "arm64"], "expected one architecture, not 2"),
    ] {
        let done = script(words);
        assert_eq!(done.status.code(), Some(2), "{words:?}");
        assert!(text(&done.stderr).contains(wanted), "{words:?}: {}", text(&done.stderr));
    }
}
