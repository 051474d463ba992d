use miette::Diagnostic;

use super::*;
use crate::fleet::inventory::Destination;

fn read(name: &str, text: &str) -> Inventory {
    parse(Path::new(name), text).unwrap_or_else(|failure| panic!("{failure}"))
}

/// The problem of a text, with what would be accepted.
fn problem(name: &str, text: &str) -> String {
    match parse(Path::new(name), text).expect_err(text) {
        Failure::Located(refusal) => {
            format!("{refusal} | {}", refusal.help().map(|help| help.to_string()).unwrap_or_default())
        }
        other => other.to_string(),
    }
}

fn ssh(host: &Host) -> &Destination {
    host.ssh.as_ref().unwrap_or_else(|| panic!("{host:?}"))
}

const OURS: &str = "\
ssh_config: ssh.conf
command: sudo -n hopwise
hosts:
  - name: n1
  - { name: n2, ssh: pi@10.0.0.2, port: 2222, identity: ~/.ssh/mesh, control: [/run/a.sock], groups: [far] }
  - { name: here, local: true, command: hopwise, place_m: [-20, 450] }
";

#[test]
fn a_file_of_ours_names_hosts_with_ssh_as_the_user_has_it() {
    let Inventory { hosts, remarks } = read("fleet/hosts.yaml", OURS);
    let [n1, n2, here] = &hosts[..] else { panic!("{hosts:?}") };
    assert_eq!((ssh(n1).host.as_str(), ssh(n1).port, n1.command.as_str()), ("n1", None, "sudo -n hopwise"));
    assert_eq!(ssh(n1).config.as_deref(), Some(Path::new("fleet/ssh.conf")));
    assert_eq!((ssh(n2).host.as_str(), ssh(n2).port), ("pi@10.0.0.2", Some(2222)));
    assert_eq!(ssh(n2).identity.as_deref(), Some(Path::new("~/.ssh/mesh")));
    assert_eq!((n2.control.len(), &n2.groups[..]), (1, &["far".to_owned()][..]));
    assert_eq!((here.ssh.as_ref(), here.command.as_str()), (None, "hopwise"));
    assert_eq!((here.place_m, n1.place_m), (Some([-20, 450]), None));
    assert!(remarks.is_empty());
}

#[test]
fn what_makes_no_sense_in_a_file_of_ours_is_refused_where_it_stands() {
    for (text, wanted) in [
        ("hosts: []", "hosts.yaml: it names no host"),
        ("hosts: [{ name: a }, { name: a }]", "1:30: `a` is there already | a name of its own"),
        ("hosts: [{ name: a b }]", "1:17: `a b` is no name of a host: it has a space"),
        (
            "hosts: [{ name: a, ssh: -oProxyCommand=x }]",
            "it begins like an option of ssh | a host as ssh takes",
        ),
        ("hosts: [{ name: a, port: 0 }]", "1:26: port: 0 is out of range | 1 to 65535"),
        ("hosts: [{ name: a, place_m: [1, 10000001] }]", "10000001 is out of range | -10000000 to 10000000"),
        (
            "hosts: [{ name: a, local: true, port: 7 }]",
            "1:33: `port` has no effect: the host is this machine",
        ),
        ("hosts: [{ name: a, adress: b }]", "unknown field `adress`"),
        ("hosts: [{ name: a, command: ' ' }]", "1:29: this is no command | words for the shell"),
        ("hosts: [{ ssh: a }]", "missing field `name`"),
    ] {
        let said = problem("hosts.yaml", text);
        assert!(said.contains(wanted), "{text}: {said}");
    }
}

/// The output of `ansible-inventory --list` for hosts in a group `mesh` within `outdoor`, and hosts without a group.
const LIST: &str = r#"{
    "_meta": { "hostvars": {
        "far": {
            "ansible_become": "true", "ansible_host": "10.0.0.9", "ansible_port": 2022,
            "ansible_ssh_common_args": "-F ssh.conf -o \"ServerAliveInterval=9\"",
            "ansible_ssh_private_key_file": "~/.ssh/a key", "hopwise_address": "10.66.0.9",
            "hopwise_place_m": [-20, 450],
            "hopwise_command": "/opt/hopwise", "hopwise_control": ["/run/a.sock", "/run/b.sock"], "mesh_channel": 6
        },
        "lone": { "ansible_connection": "local" },
        "pi2": { "ansible_become": true, "ansible_user": "pi", "ansible_python_interpreter": "/usr/bin/python3" },
        "pi10": { "ansible_user": "pi", "hopwise_control": "/run/a.sock,/run/b.sock" }
    }, "profile": "inventory_legacy" },
    "all": { "children": ["ungrouped", "outdoor"] },
    "mesh": { "hosts": ["pi2", "pi10", "far"] },
    "outdoor": { "children": ["mesh"] },
    "ungrouped": { "hosts": ["lone", "bare"] }
}"#;

