//! The keys that nothing in the store may hold. They come with the configuration of each project that is
//! worked in, so the list grows while the process runs.

use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock};

use serde::Serialize;
use serde::de::DeserializeOwned;
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

    /// A text without keys.
    pub(crate) fn clean(&self, text: &str) -> String {
        self.known().redact(text).into_owned()
    }

    /// Bytes without keys.
    pub(crate) fn clean_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.known().stream();
        let mut clean = stream.push(bytes).into_owned();
        clean.extend(stream.finish());
        clean
    }

    /// A value without keys, whatever field they are in.
    pub(crate) fn clean_value<T: Serialize + DeserializeOwned>(&self, value: T) -> T {
        let Ok(json) = serde_json::to_string(&value) else { return value };
        match self.known().redact(&json) {
            Cow::Borrowed(_) => value,
            Cow::Owned(clean) => serde_json::from_str(&clean).unwrap_or(value),
        }
    }
}
