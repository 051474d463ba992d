//! The process of qemu: its arguments, its end with ours, and the streams between us and the guest's ports.

use std::fs::File;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::{fs, io, thread};

use clap::ValueEnum;
use ratatui::crossterm::terminal;

use super::guest::SharedFolder;
use super::image::Image;

/// The kind of processor that a guest gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Accelerator {
    /// KVM, and emulation where a guest does not come up with it
    #[default]
    Auto,
    Kvm,
    Tcg,
    /// Emulated, by a clock that counts instructions: never late, but not in real time
    Counted,
}

/// One way to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BootWay {
    Kvm,
    Tcg,
    Counted,
}

impl Accelerator {
    /// The ways to try, in order. Qemu's emulation crashed once in some hundred starts, before the guest was up.
    pub(super) fn ways(self, has_kvm: bool) -> Vec<BootWay> {
        match self {
            Accelerator::Kvm => vec![BootWay::Kvm],
            Accelerator::Auto if has_kvm => vec![BootWay::Kvm, BootWay::Tcg, BootWay::Tcg, BootWay::Tcg],
            Accelerator::Auto | Accelerator::Tcg => vec![BootWay::Tcg; 3],
            Accelerator::Counted => vec![BootWay::Counted; 3],
        }
    }
}

impl BootWay {
    fn accelerator(self) -> &'static [&'static str] {
        match self {
            BootWay::Kvm => &["-accel", "kvm", "-cpu", "host"],
            BootWay::Tcg => &["-accel", "tcg,thread=multi,tb-size=512", "-cpu", "max,la57=off"],
            // An instruction takes a nanosecond, and no time passes while the processor has nothing to do. Each round
            // of a string instruction is one: without ERMS and FSRM copies go by words or vectors, and not by bytes.
            BootWay::Counted => &[
                "-accel",
                "tcg,thread=single,tb-size=512",
                "-cpu",
                "max,la57=off,erms=off,fsrm=off",
                "-icount",
                "shift=0,sleep=off",
            ],
        }
    }
}

/// The user may open the kernel's device.
pub(super) fn has_kvm() -> bool {
    File::options().read(true).write(true).open("/dev/kvm").is_ok()
}

/// A port of the guest, with the socket that leads to it.
pub(super) const PORTS: [&str; 4] = ["control", "in", "out", "err"];
/// The guest's terminal.
pub(super) const TERMINAL: &str = "terminal";

#[derive(Debug)]
pub(super) struct GuestTerminal<'a> {
    pub(super) image: &'a Image,
    pub(super) shares: &'a [SharedFolder],
    pub(super) memory_mib: u32,
    /// The sockets of the ports are there, and files about this run.
    pub(super) folder: &'a Path,
}

impl GuestTerminal<'_> {
    /// Starts it. The kernel ends it with the thread that calls this: nothing is left of a guest whose command was
    /// killed.
    pub(super) fn start(&self, way: BootWay) -> io::Result<Child> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).args(self.image.qemu()).args(self.arguments(way));
        command.env("QEMU_MODULE_DIR", self.image.folder.join("qemu/usr/lib/x86_64-linux-gnu/qemu"));
        let errors = File::create(self.folder.join("qemu.log"))?;
        command.stdin(Stdio::null()).stdout(errors.try_clone()?).stderr(errors);
        command.spawn()
    }

    fn arguments(&self, way: BootWay) -> Vec<String> {
        let mut words: Vec<String> = ["-M", "q35,usb=off,vmport=off"].map(str::to_owned).into();
        words.extend(way.accelerator().iter().map(|word| (*word).to_owned()));
        let fixed = "-smp 1 -nodefaults -no-user-config -display none -vga none -nic none -no-reboot";
        words.extend(fixed.split(' ').map(str::to_owned));
        let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
        add("-m", self.memory_mib.to_string());
        add("-kernel", text(&self.image.folder.join("vmlinux")));
        add("-initrd", text(&self.image.folder.join("first.cpio")));
        // No entropy is gathered, no errata are worked around and no memory is hardened for a guest that lives for
        // minutes. On a busy machine the kernel would find that its timer does not work.
        let boots = "console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off nokaslr random.trust_cpu=on \
                     rcupdate.rcu_expedited=1 no_timer_check init_on_alloc=0 hardened_usercopy=off psi=0";
        add("-append", boots.to_owned());
        add("-serial", format!("file:{}", escaped(&self.folder.join("console.log"))));
        add("-device", "virtio-serial-pci".to_owned());
        let socket = |name: &str| {
            format!("socket,id={name},path={}", escaped(&self.folder.join(format!("{name}.socket"))))
        };
        add("-chardev", socket(TERMINAL));
        add("-device", format!("virtconsole,chardev={TERMINAL}"));
        for port in PORTS {
            add("-chardev", socket(port));
            add("-device", format!("virtserialport,chardev={port},name={port}"));
        }
        let disk = escaped(&self.image.folder.join("root.img"));
        add("-drive", format!("if=none,id=root,format=raw,readonly=on,file={disk}"));
        add("-device", "virtio-blk-pci,drive=root".to_owned());
        for SharedFolder { tag, folder, is_read_only } in self.shares {
            let how = if *is_read_only { ",readonly=on" } else { "" };
            let folder = escaped(folder);
            add("-fsdev", format!("local,id={tag},path={folder},security_model=none,multidevs=remap{how}"));
            add("-device", format!("virtio-9p-pci,fsdev={tag},mount_tag={tag}"));
        }
        words
    }
}

