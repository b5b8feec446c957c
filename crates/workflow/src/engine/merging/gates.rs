//! Gates: commands that must succeed on the merged tree before the target moves.

use std::path::Path;

use windlass_core::status::StatusReason;

use super::Merge;
use crate::engine::Trouble;
use crate::engine::children::{Script, ScriptEnd};
use crate::merge::MergeCommit;
use crate::worktree;

impl Merge<'_> {
    /// Runs the gates on the merged tree, in a checkout of its own.
    pub(super) async fn check_gates(&self, computed: &MergeCommit) -> Result<(), Trouble> {
        if self.gates.is_empty() {
            return Ok(());
        }
        let scratch = worktree::scratch_of(&self.from.path);
        let (path, commit) = (scratch.clone(), computed.new.clone());
        let trusted = self.attempt.worktrees().trusted(&self.from).await;
        self.engine()
            .repository
            .with(move |git| worktree::add_scratch(git, &path, &commit, &trusted))
            .await?;
        let checked = self.run_gates(computed, &scratch).await;
        if !matches!(checked, Err(Trouble::Wait(_) | Trouble::Journal(_))) {
            self.engine()
                .repository
                .with(move |git| worktree::remove_scratch(git, &scratch))
                .await?;
        }
        checked
    }

    async fn run_gates(&self, computed: &MergeCommit, scratch: &Path) -> Result<(), Trouble> {
        for gate in self.gates {
            let mut number = 0;
            // A gate changes nothing that is kept, so one that was interrupted runs again. One that failed does too, once:
            // tests that are not steady must not hold up the others in the queue.
            let mut ended = self.run_gate(gate, computed, scratch, &mut number).await?;
            if matches!(ended, ScriptEnd::Exited { code, .. } if code != 0) {
                ended = self.run_gate(gate, computed, scratch, &mut number).await?;
            }
            match ended {
                ScriptEnd::Exited { code: 0, .. } => {}
                ScriptEnd::Exited { code, output } => {
                    return Err(Trouble::Failed(format!(
                        "gate `{gate}`: exit code {code}\n{output}"
                    )));
                }
                ScriptEnd::Failed { error, reason: StatusReason::Timeout, .. } => {
                    return Err(Trouble::TimedOut(format!("gate `{gate}`: {error}")));
                }
                ScriptEnd::Failed { error, output, .. } => {
                    let text = format!("gate `{gate}`: {error}\n{output}");
                    return Err(Trouble::Failed(text.trim_end().to_owned()));
                }
                ScriptEnd::Unknown => {
                    return Err(Trouble::Failed(format!("gate `{gate}` was interrupted")));
                }
            }
        }
        Ok(())
    }

    /// Runs a gate until it has ended. `number` counts the tasks that were made for it.
    async fn run_gate(
        &self,
        gate: &str,
        computed: &MergeCommit,
        scratch: &Path,
        number: &mut u32,
    ) -> Result<ScriptEnd, Trouble> {
        let left = self.engine().deadlines().time_for_more(self.attempt.leaf)?;
        let script = Script {
            key: &format!("{} gate {gate} {} #", self.step, computed.new),
            step: &self.step,
            command: gate,
            directory: scratch,
            workspace: None,
            program: None,
            timeout_seconds: left.map(|left| left.as_secs().max(1)),
        };
        self.engine().children().run_repeatable(script, number, self.attempt.halt).await
    }
}
