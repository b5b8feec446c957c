//! Carrying out a slash command.

use strsim::damerau_levenshtein;
use windlass_core::event::Driver;
use windlass_core::id::{InjectionId, TaskId};
use windlass_core::injection::{Control, Injection};

use super::modes::ModeCommand;
use super::plans::PlanCommand;
use super::reports::Report;
use super::table::{Availability, SlashCommand, TABLE, find};
use super::words::usage_error;
use super::workflow::WorkflowCommand;
use super::{Block, Effect, Reach, Reply, SlashInput};
use crate::{ControlOutcome, Delivery, Error, Session, SkillCommand, Talk};

/// A name that needs more changes than this is another name.
const NEAR: usize = 2;

/// Command names that people know from elsewhere.
const ALIASES: &[(&str, &str)] =
    &[("cancel", "stop"), ("questions", "remote"), ("commands", "help")];

impl Session<'_> {
    /// Carries out a slash command and answers it with data.
    pub async fn run(self, input: SlashInput) -> Result<Reply, Error> {
        let line = input.line.trim().trim_start_matches('/');
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let known = ALIASES.iter().find(|(alias, _)| *alias == word).map_or(word, |(_, name)| name);
        let Some(command) = find(known) else { return self.run_skill(word, line, &input).await };
        match (command.availability, input.reach) {
            (Availability::Admins, Reach::Own) => {
                let what = format!("`/{}` shows or changes everybody's work", command.name);
                return Err(Error::NotAllowed { what });
            }
            (Availability::Admins | Availability::Everywhere, _) => {}
        }
        Invocation { session: self, command, rest: rest.trim(), input: &input }.carry_out().await
    }

    /// A message in which a skill is called by its name, or the error that names the nearest command.
    async fn run_skill(self, name: &str, line: &str, input: &SlashInput) -> Result<Reply, Error> {
        let skills = self.skills()?;
        if skills.iter().any(|skill| skill.name == name) {
            return work(self, name, &format!("/{line}"), input).await;
        }
        let names = TABLE.iter().map(|command| command.name.to_owned());
        let names = names.chain(skills.into_iter().map(|skill| skill.name));
        let near = names
            .map(|known| (damerau_levenshtein(&known, name), known))
            .filter(|(distance, known)| {
                *distance <= NEAR && *distance < known.len().min(name.len())
            })
            .min();
        let nearest = near.map(|(_, known)| known);
        Err(Error::UnknownCommand { name: name.to_owned(), nearest })
    }

    /// The skills that a person may call in the session's directory.
    pub fn skills(self) -> Result<Vec<SkillCommand>, Error> {
        // One that does not exist yet has no directory.
        let directory = self.state().ok().and_then(|state| state.created.workspace);
        let skills = self.coordinator.agents.skill_commands(directory.as_deref());
        skills.map_err(|details| Error::Unusable { details: Box::new(details) })
    }
}

/// A command of the table as a person has called it.
#[derive(Clone, Copy)]
pub(super) struct Invocation<'a> {
    pub(super) session: Session<'a>,
    pub(super) command: &'static SlashCommand,
    /// What follows its name.
    pub(super) rest: &'a str,
    pub(super) input: &'a SlashInput,
}

