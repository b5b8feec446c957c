//! The commands that change axes, and answers that do.

use windlass_core::axes::{RunControl, WorkMode};
use windlass_core::id::{ChangeId, QuestionId};
use windlass_core::session::{AxesChange, Scope, Source};

use super::run::Invocation;
use super::table::SlashCommand;
use super::words::{AxesRequest, Axis, axis};
use super::{Block, Effect, Reply, SlashInput};
use crate::{AxesChangeOutcome, AxesOrder, Error, Session};

/// What `/next` says to an agent that waits.
const NEXT: &str = "Continue with the next step.";

/// A command that changes axes, as a person has called it.
#[derive(Clone, Copy)]
pub(super) struct ModeCommand<'a> {
    invocation: Invocation<'a>,
    session: Session<'a>,
    command: &'static SlashCommand,
    rest: &'a str,
    input: &'a SlashInput,
}

impl<'a> ModeCommand<'a> {
    pub(super) fn new(invocation: Invocation<'a>) -> Self {
        let Invocation { session, command, rest, input } = invocation;
        Self { invocation, session, command, rest, input }
    }

    /// Those that set axes or name a model.
    pub(super) async fn carry_out(self) -> Result<Reply, Error> {
        let rest = self.rest;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let mode = |mode| AxesChange { work_mode: Some(mode), ..AxesChange::default() };
        let control = |control| AxesChange { run_control: Some(control), ..AxesChange::default() };
        match self.command.name {
            "mode" if words.is_empty() => self.show_mode(),
            "model" => self.name_model(&words).await,
            "mode" => self.set_axis(Axis::Mode, &words).await,
            "control" => self.set_axis(Axis::Control, &words).await,
            "permission-profile" => self.set_axis(Axis::Profile, &words).await,
            "model-mode" => self.set_axis(Axis::ModelMode, &words).await,
            "autonomous" => self.switch_axes(control(RunControl::Autonomous), rest).await,
            "next" => {
                let waits = self.session.state()?.conversation.is_some();
                let text = if rest.is_empty() && waits { NEXT } else { rest };
                self.switch_axes(control(RunControl::Assisted), text).await
            }
            "plan" => self.switch_axes(mode(WorkMode::Plan), rest).await,
            "research" => self.switch_axes(mode(WorkMode::Research), rest).await,
            _ => self.switch_axes(mode(WorkMode::Build), rest).await,
        }
    }

    /// The axes, and what of them is about to change.
    fn show_mode(self) -> Result<Reply, Error> {
        let details = self.session.details()?;
        let axes = details.axes;
        let mut fields = vec![
            ("work mode", axes.work_mode.to_string()),
            ("run control", axes.run_control.to_string()),
            ("permission profile", axes.permission_profile.to_string()),
            ("model mode", axes.model_mode.to_string()),
            ("surface", axes.surface.to_string()),
        ];
        fields.extend(details.role.map(|role| ("role", role.to_string())));
        fields.extend(details.model.map(|model| ("model", model)));
        fields.extend(details.for_this_unit.map(|before| ("after this unit", before.to_string())));
        let pending =
            details.pending.iter().map(|one| ("waits", format!("{} {}", one.wanted, one.scope)));
        fields.extend(pending);
        Ok(self.invocation.reply(vec![Block::fields(fields)]))
    }

    async fn set_axis(self, name: Axis, words: &[&str]) -> Result<Reply, Error> {
        let mut order = AxesRequest::read(self.command, words)?;
        // `/mode --permission-profile restricted` names no work mode.
        if order.rest.is_empty() && !order.change.is_empty() {
            let (wanted, scope) = order.finish(self.command)?;
            return self.change_axes(wanted, scope.unwrap_or(Scope::Now)).await;
        }
        if order.rest.is_empty() {
            return Err(self
                .invocation
                .usage_error(format!("`/{}` needs a value", self.command.name)));
        }
        let value = order.rest.remove(0);
        order.set(self.command, name, &value)?;
        let (wanted, scope) = order.finish(self.command)?;
        self.change_axes(wanted, scope.unwrap_or(Scope::Now)).await
    }

    /// `/steer AXIS VALUE [SCOPE]` changes an axis; any other text is a message (MS-087…090).
    pub(super) async fn steer(self) -> Result<Reply, Error> {
        let words: Vec<&str> = self.rest.split_whitespace().collect();
        let Some((name, value, scope)) = steered_axis(&words) else {
            return self.invocation.steer().await;
        };
        let mut order = AxesRequest::default();
        order.set(self.command, name, value)?;
        let scope = match scope {
            Some(word) => axis(self.command, word)?,
            None => Scope::AfterCurrentTool,
        };
        self.change_axes(order.change, scope).await
    }

    /// Sets axes, and works on what was said with them.
    async fn switch_axes(self, wanted: AxesChange, text: &str) -> Result<Reply, Error> {
        let changed = self.change_axes(wanted, Scope::Now).await?;
        if text.is_empty() {
            return Ok(changed);
        }
        let mut reply = self.invocation.work(text).await?;
        reply.blocks.splice(0..0, changed.blocks);
        Ok(reply)
    }

    async fn change_axes(self, wanted: AxesChange, scope: Scope) -> Result<Reply, Error> {
        let id = self.input.request.as_deref().map(|request| ChangeId::derived(request, "axes"));
        let changed = self
            .session
            .change(AxesOrder {
                wanted,
                scope,
                reason: format!("/{}", self.input.line.trim().trim_start_matches('/')),
                source: Source::User,
                by: self.input.by.clone(),
                id,
            })
            .await?;
        Ok(self.invocation.say(in_words(&changed)).with(Effect::Axes { axes: changed.to }))
    }

