//! The smallest live world: a namespace, the kernel at one end of a TUN device, the stack at the other.

use std::fs;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use hopwise_agents::StandardAgents;
use hopwise_core::LinkId;
use hopwise_core::endpoint::{ConnectOptions, EndpointConfig};
use hopwise_core::ip::Prefix;
use hopwise_host::{Link, Stack, StackConfig, Tun, TunConfig, TunFast, describe};

use crate::namespace::Namespace;

pub(crate) const OURS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 7, 0, 1));
pub(crate) const KERNELS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 7, 0, 2));
pub(crate) const OURS_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd07, 0, 0, 0, 0, 0, 0, 1));
pub(crate) const KERNELS_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd07, 0, 0, 0, 0, 0, 0, 2));

/// The longest wait for a single thing. A hundred megabytes with a loss of one packet in a hundred take a minute, and
/// two on a machine that is slow or busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);
/// A gigabyte at the rate that a loss of one in a hundred leaves takes minutes, and more on a busy machine.
const PATIENCE_WHEN_LONG: Duration = Duration::from_secs(1800);

#[derive(Debug)]
pub(crate) struct World {
    // First: it is dropped before the namespace goes.
    pub(crate) stack: Stack,
    pub(crate) namespace: Namespace,
}

fn prefix(address: IpAddr) -> Prefix {
    Prefix::new(address, if address.is_ipv4() { 24 } else { 64 }).expect("within the family's bits")
}

pub(crate) fn tun_config() -> TunConfig {
    TunConfig { kernel_addresses: vec![prefix(KERNELS), prefix(KERNELS_V6)], ..TunConfig::new("hop0") }
}

/// The stack's configuration: our addresses on that link, a key, and the defaults.
pub(crate) fn stack_config(link: &dyn Link) -> StackConfig {
    let described = describe(link, LinkId(0), vec![prefix(OURS), prefix(OURS_V6)]);
    let key = hopwise_host::random_key().expect("the kernel has randomness");
    StackConfig::new(EndpointConfig::new(described, key))
}

impl World {
    pub(crate) fn new() -> World {
        World::with(|_| {}, |link| link)
    }

    /// A world whose configuration is changed, and whose link is wrapped.
    pub(crate) fn with(
        change: impl FnOnce(&mut StackConfig),
        wrap: impl FnOnce(Box<dyn Link>) -> Box<dyn Link>,
    ) -> World {
        let namespace = Namespace::new();
        let tun = namespace.run(|| Tun::open(&tun_config())).expect("root may open a TUN device");
        World::over(namespace, wrap(Box::new(tun)), change)
    }

    /// A world over a TUN device that takes bundles.
    pub(crate) fn fast() -> World {
        World::fast_with(|_| {})
    }

    pub(crate) fn fast_with(change: impl FnOnce(&mut StackConfig)) -> World {
        let namespace = Namespace::new();
        let tun = namespace.run(|| TunFast::open(&tun_config())).expect("root may open a TUN device");
        World::over(namespace, Box::new(tun), change)
    }

    pub(crate) fn over(
        namespace: Namespace,
        link: Box<dyn Link>,
        change: impl FnOnce(&mut StackConfig),
    ) -> World {
        let mut config = stack_config(&*link);
        change(&mut config);
        let stack = Stack::start(config, vec![link], Box::new(StandardAgents::default()));
        World { stack: stack.expect("the stack starts"), namespace }
    }

    /// A socket of the kernel's that listens.
    pub(crate) fn kernel_listener(&self, at: IpAddr) -> (TcpListener, SocketAddr) {
        let listener =
            self.namespace.run(|| TcpListener::bind((at, 0))).expect("the address is the kernel's");
        let address = listener.local_addr().expect("it is bound");
        (listener, address)
    }

    /// A connection of the kernel's to the stack.
    pub(crate) fn kernel_connects(&self, to: SocketAddr) -> std::io::Result<TcpStream> {
        self.namespace.run(|| {
            let stream = TcpStream::connect_timeout(&to, PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(stream)
        })
    }

    pub(crate) async fn connect(&self, to: SocketAddr) -> hopwise_host::TcpStream {
        self.stack.connect(to, &ConnectOptions::default()).await.expect("the kernel accepts")
    }
}

/// Returns whether `scripts/test --long` wants tests of over a minute, too.
pub(crate) fn is_long() -> bool {
    std::env::var_os("HOPWISE_LONG").is_some()
}

/// Waits for something to become true that other threads bring about.
pub(crate) async fn until(mut is_true: impl FnMut() -> bool) {
    while !is_true() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Runs a test's future, which may not take longer than a wait in these tests does.
pub(crate) fn within_patience<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime starts");
    let patience = if is_long() { PATIENCE_WHEN_LONG } else { PATIENCE };
    let done = runtime.block_on(async { tokio::time::timeout(patience, work).await });
    done.expect("it takes no longer than the tests' patience")
}

/// Runs cases side by side, six at a time: they wait for most of their time.
pub(crate) fn side_by_side<T: Send>(cases: impl IntoIterator<Item = T>, run: impl Fn(T) + Sync) {
    let cases = Mutex::new(cases.into_iter().collect::<Vec<T>>());
    let next = || cases.lock().unwrap_or_else(PoisonError::into_inner).pop();
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while let Some(case) = next() {
                    run(case);
                }
            });
        }
    });
}

/// The running programs that any thread of this one has started. Not every kernel lists them in a file.
pub(crate) fn children(process: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").expect("it is mounted").filter_map(Result::ok);
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| parent(*id) == Some(process)).collect()
}

/// The second word after the name, which may hold anything.
fn parent(process: u32) -> Option<u32> {
    let facts = fs::read(format!("/proc/{process}/stat")).ok()?;
    let facts = String::from_utf8_lossy(&facts);
    facts.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}
