//! How the init comes into the sandbox: root, network, limits, and what it needs to serve.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::stdio::{stdin, stdout};
use windlass_helper::protocol::{Isolation, NetworkMode, Ready, Setup};

use super::Init;
use crate::cgroup::Cgroup;
use crate::confine::{self, CgroupLimits, Confinement};
use crate::output::{self, WRITE_SIGNAL};
use crate::root::OwnerMap;
use crate::sys::{self, Signals};
use crate::{Failure, root};

/// What is read of windlass's orders at once.
const READ_BYTES: usize = 64 * 1024;

/// The shells that scripts are run by, the best first.
const SHELLS: [&str; 4] = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/sh"];

impl<'a> Init<'a> {
    pub(super) fn enter(
        setup: &'a Setup,
        owners: Option<&OwnerMap>,
        mut cgroup: Cgroup,
        bounds: OwnedFd,
    ) -> Result<(Self, Ready), Failure> {
        let fail = |stage: &'static str| move |error: io::Error| (stage.to_owned(), error);
        if setup.isolation == Isolation::Namespaces {
            enter_namespaces(setup, owners)?;
        }
        root::write_files(setup);
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        confine::hide_memory(setup);
        let listener = listen(setup).map_err(fail("open the proxy"))?;
        let proxy_port = listener
            .as_ref()
            .and_then(|listener| listener.local_addr().ok())
            .map_or(0, |address| address.port());
        // The kernel moves us into the group while we do all of the above, which needs no bounds.
        cgroup.bounded = CgroupLimits::receive(&bounds).map_err(fail("read the bounds"))?;
        let confinement = confinement(setup, cgroup.bounded, proxy_port)?;
        // SIGIO is what the kernel sends when its queue of write signals is full.
        let signals = Signals::open(&[libc::SIGCHLD, WRITE_SIGNAL, libc::SIGIO])
            .map_err(fail("open signals"))?;
        let null =
            File::options().read(true).write(true).open("/dev/null").map_err(fail("open null"))?;
        sys::set_nonblocking(stdin()).map_err(fail("prepare"))?;
        sys::set_nonblocking(stdout()).map_err(fail("prepare"))?;
        let shell = SHELLS.into_iter().find(|path| Path::new(path).exists()).unwrap_or("/bin/sh");
        let ready = Ready {
            proxy_port,
            landlock: confinement.as_ref().map_or(0, |confinement| confinement.landlock),
            memory_bounded: cgroup.bounded.memory,
            processes_bounded: cgroup.bounded.processes,
            filtered: confinement.is_some(),
            runs_as_root: confinement.is_some() && setup.uid == 0,
            shell: shell.to_owned(),
        };
        let init = Self {
            setup,
            cgroup,
            confinement,
            shell: shell.to_owned(),
            writes_are_signalled: output::writes_are_signalled(&signals),
            signals,
            null,
            open_files: confine::raise_open_files(),
            listener,
            received: Vec::new(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            out: Vec::new(),
            sent: 0,
            commands: BTreeMap::new(),
            idle: None,
            connections: BTreeMap::new(),
            next_connection: 1,
            lease_end: None,
            is_over: false,
        };
        Ok((init, ready))
    }
}

fn enter_namespaces(setup: &Setup, owners: Option<&OwnerMap>) -> Result<(), Failure> {
    if !rustix::process::geteuid().is_root() {
        root::map_user(setup.uid, setup.gid)?;
    }
    root::enter(setup, owners)?;
    // A host without a name of its own works as well.
    let _ = rustix::system::sethostname(b"windlass");
    if setup.network != NetworkMode::Everything {
        root::raise_loopback().map_err(|error| ("raise loopback".to_owned(), error))?;
    }
    Ok(())
}

/// The proxy's port on loopback, where commands reach the network through it alone.
fn listen(setup: &Setup) -> io::Result<Option<TcpListener>> {
    match (setup.isolation, setup.network) {
        (Isolation::Host, _) | (_, NetworkMode::Nothing | NetworkMode::Everything) => Ok(None),
        (
            Isolation::Namespaces | Isolation::Landlock | Isolation::Container,
            NetworkMode::Proxy,
        ) => {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            listener.set_nonblocking(true)?;
            Ok(Some(listener))
        }
    }
}

fn confinement(
    setup: &Setup,
    bounded: CgroupLimits,
    proxy_port: u16,
) -> Result<Option<Confinement>, Failure> {
    if setup.isolation == Isolation::Host {
        return Ok(None);
    }
    confine::drop_bounding_set();
    let confinement = Confinement::prepare(setup, bounded, proxy_port)
        .map_err(|error| ("prepare the confinement".to_owned(), error))?;
    if setup.isolation == Isolation::Landlock && confinement.landlock == 0 {
        return Err(("landlock".to_owned(), io::Error::from_raw_os_error(libc::ENOSYS)));
    }
    Ok(Some(confinement))
}
