//! What all calls that change a file have in common: the new content is known in full before the call is
//! decided, so a crash in between can be judged by the file alone (§15.6).

use std::sync::Arc;

use windlass_core::id::CallId;
use windlass_core::outcome::{Fact, FileChange, Outcome, Recovery};
use windlass_core::policy::Assessment;
use windlass_core::secrets;

use super::{act, diff, path_error};
use crate::tool::Prepared;
use crate::workspace::{FileVersion, Purpose, Replacement, Workspace, content_hash};

/// One file's new content.
pub(super) struct Rewrite {
    /// The file as it was looked at; it must still be so when it is written.
    pub current: FileVersion,
    pub content: Vec<u8>,
    pub purpose: Purpose,
    pub assessment: Assessment,
    /// What the model reads when it is done.
    pub text: String,
    /// What changes, whole, for people.
    pub diff: Option<String>,
    /// What else follows from it.
    pub fact: Option<Fact>,
}

impl Rewrite {
    /// Ready to be decided and run.
    pub fn prepare(self, workspace: Arc<Workspace>, call: CallId) -> Prepared {
        let Self { current, content, purpose, assessment, text, diff, fact } = self;
        let FileVersion { path, hash: before, .. } = current;
        let after = content_hash(&content);
        let change =
            FileChange { path: path.clone(), before: before.clone(), after: after.clone() };
        let mut outcome = Outcome::ok(text);
        outcome.facts.extend(fact);
        let glance = diff.as_deref().map(diff::glance);
        let changed = Fact::FileChanged { path: path.clone(), hash: after, diff: glance };
        let outcome = outcome.with(changed);
        let recovery = Recovery::Verify { change, outcome: Box::new(outcome.clone()) };
        let act = act(move || {
            let (path, before) = (path.as_str(), before.as_deref());
            let new = Replacement { call, path, before, content: &content, purpose };
            workspace.replace(new).map_or_else(path_error, |()| outcome)
        });
        Prepared { diff, ..Prepared::new(assessment, recovery, act) }
    }
}

/// A mark stands where a key was. Written into a file, it would destroy the key there.
pub(super) fn refuse_marks(text: &str) -> Result<(), Outcome> {
    match secrets::holds_mark(text) {
        true => Err(Outcome::failure(
            "The new text holds a mark such as `[redacted: NAME]`. It stands for a key that you are not \
             shown, so nothing was written. Change only the text around it, with `edit`, or let a command \
             copy the key.",
        )),
        false => Ok(()),
    }
}
