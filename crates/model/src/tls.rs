//! The certificates that this machine trusts. They are hundreds of files, and every task of a service has a client of
//! its own: they are read once for many of them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls_platform_verifier::Verifier;

/// How long certificates that were read count. One that is added or withdrawn counts from then on.
const KEPT_FOR: Duration = Duration::from_secs(600);

/// The last that were read, and when. They belong to the machine, and so to the process.
static KEPT: Mutex<Option<(Instant, ClientConfig)>> = Mutex::new(None);

/// The settings of connections to servers whose certificates this machine trusts; `None` where there are no certificates.
/// The client that is made without them says why.
pub(crate) fn kept() -> Option<ClientConfig> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((read, config)) = kept.as_ref()
        && read.elapsed() < KEPT_FOR
    {
        return Some(config.clone());
    }
    let config = read()?;
    *kept = Some((Instant::now(), config.clone()));
    Some(config)
}

fn read() -> Option<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Verifier::new(Arc::clone(&provider)).ok()?;
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().ok()?;
    // The name only says that rustls has another verifier; this one is the system's.
    let config = config.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = config.with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Some(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_read_once_for_many_clients() {
        // A machine may have none.
        let (Some(first), Some(second)) = (kept(), kept()) else { return };
        assert!(Arc::ptr_eq(first.crypto_provider(), second.crypto_provider()));
        assert_eq!(first.alpn_protocols, [b"h2".to_vec(), b"http/1.1".to_vec()]);
    }
}
