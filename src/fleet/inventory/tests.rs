use miette::Diagnostic;

use super::*;
use crate::fleet::host::Destination;

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
  - { name: here, local: true, command: hopwise }
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

const INI: &str = "\
; above all groups
lone ansible_connection=local
[mesh]
pi[01:03] ansible_user=pi   # three of them
far ansible_host=10.0.0.9 ansible_port=2022 ansible_ssh_private_key_file='~/.ssh/a key' mesh_channel=6
near:2200

[outdoor:children]
mesh

[mesh:vars]
ansible_user=mesh
ansible_become=true
hopwise_command=/opt/hopwise

[outdoor:vars]
ansible_user=outdoor
hopwise_control=/run/a.sock,/run/b.sock
hopwise_address=10.66.0.9

[all:vars]
ansible_ssh_common_args='-F ssh.conf -o \"ServerAliveInterval=9\"'
ansible_python_interpreter=/usr/bin/python3
";

#[test]
fn an_inventory_of_ansible_in_ini_gives_hosts_groups_and_their_variables() {
    let Inventory { hosts, remarks } = read("hosts", INI);
    let names: Vec<_> = hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["lone", "pi01", "pi02", "pi03", "far", "near"]);
    assert_eq!((hosts[0].ssh.as_ref(), hosts[0].groups.len()), (None, 0));
    // The host's own variable, then that of the inner group.
    let users = [1, 4].map(|nth| ssh(&hosts[nth]).user.as_deref());
    assert_eq!(users, [Some("pi"), Some("mesh")]);
    let far = &hosts[4];
    assert_eq!((ssh(far).host.as_str(), ssh(far).port), ("10.0.0.9", Some(2022)));
    assert_eq!(ssh(far).identity.as_deref(), Some(Path::new("~/.ssh/a key")));
    assert_eq!(ssh(far).options, ["-F", "ssh.conf", "-o", "ServerAliveInterval=9"]);
    assert_eq!((far.command.as_str(), far.control.len()), ("sudo -n /opt/hopwise", 2));
    assert_eq!(far.address, Some([10, 66, 0, 9].into()));
    assert_eq!(far.groups, ["outdoor", "mesh"]);
    assert_eq!((ssh(&hosts[5]).host.as_str(), ssh(&hosts[5]).port), ("near", Some(2200)));
    let expected = "hosts: without effect here: `ansible_python_interpreter`, `mesh_channel`";
    assert_eq!(remarks, [expected]);
}

