//! Which models a task uses: its own, the one that summarizes, and another that it may switch to.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_agent::{ModelParts, ModelSource, ModelWish, OpenModel, Summarizer};
use windlass_core::axes::ModelMode;
use windlass_core::command::ExecutionConfig;
use windlass_core::error::{ErrorDetails, ErrorType, Remedy};
use windlass_core::state::TaskState;
use windlass_model::{Model, Recorder};

use super::wired_agents::misconfigured;
use super::{Project, models, settings, workflows};
use crate::config::{Config, ConfigErrors, ModelSelection};
use crate::show;

/// The models of a task.
pub(super) struct TaskModels {
    pub choice: ModelSelection,
    pub model: Arc<dyn Model>,
    pub summarizer: Summarizer,
    /// Where another comes from; a command of a workflow has none.
    pub source: Option<ModelSource>,
}

impl TaskModels {
    /// Those that a task begins with.
    pub(super) fn open(
        task: &TaskState,
        project: &Arc<Project>,
        config: &Config,
        record: Option<&Path>,
    ) -> Result<Self, ErrorDetails> {
        if let Some(script) = workflows::script(task) {
            let (model, summarizer) = workflows::models(script);
            return Ok(Self { choice: workflows::no_choice(), model, summarizer, source: None });
        }
        let choice = config.models.for_mode(task.axes.model_mode).map_err(config_error)?;
        let source = OtherModels { project: project.clone(), record: record.map(Path::to_owned) };
        Ok(Self {
            model: with_recording(record, project.model(&choice)?, task.attempts.started)?,
            summarizer: summarizer(project, config, &choice)?,
            source: Some(ModelSource { made_for: ModelWish::of(task), source: Arc::new(source) }),
            choice,
        })
    }
}

fn config_error(errors: ConfigErrors) -> ErrorDetails {
    misconfigured(errors.into())
}

/// The model, its replies written down where that was asked for. A run that was interrupted by a question
/// continues its recording.
fn with_recording(
    path: Option<&Path>,
    model: Arc<dyn Model>,
    resumed: bool,
) -> Result<Arc<dyn Model>, ErrorDetails> {
    let Some(path) = path else { return Ok(model) };
    let recorder = match resumed {
        true => Recorder::append(model, path),
        false => Recorder::create(model, path),
    };
    let recorder = recorder.map_err(|error| {
        let message = format!("`{}` cannot be written: {error}", path.display());
        ErrorDetails::new(ErrorType::InvalidCommand, message).with_remedy(Remedy::CheckRecording)
    })?;
    Ok(Arc::new(recorder.with_redaction(|text| show::keys::clean(text).into_owned())))
}

/// Opens the model that a task wants while it is worked on.
struct OtherModels {
    project: Arc<Project>,
    record: Option<PathBuf>,
}

impl OpenModel for OtherModels {
    fn open(&self, task: &TaskState) -> Result<ModelParts, ErrorDetails> {
        self.open_for(&task.execution_config(), task.axes.model_mode)
    }

    fn open_mode(&self, task: &TaskState, mode: ModelMode) -> Result<ModelParts, ErrorDetails> {
        let wishes = ExecutionConfig { model: None, effort: None, ..task.execution_config() };
        self.open_for(&wishes, mode)
    }
}

impl OtherModels {
    fn open_for(
        &self,
        wishes: &ExecutionConfig,
        mode: ModelMode,
    ) -> Result<ModelParts, ErrorDetails> {
        let config = self.project.config().for_task(wishes).map_err(config_error)?;
        let choice = config.models.for_mode(mode).map_err(config_error)?;
        Ok(ModelParts {
            model: with_recording(self.record.as_deref(), self.project.model(&choice)?, true)?,
            summarizer: summarizer(&self.project, &config, &choice)?,
            compaction: settings::compaction(&config, &choice.model),
            tool_output_max_tokens: settings::output_tokens(&config, &choice.model),
            price: models::price(&config, &choice.model),
        })
    }
}

/// Who summarizes: the model named for it, else the fast one, else the agent's own (ES-169).
fn summarizer(
    project: &Project,
    config: &Config,
    own: &ModelSelection,
) -> Result<Summarizer, ErrorDetails> {
    let named = config.compaction.summarization_model.clone().map(ModelSelection::from);
    // A fast model that merely follows the everyday one was not chosen by anybody.
    let fast =
        config.models.fast.as_ref().filter(|&fast| Some(fast) != config.models.smart.as_ref());
    let fast = fast
        .and_then(|fast| Some(ModelSelection { model: fast.model.clone()?, effort: fast.effort }));
    let chosen = named.or(fast).unwrap_or_else(|| own.clone());
    // `--context-window` speaks of the agent's own model.
    let other = config.facts(&chosen.model).context_window.filter(|_| chosen.model != own.model);
    Ok(Summarizer {
        model: project.model(&chosen)?,
        window: other.unwrap_or_else(|| config.context_window(&chosen.model)),
        price: models::price(config, &chosen.model),
    })
}
