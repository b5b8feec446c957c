//! What a person picks from: the tries of a parallel step that are of use, with what each came to.

use windlass_core::event::StepEnded;

use super::steps::Attempt;
use super::{Engine, Error, Trouble};
use crate::definition::Work;
use crate::state::{is_below, name_of};

/// The tries of a step.
#[derive(Default)]
pub(super) struct Tries {
    /// Those that may be taken, by name.
    pub usable: Vec<String>,
    /// How each of them ended, what it cost and what its checks said, one a line.
    pub context: String,
}

/// How far one try came.
struct Try {
    name: String,
    /// Why it is of no use.
    why_unusable: Option<String>,
    /// In the order in which they ended.
    ended: Vec<StepEnded>,
    /// What it cost; `None` where its runner did not say.
    cost_usd: Option<f64>,
}

impl Attempt<'_> {
    /// The tries of the parallel step of this name.
    pub(super) async fn tries(self, step: &str) -> Result<Tries, Trouble> {
        let engine = self.engine;
        let mut tries = Tries::default();
        let mut lines = Vec::new();
        for one in engine.tries_of(step).await? {
            lines.push(one.words());
            tries.usable.extend(one.why_unusable.is_none().then_some(one.name));
        }
        tries.context = lines.join("\n");
        Ok(tries)
    }
}

impl Engine<'_> {
    async fn tries_of(&self, step: &str) -> Result<Vec<Try>, Error> {
        let steps = self.workflow.all_steps();
        let around = steps.into_iter().find(|one| one.name == step);
        let Some(Work::Parallel(work)) = around.map(|step| &step.work) else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for inner in &work.steps {
            let (one, tasks) = self
                .journal
                .read(|_, run| {
                    let path = match run.last_of(step) {
                        Some(around) => format!("{}.{}", around.step, inner.name),
                        None => inner.name.clone(),
                    };
                    let started = run.steps().filter(|(at, _)| is_below(at, &path) || **at == path);
                    let started = started.filter_map(|(_, step)| step.started.as_ref());
                    let is_agent = |kind: &str| kind == "agent";
                    let tasks: Vec<_> = started
                        .filter(|started| is_agent(&started.kind))
                        .filter_map(|started| started.task)
                        .collect();
                    let one = Try {
                        name: inner.name.clone(),
                        why_unusable: run.why_unusable(&path),
                        ended: run.ends_below(&path).cloned().collect(),
                        cost_usd: None,
                    };
                    (one, tasks)
                })
                .await;
            let mut cost_usd = None;
            for task in tasks {
                let state = windlass_agent::History::read(self.tree.store(), task)?.into_state();
                if state.spending.is_priced {
                    *cost_usd.get_or_insert(0.0) += state.spending.cost_usd;
                }
            }
            found.push(Try { cost_usd, ..one });
        }
        Ok(found)
    }
}

impl Try {
    fn words(&self) -> String {
        let status = match &self.why_unusable {
            None => "succeeded".to_owned(),
            Some(why) => format!("failed: {why}"),
        };
        let cost = match self.cost_usd {
            Some(cost) => format!("${cost:.2}"),
            None => "cost unknown".to_owned(),
        };
        let checks = self.ended.iter().filter(|ended| ended.output.get("exit_code").is_some());
        let checks = checks.map(|ended| format!("; {} {}", name_of(&ended.step), ended.result));
        format!("{}: {status}; {cost}{}", self.name, checks.collect::<String>())
    }
}