/// The last lines of the guest's console and of qemu, for a failure.
pub(super) fn last_words(folder: &Path) -> String {
    let tail = |name: &str| {
        let text = fs::read(folder.join(name)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines: Vec<_> = text.lines().rev().take(12).map(str::to_owned).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    };
    format!("{}\n{}", tail("qemu.log"), tail("console.log")).trim().to_owned()
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A path in a list of qemu, where a comma ends a value unless it is doubled.
fn escaped(path: &Path) -> String {
    text(path).replace(',', ",,")
}

/// A terminal that hands over each key, until this is dropped.
#[derive(Debug)]
pub(super) struct RawTerminal(());

impl RawTerminal {
    /// `None` where the input is no terminal.
    pub(super) fn begin() -> Option<RawTerminal> {
        use std::io::IsTerminal;
        let is_one = io::stdin().is_terminal() && terminal::enable_raw_mode().is_ok();
        is_one.then_some(RawTerminal(()))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _ = terminal::disable_raw_mode();
    }
}

/// Rows and columns of the terminal, if there is one.
pub(super) fn size() -> (u16, u16) {
    terminal::size().map_or((24, 80), |(columns, rows)| (rows, columns))
}

/// Carries our input to a port until either ends. The thread may wait for input for as long as this process lives.
pub(super) fn carry_in(port: UnixStream) -> io::Result<()> {
    let carry = move || {
        let (mut input, mut buffer) = (io::stdin().lock(), [0; 4 << 10]);
        loop {
            match input.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(bytes) if (&port).write_all(&buffer[..bytes]).is_err() => break,
                Ok(_) => {}
            }
        }
        // The program in the guest reads the end of its input.
        let _ = port.shutdown(Shutdown::Write);
    };
    thread::Builder::new().name("input".into()).spawn(carry).map(drop)
}

/// Carries a port's output to one of ours until the guest ends. It reads on when nobody reads ours any more.
pub(super) fn carry_out(
    mut port: UnixStream,
    mut out: impl Write + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let carry = move || {
        let (mut buffer, mut is_read) = ([0; 16 << 10], true);
        while let Ok(bytes) = port.read(&mut buffer) {
            if bytes == 0 {
                break;
            }
            is_read = is_read && out.write_all(&buffer[..bytes]).and_then(|()| out.flush()).is_ok();
        }
    };
    thread::Builder::new().name("output".into()).spawn(carry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emulation_is_tried_again_and_follows_kvm_where_either_will_do() {
        assert_eq!(Accelerator::Auto.ways(true), [BootWay::Kvm, BootWay::Tcg, BootWay::Tcg, BootWay::Tcg]);
        assert_eq!(Accelerator::Auto.ways(false), [BootWay::Tcg; 3]);
        assert_eq!(
            (Accelerator::Kvm.ways(false), Accelerator::Tcg.ways(true)),
            (vec![BootWay::Kvm], vec![BootWay::Tcg; 3])
        );
        assert_eq!(Accelerator::Counted.ways(true), [BootWay::Counted; 3]);
    }

    #[test]
    fn a_comma_in_a_path_is_doubled() {
        assert_eq!(escaped(Path::new("/a,b/c")), "/a,,b/c");
    }
}