#[test]
fn the_list_of_ansible_gives_hosts_groups_and_their_variables() {
    let Inventory { hosts, remarks } = read("hosts", LIST);
    let names: Vec<_> = hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["pi2", "pi10", "far", "lone", "bare"]);
    let [pi2, pi10, far, lone, bare] = &hosts[..] else { panic!("{hosts:?}") };
    assert_eq!((ssh(pi2).user.as_deref(), pi2.command.as_str()), (Some("pi"), "sudo -n hopwise"));
    assert_eq!((pi10.control.len(), pi10.command.as_str()), (2, "hopwise"));
    assert_eq!((ssh(far).host.as_str(), ssh(far).port), ("10.0.0.9", Some(2022)));
    assert_eq!(ssh(far).identity.as_deref(), Some(Path::new("~/.ssh/a key")));
    assert_eq!(ssh(far).options, ["-F", "ssh.conf", "-o", "ServerAliveInterval=9"]);
    assert_eq!((far.command.as_str(), far.control.len()), ("sudo -n /opt/hopwise", 2));
    assert_eq!(far.address, Some([10, 66, 0, 9].into()));
    assert_eq!((far.place_m, lone.place_m), (Some([-20, 450]), None));
    assert_eq!(far.groups, ["mesh", "outdoor"]);
    assert_eq!((lone.ssh.as_ref(), lone.groups.len()), (None, 0));
    assert_eq!((ssh(bare).host.as_str(), ssh(bare).user.as_deref()), ("bare", None));
    assert_eq!(remarks, ["hosts: without effect here: `ansible_python_interpreter`, `mesh_channel`"]);
}

#[test]
fn a_variable_without_sense_in_the_list_of_ansible_is_refused_with_its_host() {
    for (variables, wanted) in [
        (
            r#""ansible_port": "ssh""#,
            "hosts.json: `ansible_port` of n1: `ssh` is no port: expected 1 to 65535",
        ),
        (r#""ansible_port": 0"#, "`0` is no port"),
        (r#""ansible_host": "-oA""#, "`ansible_host` of n1: `-oA` is no host: it begins like an option"),
        (r#""ansible_user": "{{ me }}""#, "only Ansible reads templates"),
        (r#""ansible_connection": "winrm""#, "hosts by `winrm` are not reached: expected ssh or local"),
        (r#""ansible_become": "perhaps""#, "`perhaps`: expected true or false"),
        (r#""ansible_ssh_common_args": "-vvv""#, "`-vvv` is no option with a value"),
        (r#""ansible_ssh_common_args": "-o""#, "`-o` is no option with a value"),
        (r#""ansible_ssh_common_args": "-o 'a""#, "a quote does not end"),
        (r#""hopwise_address": "n1""#, "`n1` is no address of IPv4"),
        (
            r#""hopwise_place_m": [0, 10000001]"#,
            "[0,10000001] is no place: expected two whole numbers of metres",
        ),
        (r#""hopwise_place_m": "0, 1""#, "is no place"),
    ] {
        let said =
            problem("hosts.json", &format!(r#"{{"_meta": {{"hostvars": {{"n1": {{{variables}}}}}}}}}"#));
        assert!(said.contains(wanted), "{variables}: {said}");
    }
}

#[test]
fn a_list_of_ansible_in_another_shape_is_refused() {
    for (groups, wanted) in [
        ("", "hosts.json: it names no host"),
        (
            r#", "mesh": { "hosts": { "n1": {} } }"#,
            "expected the JSON that `ansible-inventory --list` prints",
        ),
        (r#", "mesh": { "hosts": ["-oA"] }"#, "`-oA` is no host"),
        (r#", "mesh": { "hosts": ["n1\u202e"] }"#, "the name of a host: there is U+202E in it"),
        (r#", "mesh": { "hosts": ["n1"], "vars": { "ansible_user": "pi" } }"#, "the group `mesh` has `vars`"),
    ] {
        let said = problem("hosts.json", &format!(r#"{{"_meta": {{"hostvars": {{}}}}{groups}}}"#));
        assert!(said.contains(wanted), "{groups}: {said}");
    }
    let circle =
        r#"{"_meta": {"hostvars": {}}, "a": {"hosts": ["n1"], "children": ["b"]}, "b": {"children": ["a"]}}"#;
    assert_eq!(read("hosts.json", circle).hosts[0].groups, ["a", "b"]);
}

#[test]
fn forms_that_only_ansible_reads_are_refused_with_the_command_that_makes_its_list() {
    for (file, text) in [
        (
            "hosts",
            "[mesh]\npi[01:03] ansible_user=pi   # three of them\n\n[mesh:vars]\nansible_become=true\n",
        ),
        ("hosts.ini", "n1\n"),
        ("hosts", "n1 ansible_host=10.0.0.1\n"),
        ("pis.yml", "all:\n  hosts:\n    n1: { ansible_host: 10.0.0.1 }\n"),
        ("pis.yml", "---\nmesh:\n  hosts: { n1: }\n"),
        ("hosts", "hosts:\n  hosts: { n1: }\n"),
        ("hosts.json", r#"{"all": {"hosts": {"n1": null}}}"#),
        ("hosts.py", "#!/usr/bin/env python3\n"),
        ("hosts", ""),
    ] {
        let said = problem(file, text);
        let wanted = format!("{file}: this is no inventory of Hopwise: expected a list `hosts` in YAML");
        assert!(said.starts_with(&wanted), "{text}: {said}");
        assert!(said.ends_with(&format!("`ansible-inventory -i {file} --list > inventory.json`")), "{said}");
    }
}

#[test]
fn a_limit_takes_hosts_and_groups_and_names_those_that_there_are() {
    let limited = |names: &[&str]| {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        read("hosts", LIST).limited(&names).map(|hosts| hosts.len())
    };
    let found = [&[][..], &["far"], &["mesh"], &["lone", "far"]].map(|names| limited(names).expect("known"));
    assert_eq!(found, [5, 1, 3, 2]);
    let refused = limited(&["afar"]).expect_err("no such host").to_string();
    assert!(
        refused.contains("no host and no group is called `afar`: expected one of pi2, pi10, far"),
        "{refused}"
    );
}

#[test]
fn a_folder_is_no_inventory() {
    let said = load(&std::env::temp_dir()).expect_err("a folder").to_string();
    assert!(said.contains("a folder: expected a file"), "{said}");
}
