//! Networks on devices, against the kernel's TCP, in network namespaces that each test makes for itself. A test that
//! cannot run here prints its reason and passes.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use hopwise_host::Namespace;
use hopwise_sockets::Network;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const BYTES: usize = 3_000_000;

/// Returns whether namespaces and devices can be made; otherwise prints the reason as scripts/test counts it.
fn can_run(test: &str) -> bool {
    let reason = if !rustix::process::geteuid().is_root() {
        "needs root, for network namespaces"
    } else if !Path::new("/dev/net/tun").exists() {
        "there is no /dev/net/tun"
    } else if Command::new("ip").arg("-V").output().is_err() {
        "the command ip is not installed"
    } else {
        return true;
    };
    println!("skipped: {test}: {reason}");
    false
}

fn namespace(name: &str) -> Namespace {
    let name = format!("hopsock-{}-{name}", std::process::id());
    Namespace::create(&name).expect("root may make a namespace")
}

fn ip(namespace: &Namespace, arguments: &str) {
    let status = Command::new("ip").args(["-n", namespace.name()]).args(arguments.split(' ')).status();
    assert!(status.expect("ip runs").success(), "ip {arguments}");
}

fn data() -> Vec<u8> {
    (0..BYTES).map(|nth| (nth % 251) as u8).collect()
}

/// The kernel's server returns all that comes, and the kernel's client gets all from a server of ours.
fn carries_both_ways(network: &Network, kernels: &Namespace, kernel: &str, ours: &str) {
    let listener =
        kernels.run(|| TcpListener::bind(kernel)).expect("it runs").expect("the address is its own");
    let server = listener.local_addr().expect("it is bound");
    let echo = thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        let mut all = Vec::new();
        stream.read_to_end(&mut all)?;
        stream.write_all(&all)
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("it starts");
    runtime.block_on(async {
        let mut stream =
            hopwise_sockets::TcpStream::connect(network, server).await.expect("the kernel accepts");
        stream.write_all(&data()).await.expect("the connection holds");
        stream.shutdown().await.expect("the connection holds");
        let mut back = Vec::new();
        stream.read_to_end(&mut back).await.expect("the connection holds");
        assert!(back == data(), "{} bytes came back", back.len());
    });
    echo.join().expect("it ends").expect("the connection holds");

    let listener = runtime.block_on(hopwise_sockets::TcpListener::bind(network, ours)).expect("it is ours");
    let accepting = runtime.spawn(async move {
        let mut stream = listener.accept().await?;
        stream.write_all(&data()).await
    });
    let mut client = kernels.run(|| TcpStream::connect(ours)).expect("it runs").expect("it listens");
    let mut all = Vec::new();
    client.read_to_end(&mut all).expect("the connection holds");
    assert!(all == data(), "{} bytes came", all.len());
    runtime.block_on(accepting).expect("it ends").expect("the connection holds");
}

#[test]
fn a_network_on_a_tun_device_carries_bytes_to_the_kernel_and_back() {
    if !can_run("a_network_on_a_tun_device_carries_bytes_to_the_kernel_and_back") {
        return;
    }
    let world = namespace("tun");
    let open = || Network::tun("10.7.0.1/24").kernel("10.7.0.2/24").name("hop0").open();
    let network = world.run(open).expect("it runs").expect("root may open a TUN device");
    carries_both_ways(&network, &world, "10.7.0.2:0", "10.7.0.1:80");
    assert_eq!(network.close(Duration::from_secs(60)).reset, 0);
    let gone = Command::new("ip").args(["-n", world.name(), "link", "show", "hop0"]).output();
    assert!(!gone.expect("ip runs").status.success(), "the device goes with its network");
}

#[test]
fn a_network_on_an_ethernet_device_carries_bytes_beside_the_kernel() {
    if !can_run("a_network_on_an_ethernet_device_carries_bytes_beside_the_kernel") {
        return;
    }
    let (near, far) = (namespace("near"), namespace("far"));
    ip(&near, &format!("link add eth0 type veth peer name eth0 netns {}", far.name()));
    ip(&near, "link set eth0 up");
    ip(&far, "link set eth0 up");
    ip(&far, "addr add 10.9.0.2/24 dev eth0");
    // A router's address, which the gateway is.
    ip(&far, "addr add 10.8.0.1/24 dev eth0");
    let open = || Network::device("eth0", "10.9.0.7/24").gateway("10.9.0.2").open();
    let network = near.run(open).expect("it runs").expect("root may open a packet socket");
    carries_both_ways(&network, &far, "10.8.0.1:0", "10.9.0.7:80");
    assert_eq!(network.close(Duration::from_secs(60)).reset, 0);
}
