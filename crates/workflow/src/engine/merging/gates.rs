//! Gates: commands that must succeed on the merged tree before the target moves.

use std::path::Path;

use super::Merge;
use crate::engine::Trouble;
use crate::engine::children::{Script, ScriptEnd};
use crate::merge::Computed;
use crate::worktree;

impl Merge<'_> {
    /// Runs the gates on the merged tree, in a checkout of its own.
    pub(super) async fn check_gates(&self, computed: &Computed) -> Result<(), Trouble> {
        if self.gates.is_empty() {
            return Ok(());
        }
        let scratch = worktree::scratch_of(&self.from.path);
        let (path, commit) = (scratch.clone(), computed.new.clone());
        self.engine()
            .repository
            .with(move |git| worktree::add_scratch(git, &path, &commit))
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

    async fn run_gates(&self, computed: &Computed, scratch: &Path) -> Result<(), Trouble> {
        for gate in self.gates {
            let (mut ended, mut has_failed) = (ScriptEnd::Unknown, false);
            // A gate changes nothing that is kept, so one that was interrupted runs again. One that failed does too, once:
            // tests that are not steady must not hold up the others in the queue.
            for attempt in 1..=4 {
                let key = format!("{} gate {gate} {} #{attempt}", self.step, computed.new);
                let script = Script {
                    key: &key,
                    step: &self.step,
                    command: gate,
                    directory: scratch,
                    workspace: None,
                    program: None,
                    timeout_seconds: self
                        .attempt
                        .leaf
                        .step
                        .timeout
                        .map(|timeout| timeout.as_secs()),
                };
                ended = self.engine().children().run_script(script, self.attempt.halt).await?;
                match ended {
                    ScriptEnd::Unknown => {}
                    ScriptEnd::Exited { code, .. } if code != 0 && !has_failed => has_failed = true,
                    ScriptEnd::Exited { .. } | ScriptEnd::Failed { .. } => break,
                }
            }
            match ended {
                ScriptEnd::Exited { code: 0, .. } => {}
                ScriptEnd::Exited { code, output } => {
                    return Err(Trouble::Failed(format!(
                        "gate `{gate}`: exit code {code}\n{output}"
                    )));
                }
                ScriptEnd::Failed { error, output, .. } => {
                    return Err(Trouble::Failed(format!("gate `{gate}`: {error}\n{output}")));
                }
                ScriptEnd::Unknown => {
                    return Err(Trouble::Failed(format!("gate `{gate}` was interrupted")));
                }
            }
        }
        Ok(())
    }
}