impl Invocation<'_> {
    async fn carry_out(self) -> Result<Reply, Error> {
        match self.command.name {
            "mode" | "control" | "permission-profile" | "model-mode" | "model" | "autonomous"
            | "next" | "plan" | "research" | "implement" => {
                ModeCommand::new(self).carry_out().await
            }
            "architect" | "executor" | "auditor" => self.take_role().await,
            "steer" => ModeCommand::new(self).steer().await,
            "pause" => self.signal(Control::Pause).await,
            "interrupt" => self.signal(Control::Interrupt).await,
            "resume" => self.signal(Control::Resume).await,
            "stop" => self.stop().await,
            "remote" => ModeCommand::new(self).remote().await,
            "inbox" => ModeCommand::new(self).inbox(),
            "clear" => self.clear().await,
            "rate" => self.rate().await,
            "doctor" => self.doctor().await,
            "repair" => self.repair().await,
            "workflow" => WorkflowCommand::new(self).carry_out().await,
            "plans" => PlanCommand::new(self).carry_out().await,
            "help" => self.help(),
            _ => Report::new(self).answer(),
        }
    }

    /// The answer to it.
    pub(super) fn reply(self, blocks: Vec<Block>) -> Reply {
        Reply::of(self.command.name, blocks)
    }

    /// The answer to it, in words.
    pub(super) fn say(self, words: impl Into<String>) -> Reply {
        Reply::words(self.command.name, words)
    }

    /// The error of a command that is used otherwise than it can be.
    pub(super) fn usage_error(self, problem: impl ToString) -> Error {
        usage_error(self.command, problem)
    }

    /// The id of the message that it sends: the same when the same line is delivered again.
    fn injection_id(self) -> InjectionId {
        let request = self.input.request.as_deref();
        self.session.coordinator.triggers().injection_id(request, "message")
    }

    /// Sends a message, and says which task has something to do now.
    pub(super) async fn work(self, text: &str) -> Result<Reply, Error> {
        work(self.session, self.command.name, text, self.input).await
    }

    /// Pauses or resumes a task.
    async fn signal(self, control: Control) -> Result<Reply, Error> {
        self.signal_task(self.session.target(self.rest)?, control).await
    }

    /// The same of a task that was found otherwise.
    pub(super) async fn signal_task(self, task: TaskId, control: Control) -> Result<Reply, Error> {
        let id = self.injection_id();
        let resumes = control == Control::Resume;
        let steered =
            self.session.coordinator.control().steer_as(id, task, control, &self.input.by).await?;
        self.session.coordinator.queue().wake();
        let effect = match (&steered, resumes, self.input.driver) {
            (ControlOutcome::Applied(_), true, Driver::Foreground) => Effect::Work { task },
            (ControlOutcome::Applied(_), true, Driver::Service)
            | (ControlOutcome::Applied(_), false, Driver::Foreground | Driver::Service)
            | (ControlOutcome::Queued(_), ..) => Effect::Steered { task },
        };
        Ok(self.say(format!("{task} {steered}")).with(effect))
    }

    /// Cancels everything of the session that has not ended, and so empties its queue (MS-055).
    async fn stop(self) -> Result<Reply, Error> {
        let session = self.session.id();
        let reason = (!self.rest.is_empty()).then(|| self.rest.to_owned());
        let live = self.session.live_tasks()?;
        let active = self.session.target("").ok();
        let last = active.or(live.last().map(|task| task.id));
        let last = last.ok_or(Error::NothingActive { session })?;
        let mut lines = Vec::new();
        for task in live {
            let id = InjectionId::derived(&self.injection_id().to_string(), &task.id.to_string());
            let cancel = Control::Cancel { reason: reason.clone() };
            let steered = self
                .session
                .coordinator
                .control()
                .steer_as(id, task.id, cancel, &self.input.by)
                .await?;
            lines.push(format!("{} {steered}", task.id));
        }
        self.session.coordinator.queue().wake();
        let effect = Effect::Steered { task: last };
        Ok(self.say(lines.join("\n")).with(effect))
    }

    /// Tells the active task something.
    pub(super) async fn steer(self) -> Result<Reply, Error> {
        if self.rest.is_empty() {
            return Err(self.usage_error("`/steer` needs an axis and a value, or a text"));
        }
        let task = self.session.target("")?;
        let id = self.injection_id();
        let injection = Injection::message(id, self.rest).from(&self.input.by);
        self.session.coordinator.messages().inject(task, injection).await?;
        self.session.coordinator.queue().wake();
        Ok(self.say(format!("sent to {task}")).with(Effect::Work { task }))
    }

    async fn clear(self) -> Result<Reply, Error> {
        let words = match self.session.conversation().clear(&self.input.by).await? {
            Some(_) => "The conversation is over. The next message starts another.",
            None => "There is no conversation to end.",
        };
        Ok(self.say(words).with(Effect::Cleared))
    }

    async fn rate(self) -> Result<Reply, Error> {
        let (stars, note) = self.rest.split_once(char::is_whitespace).unwrap_or((self.rest, ""));
        let stars = stars.parse::<u8>().ok().filter(|stars| (1..=5).contains(stars));
        let stars = stars.ok_or_else(|| self.usage_error("a rating is a number from 1 to 5"))?;
        let rated = self.session.rate(stars, note.trim(), &self.input.by).await?;
        let model = rated.model.as_deref().unwrap_or("no model");
        let words = format!("{} of 5 for {} ({model}, {})", rated.stars, rated.task, rated.axes);
        Ok(self.say(words))
    }

    fn help(self) -> Result<Reply, Error> {
        let name = self.rest.trim_start_matches('/');
        if !name.is_empty() {
            let unknown = || Error::UnknownCommand { name: name.to_owned(), nearest: None };
            let about = find(name).ok_or_else(unknown)?;
            let blocks =
                vec![Block::heading(about.usage()), Block::Words { text: about.help.to_owned() }];
            return Ok(self.reply(blocks));
        }
        let mut blocks = Vec::new();
        for group in super::Group::ALL {
            blocks.push(Block::heading(group.title()));
            let of = TABLE.iter().filter(|one| one.group == group);
            blocks.push(Block::fields(of.map(|one| (one.usage(), one.help.to_owned()))));
        }
        let skills = self.skill_block()?;
        if let Some(skills) = skills {
            blocks.push(Block::heading("Skills"));
            blocks.push(skills);
        }
        Ok(self.reply(blocks))
    }

    /// The skills that a person may call; `None` where there are none.
    pub(super) fn skill_block(self) -> Result<Option<Block>, Error> {
        let fields = self
            .session
            .skills()?
            .into_iter()
            .map(|skill| (format!("/{}", skill.name), skill.description));
        let fields: Vec<_> = fields.collect();
        Ok((!fields.is_empty()).then(|| Block::fields(fields)))
    }
}

async fn work(
    session: Session<'_>,
    command: &str,
    text: &str,
    input: &SlashInput,
) -> Result<Reply, Error> {
    let SlashInput { by, driver, share, request, .. } = input;
    let talk = Talk {
        shown: None,
        text: text.to_owned(),
        pictures: Vec::new(),
        by: by.clone(),
        driver: *driver,
        share: *share,
        request: request.clone(),
    };
    let sent = session.conversation().send(talk).await?;
    let words = match &sent {
        Delivery::Begun { task, place: Some(place) } => {
            format!("{task} is queued, number {place} in line")
        }
        Delivery::Begun { task, place: None } => format!("{task} begins"),
        Delivery::Delivered { task } => format!("sent to {task}"),
    };
    Ok(Reply::words(command, words).with(Effect::Work { task: sent.task() }))
}