    async fn name_model(self, words: &[&str]) -> Result<Reply, Error> {
        let text = match words {
            [] => match self.session.state()?.model {
                Some(model) => format!("{model}; `/model default` leaves it to the model mode"),
                None => "as the model mode says; `/model NAME` names one".to_owned(),
            },
            ["default"] => {
                self.session.choose_model(None, &self.input.by).await?;
                "the model mode chooses the model".to_owned()
            }
            [name] => {
                self.input.reach.check_model(name)?;
                let model = self.session.choose_model(Some(name), &self.input.by).await?;
                format!("{} from the next request on", model.unwrap_or_default())
            }
            _ => {
                return Err(self
                    .invocation
                    .usage_error("a model is one word, as `provider/model`"));
            }
        };
        Ok(self.invocation.say(text))
    }

    /// Lists what waits for an answer, or answers it, also with other axes (MS-176, MS-218).
    pub(super) async fn remote(self) -> Result<Reply, Error> {
        let inbox = self.session.coordinator.inbox();
        if self.rest.is_empty() {
            return Ok(match self.questions()? {
                Some(table) => self.invocation.reply(vec![table]),
                None => self.invocation.say("Nothing waits for an answer."),
            });
        }
        let words: Vec<&str> = self.rest.split_whitespace().collect();
        let order = AxesRequest::read(self.command, &words)?;
        let mut rest = order.rest.iter();
        let question =
            rest.next().ok_or_else(|| self.invocation.usage_error("name the question"))?;
        let question = inbox.find(question)?;
        let answer = rest.cloned().collect::<Vec<_>>().join(" ");
        if answer.is_empty() {
            return Err(self.invocation.usage_error("write the answer after the question"));
        }
        self.answer(question, &answer, order.change).await?;
        let task = inbox.get(question)?.map(|asked| asked.row.task);
        let reply = self.invocation.say(format!("answered {question}"));
        Ok(match task {
            Some(task) => {
                reply.with(Effect::Work { task: self.session.coordinator.tasks().root(task)? })
            }
            None => reply,
        })
    }

    /// Everything that waits for a person: questions, and skills that are proposed.
    pub(super) fn inbox(self) -> Result<Reply, Error> {
        let row = |proposal: crate::skill_proposals::Proposal| {
            let why = proposal.evidence.first().map(crate::skill_proposals::Finding::words);
            vec![proposal.number.to_string(), proposal.name, why.unwrap_or_default()]
        };
        let proposals = self.session.coordinator.skill_proposals().open()?;
        let rows: Vec<_> = proposals.into_iter().map(row).collect();
        let proposals = (!rows.is_empty())
            .then(|| Block::table(&["PROPOSED SKILL", "NAME", "BECAUSE"], &[0], rows));
        let blocks: Vec<_> = self.questions()?.into_iter().chain(proposals).collect();
        Ok(match blocks.is_empty() {
            true => self.invocation.say("Nothing waits for you."),
            false => self.invocation.reply(blocks),
        })
    }

    /// The questions that wait for an answer; `None` where there are none.
    fn questions(self) -> Result<Option<Block>, Error> {
        let row = |asked: crate::views::OpenQuestion| {
            let question = asked.row.question;
            vec![
                question.id.to_string(),
                asked.row.task.to_string(),
                question.question,
                question.options.join(" / "),
            ]
        };
        let rows: Vec<_> = self.session.coordinator.inbox().open()?.into_iter().map(row).collect();
        let headings = ["QUESTION", "TASK", "ASKS", "ANSWERS"];
        Ok((!rows.is_empty()).then(|| Block::table(&headings, &[], rows)))
    }

    async fn answer(
        self,
        question: QuestionId,
        answer: &str,
        change: AxesChange,
    ) -> Result<(), Error> {
        let inbox = self.session.coordinator.inbox();
        match change.is_empty() {
            true => inbox.answer(question, answer, &self.input.by).await.map(drop),
            false => {
                inbox.answer_with_axes(question, answer, change, &self.input.by).await.map(drop)
            }
        }?;
        self.session.coordinator.queue().wake();
        Ok(())
    }
}

/// An axis, its value and perhaps a scope, where a text for `/steer` names them and nothing else.
fn steered_axis<'w>(words: &[&'w str]) -> Option<(Axis, &'w str, Option<&'w str>)> {
    let name: Axis = words.first()?.parse().ok()?;
    match words {
        [_, value] => Some((name, value, None)),
        [_, value, scope] => Some((name, value, Some(scope))),
        _ => None,
    }
}

/// What became of a change, in words.
pub(super) fn in_words(changed: &AxesChangeOutcome) -> String {
    let left = changed.left_role.map(|role| {
        let profile = changed.to.permission_profile;
        format!("; you left the {} role, and the profile stays {profile}", role.title())
    });
    axes_in_words(changed) + &left.unwrap_or_default()
}

fn axes_in_words(changed: &AxesChangeOutcome) -> String {
    let AxesChangeOutcome { from, to, scope, waits, .. } = changed;
    match (waits, scope) {
        (_, _) if from == to => format!("already {to}"),
        (true, Scope::Now | Scope::AfterCurrentTool) => {
            format!("{to}, when the running step has ended")
        }
        (true, Scope::AfterCurrentUnit | Scope::NextMilestone) => {
            format!("{to}, when the current work is finished")
        }
        (true, Scope::ForNextUnit) => format!("{to}, for the work after this alone"),
        (false, Scope::ForNextUnit) => format!("{to}, for the next work alone"),
        (false, _) => to.to_string(),
    }
}
