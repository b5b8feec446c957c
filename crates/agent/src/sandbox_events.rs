//! Events of the sandbox: journaled, reported to the agent, and the end of the task if it cannot continue without a
//! sandbox.

use windlass_core::ending::Ending;
use windlass_core::error::{ErrorDetails, ErrorType, Remedy};
use windlass_core::event::{Event, SandboxLost, SandboxStarted};
use windlass_sandbox::{FatalCause, SandboxEvent};
use windlass_store::Level;

use crate::journal::Journal;
use crate::notices::Notices;
use crate::{Error, prompt};

impl Notices {
    /// Journals what became of the sandbox since it was last asked; how the task ends, if it has to (ES-381,
    /// ES-385).
    pub(crate) async fn report_sandbox(&self, task: &mut Journal) -> Result<Option<Ending>, Error> {
        let news = self.world.shell.sandbox().drain_events();
        if news.is_empty() {
            return Ok(None);
        }
        let failed = news.iter().rev().find_map(|one| match one {
            SandboxEvent::Failed { cause, why } => Some(Ending::Failed(details(*cause, why))),
            SandboxEvent::Started { .. } | SandboxEvent::Lost { .. } => None,
        });
        let events = news.into_iter().map(|one| self.event(one)).collect();
        task.commit(events, Level::Written).await?;
        Ok(failed)
    }

    fn event(&self, news: SandboxEvent) -> Event {
        match news {
            SandboxEvent::Started { what, container: container_id } => {
                let kind = self.world.shell.sandbox().isolation().kind.to_string();
                Event::SandboxStarted(SandboxStarted { kind, isolation: what, container_id })
            }
            SandboxEvent::Lost { why } => {
                let message = prompt::sandbox_lost(&why);
                Event::SandboxLost(SandboxLost { reason: why, message })
            }
            SandboxEvent::Failed { why, .. } => {
                Event::SandboxLost(SandboxLost { reason: why, message: String::new() })
            }
        }
    }
}

fn details(cause: FatalCause, why: &str) -> ErrorDetails {
    match cause {
        FatalCause::Memory => ErrorDetails::new(ErrorType::SandboxOutOfMemory, why)
            .with_remedy(Remedy::RaiseSandboxMemory),
        FatalCause::Engine => {
            let message = format!("sandbox unavailable: {why}");
            ErrorDetails::new(ErrorType::SandboxUnavailable, message)
                .with_remedy(Remedy::CheckSandbox)
        }
    }
}
