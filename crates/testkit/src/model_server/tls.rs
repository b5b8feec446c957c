//! A TLS server whose certificate nobody can trust.

use std::{
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use rustls::{
    ServerConfig, ServerConnection,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

/// Accepts every TLS handshake with an invalid certificate. Stops when dropped.
pub struct TlsServer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Impostor(Arc<CertifiedKey>);

impl ResolvesServerCert for Impostor {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

impl TlsServer {
    /// Starts it on a free port.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, config) = (Arc::clone(&stop), config());
        let thread = std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                shake_hands(socket, Arc::clone(&config));
            }
        });
        Self { address, stop, thread: Some(thread) }
    }

    /// Where it listens, as `https://127.0.0.1:PORT`.
    pub fn base(&self) -> String {
        format!("https://{}", self.address)
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the thread, which then sees the flag.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn config() -> Arc<ServerConfig> {
    let provider = Arc::new(ring::default_provider());
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(KEY.to_vec()));
    let key = ring::sign::any_supported_type(&key).expect("the key below is one");
    let nonsense = CertificateDer::from(b"this is not a certificate".to_vec());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the default versions are supported")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Impostor(Arc::new(CertifiedKey::new(vec![nonsense], key)))));
    Arc::new(config)
}

fn shake_hands(mut socket: TcpStream, config: Arc<ServerConfig>) {
    let Ok(mut connection) = ServerConnection::new(config) else { return };
    while connection.is_handshaking() && connection.complete_io(&mut socket).is_ok() {}
}

/// An Ed25519 key that protects nothing: the number zero, in PKCS#8.
const KEY: [u8; 48] = {
    let head = [
        0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04,
        0x20,
    ];
    let mut key = [0; 48];
    let mut at = 0;
    while at < head.len() {
        key[at] = head[at];
        at += 1;
    }
    key
};
