//! The proxy for programs that run outside of a sandbox with one: on a port of this machine's loopback, with the same
//! rules.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{copy_bidirectional, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{Gate, converse};
use crate::network::Egress;
use windlass_helper::protocol::MAX_CHUNK_BYTES;

/// Connections at once; a browser has a few for each host.
const MAX_CONNECTIONS: usize = 256;
/// The pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A proxy that listens until it is dropped. Other users of this machine can find it, and reach by it what they reach
/// anyway: public addresses.
#[derive(Debug)]
pub struct LoopbackProxy {
    address: SocketAddr,
    _jobs: JoinSet<()>,
}

impl LoopbackProxy {
    /// Listens on a free port.
    pub async fn listen(egress: Egress) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let mut jobs = JoinSet::new();
        jobs.spawn(accept(listener, Arc::new(egress)));
        Ok(Self { address, _jobs: jobs })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn accept(listener: TcpListener, egress: Arc<Egress>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if connections.len() < MAX_CONNECTIONS => {
                    connections.spawn(carry(stream, Arc::clone(&egress)));
                }
                // One too many is closed.
                Ok(_) => {}
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn carry(mut stream: TcpStream, egress: Arc<Egress>) {
    let (mut near, far) = duplex(MAX_CHUNK_BYTES);
    // Refusals are noted with commands of a sandbox; here the observer alone is called for them.
    let (requests, _) = mpsc::unbounded_channel();
    let gate = Gate { egress: &egress, requests: &requests };
    // Both sides got their answer, or are gone.
    let _ = tokio::join!(converse(far, &gate), copy_bidirectional(&mut stream, &mut near));
}
