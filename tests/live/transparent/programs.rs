//! Programs as they are, through a pair of nodes: curl, ssh, git by ssh, and programs that send urgent data.

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use super::{Chain, FIRST, PORT, TOOLS, V4, payload};
use crate::field::text;
use crate::mesh::fleet::make_keys;
use crate::relays::send_urgently;
use crate::world::{PATIENCE, until, within_patience};

#[test]
fn curl_ssh_and_git_are_carried_as_they_are() {
    let tools = [&TOOLS[..], &["curl", "git", "python3", "sha256sum", "ssh", "ssh-keygen", "sshd"]].concat();
    needs!(&tools);
    let chain = Chain::new("programs");
    fs::write(chain.path("data"), payload(3_000_000)).expect("the folder can be written");
    let script = "set -e; cd \"$0\"; git init -q repo; cd repo; cp ../data .; git add data
                  git -c user.name=a -c user.email=a@b commit -qm data";
    let made = Command::new("sh").args(["-c", script, &chain.path("")]).output().expect("sh runs");
    assert!(made.status.success(), "{}", text(&made.stderr));
    let _ssh = make_keys(&chain.folder, std::slice::from_ref(&chain.server));
    let folder = chain.path("");
    let _web = chain.server.start(&["python3", "-m", "http.server", "5001", "--directory", &folder]);
    within_patience(until(|| [22, 5001].iter().all(|port| chain.server.has_listener(*port))));
    let first = FIRST.replace("[5000-5009]", "[22, 5000-5009]");
    let (_last, _first) = (chain.last(), chain.node(&chain.first, 1, &first));
    let script = format!(
        "set -e; cd \"$0\"; sum=$(sha256sum < data)
         [ \"$(curl -sS http://{to}:5001/data | sha256sum)\" = \"$sum\" ]
         [ \"$(ssh -F ssh_config {to} sha256sum < data)\" = \"$sum\" ]
         GIT_SSH_COMMAND='ssh -F ssh_config' git clone -q {to}:\"$PWD\"/repo clone; cmp clone/data data",
        to = V4[1]
    );
    let done = chain.host.output(&["sh", "-c", &script, &folder]);
    assert!(done.status.success(), "{}{}", text(&done.stdout), text(&done.stderr));
    assert_eq!((chain.at_first("caught"), chain.at_first("straight")), (3, 0));
}

#[test]
fn urgent_octets_of_hosts_come_in_their_place_either_way() {
    needs!(&TOOLS);
    let chain = Chain::new("urgent");
    let listener = chain.server.run(|| TcpListener::bind(("::", PORT))).expect("the port is free");
    let pair = || {
        let host = chain.connect(V4[1], PORT).expect("the server is reached");
        let (server, _) = listener.accept().expect("it has come");
        server.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        (host, server)
    };
    // All neighbours are known before a node may wait for them.
    drop(pair());
    let (_last, _first) = (chain.last(), chain.first());
    let (mut host, mut server) = pair();
    send_urgently(&mut host, &mut server);
    send_urgently(&mut server, &mut host);
    assert_eq!((chain.at_first("caught"), chain.at_first("straight")), (1, 0));
}