#[test]
fn the_same_in_yaml_is_the_same() {
    let text = "\
all:
  hosts:
    lone: { ansible_connection: local }
  children:
    outdoor:
      vars: { ansible_user: outdoor, hopwise_control: [/run/a.sock, /run/b.sock], hopwise_address: 10.66.0.9 }
      children:
        mesh:
          hosts:
            pi[01:03]: { ansible_user: pi }
            far:
              ansible_host: 10.0.0.9
              ansible_port: 2022
              ansible_ssh_private_key_file: ~/.ssh/a key
              mesh_channel: 6
            near: { ansible_port: 2200 }
          vars: { ansible_user: mesh, ansible_become: true, hopwise_command: /opt/hopwise }
  vars:
    ansible_ssh_common_args: -F ssh.conf -o \"ServerAliveInterval=9\"
    ansible_python_interpreter: /usr/bin/python3
";
    assert_eq!(read("hosts", text), read("hosts", INI));
    assert_eq!(read("hosts", &format!("---\n{text}")).hosts.len(), 6);
    assert_eq!(read("hosts.json", r#"{"all": {"hosts": {"n1": null}, "plugin": 1}}"#).remarks.len(), 1);
}

#[test]
fn what_makes_no_sense_in_an_inventory_of_ansible_is_refused_with_its_line() {
    for (text, wanted) in [
        ("", "hosts: it names no host"),
        ("[mesh]\nn1 user", "hosts:2: `user` is no variable: expected NAME=VALUE"),
        ("[mesh]\nn1 a='b", "hosts:2: a quote does not end"),
        ("[mesh:kids]\n", "hosts:1: a section has no kind `kids`: expected children or vars"),
        ("n1\n[a:children]\nb", "hosts:3: no group is called `b`"),
        ("n1\n[a:children]\nb\n[b:children]\na", "is within itself"),
        ("n1 ansible_port=ssh", "hosts:1: `ansible_port` of n1: `ssh` is no port: expected 1 to 65535"),
        ("n1 ansible_host=-oA", "`ansible_host` of n1: `-oA` is no host: it begins like an option"),
        ("n1 ansible_user='{{ me }}'", "only Ansible reads templates"),
        ("n1 ansible_connection=winrm", "hosts by `winrm` are not reached: expected ssh or local"),
        ("n1 ansible_become=perhaps", "`perhaps`: expected true or false"),
        ("n1 ansible_ssh_common_args=-vvv", "`-vvv` is no option with a value"),
        ("n1 ansible_ssh_common_args=-o", "`-o` is no option with a value"),
        ("n[1:x]", "hosts:1: `[1:x]` is no range"),
        ("n[9:1]", "`[9:1]` is no range"),
        ("n[1:9999999]", "is no range"),
        ("n[1", "has no `]`"),
        ("---\n[1, 2]", "hosts:2:1: this is no inventory"),
        ("all:\n  hosts: [n1]", "hosts:2:10: this is no mapping"),
        ("#!/usr/bin/env python3", "hosts: it names no host"),
    ] {
        let said = problem("hosts", text);
        assert!(said.contains(wanted), "{text}: {said}");
    }
    let said = problem("hosts.json", r#"{"_meta": {"hostvars": {}}}"#);
    assert!(said.contains("the list of a program for Ansible | what `ansible-inventory"), "{said}");
}

#[test]
fn ranges_that_would_make_hosts_without_end_are_refused() {
    use super::ini::expanded;
    let many = format!("n{}", "[0:9]".repeat(9));
    assert_eq!(expanded(&many), Err("a name has too many ranges, expected at most 8".to_owned()));
    let product = expanded("n[0:9999][0:9999]").expect_err("it makes too many");
    assert_eq!(product, "`n[0:9999][0:9999]` has too many hosts, expected at most 10000");
    let long = format!("n[{}:1]", "0".repeat(70_000));
    assert!(expanded(&long).expect_err("no width is as large").contains("is no range"));
    assert_eq!(expanded("n[000000001:2]").expect("nine digits"), ["n000000001", "n000000002"]);
    assert!(expanded(&"[".repeat(100_000)).is_err());
}

#[test]
fn ranges_ports_and_addresses_are_told_apart() {
    let names = |text: &str| read("hosts", text).hosts.into_iter().map(|host| host.name).collect::<Vec<_>>();
    assert_eq!(names("n-[a:c].mesh"), ["n-a.mesh", "n-b.mesh", "n-c.mesh"]);
    assert_eq!(names("[8:12:2]x[1:2]"), ["8x1", "8x2", "10x1", "10x2", "12x1", "12x2"]);
    assert_eq!(names("fd00::7"), ["fd00::7"]);
    let with_port = read("hosts", "n[1:2]:2222");
    assert_eq!(with_port.hosts.iter().map(|host| ssh(host).port).collect::<Vec<_>>(), [Some(2222); 2]);
}

#[test]
fn a_limit_takes_hosts_and_groups_and_names_those_that_there_are() {
    let limited = |names: &[&str]| {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        read("hosts", INI).limited(&names).map(|hosts| hosts.len())
    };
    let found = [&[][..], &["far"], &["mesh"], &["lone", "far"]].map(|names| limited(names).expect("known"));
    assert_eq!(found, [6, 1, 5, 2]);
    let refused = limited(&["afar"]).expect_err("no such host").to_string();
    assert!(
        refused.contains("no host and no group is called `afar`: expected one of lone, pi01"),
        "{refused}"
    );
}

#[test]
fn folders_and_programs_are_no_inventories() {
    let folder = std::env::temp_dir();
    let said = load(&folder).expect_err("a folder").to_string();
    assert!(said.contains("a folder: expected a file"), "{said}");
    let program = folder.join(format!("hopwise-inventory-{}", std::process::id()));
    std::fs::write(&program, "#!/bin/sh\necho {}").expect("a file");
    let said = load(&program).expect_err("a program").to_string();
    assert!(said.contains("ansible-inventory --list --yaml"), "{said}");
    std::fs::remove_file(program).expect("it is there");
}
