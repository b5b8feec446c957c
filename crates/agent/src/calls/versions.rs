//! The versions of the files that calls change, kept by their hash so that a person can see what changed.

use std::sync::Arc;

use windlass_store::Store;
use windlass_store::outputs::MAX_CONTENT_BYTES;
use windlass_tools::workspace::{Workspace, content_hash};

/// Keeps the version that a file has now, where it is the one with this hash. A version that cannot be kept is
/// missing in a view of the changes, and nowhere else.
pub(super) async fn keep(store: &Store, workspace: &Arc<Workspace>, path: &str, hash: &str) {
    let (workspace, path, hash) = (Arc::clone(workspace), path.to_owned(), hash.to_owned());
    let kept = store.blocking(move |store| {
        let outputs = store.outputs();
        if outputs.has_content(&hash) {
            return Ok(());
        }
        let Ok(content) = workspace.read_all(&path, MAX_CONTENT_BYTES) else { return Ok(()) };
        if content_hash(&content) != hash {
            return Ok(());
        }
        // Only text can be compared, and none of it may hold our keys.
        match String::from_utf8(content) {
            Ok(text) => {
                outputs.keep_content(&hash, store.secrets().known().redact(&text).as_bytes())
            }
            Err(_) => Ok(()),
        }
    });
    if let Err(error) = kept.await {
        tracing::warn!(%error, "A version of a file could not be kept");
    }
}
