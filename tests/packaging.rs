//! The packages of the command, for Debian and for routers: their content and owners, and that each build makes equal
//! bytes.
//!
//! `scripts/check-packages` installs packages, which takes a root of Debian's; here they are only unpacked.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use sha2::{Digest, Sha256};

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
const ALSO: [&str; 11] = [
    "/usr/share/bash-completion/completions/hopwise",
    "/usr/share/zsh/vendor-completions/_hopwise",
    "/usr/share/fish/vendor_completions.d/hopwise.fish",
    "/usr/share/doc/hopwise/copyright",
    "/usr/share/doc/hopwise/changelog.gz",
    "/usr/share/doc/hopwise/CHANGELOG.md.gz",
    "/usr/share/doc/hopwise/licences-of-crates.gz",
    "/usr/share/doc/hopwise/hopwise.cdx.json.gz",
    "/usr/share/lintian/overrides/hopwise",
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

#[test]
fn a_package_lists_its_crates_with_their_sums_and_what_each_needs() {
    let test = "a_package_lists_its_crates_with_their_sums_and_what_each_needs";
    if !can_package(test) {
        return;
    }
    let folder = folder(test);
    let tree = folder.join("tree");
    let done = Command::new("dpkg-deb").arg("--extract").args([&package(&folder), &tree]).status();
    assert!(done.expect("dpkg-deb is there").success());
    let list = tree.join("usr/share/doc/hopwise/hopwise.cdx.json.gz");
    let list = Command::new("gzip").arg("-dc").arg(list).output().expect("gzip is there").stdout;
    let list: serde_json::Value = serde_json::from_slice(&list).expect("JSON");
    assert_eq!((&list["bomFormat"], &list["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
    assert_eq!(list["metadata"]["component"]["description"], "hopwise 9.8");
    let crates = list["components"].as_array().expect("a list");
    let scope_of = |name: &str| {
        let named = crates.iter().find(|one| one["name"] == name).expect("it is a dependency");
        named["scope"].as_str().expect("a text").to_owned()
    };
    // `clap_derive` is a macro, which runs in the build alone.
    assert_eq!([scope_of("clap"), scope_of("clap_derive")], ["required", "excluded"]);
    let lock = fs::read_to_string(Path::new(ROOT).join("Cargo.lock")).expect("it is there");
    for one in
        crates.iter().filter(|one| !one["name"].as_str().is_some_and(|name| name.starts_with("hopwise")))
    {
        let (name, version, sum) = (&one["name"], &one["version"], &one["hashes"][0]["content"]);
        let source = "registry+https://github.com/rust-lang/crates.io-index";
        let entry = format!("name = {name}\nversion = {version}\nsource = \"{source}\"\nchecksum = {sum}\n");
        assert!(lock.contains(&entry), "{entry}");
    }
    let nodes = list["dependencies"].as_array().expect("a list");
    let known: BTreeSet<_> = nodes.iter().filter_map(|node| node["ref"].as_str()).collect();
    assert_eq!(known.len(), crates.len() + 1);
    let needed = nodes.iter().flat_map(|node| node["dependsOn"].as_array().expect("a list"));
    assert!(needed.filter_map(serde_json::Value::as_str).all(|crate_| known.contains(crate_)));
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

#[test]
fn a_repository_is_signed_by_a_key_that_the_user_names_and_by_no_other() {
    let test = "a_repository_is_signed_by_a_key_that_the_user_names_and_by_no_other";
    if !can_package(test) {
        return;
    }
    if Command::new("gpg").arg("--version").output().is_err() {
        return println!("skipped: {test}: there is no gpg (package gnupg)");
    }
    let folder = folder(test);
    let (out, empty) = (folder.join("apt"), folder.join("empty"));
    fs::create_dir(&empty).expect("the folder is ours");
    let empty = empty.to_str().expect("a path in UTF-8");
    for (words, wanted) in [
        (&[][..], "expected --key ID, the key of gpg that signs"),
        (&["--key", "nobody@example.org"], "gpg has no such secret key. It has: none."),
        (&["--key"], "--key: expected a value"),
        (&["--key", "a", "--new-key", "b"], "--new-key: expected no --key beside it"),
        (&["--packages", "/no/such"], "/no/such: expected a folder with packages (.deb)"),
        (&["--packages", empty, "arm64"], "--packages: expected no architecture beside it"),
        (&["sparc"], "sparc: expected amd64, arm64, armhf, --key"),
    ] {
        let mut command = Command::new(Path::new(ROOT).join("scripts/release"));
        command.arg("--out").arg(&out).args(words).env("GNUPGHOME", &folder);
        let done = command.output().expect("bash is there");
        assert_eq!(done.status.code(), Some(2), "{words:?}");
        assert!(text(&done.stderr).contains(wanted), "{words:?}: {}", text(&done.stderr));
    }
    assert!(!out.exists(), "nothing is written");
    let _ = fs::remove_dir_all(folder);
}

/// What a router's libraries for UCI and procd do, as far as the script of the package asks.
const ROUTER: &str = r#"
values() {
    awk -v section="$1" -v option="$2" '$1 == "config" { gsub(/\047/, "", $3); at = $3; next }
        at == section && ($1 == "option" || $1 == "list") && $2 == option {
            sub(/^[ \t]*[a-z]+ [a-z0-9_]+ \047/, ""); sub(/\047$/, ""); print }' "$CONFIG"
}
config_load() { :; }
config_get() { eval "$1=\$(values \"\$2\" \"\$3\"); [ -n \"\$$1\" ] || $1=\${4:-}"; }
config_get_bool() { config_get "$@"; }
config_foreach() {
    local section function="$1" kind="$2"
    shift 2
    for section in $(awk -v kind="$kind" '
        $1 == "config" && $2 == kind { gsub(/\047/, "", $3); print $3 }' "$CONFIG"); do
        "$function" "$section" "$@"
    done
}
config_list_foreach() {
    local entry
    values "$1" "$2" > "$CONFIG.$2"
    while IFS= read -r entry; do "$3" "$entry"; done < "$CONFIG.$2"
}
procd_open_instance() { echo "instance $1"; }
procd_set_param() { case "$1" in command | file) echo "$@" ;; esac; }
procd_close_instance() { :; }
logger() { echo "logged ${6}"; }
"#;

/// What the script of OpenWrt's package starts with this configuration of UCI, whose files are in the folder.
fn starts_on_a_router(folder: &Path, config: &str) -> String {
    fs::write(folder.join("router.sh"), ROUTER).expect("the folder is ours");
    fs::write(folder.join("hopwise"), config).expect("the folder is ours");
    let run = format!(
        ". {}/router.sh; . {ROOT}/deploy/openwrt/hopwise.init; CONFIG={0}/hopwise PROGRAM={HOPWISE} FOLDER={0}/run; \
         start_service",
        folder.display()
    );
    // OpenWrt's shell, if it is there.
    let busybox = Command::new("busybox").arg("true").status().is_ok_and(|status| status.success());
    let shell: &[&str] = if busybox { &["busybox", "sh"] } else { &["sh"] };
    let done = Command::new(shell[0]).args(&shell[1..]).args(["-euc", &run]).output().expect("it starts");
    assert!(done.status.success(), "{}", text(&done.stderr));
    text(&done.stdout)
}

#[test]
fn a_router_starts_the_daemons_that_its_configuration_turns_on_and_no_other() {
    let folder = folder("a_router_starts_the_daemons_that_its_configuration_turns_on_and_no_other");
    let config =
        fs::read_to_string(Path::new(ROOT).join("deploy/openwrt/hopwise.config")).expect("it is there");
    assert_eq!(starts_on_a_router(&folder, &config), "", "all are off at first");
    // With all options that are comments at first, but for the files.
    let all = config.lines().filter(|line| !line.contains("option file") && !line.contains("option keys"));
    let all = all.map(|line| line.strip_prefix("#\t").unwrap_or(line).replace("enabled '0'", "enabled '1'"));
    let all = all.collect::<Vec<_>>().join("\n");
    let run = folder.join("run");
    let run = run.display();
    let started = format!(
        "instance node\ncommand {HOPWISE} node {run}/node.yaml\nfile {run}/node.yaml\n\
         instance thin\ncommand {HOPWISE} thin phy0-mesh0 --receiver delayed:d=8 --control {run}/thin.sock\n\
         instance route\ncommand {HOPWISE} route {run}/route.yaml\nfile {run}/route.yaml\n"
    );
    assert_eq!(starts_on_a_router(&folder, &all), started);
    let node = fs::read_to_string(folder.join("run/node.yaml")).expect("it was written");
    for line in [
        "node: { name: \"node\", address: [\"10.7.0.2/24\"] }\n",
        "  - { listen: \"127.0.0.1:8080\", to: \"mesh:10.7.2.2:80\" }\n",
        "  - { receiver: \"delayed:d=3\", sender: [\"cubic\"] }\n",
    ] {
        assert!(node.contains(line), "{node}");
    }
    let broken = all.replace("10.7.0.2/24", "a\"\\b");
    let said = starts_on_a_router(&folder, &broken);
    assert!(
        said.starts_with("logged ") && !said.contains("instance node") && said.contains("instance route"),
        "{said}"
    );
    let node = fs::read_to_string(folder.join("run/node.yaml")).expect("it was written");
    assert!(node.contains(r#"address: ["a\"\\b"]"#), "{node}");
    let _ = fs::remove_dir_all(folder);
}

/// Makes both packages for a router, of a command that is a script: for opkg and for apk.
fn packages_for_a_router(folder: &Path, out: &str) -> [PathBuf; 2] {
    let command = folder.join("command");
    fs::write(&command, "#!/bin/sh\n").expect("the folder is ours");
    fs::set_permissions(&command, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let mut script = Command::new(Path::new(ROOT).join("scripts/openwrt"));
    script.arg("aarch64_cortex-a53").arg("--binary").arg(&command).arg("--out").arg(folder.join(out));
    let done = script.output().expect("bash is there");
    assert!(done.status.success(), "{}", text(&done.stderr));
    let packages: Vec<_> = text(&done.stdout).lines().map(PathBuf::from).collect();
    packages.try_into().expect("two packages")
}

#[test]
fn a_package_for_routers_has_opkgs_form_and_equal_bytes_each_time() {
    let folder = folder("a_package_for_routers_has_opkgs_form_and_equal_bytes_each_time");
    let ([one, _], [other, _]) =
        (packages_for_a_router(&folder, "one"), packages_for_a_router(&folder, "other"));
    assert!(fs::read(&one).expect("a package") == fs::read(other).expect("a package"), "their bytes differ");
    let listed = |file: &Path| {
        let done = Command::new("tar").arg("tzf").arg(file).output().expect("tar is there");
        text(&done.stdout).lines().filter(|line| !line.ends_with('/')).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(listed(&one), "./control.tar.gz ./data.tar.gz ./debian-binary");
    let done =
        Command::new("tar").arg("xzf").arg(&one).arg("-C").arg(&folder).status().expect("tar is there");
    assert!(done.success());
    assert_eq!(listed(&folder.join("control.tar.gz")), "./conffiles ./control ./postinst ./prerm");
    let files = "./etc/config/hopwise ./etc/init.d/hopwise ./lib/upgrade/keep.d/hopwise ./usr/bin/hopwise";
    assert_eq!(listed(&folder.join("data.tar.gz")), files);
    for (words, wanted) in [
        (&["mips_24kc"][..], "mips_24kc: expected x86_64, aarch64_… or arm_cortex-a…"),
        (&[], "expected an architecture of OpenWrt's, such as aarch64_cortex-a53"),
    ] {
        let done = Command::new(Path::new(ROOT).join("scripts/openwrt"))
            .args(words)
            .output()
            .expect("bash is there");
        assert_eq!(done.status.code(), Some(2), "{words:?}");
        assert!(text(&done.stderr).contains(wanted), "{words:?}: {}", text(&done.stderr));
    }
    let _ = fs::remove_dir_all(folder);
}

/// The database of a package of apk's version 3, as apk-v3(5) has it: each value is a word with a type in its upper
/// four bits, and a number or a place below them.
struct Database(Vec<u8>);

impl Database {
    fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }

    fn place(value: u32) -> usize {
        (value & 0x0fff_ffff) as usize
    }

    /// An object or an array: the first word is the number of all.
    fn row(&self, value: u32) -> Vec<u32> {
        let at = Self::place(value);
        assert!([0xd, 0xe].contains(&(value >> 28)) && at.is_multiple_of(4), "{value:x}");
        (0..self.word(at) as usize).map(|slot| self.word(at + 4 * slot)).collect()
    }

    fn bytes(&self, value: u32) -> &[u8] {
        let at = Self::place(value);
        let (head, len) = match value >> 28 {
            0 => return &[],
            0x8 => (1, usize::from(self.0[at])),
            0x9 => (2, usize::from(u16::from_le_bytes([self.0[at], self.0[at + 1]]))),
            kind => panic!("{kind:x}: expected bytes, of fewer than 65,536"),
        };
        assert!(at.is_multiple_of(head), "{value:x}");
        &self.0[at + head..at + head + len]
    }

    fn text(&self, value: u32) -> String {
        text(self.bytes(value))
    }

    fn number(&self, value: u32) -> u32 {
        match value >> 28 {
            1 => value & 0x0fff_ffff,
            2 => self.word(Self::place(value)),
            kind => panic!("{kind:x}: expected a number"),
        }
    }
}

/// The blocks of a package for apk, each with its kind.
fn blocks_for_apk(package: &Path) -> Vec<(u32, Vec<u8>)> {
    let inflate = "import sys, zlib; data = open(sys.argv[1], 'rb').read(); assert data[:4] == b'ADBd'; \
                   sys.stdout.buffer.write(zlib.decompress(data[4:], -15))";
    let done = Command::new("python3").args(["-c", inflate]).arg(package).output().expect("python3 is there");
    let mut rest = done.stdout.strip_prefix(b"ADB.pckg").expect("a package");
    let mut blocks = Vec::new();
    while let Some((word, _)) = rest.split_first_chunk() {
        let word = u32::from_le_bytes(*word);
        let len = (word & 0x3fff_ffff) as usize;
        blocks.push((word >> 30, rest[4..len].to_vec()));
        rest = &rest[len.next_multiple_of(8)..];
    }
    blocks
}

/// `NUMBER.NUMBER…[_SUFFIX NUMBER]…[~HEX]-rNUMBER`, with numbers that 31 bits hold.
fn is_a_version_of_apks(version: &str) -> bool {
    let is_number = |text: &str| text.parse::<u32>().is_ok_and(|number| number < 1 << 31);
    let (version, revision) = version.rsplit_once("-r").expect("a revision");
    let (version, hash) = version.split_once('~').unwrap_or((version, ""));
    let mut parts = version.split('_');
    parts.next().is_some_and(|numbers| numbers.split('.').all(is_number))
        && parts.all(|part| part.strip_prefix("pre").or(part.strip_prefix('p')).is_some_and(is_number))
        && hash.chars().all(|digit| matches!(digit, '0'..='9' | 'a'..='f'))
        && is_number(revision)
}

#[test]
fn a_package_for_routers_has_apks_form_and_the_digest_of_each_file() {
    let folder = folder("a_package_for_routers_has_apks_form_and_the_digest_of_each_file");
    let ([_, one], [_, other]) =
        (packages_for_a_router(&folder, "one"), packages_for_a_router(&folder, "other"));
    assert!(fs::read(&one).expect("a package") == fs::read(other).expect("a package"), "their bytes differ");
    let mut blocks = blocks_for_apk(&one).into_iter();
    let (kind, database) = blocks.next().expect("a database");
    let database = Database(database);
    let package = database.row(database.word(4));
    let about = database.row(package[1]);
    let fields = [1, 5, 6].map(|field| database.text(about[field]));
    assert_eq!(
        (kind, fields),
        (0, ["hopwise-node", "aarch64_cortex-a53", "MIT OR Apache-2.0"].map(str::to_owned))
    );
    assert!(is_a_version_of_apks(&database.text(about[2])), "{}", database.text(about[2]));
    let needs = database.row(about[15]);
    let needs: Vec<_> = needs[1..].iter().map(|need| database.text(database.row(*need)[1])).collect();
    assert_eq!(needs, ["kmod-tun", "libc"]);
    let scripts = database.row(package[3]);
    for (script, called) in [(3, "default_postinst"), (4, "default_prerm"), (7, "default_postinst")] {
        assert!(database.text(scripts[script]).contains(&format!("\n{called}\n")), "{script}");
    }
    assert_unique_id(&database, about[3]);
    let (mut files, mut sizes) = (Vec::new(), 0);
    for (path, entry) in (1_u32..).zip(&database.row(package[2])[1..]) {
        let entry = database.row(*entry);
        let listed = entry.get(3).map_or(vec![0], |listed| database.row(*listed));
        for (number, file) in (1_u32..).zip(&listed[1..]) {
            let file = database.row(*file);
            let rights = database.row(file[2]);
            assert_eq!([2, 3].map(|owner| database.text(rights[owner])), ["root", "root"]);
            let (kind, data) = blocks.next().expect("a block for each file");
            let (place, data) = data.split_at(8);
            assert_eq!((kind, place), (2, &*[path.to_le_bytes(), number.to_le_bytes()].concat()));
            assert_eq!(database.bytes(file[5]), &Sha256::digest(data)[..]);
            assert_eq!(database.number(file[3]) as usize, data.len());
            sizes += data.len();
            let name = [entry[1], file[1]].map(|name| database.text(name)).join("/");
            files.push(format!("{name} {:o}", database.number(rights[1])));
        }
    }
    assert!(blocks.next().is_none());
    assert_eq!(database.number(about[12]) as usize, sizes);
    let of_apk = ["conffiles", "conffiles_static", "list", "rusers"];
    let of_apk = of_apk.map(|kind| format!("lib/apk/packages/hopwise-node.{kind} 644"));
    let [first, last] = [
        ["etc/config/hopwise 600", "etc/init.d/hopwise 755"],
        ["lib/upgrade/keep.d/hopwise 644", "usr/bin/hopwise 755"],
    ]
    .map(|files| files.map(str::to_owned));
    assert_eq!(files, [&first[..], &of_apk, &last].concat());
    let _ = fs::remove_dir_all(folder);
}

/// It is the digest of the database in which it is still zero.
fn assert_unique_id(database: &Database, value: u32) {
    let id = database.bytes(value);
    let at = Database::place(value) + 1;
    let mut empty = database.0.clone();
    empty[at..at + id.len()].fill(0);
    assert_eq!((id.len(), id), (20, &Sha256::digest(&empty)[..20]));
}
