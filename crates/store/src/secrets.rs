//! The keys that nothing in the store may hold. They come with the configuration of each project that is
//! worked in, so the list grows while the process runs.

use std::sync::{Arc, PoisonError, RwLock};

use windlass_core::secrets::Secrets;

use crate::Store;

/// The list of one process.
#[derive(Default)]
pub struct SecretList(RwLock<Arc<Secrets>>);

impl Store {
    /// The keys that nothing here may hold.
    pub fn secrets(&self) -> &SecretList {
        &self.inner.secrets
    }
}

impl SecretList {
    /// The keys that are known now.
    pub fn known(&self) -> Arc<Secrets> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds keys, each with its name.
    pub fn hide<'a>(&self, named: impl IntoIterator<Item = (&'a str, &'a str)>) {
        let mut list = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *list = Arc::new(list.with(named));
    }
}
