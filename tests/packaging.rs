//! The Debian package of the command: its content and owners, and that each build makes equal bytes.
//!
//! `scripts/check-packages` installs packages, which takes a root of Debian's; here they are only unpacked.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
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

/// Returns whether packages can be made here. If not, it prints why.
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

/// Files in addition to the command, its units and its manual.
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
    let units = ["hopwise@", "hopwise-route@", "hopwise-proxy@", "hopwise-thin@", "hopwise-mesh"];
    let units = units.map(|unit| format!("{unit}.service"));
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

/// It is the Ansible role's, with the defaults of its variables.
fn assert_unit_of_interfaces(tree: &Path) {
    let unit = fs::read_to_string(tree.join("usr/lib/systemd/system/hopwise-mesh.service"));
    let unit = unit.expect("it is in the package");
    for line in [
        "ConditionPathExists=/etc/hopwise/mesh.yaml\n",
        "ExecStart=/usr/bin/hopwise mesh up --no-confirm --state /run/hopwise-mesh /etc/hopwise/mesh.yaml\n",
        "ExecStop=/usr/bin/hopwise mesh down --state /run/hopwise-mesh\n",
        "Restart=on-failure\n",
        "ReadWritePaths=/run /tmp -/run/hopwise-mesh\n",
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

/// Programs that install or build nothing, before the machine's programs.
fn without_tools(folder: &Path) -> String {
    for name in ["apt-get", "cargo", "rustup"] {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\necho {name} >> {}/called\nexit 1\n", folder.display()))
            .expect("the folder can be written");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    }
    format!("{}:{}", folder.display(), env::var("PATH").expect("there is one"))
}

#[test]
fn a_machine_without_libpcap_hears_so_before_a_build_for_another_one() {
    let test = "a_machine_without_libpcap_hears_so_before_a_build_for_another_one";
    if !can_package(test) {
        return;
    }
    let header = Path::new("/usr/include/pcap");
    let may_hide = Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|status| status.success());
    if !may_hide && header.exists() {
        return println!("skipped: {test}: needs root, to hide {}", header.display());
    }
    let folder = folder(test);
    let other = if cfg!(target_arch = "aarch64") { "amd64" } else { "arm64" };
    let hidden = "[ ! -e /usr/include/pcap ] || mount -t tmpfs none /usr/include/pcap; exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", hidden, "sh"]).arg(Path::new(ROOT).join("scripts/package")).arg(other);
    let done = command.env_remove("HOPWISE").env("PATH", without_tools(&folder)).output().expect("it starts");
    let said = text(&done.stdout) + &text(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("install it (on Debian: apt-get install libpcap-dev)"), "{said}");
    let called = fs::read_to_string(folder.join("called")).expect("apt-get was tried");
    assert!(called.lines().all(|name| name == "apt-get"), "{called}");
    fs::remove_dir_all(folder).expect("it is ours");
}

/// They run on the building machine alone, for less time than the optimiser would take.
#[test]
fn macros_and_build_scripts_of_others_are_not_optimised_for_a_package() {
    let test = "macros_and_build_scripts_of_others_are_not_optimised_for_a_package";
    let folder = folder(test);
    let mut command = Command::new(env!("CARGO"));
    command.args([
        "build",
        "--locked",
        "--offline",
        "-p",
        "hopwise",
        "--bin",
        "hopwise",
        "--profile",
        "dist",
    ]);
    // With a target, units without a platform are those of the building machine.
    let target = format!("{}-unknown-linux-gnu", env::consts::ARCH);
    command.args(["--target", &target, "--unit-graph", "-Z", "unstable-options"]);
    command.current_dir(ROOT).env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_DIR", &folder);
    let done = command.output().expect("it built this test");
    let graph: serde_json::Value = match serde_json::from_slice(&done.stdout) {
        Ok(graph) => graph,
        Err(_) => return println!("skipped: {test}: this cargo tells no units: {}", text(&done.stderr)),
    };
    let level =
        |unit: &serde_json::Value| unit["profile"]["opt_level"].as_str().unwrap_or_default().to_owned();
    let is_ours = |unit: &serde_json::Value| unit["pkg_id"].as_str().is_some_and(|id| id.contains(ROOT));
    let units = graph["units"].as_array().expect("a list").iter();
    let (here, there): (Vec<_>, Vec<_>) = units.partition(|unit| unit["platform"].is_null());
    assert!(here.iter().filter(|unit| !is_ours(unit)).all(|unit| level(unit) == "0") && here.len() > 30);
    let built: Vec<_> = there.into_iter().filter(|unit| unit["mode"] == "build").collect();
    assert!(
        built.iter().all(|unit| level(unit) == if is_ours(unit) { "3" } else { "s" }) && built.len() > 100
    );
    let _ = fs::remove_dir_all(folder);
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
