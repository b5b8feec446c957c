//! What another program will edit is claimed before it may, where it says which file (MS-137, MS-212).

use std::path::{Path, PathBuf};

use windlass_agent::claims::{claim_of, claim_place};
use windlass_core::claim::{Claim, LineRange};
use windlass_core::event::{Event, IntentClaimed, RunnerReported};
use windlass_skills::regular;

use super::Program;
use crate::engine::Error;
use crate::runner::{Edit, RunnerQuestion};

/// The most of a file that is read to find the lines that an edit replaces.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

impl Program<'_> {
    /// Claims what a question would let the program edit; why it may not, where another worker has claimed that.
    pub(super) async fn refused_edit(
        &self,
        asked: &RunnerQuestion,
    ) -> Result<Option<String>, Error> {
        let (engine, leaf) = (self.attempt.engine, self.attempt.leaf);
        if engine.workflow.is_try(&leaf.path) {
            return Ok(None);
        }
        let top = self.journal.read(|task, _| PathBuf::from(task.created.boundary())).await;
        for edit in &asked.edits {
            let Some(claim) = self.claim(edit, &top) else { continue };
            let refused = claim_place(&engine.tree, &top, self.journal.id(), &claim).await?;
            let event = match &refused {
                Some(refusal) => Event::RunnerReported(Box::new(RunnerReported {
                    output: Some(format!("{refusal}\n")),
                    ..RunnerReported::default()
                })),
                None => Event::IntentClaimed(IntentClaimed { claim }),
            };
            self.journal.commit(self.now(), vec![event]).await?;
            if refused.is_some() {
                return Ok(refused);
            }
        }
        Ok(None)
    }

    /// An edit as a claim: the function or type around the text that it replaces, or the whole file.
    fn claim(&self, edit: &Edit, top: &Path) -> Option<Claim> {
        let named = Path::new(&edit.path);
        // A program names files as its sandbox does.
        let inside = named.strip_prefix(&self.seen_at).or_else(|_| named.strip_prefix(top));
        let inside = if named.is_relative() { named } else { inside.ok()? };
        let path = inside.to_str()?.to_owned();
        let whole = Claim { path: path.clone(), lines: None, symbol: None };
        let file = top.join(inside);
        let text = regular::read_text(&file, MAX_FILE_BYTES).ok();
        let (Some(text), Some(old)) = (text, &edit.old) else { return Some(whole) };
        let Some(at) = text.find(old.as_str()).filter(|_| !old.is_empty()) else {
            return Some(whole);
        };
        let line = |end: usize| text[..end].matches('\n').count() as u32 + 1;
        let lines = LineRange { first: line(at), last: line(at + old.trim_end().len()) };
        Some(claim_of(&path, &text, lines))
    }
}
