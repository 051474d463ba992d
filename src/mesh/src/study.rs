//! `hopwise mesh study`: a trial on a mesh as a folder for a public archive, with its hosts and without their secrets.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use hopwise_lab::{plain, version};
use serde::Serialize;
use serde_json::Value;

use hopwise_daemon::failure::{Failure, json, remark, say};
use hopwise_daemon::signals;
use hopwise_node::fleet::ask::{Asking, HostWords};
use hopwise_node::fleet::inventory::{ChosenHosts, Host};

/// The words that ask a host for its doctor's report; it looks at its links for a second.
const DOCTOR: [&str; 5] = ["doctor", "--json", "--exit-zero", "--look", "1s"];
const WITHIN: Duration = Duration::from_secs(30);
const DOING: &str = "write the study";
const NO_REPORT: &str = "it gave no report";

/// Licences by their names of SPDX, with the place of their texts.
const LICENCES: [(&str, &str); 3] = [
    ("CC-BY-4.0", "https://creativecommons.org/licenses/by/4.0/legalcode"),
    ("CC0-1.0", "https://creativecommons.org/publicdomain/zero/1.0/legalcode"),
    ("ODbL-1.0", "https://opendatacommons.org/licenses/odbl/1-0/"),
];

/// Make a folder of a trial on a mesh that others can publish and read
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  hopwise trial configs/live/mesh4.yaml --world mesh --inventory inventory.yaml --capture --out results/roofs
  hopwise mesh study results/roofs --inventory inventory.yaml --licence CC-BY-4.0 --out roofs-2026
  hopwise report roofs-2026                            # whoever has it reads it like any trial
  hopwise report roofs-2026 --beside roofs-2025        # and holds it against another study

It has all files of the trial, hosts.json (kernel, model, drivers, firmware, places, what `hopwise doctor` finds on each
host now), the recordings, a README and the licence. It has no address for ssh, no user, no key and no control socket.
Commands of `before` and `after` are in trial.json, the name of the machine that ran the trial in costs.jsonl, and
stations have their MAC addresses: look through it before you publish.")]
pub(crate) struct Arguments {
    /// Folder that `hopwise trial` has written
    trial: PathBuf,
    #[command(flatten)]
    chosen: ChosenHosts,
    /// Licence of the data: CC-BY-4.0, CC0-1.0, ODbL-1.0, or a file with its text
    #[arg(long, value_name = "NAME")]
    licence: String,
    /// Recording of links over time, by `hopwise mesh record`; repeatable
    #[arg(long, value_name = "FILE")]
    recording: Vec<PathBuf>,
    /// Folder to make
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// A host without the way to it.
#[derive(Serialize)]
struct StudiedHost<'a> {
    host: &'a str,
    groups: &'a [String],
    address: Option<String>,
    place_m: Option<[i32; 2]>,
    /// Why it gave no report.
    problem: Option<&'static str>,
    /// What `hopwise doctor --json` says there.
    doctor: Option<Value>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Some(hosts) = arguments.chosen.hosts()? else {
        return Err(Failure::refused("--inventory", "expected the file that names the hosts"));
    };
    let licence = licence(&arguments.licence)?;
    let refused = |path: &Path, problem: &str| Err(Failure::refused(path.display().to_string(), problem));
    if !arguments.trial.join("trial.json").is_file() {
        return refused(&arguments.trial, "expected a folder that `hopwise trial` has written");
    }
    let name = arguments.out.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = arguments.out.with_file_name(format!("{name}.part"));
    for path in [&arguments.out, &unfinished] {
        if path.exists() {
            return refused(path, "it is there already: expected a folder to make");
        }
    }
    if is_within(&arguments.trial, &arguments.out) {
        return refused(&arguments.out, "it lies in the folder of the trial: expected another place");
    }
    let names: BTreeSet<_> = arguments.recording.iter().map(|path| path.file_name()).collect();
    if names.len() < arguments.recording.len() {
        return Err(Failure::refused("--recording", "two files have one name: expected a name for each"));
    }
    let studied = studied(&hosts)?;
    let readme = readme(&name, &studied);
    let files = [("hosts.json", json(&studied)? + "\n"), ("LICENCE", licence), ("README.md", readme)];
    write(arguments, &unfinished, &files).map_err(|(path, error)| {
        // This call made it, and a second try begins anew.
        let _ = fs::remove_dir_all(&unfinished);
        Failure::failed(DOING, format_args!("{}: {error}", path.display()))
    })?;
    let silent = studied.iter().filter(|host| host.problem.is_some()).count();
    let of = hosts.len();
    say(&format!("{} has the study; {silent} of {of} hosts gave no answer", arguments.out.display()))
}

