//! A TLS server nobody can trust.

/// Placeholder.
pub struct TlsServer;