/// Returns whether a path that is to be made lies in a folder.
fn is_within(folder: &Path, path: &Path) -> bool {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let whole = |path: &Path| path.canonicalize().ok();
    whole(folder).zip(whole(parent)).is_some_and(|(folder, parent)| parent.starts_with(folder))
}

/// Asks the doctor of each host.
fn studied(hosts: &[Host]) -> Result<Vec<StudiedHost<'_>>, Failure> {
    let (runtime, mut ending) = signals::runtime()?;
    let asking = Asking::new(hosts.to_vec(), WITHIN)?;
    let ask = async |asking: &Asking| asking.each(|_| DOCTOR.map(str::to_owned).into()).await;
    let said = runtime.block_on(asking.answers(ask, &mut ending))?;
    let read = |said: HostWords| serde_json::from_slice(&said.text).map_err(|error| error.to_string());
    let said = said.into_iter().map(|said| said.map_err(|unreached| unreached.0).and_then(read));
    Ok(hosts.iter().zip(said).map(|(host, said)| of_host(host, said)).collect())
}

/// Writes all into a folder of another name, which gets its own at the end.
fn write(
    arguments: &Arguments,
    to: &Path,
    files: &[(&str, String)],
) -> Result<(), (PathBuf, std::io::Error)> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |error| (path, error)
    };
    copy(&arguments.trial, to).map_err(at(to))?;
    for recording in &arguments.recording {
        let folder = to.join("recordings");
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        fs::copy(recording, folder.join(recording.file_name().unwrap_or_default())).map_err(at(recording))?;
    }
    // It may hold the words of ssh, with addresses and users.
    let preflight = to.join("preflight.json");
    if let Ok(mut found) = fs::read(&preflight).and_then(|text| Ok(serde_json::from_slice::<Value>(&text)?)) {
        let hosts = found["hosts"].as_array_mut().into_iter().flatten();
        hosts.filter_map(|host| host.get_mut("problem")).for_each(|problem| *problem = NO_REPORT.into());
        fs::write(&preflight, found.to_string()).map_err(at(&preflight))?;
    }
    for (name, text) in files {
        fs::write(to.join(name), text).map_err(at(to))?;
    }
    fs::rename(to, &arguments.out).map_err(at(&arguments.out))
}

fn of_host(host: &Host, said: Result<Value, String>) -> StudiedHost<'_> {
    let doctor = said.inspect_err(|problem| remark(&format!("{}: {problem}", host.name))).ok();
    // The words of ssh have addresses and users in them.
    let problem = doctor.is_none().then_some(NO_REPORT);
    let address = host.address.map(|address| address.to_string());
    StudiedHost { host: &host.name, groups: &host.groups, address, place_m: host.place_m, problem, doctor }
}

/// The text of a licence by its name, or of a file.
fn licence(named: &str) -> Result<String, Failure> {
    if let Some((name, at)) = LICENCES.iter().find(|(name, _)| *name == named) {
        return Ok(format!(
            "These data are under the licence {name}.\n\nSPDX-License-Identifier: {name}\n\nIts text: {at}\n"
        ));
    }
    fs::read_to_string(named).map_err(|error| {
        let names: Vec<_> = LICENCES.iter().map(|(name, _)| *name).collect();
        Failure::refused("--licence", format!("`{named}`: {error}; expected {} or a file", names.join(", ")))
    })
}

/// Copies files and folders; links and special files stay behind.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, to) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &to)?;
        } else if kind.is_file() && entry.file_name() != "lock" {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

fn readme(name: &str, hosts: &[StudiedHost<'_>]) -> String {
    let mut table = "| host | model | kernel | radios |\n|---|---|---|---|".to_owned();
    for host in hosts {
        let doctor = host.doctor.as_ref().unwrap_or(&Value::Null);
        let known =
            |value: &Value| value.as_str().map_or("-".to_owned(), |text| plain::line(text).replace('|', "/"));
        let radios = doctor["interfaces"].as_array().into_iter().flatten().map(|radio| {
            format!("{}: {} {}", known(&radio["name"]), known(&radio["driver"]), known(&radio["firmware"]))
        });
        let (model, kernel) = (known(&doctor["model"]), known(&doctor["kernel"]));
        let radios = radios.collect::<Vec<_>>().join(", ");
        table += &format!("\n| {} | {model} | {kernel} | {radios} |", plain::line(host.host));
    }
    let facts = [("NAME", &*plain::line(name)), ("VERSION", version::with_commit()), ("HOSTS", &table)];
    facts
        .into_iter()
        .fold(include_str!("study.md").to_owned(), |text, (place, fact)| text.replacen(place, fact, 1))
}
